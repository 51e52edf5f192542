//! The slice of a run that a Gantt shows, and its contents.

use macrotick_model::{CpuTable, Duration, Segment, Window};

use crate::jobs::Outcome;
use crate::report::Report;

/// The stretch `[from, to)` of a run, since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub from: Duration,
    pub to: Duration,
}

impl Slice {
    pub fn length(&self) -> Duration {
        self.to - self.from
    }

    /// Returns the first slice of a run: a whole cycle, and at least a period of each task without windows. It is
    /// shorter if that contains more than `most` periods of the fastest task.
    pub fn first(report: &Report, most: i64) -> Slice {
        let cycle = report.longest_ns();
        let shortest = report.tasks.iter().map(|task| task.period_ns).min().unwrap_or(cycle).max(1);
        let length = cycle.min(shortest.saturating_mul(most)).min(report.duration_ns.max(1));
        Slice { from: Duration::ZERO, to: Duration::from_nanos(length) }
    }

    /// Returns a slice with a job from its nominal instant on. It is at least as long as `least`.
    pub fn around(report: &Report, job: &Outcome, least: Slice) -> Slice {
        let until = job.end.unwrap_or(job.deadline).max(job.deadline);
        let needed = (until - job.nominal).as_nanos().saturating_mul(5) / 4;
        let length = needed.max(least.length().as_nanos()).min(report.longest_ns());
        let lead = Duration::from_nanos(length / 10);
        let from = (job.nominal - lead).max(Duration::ZERO);
        Slice { from, to: from + Duration::from_nanos(length) }
    }

    /// Whether the slice contains a part of a job up to its deadline.
    pub fn shows(&self, job: &Outcome) -> bool {
        let until = job.end.unwrap_or(job.deadline).max(job.deadline);
        job.nominal < self.to && until > self.from
    }
}

/// Returns the jobs of a task that a slice shows.
pub(crate) fn jobs_in(jobs: &[Outcome], slice: Slice) -> impl Iterator<Item = &Outcome> {
    jobs.iter().take_while(move |job| job.nominal < slice.to).filter(move |job| slice.shows(job))
}

/// Returns the pieces of a span in which a task had a CPU, from a trace.
pub(crate) fn pieces(segments: &[Segment], task: &str, span: (Duration, Duration)) -> Vec<(Duration, Duration)> {
    clipped(segments.iter().filter(|segment| segment.who == task), span)
}

/// Returns the pieces of a span in which a thread of a pool had a CPU, from a trace.
pub(crate) fn pool_pieces(segments: &[Segment], pool: &str, span: (Duration, Duration)) -> Vec<(Duration, Duration)> {
    clipped(segments.iter().filter(|segment| segment.pool.as_deref() == Some(pool)), span)
}

fn clipped<'a>(segments: impl Iterator<Item = &'a Segment>, span: (Duration, Duration)) -> Vec<(Duration, Duration)> {
    let at = Duration::from_nanos;
    let clip = |segment: &Segment| (at(segment.start_ns).max(span.0), at(segment.end_ns).min(span.1));
    segments.map(clip).filter(|(from, to)| from < to).collect()
}

/// Returns the windows of a task or pool in a slice, as `[from, to)` since the epoch, clipped to it.
pub(crate) fn windows_in(report: &Report, task: &str, slice: Slice) -> Vec<(Duration, Duration)> {
    report.tables.iter().flat_map(|table| windows_on(report, table, task, slice)).collect()
}

/// Returns the windows of [`windows_in`] on one CPU.
pub(crate) fn windows_on(report: &Report, table: &CpuTable, task: &str, slice: Slice) -> Vec<(Duration, Duration)> {
    let cycle = Duration::from_nanos(report.cycle_ns.max(1));
    let windows: Vec<&Window> = table.windows.iter().filter(|window| window.task == task).collect();
    let (first, last) = (slice.from / cycle, (slice.to - Duration::from_nanos(1)) / cycle);
    (first..=last)
        .flat_map(|number| windows.iter().map(move |window| (window.offset + cycle * number, window.length)))
        .map(|(from, length)| (from.max(slice.from), (from + length).min(slice.to)))
        .filter(|(from, to)| from < to)
        .collect()
}

/// Returns the job with the least slack: the one furthest beyond its deadline. If there is none, it is the first job
/// that did not end, or else the job that ended closest to its deadline.
pub(crate) fn worst_job(report: &Report) -> Option<(&str, &Outcome)> {
    let slack = |job: &Outcome| job.slack().unwrap_or(Duration::ZERO);
    let jobs = report.tasks.iter().flat_map(|task| task.jobs.iter().map(|job| (task.name.as_str(), job)));
    jobs.min_by_key(|(_, job)| slack(job))
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::segment;

    use super::*;

    #[test]
    fn slices_are_half_open() {
        let at = Duration::from_nanos;
        let slice = Slice { from: at(100), to: at(200) };
        let job = |nominal, deadline, end: Option<i64>| Outcome {
            job: 0,
            nominal: at(nominal),
            deadline: at(deadline),
            start: end.map(|_| at(nominal)),
            end: end.map(at),
        };
        let shown = [job(50, 101, None), job(50, 90, Some(101)), job(199, 300, Some(250)), job(120, 130, Some(125))];
        assert!(shown.iter().all(|job| slice.shows(job)));
        let hidden = [job(50, 100, Some(90)), job(50, 90, Some(100)), job(200, 300, Some(250))];
        assert!(!hidden.iter().any(|job| slice.shows(job)));
    }

    #[test]
    fn pieces_are_clipped_to_their_span() {
        let at = Duration::from_nanos;
        let trace = [segment("a", 0, 10), segment("b", 10, 20), segment("a", 20, 30), segment("a", 30, 40)];
        assert_eq!(pieces(&trace, "a", (at(5), at(30))), [(at(5), at(10)), (at(20), at(30))]);
        let pooled = trace.map(|segment| Segment { pool: (segment.who == "b").then(|| "p".into()), ..segment });
        assert_eq!(pool_pieces(&pooled, "p", (at(0), at(15))), [(at(10), at(15))]);
        assert_eq!(pool_pieces(&pooled, "b", (at(0), at(15))), []);
    }
}
