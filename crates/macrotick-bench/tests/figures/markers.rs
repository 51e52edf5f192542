//! Markers: comments in a page that name the figure of the number before them.
//!
//! `0.23<!--lead.least-->` is a number with its marker. Renderers hide the comment. The number decides its form: the
//! figure is rounded to as many decimals, and has a space between thousands if the number has one (`10 400`). In bold
//! text the marker stands before the asterisks: `**0.04<!--overrun.lead.starts--> us**`.

use std::collections::{BTreeMap, BTreeSet};

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";

/// The differences between pages and figures.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// The numbers that are not those of their figures.
    pub differences: Vec<String>,
    /// The pages with differences, with all numbers as they were measured.
    pub renewed: BTreeMap<String, String>,
    /// Markers without a figure or without a number, and figures without a marker. Renewal does not correct them.
    pub faults: Vec<String>,
}

/// Compares the numbers in pages with the figures. The maps have the texts by path, and the figures by name.
pub fn compare(pages: &BTreeMap<String, String>, figures: &BTreeMap<String, f64>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut unused: BTreeSet<&str> = figures.keys().map(String::as_str).collect();
    for (path, text) in pages {
        let (mut renewed, mut copied) = (String::new(), 0);
        for (at, name) in markers(text) {
            let place = format!("{path}:{}", text[..at].matches('\n').count() + 1);
            let Some(figure) = figures.get(name) else {
                outcome.faults.push(format!("{place}: no figure has the name `{name}`"));
                continue;
            };
            unused.remove(name);
            let Some(number) = number_before(&text[..at]) else {
                outcome.faults.push(format!("{place}: no number stands before the marker `{name}`"));
                continue;
            };
            let measured = in_form(number, *figure);
            if measured != number {
                outcome.differences.push(format!("{place}: the page says {number}, measured is {measured} (`{name}`)"));
            }
            renewed += &text[copied..at - number.len()];
            renewed += &measured;
            copied = at;
        }
        renewed += &text[copied..];
        if renewed != *text {
            outcome.renewed.insert(path.clone(), renewed);
        }
    }
    outcome.faults.extend(unused.iter().map(|name| format!("no page uses the figure `{name}`")));
    outcome
}

/// Returns the markers with the places where they begin. Comments of several words are not markers. A name with spaces
/// around it is one, which no figure has: otherwise its number would be unchecked.
fn markers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let named = |at: usize| Some((at, text[at + OPEN.len()..].split_once(CLOSE)?.0));
    let is_one_word = |name: &str| name.split_whitespace().count() == 1;
    text.match_indices(OPEN).filter_map(move |(at, _)| named(at).filter(|(_, name)| is_one_word(name)))
}

/// Returns the number at the end of a text, with its sign.
fn number_before(text: &str) -> Option<&str> {
    let mut start = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let number = &text[start..];
    let is_number = number.starts_with(|c: char| c != '.') && !number.ends_with('.') && number.matches('.').count() < 2;
    if !is_number {
        return None;
    }
    while let Some(thousands) = thousands_before(&text[..start], &text[start..]) {
        start -= thousands.len() + 1;
    }
    let is_negative = text[..start].strip_suffix('-').is_some_and(|left| !left.ends_with(char::is_alphanumeric));
    Some(&text[start - usize::from(is_negative)..])
}

/// Returns the one to three digits at the end of `left` that are thousands of the number `right`.
fn thousands_before<'a>(left: &'a str, right: &str) -> Option<&'a str> {
    let left = left.strip_suffix(' ')?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let rest = left.trim_end_matches(|c: char| c.is_ascii_digit());
    let thousands = &left[rest.len()..];
    let is_whole = !rest.ends_with(|c: char| c == '.' || c.is_alphanumeric());
    (digits(right) == 3 && (1..=3).contains(&thousands.len()) && is_whole).then_some(thousands)
}

/// Writes a value in the form of a number.
fn in_form(number: &str, value: f64) -> String {
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let text = format!("{value:.decimals$}");
    let text = if text.parse() == Ok(0.0) { text.trim_start_matches('-') } else { &text };
    let (whole, decimals) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.char_indices() {
        let is_group = at > 0 && !grouped.ends_with('-') && (whole.len() - at) % 3 == 0;
        if number.contains(' ') && is_group {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped + decimals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, figures: &[(&str, f64)]) -> Outcome {
        let figures = figures.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        compare(&BTreeMap::from([("a.md".into(), text.into())]), &figures)
    }

    #[test]
    fn a_page_with_the_measured_numbers_passes() {
        let text = "<!-- vale off -->\n| 10 400<!--a.jobs--> | **0.04<!--a.max--> us** | -0.1<!--b-->, 2-3<!--c--> |\n";
        assert_eq!(of(text, &[("a.jobs", 10_400.2), ("a.max", 0.039), ("b", -0.06), ("c", 3.4)]), Outcome::default());
    }

    #[test]
    fn a_number_that_differs_is_renewed_in_its_form() {
        let text = "Jobs\nstart 0.23<!--a--> to 1 327.0<!--b--> us late, 998<!--c-->, 5 000<!--d-->, -1<!--e-->.\n";
        let figures = [("a", 0.2), ("b", 1_234_567.89), ("c", 1200.0), ("d", -123.0), ("e", -0.4)];
        let outcome = of(text, &figures);
        let renewed =
            "Jobs\nstart 0.20<!--a--> to 1 234 567.9<!--b--> us late, 1200<!--c-->, -123<!--d-->, 0<!--e-->.\n";
        assert_eq!(outcome.renewed["a.md"], renewed);
        assert_eq!(outcome.differences[0], "a.md:2: the page says 0.23, measured is 0.20 (`a`)");
        assert_eq!((outcome.differences.len(), outcome.faults.len()), (5, 0));
        let figures = figures.map(|(name, value)| (name.to_string(), value)).into();
        assert_eq!(compare(&outcome.renewed, &figures), Outcome::default());
    }

    #[test]
    fn a_marker_needs_a_figure() {
        let outcome = of("0.2<!--a-->\n0.2<!--b-->\n0.2<!-- a -->", &[("a", 0.2)]);
        let faults = ["a.md:2: no figure has the name `b`", "a.md:3: no figure has the name ` a `"];
        assert_eq!(outcome.faults, faults);
    }

    #[test]
    fn a_marker_needs_a_number() {
        for text in ["<!--a-->", "0.2 <!--a-->", "0.2 us<!--a-->", "the end.<!--a-->", "1.2.3<!--a-->", ".2<!--a-->"] {
            let outcome = of(text, &[("a", 0.2)]);
            assert_eq!(outcome.faults, ["a.md:1: no number stands before the marker `a`"], "{text}");
        }
    }

    #[test]
    fn a_figure_needs_a_marker() {
        assert_eq!(of("0.2<!--a-->", &[("a", 0.2), ("b", 1.0)]).faults, ["no page uses the figure `b`"]);
    }

    #[test]
    fn digits_before_a_space_are_thousands_of_three_digits_only() {
        for (text, number) in [("1 2 345", "2 345"), ("0.5 100", "100"), ("v1 100", "100"), ("1000 100", "100")] {
            assert_eq!(number_before(text), Some(number), "{text}");
        }
        assert_eq!(number_before("5 10"), Some("10"));
        assert_eq!(number_before("(-5 100.5"), Some("-5 100.5"));
    }
}
