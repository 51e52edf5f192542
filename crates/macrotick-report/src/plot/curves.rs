//! Cumulative curves of two properties: the colour shows one, the line style the other.

use super::axis::Axis;
use super::overlay::{curve, empty, shares, times, LEFT, PLOT, TOP, WIDTH};
use super::svg::{Anchor, Picture};

/// One distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve<'a> {
    /// The group. Curves of one group have one colour.
    pub group: &'a str,
    /// The kind. Curves of one kind have one line style: the first kind is solid, the second broken, the third dotted.
    pub kind: &'a str,
    /// The samples, ascending, in nanoseconds.
    pub samples: &'a [i64],
}

const COLOURS: [&str; 8] = ["s3", "s4", "s0", "s5", "s1", "s6", "s2", "s7"];
const LINES: [&str; 3] = ["", "broken", "dotted"];

/// Draws cumulative curves as an SVG file; `unit` is the name of a sample, such as jobs.
pub fn cumulative_curves(title: &str, unit: &str, curves: &[Curve]) -> String {
    let ends = || curves.iter().flat_map(|each| each.samples.first().into_iter().chain(each.samples.last()));
    let (Some(&min), Some(&max)) = (ends().min(), ends().max()) else { return empty(title).file() };
    let axis = Axis::over(min, max);
    let height = TOP + PLOT + 32.0;
    let mut picture = Picture::new(WIDTH, height, title);
    picture.text("plot-title", (LEFT, 18.0), Anchor::Start, title);
    picture.text("tick", (LEFT - 6.0, TOP - 10.0), Anchor::End, &format!("share of {unit}"));
    let groups = Property::of(&COLOURS, curves.iter().map(|each| each.group));
    let kinds = Property::of(&LINES, curves.iter().map(|each| each.kind));
    key(&mut picture, &groups, &kinds);
    times(&mut picture, &axis, height);
    shares(&mut picture);
    for each in curves.iter().filter(|each| !each.samples.is_empty()) {
        let class = format!("curve {} {}", groups.class(each.group), kinds.class(each.kind));
        picture.path(class.trim_end(), &curve(&axis, each.samples), &format!("{}, {}", each.group, each.kind));
    }
    picture.file()
}

/// The values of a property in the order of their first appearance, and their classes.
struct Property<'a> {
    classes: &'static [&'static str],
    values: Vec<&'a str>,
}

impl<'a> Property<'a> {
    fn of(classes: &'static [&'static str], each: impl Iterator<Item = &'a str>) -> Property<'a> {
        let mut values = Vec::new();
        for value in each {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Property { classes, values }
    }

    fn class(&self, value: &str) -> &'static str {
        let at = self.values.iter().position(|known| *known == value).unwrap_or(0);
        self.classes[at % self.classes.len()]
    }
}

fn key(picture: &mut Picture, groups: &Property, kinds: &Property) {
    let mut at = LEFT;
    for value in &groups.values {
        picture.rect(&format!("swatch {}", groups.class(value)), (at, 32.0), (12.0, 12.0), "");
        at = explain(picture, at + 17.0, value);
    }
    for value in &kinds.values {
        let class = format!("curve key {}", kinds.class(value));
        picture.line(class.trim_end(), (at, 38.0), (at + 30.0, 38.0));
        at = explain(picture, at + 35.0, value);
    }
}

/// Draws an entry of the key; returns the position of the next entry.
fn explain(picture: &mut Picture, at: f64, value: &str) -> f64 {
    picture.text("label", (at, 42.0), Anchor::Start, value);
    at + 17.0 + 7.2 * value.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves<'a>() -> [Curve<'a>; 3] {
        let curve = |group, kind| Curve { group, kind, samples: &[200, 300] };
        [curve("one", "on"), curve("one", "off"), curve("two", "on")]
    }

    #[test]
    fn colours_tell_groups_and_lines_tell_kinds() {
        let text = cumulative_curves("t", "jobs", &curves());
        for class in ["curve s3\"", "curve s3 broken\"", "curve s4\""] {
            assert_eq!(text.matches(&format!("<path class=\"{class}")).count(), 1, "{class} in {text}");
        }
        assert!(text.contains("<title>one, off</title>") && text.contains("share of jobs"), "{text}");
    }

    #[test]
    fn the_key_has_each_property_once() {
        let text = cumulative_curves("t", "jobs", &curves());
        assert_eq!(text.matches("class=\"swatch ").count(), 2);
        assert_eq!(text.matches("<line class=\"curve key").count(), 2);
    }

    #[test]
    fn nothing_to_draw_is_said() {
        assert!(cumulative_curves("t", "jobs", &[]).contains("no samples"));
        let none = [Curve { group: "one", kind: "on", samples: &[] }];
        assert!(cumulative_curves("t", "jobs", &none).contains("no samples"));
    }
}
