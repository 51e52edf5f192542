//! A small bar for a table's cell: from the smallest to the largest value, thick in the middle.

use super::axis::Axis;
use super::svg::Picture;
use crate::stats::Statistics;

const WIDTH: f64 = 130.0;
const HEIGHT: f64 = 18.0;

/// Draws min to max as a line, p50 to p99 as a bar and the mean as a tick. `limits` (the deadlines, ascending) are red
/// lines.
pub(crate) fn draw(statistics: &Statistics, axis: Axis, limits: &[i64], title: &str) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT, title);
    let x = |ns: f64| 2.0 + axis.position(ns).clamp(0.0, 1.0) * (WIDTH - 4.0);
    let middle = HEIGHT / 2.0;
    picture.rect("track", (0.0, middle - 6.0), (WIDTH, 12.0), title);
    let (min, max) = (x(statistics.min_ns as f64), x(statistics.max_ns as f64));
    let (p50, p99) = (x(statistics.p50_ns as f64), x(statistics.p99_ns as f64));
    let late = limits.last().is_some_and(|&limit| statistics.max_ns > limit);
    picture.rect(if late { "range late" } else { "range" }, (min, middle - 1.0), ((max - min).max(1.5), 2.0), "");
    picture.rect("bar", (p50, middle - 4.0), ((p99 - p50).max(1.5), 8.0), "");
    let mean = x(statistics.mean_ns.as_ns_f64());
    picture.line("mean", (mean, middle - 6.0), (mean, middle + 6.0));
    for &limit in limits {
        picture.line("bound", (x(limit as f64), 0.0), (x(limit as f64), HEIGHT));
    }
    picture
}
