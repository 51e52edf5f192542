//! Conversion of the tasks' records to the jobs of the observation.

use macrotick_model::plan::PlannedJob;
use macrotick_model::{Duration, Instant, Job, TaskObservation};

use crate::block::abi::Record;

/// The parameters for reading records.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The start of cycle 0.
    pub epoch: Instant,
    /// The cycle.
    pub cycle: Duration,
    /// The observed time.
    pub duration: Duration,
    /// Whether the table moves with its clock. Then instants are instants of the table, as in the plan.
    pub follows: bool,
}

/// The jobs of a task, and the faults in its records.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The jobs with a deadline within the duration, up to the first job without room for its record.
    pub jobs: Vec<Job>,
    /// The nominal instant of the first job without room for its record.
    pub until: Option<Duration>,
    /// The number of records that do not fit the plan: it has no such job, or has it at another nominal instant.
    pub strange: usize,
}

/// Merges the records with the jobs that the plan expects. `planned` are the jobs of one cycle. Events after the
/// duration do not count. Therefore the result does not depend on the instant at which the runner ended the run. If
/// there was no room for more records (`is_full`), the fate of the jobs after the last record is unknown.
pub fn merge(frame: Frame, planned: &[PlannedJob], records: &[Record], is_full: bool) -> Merged {
    let mut merged = Merged::default();
    let mut records = records.iter().peekable();
    for (number, nominal, deadline) in expected(frame, planned) {
        let room = !(is_full && records.peek().is_none()) && merged.jobs.len() < TaskObservation::MOST_JOBS;
        if !room && deadline <= frame.duration {
            merged.until = Some(nominal);
            break;
        }
        while records.next_if(|record| record.job < number).is_some() {
            merged.strange += 1;
        }
        let record = records.next_if(|record| record.job == number);
        let moved =
            record.map_or(0, |record| (record.nominal_ns as i64).wrapping_sub((frame.epoch + nominal).as_nanos()));
        if moved != 0 && !frame.follows {
            merged.strange += 1;
        }
        let frame = Frame { epoch: moved_by(frame.epoch, if frame.follows { moved } else { 0 }), ..frame };
        if deadline > frame.duration {
            continue;
        }
        let start = record.and_then(|record| within(frame, record.start_ns));
        let end = record.filter(|_| start.is_some()).and_then(|record| within(frame, record.end_ns));
        merged.jobs.push(Job { job: number, nominal, start, end });
    }
    merged
}

/// Returns number, nominal instant and deadline of every job with its nominal instant within the duration, in order.
fn expected(frame: Frame, planned: &[PlannedJob]) -> impl Iterator<Item = (u64, Duration, Duration)> + '_ {
    (0u64..)
        .map(move |number| {
            let (cycle, index) = (number / planned.len() as u64, number as usize % planned.len());
            let base = frame.cycle * cycle as i64;
            (number, base + planned[index].nominal, base + planned[index].deadline)
        })
        .take_while(move |(_, nominal, _)| *nominal < frame.duration)
}

/// Moves the epoch. The number comes from a program and may have any value.
fn moved_by(epoch: Instant, ns: i64) -> Instant {
    Instant::from_nanos(epoch.as_nanos().wrapping_add(ns))
}

/// Returns an instant since the epoch. Zero means never.
fn within(frame: Frame, ns: u64) -> Option<Duration> {
    if ns == 0 {
        return None;
    }
    // A program may write any number there.
    let since = Duration::from_nanos((ns as i64).wrapping_sub(frame.epoch.as_nanos()));
    Some(since).filter(|since| *since <= frame.duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: i64 = 1_000_000;

    fn frame(duration: i64) -> Frame {
        Frame {
            epoch: Instant::from_nanos(EPOCH),
            cycle: Duration::from_nanos(1000),
            duration: Duration::from_nanos(duration),
            follows: false,
        }
    }

    fn planned(jobs: &[(i64, i64)]) -> Vec<PlannedJob> {
        let ns = Duration::from_nanos;
        jobs.iter().map(|&(nominal, deadline)| PlannedJob { nominal: ns(nominal), deadline: ns(deadline) }).collect()
    }

    fn record(job: u64, nominal: i64, start: i64, end: Option<i64>) -> Record {
        let at = |ns: i64| (EPOCH + ns) as u64;
        Record { job, nominal_ns: at(nominal), start_ns: at(start), end_ns: end.map_or(0, at) }
    }

    fn numbers(merged: &Merged) -> Vec<(u64, i64, Option<i64>, Option<i64>)> {
        let ns = |time: Option<Duration>| time.map(Duration::as_nanos);
        merged.jobs.iter().map(|job| (job.job, job.nominal.as_nanos(), ns(job.start), ns(job.end))).collect()
    }

    #[test]
    fn jobs_that_never_ran_are_listed() {
        let records = [record(0, 100, 103, Some(150)), record(2, 1100, 1105, None)];
        let merged = merge(frame(2000), &planned(&[(100, 300), (600, 800)]), &records, false);
        assert_eq!(
            numbers(&merged),
            [(0, 100, Some(103), Some(150)), (1, 600, None, None), (2, 1100, Some(1105), None), (3, 1600, None, None)]
        );
        assert_eq!(merged.strange, 0);
    }

    #[test]
    fn whatever_is_written_into_records_is_read() {
        let odd = Record { job: 1, nominal_ns: 1 << 63, start_ns: 1 << 63, end_ns: u64::MAX };
        for (follows, strange) in [(false, 1), (true, 0)] {
            let merged = merge(Frame { follows, ..frame(2000) }, &planned(&[(100, 300)]), &[odd], false);
            assert_eq!((merged.jobs.len(), merged.strange), (2, strange));
        }
    }

    #[test]
    fn a_table_that_moves_takes_its_jobs_along() {
        let records = [record(0, 107, 110, Some(157)), record(1, 1090, 1094, None)];
        let follows = Frame { follows: true, ..frame(2000) };
        let merged = merge(follows, &planned(&[(100, 300)]), &records, false);
        assert_eq!(numbers(&merged), [(0, 100, Some(103), Some(150)), (1, 1100, Some(1104), None)]);
        assert_eq!(merged.strange, 0);
    }

    #[test]
    fn only_deadlines_within_the_duration_count() {
        // The second job of a cycle has its deadline in the next cycle. A deadline exactly at the end of the run
        // counts.
        let jobs = planned(&[(100, 300), (600, 1200)]);
        assert_eq!(merge(frame(1200), &jobs, &[], false).jobs.len(), 2);
        assert_eq!(merge(frame(1199), &jobs, &[], false).jobs.len(), 1);
    }

    #[test]
    fn what_happened_after_the_end_did_not_happen() {
        let records = [record(0, 100, 103, Some(1001))];
        let merged = merge(frame(1000), &planned(&[(100, 300)]), &records, false);
        assert_eq!(numbers(&merged), [(0, 100, Some(103), None)]);
    }

    #[test]
    fn nobody_knows_what_there_was_no_room_for() {
        let records = [record(0, 100, 103, Some(150)), record(2, 1100, 1105, Some(1190))];
        let merged = merge(frame(2000), &planned(&[(100, 300), (600, 800)]), &records, true);
        assert_eq!(
            numbers(&merged),
            [(0, 100, Some(103), Some(150)), (1, 600, None, None), (2, 1100, Some(1105), Some(1190))]
        );
        assert_eq!(merged.until, Some(Duration::from_nanos(1600)));
    }

    #[test]
    fn a_task_that_never_runs_fills_no_memory() {
        let merged = merge(frame(1 << 40), &planned(&[(100, 300)]), &[], false);
        assert_eq!(merged.jobs.len(), TaskObservation::MOST_JOBS);
        assert_eq!(merged.until, Some(Duration::from_nanos(100 + (TaskObservation::MOST_JOBS as i64) * 1000)));
    }

    #[test]
    fn strange_records_are_counted() {
        let wrong_instant = [record(0, 101, 103, Some(150))];
        assert_eq!(merge(frame(1000), &planned(&[(100, 300)]), &wrong_instant, false).strange, 1);
        let twice = [record(0, 100, 103, Some(150)), record(0, 100, 160, Some(170)), record(1, 1100, 1103, None)];
        assert_eq!(merge(frame(2000), &planned(&[(100, 300)]), &twice, false).strange, 1);
    }
}
