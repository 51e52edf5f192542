//! Several distributions on one axis: overlaid histograms with mean and deviation below, and cumulative curves.

use std::fmt::Write;

use super::axis::Axis;
use super::svg::{number, Anchor, Picture};

/// One distribution.
pub(crate) struct Series<'a> {
    pub label: &'a str,
    /// The class of its colour, `s0` to `s7`.
    pub class: &'static str,
    /// The samples, ascending, in nanoseconds.
    pub samples: &'a [i64],
}

/// Samples of any kind, for [`overlaid_histogram`].
#[derive(Clone, Copy, Debug)]
pub struct Distribution<'a> {
    /// The label.
    pub label: &'a str,
    /// The samples, ascending, in nanoseconds.
    pub samples: &'a [i64],
}

/// Draws distributions over each other as an SVG file; `unit` is the name of a sample, such as jobs. Up to eight have
/// different colours.
pub fn overlaid_histogram(title: &str, unit: &str, distributions: &[Distribution]) -> String {
    const CLASSES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
    let series: Vec<Series> = distributions
        .iter()
        .zip(CLASSES.iter().cycle())
        .map(|(each, class)| Series { label: each.label, class, samples: each.samples })
        .collect();
    histogram(&Overlay { title, series: &series, spreads: &[], bound: None, unit }).file()
}

/// Mean and standard deviation in nanoseconds, drawn below a histogram.
pub(crate) struct Spread {
    pub label: String,
    /// The class of its colour, and `paper` for numbers of another source.
    pub class: String,
    pub mean: f64,
    pub deviation: f64,
}

/// The contents of a plot.
pub(crate) struct Overlay<'a> {
    pub title: &'a str,
    pub series: &'a [Series<'a>],
    pub spreads: &'a [Spread],
    /// A time that no sample should exceed.
    pub bound: Option<i64>,
    /// The name of a sample: jobs or paths.
    pub unit: &'a str,
}

pub(super) const WIDTH: f64 = 960.0;
pub(super) const LEFT: f64 = 190.0;
const RIGHT: f64 = 30.0;
pub(super) const TOP: f64 = 58.0;
pub(super) const PLOT: f64 = 260.0;
const SPREAD_ROW: f64 = 18.0;
const BINS: usize = 120;

fn x(axis: &Axis, ns: f64) -> f64 {
    LEFT + axis.position(ns).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

/// Returns the axis over all samples, spreads and the bound; `None` without samples and spreads.
fn common_axis(overlay: &Overlay) -> Option<Axis> {
    let samples =
        overlay.series.iter().flat_map(|series| series.samples.first().into_iter().chain(series.samples.last()));
    // The lower whisker may reach below zero; the axis does not follow it.
    let means = overlay.spreads.iter().flat_map(|spread| [spread.mean as i64, (spread.mean + spread.deviation) as i64]);
    let all: Vec<i64> = samples.copied().chain(means).collect();
    let (min, max) = (*all.iter().min()?, *all.iter().max()?);
    Some(Axis::over(min.min(overlay.bound.unwrap_or(min)), max.max(overlay.bound.unwrap_or(max))))
}

fn frame(picture: &mut Picture, axis: &Axis, overlay: &Overlay, height: f64) {
    picture.text("plot-title", (LEFT, 18.0), Anchor::Start, overlay.title);
    picture.text("tick", (LEFT - 6.0, TOP - 10.0), Anchor::End, &format!("share of {}", overlay.unit));
    let mut at = LEFT;
    for entry in overlay.series {
        picture.rect(&format!("swatch {}", entry.class), (at, 32.0), (12.0, 12.0), "");
        picture.text("label", (at + 17.0, 42.0), Anchor::Start, entry.label);
        at += 34.0 + 7.2 * entry.label.chars().count() as f64;
    }
    times(picture, axis, height);
}

/// Draws grid lines over the time, and their labels below.
pub(super) fn times(picture: &mut Picture, axis: &Axis, height: f64) {
    for (ns, label) in axis.ticks() {
        picture.line("grid", (x(axis, ns), TOP), (x(axis, ns), height - 24.0));
        picture.text("tick", (x(axis, ns), height - 8.0), Anchor::Middle, &label);
    }
}

fn draw_bound(picture: &mut Picture, axis: &Axis, overlay: &Overlay, bottom: f64) {
    if let Some(bound) = overlay.bound {
        let at = x(axis, bound as f64);
        picture.line("bound", (at, TOP - 14.0), (at, bottom));
        picture.text("tick", (at - 3.0, TOP - 6.0), Anchor::End, "bound");
    }
}

pub(super) fn empty(title: &str) -> Picture {
    let mut picture = Picture::new(WIDTH, 80.0, title);
    picture.text("plot-title", (LEFT, 18.0), Anchor::Start, title);
    picture.text("tick", (LEFT, 50.0), Anchor::Start, "no samples");
    picture
}

/// Draws overlaid histograms: the share of each distribution's jobs per bin, on a logarithmic scale.
pub(crate) fn histogram(overlay: &Overlay) -> Picture {
    let Overlay { title, series, spreads, .. } = *overlay;
    let Some(axis) = common_axis(overlay) else { return empty(title) };
    let bottom = TOP + PLOT;
    let height = bottom + 14.0 + spreads.len() as f64 * SPREAD_ROW + 28.0;
    let mut picture = Picture::new(WIDTH, height, title);
    frame(&mut picture, &axis, overlay, height);
    let most = series.iter().map(|series| series.samples.len()).max().unwrap_or(1).max(10);
    // A little more than the decades of the counts makes a bin of one job visible.
    let decades = (most as f64).log10() + 0.3;
    let y = |share: f64| bottom - ((share.log10() + decades) / decades).clamp(0.0, 1.0) * PLOT;
    for power in 0..=decades.floor() as i32 {
        let share = 10f64.powi(-power);
        picture.line("grid", (LEFT, y(share)), (WIDTH - RIGHT, y(share)));
        picture.text("tick", (LEFT - 6.0, y(share) + 3.5), Anchor::End, &format!("{} %", number_of_percent(power)));
    }
    for entry in series {
        picture.path(&format!("series {}", entry.class), &outline(&axis, entry.samples, bottom, &y), entry.label);
    }
    draw_bound(&mut picture, &axis, overlay, bottom);
    for (row, spread) in spreads.iter().enumerate() {
        draw_spread(&mut picture, &axis, spread, bottom + 22.0 + row as f64 * SPREAD_ROW);
    }
    picture
}

/// Formats 100, 10, 1, 0.1, ...
fn number_of_percent(power: i32) -> String {
    format!("{:.*}", (power - 2).max(0) as usize, 100.0 * 10f64.powi(-power))
}

/// Returns the outline of a histogram's bars, closed along the bottom, without empty stretches.
fn outline(axis: &Axis, samples: &[i64], bottom: f64, y: &impl Fn(f64) -> f64) -> String {
    let counts = axis.bin(samples, BINS);
    let at = |bin: usize| number(x(axis, axis.value(bin as f64 / BINS as f64)));
    let mut path = String::new();
    let mut inside = false;
    for (bin, &count) in counts.iter().enumerate() {
        if count == 0 {
            if std::mem::take(&mut inside) {
                let _ = write!(path, "V{}", number(bottom));
            }
            continue;
        }
        if !std::mem::replace(&mut inside, true) {
            let _ = write!(path, "M{} {}", at(bin), number(bottom));
        }
        let _ = write!(path, "V{}H{}", number(y(count as f64 / samples.len() as f64)), at(bin + 1));
    }
    if inside {
        let _ = write!(path, "V{}", number(bottom));
    }
    path
}

fn draw_spread(picture: &mut Picture, axis: &Axis, spread: &Spread, y: f64) {
    let at = |ns: f64| x(axis, ns);
    let (from, to) = (at(spread.mean - spread.deviation), at(spread.mean + spread.deviation));
    let whisker = format!("whisker {}", spread.class);
    picture.text("tick", (LEFT - 6.0, y + 3.5), Anchor::End, &spread.label);
    picture.line(&whisker, (from, y), (to, y));
    for end in [from, to] {
        picture.line(&whisker, (end, y - 4.0), (end, y + 4.0));
    }
    let text = format!("mean {:.3} µs, std dev {:.3} µs", spread.mean / 1e3, spread.deviation / 1e3);
    picture.rect(&format!("dot {}", spread.class), (at(spread.mean) - 3.0, y - 3.0), (6.0, 6.0), &text);
}

/// Draws cumulative curves: the share of jobs or paths that took at most a time.
pub(crate) fn cumulative(overlay: &Overlay) -> Picture {
    let Overlay { title, series, .. } = *overlay;
    let Some(axis) = common_axis(overlay) else { return empty(title) };
    let bottom = TOP + PLOT;
    let height = bottom + 32.0;
    let mut picture = Picture::new(WIDTH, height, title);
    frame(&mut picture, &axis, overlay, height);
    shares(&mut picture);
    for entry in series.iter().filter(|entry| !entry.samples.is_empty()) {
        picture.path(&format!("curve {}", entry.class), &curve(&axis, entry.samples), entry.label);
    }
    draw_bound(&mut picture, &axis, overlay, bottom);
    picture
}

/// Returns the position of a share in a cumulative plot.
fn y(share: f64) -> f64 {
    TOP + (1.0 - share) * PLOT
}

/// Draws grid lines over the shares of a cumulative plot, and their labels.
pub(super) fn shares(picture: &mut Picture) {
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        picture.line("grid", (LEFT, y(share)), (WIDTH - RIGHT, y(share)));
        picture.text("tick", (LEFT - 6.0, y(share) + 3.5), Anchor::End, &format!("{} %", share * 100.0));
    }
}

/// The greatest number of steps of a curve. It keeps files small.
const STEPS: usize = 400;

/// Returns the path of a cumulative curve.
pub(super) fn curve(axis: &Axis, samples: &[i64]) -> String {
    let steps = STEPS.min(samples.len());
    let mut path = format!("M{} {}", number(x(axis, samples[0] as f64)), number(y(0.0)));
    for step in 1..=steps {
        let rank = step * samples.len() / steps;
        let (at, share) = (x(axis, samples[rank - 1] as f64), rank as f64 / samples.len() as f64);
        let _ = write!(path, "H{}V{}", number(at), number(y(share)));
    }
    let _ = write!(path, "H{}", number(WIDTH - RIGHT));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay<'a>(series: &'a [Series<'a>], spreads: &'a [Spread], bound: Option<i64>) -> Overlay<'a> {
        Overlay { title: "t", series, spreads, bound, unit: "jobs" }
    }

    #[test]
    fn nothing_to_draw_is_said() {
        assert!(histogram(&overlay(&[], &[], None)).inline().contains("no samples"));
        let none = [Series { label: "a", class: "s0", samples: &[] }];
        assert!(cumulative(&overlay(&none, &[], Some(7))).inline().contains("no samples"));
    }

    #[test]
    fn a_bound_beyond_every_sample_is_within_the_axis() {
        let series = [Series { label: "a", class: "s0", samples: &[10, 20] }];
        let text = cumulative(&overlay(&series, &[], Some(50))).inline();
        assert!(text.contains(r#"<line class="bound""#) && text.contains("50 ns"), "{text}");
        assert!(!cumulative(&overlay(&series, &[], None)).inline().contains("bound"));
    }

    #[test]
    fn a_histogram_has_an_outline_per_series_and_a_whisker_per_spread() {
        let series =
            [Series { label: "a", class: "s0", samples: &[1, 2] }, Series { label: "b", class: "s1", samples: &[900] }];
        let spreads = [Spread { label: "paper".into(), class: "s0".into(), mean: 5.0, deviation: 9.0 }];
        let text = histogram(&overlay(&series, &spreads, None)).inline();
        assert_eq!(text.matches("class=\"series ").count(), 2);
        assert_eq!(text.matches("class=\"dot ").count(), 1);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn any_distributions_can_be_overlaid() {
        let each = [Distribution { label: "a", samples: &[1, 2] }, Distribution { label: "b", samples: &[] }];
        let text = overlaid_histogram("t", "datagrams", &each);
        assert!(text.contains("share of datagrams") && text.contains("class=\"series s0\""), "{text}");
    }

    #[test]
    fn percentages_keep_their_digits() {
        assert_eq!([0, 1, 2, 3, 4].map(number_of_percent), ["100", "10", "1", "0.1", "0.01"]);
    }
}
