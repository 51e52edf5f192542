//! The numbers in README and the documents equal the figures.json of the results.
//!
//! After a new publication of a bench, `MACROTICK_BLESS=1 cargo test -p macrotick-bench --test figures` renews the
//! numbers. [`markers`] explains how a document names a figure.

mod markers;
mod names;
mod published;
mod sentences;

use std::collections::BTreeMap;

use macrotick_fixtures::{hold, pages, read_tree};

/// Reads all pages, except those that the benches write, and CONTRIBUTING.md: its markers are examples.
fn documents() -> BTreeMap<String, String> {
    let paths =
        pages().into_iter().filter(|path| !path.starts_with("docs/results") && !path.ends_with("CONTRIBUTING.md"));
    paths.map(|path| path.display().to_string()).map(|path| (path.clone(), read_tree(&path))).collect()
}

#[test]
fn documents_say_what_was_measured() {
    let outcome = markers::compare(&documents(), &names::all());
    let mut wrong = outcome.faults;
    if std::env::var_os("MACROTICK_BLESS").is_some() {
        outcome.renewed.iter().for_each(|(path, text)| hold(path, text));
    } else {
        wrong.extend(outcome.differences);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_without_a_number_are_true() {
    let wrong = sentences::wrong(&documents());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
