//! The table of keys, and what comes from it: the reference, the JSON Schema, `macrotick explain`.
//!
//! `MACROTICK_BLESS=1 cargo test -p macrotick-model --test keys` writes the tables and schemas anew.

use std::path::{Path, PathBuf};

use macrotick_fixtures::{hold, read_tree, repository};
use macrotick_model::keys::{container_keys, explain, schema, sections, system_keys};
use macrotick_model::System;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each table of a document stands between `<!-- keys: a task -->` and `<!-- end of keys -->`.
fn with_tables(text: &str, used: &mut Vec<String>) -> String {
    let sections = sections();
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("<!-- keys: ") {
        let name = rest[begin + 11..].split(" -->").next().expect("the end of the mark");
        let (_, table) = sections.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("no keys of {name}"));
        let end = begin + rest[begin..].find("<!-- end of keys -->").expect("the end of the table");
        out += &format!("{}<!-- keys: {name} -->\n\n{table}\n", &rest[..begin]);
        used.push(name.into());
        rest = &rest[end..];
    }
    out + rest
}

#[test]
fn the_reference_has_every_table() {
    let mut used = Vec::new();
    for document in ["docs/system-yaml.md", "docs/feasibility.md"] {
        hold(document, &with_tables(&read_tree(document), &mut used));
    }
    let missing: Vec<&str> =
        sections().iter().map(|(name, _)| *name).filter(|name| !used.iter().any(|used| used == name)).collect();
    assert!(missing.is_empty(), "no document has the keys of {missing:?}");
}

#[test]
fn the_schemas_are_those_of_the_table() {
    let text = |kind, title| serde_json::to_string_pretty(&schema(kind, title)).expect("JSON") + "\n";
    hold("schema/system.schema.json", &text(system_keys(), "A system of Macrotick"));
    hold("schema/container.schema.json", &text(container_keys(), "A container that asks Macrotick to be admitted"));
}

/// What only rules between values, or the longest of some times refuse, of which a schema knows nothing. Everything else it has
/// to refuse, too.
const BETWEEN_VALUES: [&str; 19] = [
    "cycle",
    "duplicate-name",
    "huge-period",
    "hyperperiod",
    "jobs",
    "lead",
    "lead-auto",
    "lead-group",
    "no-table",
    "nothing",
    "off-grid",
    "pool-windows",
    "reservations",
    "sync-long",
    "sync-values",
    "table-overlap",
    "time-order",
    "unknown-task",
    "windows-and-budget",
];
/// What is no YAML, or none of ours: no validator comes to see it.
const NO_TREE: [&str; 5] = ["anchors", "duplicate-key", "not-yaml", "two-documents", "empty"];

/// A YAML text as JSON, as an editor's validator sees it.
fn tree(text: &str) -> Option<serde_json::Value> {
    serde_yaml_ng::from_str(text).ok()
}

#[test]
fn the_schema_takes_what_is_right_and_refuses_what_is_wrong() {
    let validator = jsonschema::validator_for(&schema(system_keys(), "s")).expect("a schema");
    let mut right = 0;
    for folder in ["examples", "bench", "crates/macrotick-plan/tests/golden"] {
        for path in yaml_files(&repository(folder)) {
            let text = read(&path);
            if System::parse(&text, "x").is_err() {
                continue;
            }
            let tree = tree(&text).expect("YAML");
            let errors: Vec<String> = validator.iter_errors(&tree).map(|error| format!("{error}")).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            right += 1;
        }
    }
    assert!(right >= 30, "only {right} examples found");
    let (mut refused, mut unknown) = (0, Vec::new());
    for path in yaml_files(&repository("crates/macrotick-model/tests/errors")) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if NO_TREE.contains(&name.as_str()) {
            continue;
        }
        let Some(tree) = tree(&read(&path)) else { panic!("{name} is no YAML") };
        let is_valid = validator.is_valid(&tree);
        match BETWEEN_VALUES.contains(&name.as_str()) {
            true => unknown.extend((!is_valid).then(|| format!("{name} is refused"))),
            false => unknown.extend(is_valid.then(|| format!("{name} is taken"))),
        }
        refused += usize::from(!is_valid);
    }
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(refused >= 25, "only {refused} refused");
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths
}

#[test]
fn a_key_is_explained_wherever_it_may_stand() {
    let all = explain("deadline").expect("known");
    for place in
        ["tasks[].deadline: time; left out: the period", "table[].deadline: true or false", "tasks[].supply.deadline"]
    {
        assert!(all.contains(place), "{place} in:\n{all}");
    }
    let one = explain("tasks.on-miss").expect("known");
    assert!(one.contains("tasks[].on-miss") && one.contains("    restart  ") && !one.contains("groups"), "{one}");
    let all: Vec<String> = ["", "cpus", "tasks", "groups", "lead"].map(|key| explain(key).expect("known")).into();
    assert!(all.iter().all(|text| !text.contains("](")), "links are the reference's: {all:?}");
    assert!(explain("container").expect("known").contains("container: container"));
    assert!(explain("").expect("all").contains("server-period"));
    assert_eq!(explain("perod"), Err(Some("did you mean `period`?".into())));
    assert_eq!(explain("groups.budgt"), Err(Some("did you mean `groups.budget`?".into())));
    assert!(explain("pools").unwrap_err().expect("a hint").contains("one of the `groups` now"));
    let lines = |key: &str| explain(key).expect("known").lines().map(|line| line.chars().count()).max();
    assert!(["lead", "kernel-threads", "", "groups"].iter().all(|key| lines(key) <= Some(100)));
    assert_eq!(explain("zzzzzz"), Err(None));
}
