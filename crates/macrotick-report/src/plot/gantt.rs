//! Planned against actual: a row per task and pool, windows as outlines, executions as bars.

use std::fmt::Write;

use macrotick_model::{Duration, Segment};

use super::axis::Axis;
use super::svg::{number, Anchor, Picture};
use crate::jobs::Outcome;
use crate::report::{Report, TaskReport};
use crate::timeline::{jobs_in, pieces, windows_on, Slice};
use crate::words;

const WIDTH: f64 = 1200.0;
const LABELS: f64 = 132.0;
const RIGHT: f64 = 24.0;
const ROW: f64 = 34.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;
/// The least width of a bar, so short times remain visible.
const THINNEST: f64 = 1.0;

struct Chart<'a> {
    picture: Picture,
    slice: Slice,
    axis: Axis,
    segments: &'a [Segment],
}

/// Draws a slice of a run. `segments` may be empty: bars then span from start to end. The `marked` job, with the name of
/// its task, has a frame.
pub(crate) fn draw(report: &Report, segments: &[Segment], slice: Slice, marked: Option<(&str, &Outcome)>) -> Picture {
    let here: Vec<Segment> = segments.iter().filter(|segment| shows(segment, slice)).cloned().collect();
    let others = here.iter().any(|segment| is_other(report, segment));
    let named = report.tasks.len() + report.pools.len();
    let rows = named + usize::from(others);
    let title = format!("Planned against actual from {} to {}", absolute(slice.from), absolute(slice.to));
    let picture = Picture::new(WIDTH, TOP + rows as f64 * ROW + BOTTOM, &title);
    let axis = Axis::exactly(slice.from.as_nanos() as f64, slice.to.as_nanos() as f64);
    let mut chart = Chart { picture, slice, axis, segments: &here };
    chart.grid(rows);
    for (row, task) in report.tasks.iter().enumerate() {
        let top = TOP + row as f64 * ROW;
        chart.task(report, task, top);
        if let Some((_, job)) = marked.filter(|(name, _)| *name == task.name) {
            let end = job.end.unwrap_or(job.deadline).max(job.deadline);
            chart.bar("framed", (job.nominal, end), (top, 2.0), &hover(&task.name, job));
        }
    }
    for (row, pool) in report.pools.iter().enumerate() {
        chart.pool(report, &pool.name, TOP + (report.tasks.len() + row) as f64 * ROW);
    }
    if others {
        chart.others(report, TOP + named as f64 * ROW);
    }
    chart.picture
}

fn shows(segment: &Segment, slice: Slice) -> bool {
    segment.start_ns < slice.to.as_nanos() && segment.end_ns > slice.from.as_nanos()
}

/// Whether a segment belongs neither to a task nor to a pool.
fn is_other(report: &Report, segment: &Segment) -> bool {
    report.task(&segment.who).is_none() && segment.pool.is_none()
}

fn absolute(instant: Duration) -> String {
    format!("{} ms", words::us(instant.as_nanos() / 1000))
}

impl Chart<'_> {
    fn x(&self, instant: Duration) -> f64 {
        LABELS + self.axis.position(instant.as_nanos() as f64).clamp(0.0, 1.0) * (WIDTH - LABELS - RIGHT)
    }

    fn grid(&mut self, rows: usize) {
        let bottom = TOP + rows as f64 * ROW;
        for row in (0..rows).step_by(2) {
            self.picture.rect("stripe", (0.0, TOP + row as f64 * ROW), (WIDTH, ROW), "");
        }
        for (ns, label) in self.axis.ticks() {
            let x = self.x(Duration::from_nanos(ns as i64));
            self.picture.line("grid", (x, TOP), (x, bottom + 4.0));
            self.picture.text("tick", (x, bottom + 17.0), Anchor::Middle, &label);
        }
    }

    fn label(&mut self, name: &str, top: f64) {
        self.picture.text("label", (LABELS - 10.0, top + ROW / 2.0 + 4.0), Anchor::End, &crate::table::cut(name, 18));
    }

    fn task(&mut self, report: &Report, task: &TaskReport, top: f64) {
        self.label(&task.name, top);
        self.windows(report, &task.name, top);
        let jobs: Vec<&Outcome> = jobs_in(&task.jobs, self.slice).collect();
        for job in jobs {
            self.job(&task.name, job, top);
        }
    }

    /// Draws all windows of a row as one path. On several CPUs each CPU has a path with its number.
    fn windows(&mut self, report: &Report, name: &str, top: f64) {
        let each = report.tables.iter().map(|table| (table.cpu, windows_on(report, table, name, self.slice)));
        let each: Vec<_> = each.filter(|(_, windows)| !windows.is_empty()).collect();
        let several = each.len() > 1;
        for (cpu, windows) in &each {
            self.outline(windows, top, &if several { format!("{name} on CPU {cpu}") } else { String::new() });
        }
    }

    fn outline(&mut self, windows: &[(Duration, Duration)], top: f64, hover: &str) {
        let mut data = String::new();
        for &(from, to) in windows {
            let (from, to) = (self.x(from), self.x(to));
            let width = number((to - from).max(THINNEST));
            let _ = write!(data, "M{} {}h{width}v{}h-{width}z", number(from), number(top + 4.0), number(ROW - 8.0));
        }
        self.picture.path("window", &data, hover);
    }

    fn job(&mut self, task: &str, job: &Outcome, top: f64) {
        let hover = hover(task, job);
        let class = if job.missed() { "ran late" } else { "ran" };
        let end = job.end.unwrap_or(self.slice.to.max(job.deadline));
        match job.start {
            Some(start) if self.segments.is_empty() => self.bar(class, (start, end), (top, 10.0), &hover),
            Some(start) => self.pieces(task, class, (start, end), top, &hover),
            None => self.bar("never", (job.nominal, job.deadline), (top, 8.0), &hover),
        }
        if job.missed() && job.deadline <= self.slice.to && job.deadline > self.slice.from {
            let (x, y) = (number(self.x(job.deadline)), number(top + 8.0));
            self.picture.path("missed", &format!("M{x} {y}l-4 -7h8z"), &hover);
        }
    }

    /// Draws a job's span as a thin bar, and the pieces in which it had a CPU as thick bars. Without pieces, for
    /// example after the end of a trace, only the span is known.
    fn pieces(&mut self, task: &str, class: &str, span: (Duration, Duration), top: f64, hover: &str) {
        let pieces = pieces(self.segments, task, span);
        if pieces.is_empty() {
            return self.bar(class, span, (top, 10.0), hover);
        }
        self.bar(&format!("span {class}"), span, (top, 15.0), hover);
        for piece in pieces {
            self.bar(class, piece, (top, 10.0), hover);
        }
    }

    /// Draws a bar in a row, `inset` from its edges.
    fn bar(&mut self, class: &str, (from, to): (Duration, Duration), (top, inset): (f64, f64), hover: &str) {
        if to <= self.slice.from || from >= self.slice.to {
            return;
        }
        let (from, to) = (self.x(from), self.x(to));
        self.picture.rect(class, (from, top + inset), ((to - from).max(THINNEST), ROW - 2.0 * inset), hover);
    }

    fn pool(&mut self, report: &Report, pool: &str, top: f64) {
        self.label(pool, top);
        self.windows(report, pool, top);
        self.threads("ran", (top, 10.0), |segment| segment.pool.as_deref() == Some(pool));
    }

    fn others(&mut self, report: &Report, top: f64) {
        self.label("everything else", top);
        self.threads("other", (top, 12.0), |segment| is_other(report, segment));
    }

    /// Draws a bar for each segment of a trace that is `wanted`.
    fn threads(&mut self, class: &str, place: (f64, f64), wanted: impl Fn(&Segment) -> bool) {
        let segments = self.segments;
        for segment in segments.iter().filter(|segment| wanted(segment)) {
            let length = words::us(segment.end_ns - segment.start_ns);
            let hover = format!("{} on CPU {}: {length} µs", segment.who, segment.cpu);
            let span = (Duration::from_nanos(segment.start_ns), Duration::from_nanos(segment.end_ns));
            self.bar(class, span, place, &hover);
        }
    }
}

fn hover(task: &str, job: &Outcome) -> String {
    let us =
        |time: Option<Duration>| time.map_or("never".to_string(), |time| format!("{} µs", words::us(time.as_nanos())));
    format!(
        "{task}, job {}\nnominal {}\nlateness {}\nresponse {}\ndeadline {} µs after the nominal instant{}",
        job.job,
        absolute(job.nominal),
        us(job.lateness()),
        us(job.response()),
        words::us((job.deadline - job.nominal).as_nanos()),
        if job.missed() { "\nMISSED" } else { "" }
    )
}
