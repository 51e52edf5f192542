//! Sums as bars that show their parts.

use super::svg::{number, Anchor, Picture};

/// A sum.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedBar {
    /// The label.
    pub label: String,
    /// Its parts, in the order of their names.
    pub parts: Vec<f64>,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 290.0;
/// Room for the sums behind the bars.
const RIGHT: f64 = 90.0;
const TOP: f64 = 62.0;
const BAR: f64 = 14.0;
const ROW: f64 = BAR + 7.0;
/// One class per part. Further parts start again with the first class.
const CLASSES: [&str; 8] = ["s7", "s3", "s1", "s4", "s0", "s5", "s6", "s2"];

/// Draws sums as an SVG file; `names` are the names of the parts.
pub fn stacked_bars(title: &str, unit: &str, names: &[&str], bars: &[StackedBar]) -> String {
    let height = TOP + ROW * bars.len() as f64 + 10.0;
    let sum = |bar: &StackedBar| bar.parts.iter().sum::<f64>();
    let most = bars.iter().map(sum).fold(1.0, f64::max);
    let width = |value: f64| value / most * (WIDTH - LEFT - RIGHT);
    let mut picture = Picture::new(WIDTH, height, title);
    head(&mut picture, title, names);
    for (row, bar) in bars.iter().enumerate() {
        let top = TOP + ROW * row as f64;
        picture.text("label", (LEFT - 8.0, top + BAR - 3.0), Anchor::End, &bar.label);
        let mut at = LEFT;
        for ((&part, class), name) in bar.parts.iter().zip(CLASSES.iter().cycle()).zip(names) {
            let hover = format!("{name}: {} {unit}", number(part));
            picture.rect(&format!("dot {class}"), (at, top), (width(part), BAR), &hover);
            at += width(part);
        }
        picture.text("tick", (at + 6.0, top + BAR - 3.0), Anchor::Start, &number(sum(bar)));
    }
    picture.file()
}

fn head(picture: &mut Picture, title: &str, names: &[&str]) {
    picture.text("plot-title", (LEFT, 18.0), Anchor::Start, title);
    let mut at = LEFT;
    for (name, class) in names.iter().zip(CLASSES.iter().cycle()) {
        picture.rect(&format!("swatch {class}"), (at, 28.0), (12.0, 12.0), "");
        picture.text("label", (at + 17.0, 38.0), Anchor::Start, name);
        at += 34.0 + 7.2 * name.chars().count() as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_the_sum_is_written_out() {
        let bar = StackedBar { label: "a < b".into(), parts: vec![10.0, 30.5] };
        let text = stacked_bars("t", "steps", &["one", "two"], &[bar]);
        let half = (WIDTH - LEFT - RIGHT) / 40.5 * 10.0;
        assert!(text.contains(&format!("x=\"290\" y=\"62\" width=\"{}\"", number(half))), "{text}");
        assert!(text.contains(&format!("x=\"{}\" y=\"62\"", number(LEFT + half))), "{text}");
        assert!(text.contains("<title>two: 30.5 steps</title>") && text.contains(">40.5<"), "{text}");
        assert!(text.contains("a &lt; b"));
    }

    #[test]
    fn nothing_has_a_picture() {
        for bars in [vec![], vec![StackedBar { label: String::new(), parts: vec![0.0] }]] {
            assert!(!stacked_bars("t", "u", &["n"], &bars).contains("NaN"));
        }
    }
}
