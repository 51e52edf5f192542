//! One histogram: jobs over time.

use super::axis::Axis;
use super::svg::{Anchor, Picture};
use crate::words;

/// A vertical line across a histogram.
pub(crate) struct Mark<'a> {
    pub ns: i64,
    pub label: &'a str,
    pub class: &'static str,
}

/// The contents of a histogram.
pub(crate) struct Histogram<'a> {
    pub title: &'a str,
    /// The samples, ascending.
    pub samples: &'a [i64],
    pub marks: &'a [Mark<'a>],
    /// `(width, height)`
    pub size: (f64, f64),
    /// Samples beyond this limit have the colour of misses.
    pub limit: Option<i64>,
    /// The name of a sample: jobs or paths.
    pub unit: &'a str,
}

const BINS: usize = 48;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 22.0;
/// Counts are logarithmic when the fullest bin holds more than this.
const LOG_COUNTS_FROM: u64 = 50;

/// Draws a histogram; without samples, a note.
pub(crate) fn draw(histogram: &Histogram) -> Picture {
    let (width, height) = histogram.size;
    let mut picture = Picture::new(width, height, histogram.title);
    picture.text("plot-title", (LEFT, 13.0), Anchor::Start, histogram.title);
    let (Some(&min), Some(&max)) = (histogram.samples.first(), histogram.samples.last()) else {
        picture.text("tick", (width / 2.0, height / 2.0), Anchor::Middle, "no samples");
        return picture;
    };
    let marks = || histogram.marks.iter().map(|mark| mark.ns);
    let axis = Axis::over(min.min(marks().min().unwrap_or(min)), max.max(marks().max().unwrap_or(max)));
    let counts = axis.bin(histogram.samples, BINS);
    let most = counts.iter().copied().max().unwrap_or(1);
    let x = |position: f64| LEFT + position * (width - LEFT - RIGHT);
    let y = |count: u64| height - BOTTOM - count_share(count, most) * (height - TOP - BOTTOM);
    count_grid(&mut picture, most, (x(0.0), x(1.0)), &y);
    for (ns, label) in axis.ticks() {
        let at = x(axis.position(ns));
        picture.line("axis", (at, height - BOTTOM), (at, height - BOTTOM + 4.0));
        picture.text("tick", (at, height - 6.0), Anchor::Middle, &label);
    }
    for (bin, &count) in counts.iter().enumerate().filter(|(_, &count)| count > 0) {
        let (from, to) = (bin as f64 / BINS as f64, (bin + 1) as f64 / BINS as f64);
        let late = histogram.limit.is_some_and(|limit| axis.value((from + to) / 2.0) > limit as f64);
        let class = if late { "bar late" } else { "bar" };
        let size = (x(to) - x(from) - 0.6, y(0) - y(count));
        picture.rect(class, (x(from) + 0.3, y(count)), size, &hover(&axis, (from, to), count, histogram.unit));
    }
    for mark in histogram.marks {
        draw_mark(&mut picture, mark, x(axis.position(mark.ns as f64)), (TOP - 6.0, height - BOTTOM));
    }
    picture
}

fn hover(axis: &Axis, (from, to): (f64, f64), count: u64, unit: &str) -> String {
    let time = |position: f64| words::us(axis.value(position).round() as i64);
    format!("{} to {} µs: {count} {unit}", time(from), time(to))
}

fn draw_mark(picture: &mut Picture, mark: &Mark, x: f64, (top, bottom): (f64, f64)) {
    picture.line(mark.class, (x, top), (x, bottom));
    let anchor = if x > 200.0 { Anchor::End } else { Anchor::Start };
    let shift = if x > 200.0 { -3.0 } else { 3.0 };
    picture.text("tick", (x + shift, top + 3.0), anchor, mark.label);
}

/// Returns the height of a count among `most`, in 0..=1. A single job is always visible.
fn count_share(count: u64, most: u64) -> f64 {
    const ONE: f64 = 0.25; // decades of room for a count of one
    if count == 0 {
        0.0
    } else if most > LOG_COUNTS_FROM {
        ((count as f64).log10() + ONE) / ((most as f64).log10() + ONE)
    } else {
        count as f64 / most as f64
    }
}

fn count_grid(picture: &mut Picture, most: u64, (from, to): (f64, f64), y: &impl Fn(u64) -> f64) {
    let ticks: Vec<u64> = if most > LOG_COUNTS_FROM {
        (0..=most.ilog10()).map(|power| 10u64.pow(power)).collect()
    } else {
        let mut ticks = vec![most.div_ceil(2), most];
        ticks.dedup();
        ticks
    };
    for tick in ticks {
        picture.line("grid", (from, y(tick)), (to, y(tick)));
        picture.text("tick", (from - 5.0, y(tick) + 3.5), Anchor::End, &words::grouped(tick));
    }
    picture.line("axis", (from, y(0)), (to, y(0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(samples: &[i64], limit: Option<i64>) -> String {
        draw(&Histogram { title: "t", samples, marks: &[], size: (300.0, 150.0), limit, unit: "jobs" }).inline()
    }

    #[test]
    fn every_sample_is_in_a_bar() {
        let text = svg(&[1_000, 1_000, 1_500, 2_000], None);
        let jobs: u64 =
            text.split(" jobs</title>").filter_map(|part| part.rsplit(": ").next()?.parse::<u64>().ok()).sum();
        assert_eq!(jobs, 4);
        assert!(!text.contains("late"));
        assert!(svg(&[1_000, 2_000], Some(1_500)).contains("bar late"));
    }

    #[test]
    fn no_samples_and_equal_samples() {
        assert!(svg(&[], None).contains("no samples"));
        assert!(svg(&[7; 3], None).contains(": 3 jobs"));
    }
}
