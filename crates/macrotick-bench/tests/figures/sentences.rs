//! Sentences of the documents that follow from figures and have no number to compare.

use std::collections::BTreeMap;

use super::published::Figures;

/// A sentence, or a part of it.
struct Sentence {
    page: &'static str,
    text: &'static str,
    is_true: bool,
}

fn sentence(page: &'static str, text: &'static str, is_true: bool) -> Sentence {
    Sentence { page, text, is_true }
}

/// Returns the sentences that are not in their pages, and those that are not true. The map has the pages by path; line
/// breaks do not matter.
pub fn wrong(pages: &BTreeMap<String, String>) -> Vec<String> {
    let benches = [timershield];
    let all = benches.iter().flat_map(|of| of());
    all.filter_map(|Sentence { page, text, is_true }| {
        let words = pages[page].split_whitespace().collect::<Vec<_>>().join(" ");
        match (words.contains(text), is_true) {
            (false, _) => Some(format!("{page} does not say: {text}")),
            (_, false) => Some(format!("{page}, no longer true: {text}")),
            _ => None,
        }
    })
    .collect()
}

fn timershield() -> Vec<Sentence> {
    let shield = Figures::of("timershield");
    let crowd = shield.one("longest response, synchronised: more beside 100 than beside 1", "on");
    vec![sentence("README.md", "they do not lengthen it", crowd.abs() < 0.1)]
}
