//! The page about the versions of Linux describes the present hooks.

use std::fs;

use macrotick_lab::{port, Layout};

#[test]
fn the_page_is_that_of_the_hooks() {
    let layout = Layout::find().expect("a checkout");
    let page = port::page(&layout).unwrap_or_else(|error| panic!("{error}"));
    let kept = fs::read_to_string(layout.root().join("docs/results/port.md")).expect("the page");
    assert!(page == kept, "make docs/results/port.md again: macrotick-lab port > docs/results/port.md");
}
