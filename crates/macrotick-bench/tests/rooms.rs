//! An experiment imports the kit and never another experiment; the kit imports none.

use std::collections::BTreeSet;
use std::path::Path;

use clap::ValueEnum;
use macrotick_bench::Experiment;
use macrotick_fixtures::{read_tree, repository, source, sources, Source};

/// Returns the experiments. Their modules have the names of the command line.
fn experiments() -> Vec<String> {
    let all = Experiment::value_variants().iter();
    all.filter_map(|one| Some(one.to_possible_value()?.get_name().to_string())).collect()
}

/// Returns the names at the root of the crate that a source uses: modules, and items below them. `*` stands for all of
/// them.
fn named(source: &Source) -> BTreeSet<&str> {
    source.paths.iter().filter_map(|path| path.strip_prefix("crate::")?.split("::").next()).collect()
}

/// Returns the room of a source: the module at the root of the crate that contains it.
fn room_of<'a>(source: &'a Source, root: &Path) -> &'a str {
    let inside = source.file.strip_prefix(root).expect("a file of the crate");
    inside.iter().next().and_then(|name| Path::new(name).file_stem()?.to_str()).expect("a name")
}

/// Returns the names that a source in a room uses and that are neither in the room nor common to all.
fn strange<'a>(source: &'a Source, room: &str) -> Vec<&'a str> {
    named(source).into_iter().filter(|name| ![room, "kit", "error"].contains(name)).collect()
}

#[test]
fn no_bench_imports_another() {
    let root = repository("crates/macrotick-bench/src");
    let all = sources(&root.join("lib.rs"));
    for room in experiments().iter().map(String::as_str).chain(["kit", "error"]) {
        let files: Vec<&Source> = all.iter().filter(|source| room_of(source, &root) == room).collect();
        assert!(!files.is_empty(), "{room} is nowhere");
        for source in files {
            assert_eq!(strange(source, room), [""; 0], "{} names it", source.file.display());
        }
    }
}

#[test]
fn every_way_out_of_a_room_is_seen() {
    let strange = |text: &str| strange(&source(&format!("mod lead {{ {text} }}")), "lead").join(" ");
    for text in [
        "use crate::response;",
        "use crate::{kit, response};",
        "use crate::{kit::{Scale, round}, response::{self as other}};",
        "use super::response;",
        "fn f() { super::response::run(); }",
        "mod deep { use super::super::response::run; }",
        "mod deep { fn f() { assert!(crate::response::holds()); } }",
        "use super as all; fn f() { all::response::run(); }",
    ] {
        assert_eq!(strange(text), "response", "{text}");
    }
    assert_eq!(strange("use crate::*;"), "*");
    assert_eq!(strange("use crate::kit::response; use self::part; mod part { use super::x; }"), "");
}

#[test]
fn the_product_has_no_experiment() {
    assert!(!read_tree("crates/macrotick/Cargo.toml").contains("macrotick-bench"));
}
