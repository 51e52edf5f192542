//! Quantities over another one, as lines through their points.

use std::fmt::Write;

use super::axis::above;
use super::svg::{number, Anchor, Picture};

/// One quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 58.0;
const PLOT: f64 = 300.0;
const CLASSES: [&str; 4] = ["s3", "s0", "s4", "s5"];

/// Draws up to four lines as an SVG file. Both axes begin at zero, so a quantity in proportion is a straight line through
/// the corner. `names` are those of the axes, with their units.
pub fn lines(title: &str, names: [&str; 2], lines: &[Line]) -> String {
    let height = TOP + PLOT + 48.0;
    let mut picture = Picture::new(WIDTH, height, title);
    picture.text("plot-title", (10.0, 18.0), Anchor::Start, title);
    let all = || lines.iter().flat_map(|line| &line.points);
    let steps =
        [step(all().map(|point| point.0).fold(0.0, f64::max)), step(all().map(|point| point.1).fold(0.0, f64::max))];
    let most = [5.0 * steps[0], 5.0 * steps[1]];
    let x = |value: f64| LEFT + value / most[0] * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| TOP + PLOT - value / most[1] * PLOT;
    for tick in (0..=5).map(f64::from) {
        let (across, up) = (tick * steps[0], tick * steps[1]);
        picture.line("grid", (x(across), TOP), (x(across), TOP + PLOT));
        picture.text("tick", (x(across), TOP + PLOT + 17.0), Anchor::Middle, &number(across));
        picture.line("grid", (LEFT, y(up)), (WIDTH - RIGHT, y(up)));
        picture.text("tick", (LEFT - 8.0, y(up) + 4.0), Anchor::End, &number(up));
    }
    picture.text("label", (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, height - 8.0), Anchor::Middle, names[0]);
    picture.text("label", (10.0, TOP - 12.0), Anchor::Start, names[1]);
    let mut key = LEFT + 160.0;
    for (line, class) in lines.iter().zip(CLASSES) {
        let mut path = String::new();
        for (index, &(across, up)) in line.points.iter().enumerate() {
            let _ = write!(path, "{}{} {}", if index == 0 { "M" } else { "L" }, number(x(across)), number(y(up)));
            let hover = format!("{}: {} at {}", line.name, number(up), number(across));
            picture.rect(&format!("swatch {class}"), (x(across) - 3.0, y(up) - 3.0), (6.0, 6.0), &hover);
        }
        picture.path(&format!("curve {class}"), &path, "");
        picture.rect(&format!("swatch {class}"), (key, TOP - 22.0), (12.0, 12.0), "");
        picture.text("label", (key + 17.0, TOP - 12.0), Anchor::Start, &line.name);
        key += 40.0 + 7.2 * line.name.chars().count() as f64;
    }
    picture.file()
}

/// Returns the distance of ticks, of which five reach this far.
fn step(most: f64) -> f64 {
    above(if most > 0.0 { most / 5.0 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_in_proportion_to_both_axes() {
        let line = Line { name: "plan".into(), points: vec![(0.0, 0.0), (500.0, 2.5), (1000.0, 5.0)] };
        let text = lines("t", ["windows", "time [s]"], &[line]);
        assert!(text.contains("d=\"M90 358L505 208L920 58\""), "{text}");
        assert!(text.contains("<title>plan: 2.5 at 500</title>") && text.contains(">windows</text>"), "{text}");
        assert!(lines("t", ["x", "y"], &[]).contains("<svg"));
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([0.0, 1.0, 4.9, 11.0, 3000.0, 0.04].map(step), [1.0, 0.2, 1.0, 5.0, 1000.0, 0.01]);
    }
}
