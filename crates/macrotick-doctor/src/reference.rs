//! The table of all checks for the documentation.

use std::fmt::Write as _;

use crate::check::Check;
use crate::checks;

/// Returns a line for each check, in the order of their effect.
pub fn table() -> String {
    let mut all: Vec<&Check> = checks::all().collect();
    all.sort_by_key(|check| check.rank);
    let mut text = String::from("| check | a fit host | the effect of another state | source |\n|---|---|---|---|\n");
    for Check { name, states, why, source, .. } in all {
        let _ = writeln!(text, "| `{name}` | {states} | {why} | {} |", escaped(source));
    }
    text
}

/// Keeps the words of a source from being read as Markdown.
fn escaped(text: &str) -> String {
    text.replace('*', r"\*").replace('|', r"\|")
}
