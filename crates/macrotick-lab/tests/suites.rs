//! Every slow test is in one suite of suites.mk, and the documents tell of every suite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a suite runs: a test program, and what the names of its tests have in them.
#[derive(Debug)]
struct Suite {
    program: String,
    filters: Vec<String>,
}

fn suites() -> BTreeMap<String, Suite> {
    let text = read("suites.mk").replace("$(CLASS)", "-p macrotick-kernel-tests --test suite -- --ignored");
    let (mut suites, mut name) = (BTreeMap::new(), None);
    for line in text.lines() {
        if let Some((target, _)) = line.split_once(':').filter(|(target, _)| target.starts_with("test-")) {
            name = Some(target.to_string());
        } else if let (Some(command), Some(name)) = (line.strip_prefix("\t$(SLOW) "), name.take()) {
            let (program, filters) = command.split_once(" -- --ignored ").expect("filters");
            let program = program.strip_prefix("-p ").expect("a package").replace(" --test ", "/");
            suites.insert(name, Suite { program, filters: filters.split_whitespace().map(String::from).collect() });
        }
    }
    suites
}

/// The slow tests by their program.
fn slow_tests() -> Vec<(&'static str, String)> {
    let programs = [
        ("macrotick-kernel-tests/suite", "tests/kernel/tests/suite.rs"),
        ("macrotick-kernel-tests/machines", "tests/kernel/tests/machines.rs"),
        ("macrotick-kernel-tests/timers", "tests/kernel/tests/timers/main.rs"),
        ("macrotick/lab", "crates/macrotick/tests/lab.rs"),
        ("macrotick/containers", "crates/macrotick/tests/containers.rs"),
        ("macrotick-bench/benches", "crates/macrotick-bench/tests/benches.rs"),
        ("macrotick-lab/series", "crates/macrotick-lab/tests/series.rs"),
    ];
    let of = |(program, path): (&'static str, &str)| {
        let text = read(path);
        let names = text.lines().filter_map(|line| line.strip_prefix("fn full_")?.split_once("() {"));
        names.map(|(name, _)| (program, format!("full_{name}"))).collect::<Vec<_>>()
    };
    programs.into_iter().flat_map(of).collect()
}

#[test]
fn every_slow_test_is_in_one_suite() {
    let (suites, tests) = (suites(), slow_tests());
    assert!(suites.len() > 8 && tests.len() > 30, "{suites:?} {tests:?}");
    for (program, test) in tests {
        let runs = |suite: &Suite| suite.program == program && suite.filters.iter().any(|part| test.contains(part));
        let found: Vec<&String> = suites.iter().filter(|(_, suite)| runs(suite)).map(|(name, _)| name).collect();
        assert_eq!(found.len(), 1, "{test} of {program} is in the suites {found:?}");
    }
}

#[test]
fn every_suite_is_run_and_told_of() {
    let (text, told) = (read("suites.mk"), read("docs/kernel-tests.md"));
    let (_, list) = text.split_once("SUITES :=").expect("the list of suites");
    for name in suites().into_keys() {
        assert!(list.split_whitespace().any(|word| word == name), "make test-full leaves {name} out");
        assert!(told.contains(&format!("| `make {name}` |")), "docs/kernel-tests.md does not tell of {name}");
    }
}
