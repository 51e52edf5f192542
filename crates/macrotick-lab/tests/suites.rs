//! Every slow test is in exactly one suite of suites.mk, and the documents list every suite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The test programs of a suite, and the filters for the names of its tests.
#[derive(Debug)]
struct Suite {
    programs: Vec<String>,
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
            let mut words = program.strip_prefix("-p ").expect("a package").split(" --test ");
            let package = words.next().expect("a package");
            let programs = words.map(|program| format!("{package}/{program}")).collect();
            suites.insert(name, Suite { programs, filters: filters.split_whitespace().map(String::from).collect() });
        }
    }
    suites
}

/// Returns the slow tests by their program.
fn slow_tests() -> Vec<(&'static str, String)> {
    let programs = [
        ("macrotick-kernel-tests/suite", "tests/kernel/tests/suite.rs"),
        ("macrotick-kernel-tests/golden", "tests/kernel/tests/golden.rs"),
        ("macrotick-kernel-tests/machines", "tests/kernel/tests/machines.rs"),
        ("macrotick-kernel-tests/timers", "tests/kernel/tests/timers/main.rs"),
        ("macrotick-net-tests/lab", "tests/net/tests/lab.rs"),
        ("macrotick/lab", "crates/macrotick/tests/lab.rs"),
        ("macrotick/containers", "crates/macrotick/tests/containers.rs"),
        ("macrotick/gates", "crates/macrotick/tests/gates.rs"),
        ("macrotick/packages", "crates/macrotick/tests/packages.rs"),
        ("macrotick/executed", "crates/macrotick/tests/executed/how_tos.rs"),
        ("macrotick/executed", "crates/macrotick/tests/executed/tutorials.rs"),
        ("macrotick-bench/benches", "crates/macrotick-bench/tests/benches.rs"),
        ("macrotick-check/anything", "crates/macrotick-check/tests/anything.rs"),
        ("macrotick-lab/lab", "crates/macrotick-lab/tests/lab.rs"),
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
        let runs = |suite: &Suite| {
            suite.programs.iter().any(|of| of == program) && suite.filters.iter().any(|part| test.contains(part))
        };
        let found: Vec<&String> = suites.iter().filter(|(_, suite)| runs(suite)).map(|(name, _)| name).collect();
        assert_eq!(found.len(), 1, "{test} of {program} is in the suites {found:?}");
    }
}

#[test]
fn every_suite_is_run_and_told_of() {
    let (text, told) = (read("suites.mk"), read("docs/contributing/kernel-tests.md"));
    let (_, list) = text.split_once("SUITES :=").expect("the list of suites");
    for name in suites().into_keys() {
        assert!(list.split_whitespace().any(|word| word == name), "make test-full leaves {name} out");
        assert!(told.contains(&format!("| `make {name}` |")), "docs/contributing/kernel-tests.md does not list {name}");
    }
}
