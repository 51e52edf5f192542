//! Pairs of values as bars beside each other, each relative to the first of its pair.

use super::svg::{Anchor, Picture};

/// One quantity in two cases.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPair {
    /// The name of the quantity.
    pub label: String,
    /// The unit of the values.
    pub unit: String,
    /// The two values. The second one is compared with the first.
    pub values: [f64; 2],
    /// Whether the limit applies. Other pairs are drawn faintly.
    pub judged: bool,
}

impl BarPair {
    /// Returns a value as a share of the first one.
    fn share(&self, value: f64) -> f64 {
        if self.values[0] > 0.0 {
            value / self.values[0]
        } else {
            0.0
        }
    }

    fn text(&self, which: usize) -> String {
        let (value, unit) = (self.values[which], &self.unit);
        match which {
            0 => format!("{value} {unit}"),
            _ => format!("{value} {unit} ({:+.2} %)", (self.share(value) - 1.0) * 100.0),
        }
    }
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 290.0;
/// Room for the numbers behind the bars.
const RIGHT: f64 = 170.0;
const TOP: f64 = 70.0;
const BAR: f64 = 13.0;
const ROW: f64 = 2.0 * BAR + 14.0;
const CLASSES: [&str; 2] = ["s7", "s3"];

/// Draws pairs as an SVG file. `names` are the two cases. `limit` is a share of the first value, such as 1.02; values
/// of judged pairs beyond it are highlighted.
pub fn paired_bars(title: &str, names: [&str; 2], limit: f64, pairs: &[BarPair]) -> String {
    let height = TOP + ROW * pairs.len() as f64 + 26.0;
    let shares = pairs.iter().flat_map(|pair| pair.values.map(|value| pair.share(value)));
    let most = shares.fold(limit, f64::max);
    let x = |share: f64| LEFT + share / most * (WIDTH - LEFT - RIGHT);
    let mut picture = Picture::new(WIDTH, height, title);
    head(&mut picture, title, names);
    for percent in [0, 50, 100] {
        let at = x(f64::from(percent) / 100.0);
        picture.line("grid", (at, TOP - 4.0), (at, height - 24.0));
        picture.text("tick", (at, height - 8.0), Anchor::Middle, &format!("{percent} %"));
    }
    for (row, pair) in pairs.iter().enumerate() {
        draw_pair(&mut picture, pair, TOP + ROW * row as f64, limit, &x);
    }
    picture.line("bound", (x(limit), TOP - 10.0), (x(limit), height - 24.0));
    picture.text("tick", (x(limit), TOP - 14.0), Anchor::Middle, &format!("aim: below {:.0} %", limit * 100.0));
    picture.file()
}

fn head(picture: &mut Picture, title: &str, names: [&str; 2]) {
    picture.text("plot-title", (LEFT, 18.0), Anchor::Start, title);
    let mut at = LEFT;
    for (name, class) in names.into_iter().zip(CLASSES) {
        picture.rect(&format!("swatch {class}"), (at, 28.0), (12.0, 12.0), "");
        picture.text("label", (at + 17.0, 38.0), Anchor::Start, name);
        at += 34.0 + 7.2 * name.chars().count() as f64;
    }
}

fn draw_pair(picture: &mut Picture, pair: &BarPair, top: f64, limit: f64, x: &impl Fn(f64) -> f64) {
    let note = if pair.judged { "" } else { " (not judged)" };
    picture.text("label", (LEFT - 8.0, top + BAR + 4.0), Anchor::End, &format!("{}{note}", pair.label));
    for (which, (value, class)) in pair.values.into_iter().zip(CLASSES).enumerate() {
        let (y, share) = (top + BAR * which as f64, pair.share(value));
        let class = match pair.judged {
            false => format!("dot span {class}"),
            true if share >= limit => "late".into(),
            true => format!("dot {class}"),
        };
        picture.rect(&class, (x(0.0), y), (x(share) - x(0.0), BAR - 1.0), "");
        // In a column of their own, away from the limit's line.
        picture.text("tick", (WIDTH - RIGHT + 8.0, y + BAR - 3.0), Anchor::Start, &pair.text(which));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(values: [f64; 2], judged: bool) -> BarPair {
        BarPair { label: "mean".into(), unit: "ns".into(), values, judged }
    }

    fn draw(pairs: &[BarPair]) -> String {
        paired_bars("t", ["before", "after"], 1.02, pairs)
    }

    #[test]
    fn only_a_judged_value_beyond_the_limit_stands_out() {
        assert!(!draw(&[pair([200.0, 203.0], true)]).contains("class=\"late\""));
        assert!(draw(&[pair([200.0, 204.0], true)]).contains("class=\"late\""));
        let faint = draw(&[pair([200.0, 400.0], false)]);
        assert!(!faint.contains("class=\"late\"") && faint.contains("mean (not judged)"));
    }

    #[test]
    fn values_and_their_difference_are_written_out() {
        let text = draw(&[pair([200.0, 203.0], true)]);
        assert!(text.contains(">200 ns<") && text.contains(">203 ns (+1.50 %)<"), "{text}");
    }

    #[test]
    fn nothing_and_zero_have_a_picture() {
        for pairs in [vec![], vec![pair([0.0, 5.0], true)]] {
            let text = draw(&pairs);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
