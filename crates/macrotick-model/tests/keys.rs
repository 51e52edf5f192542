//! The table of keys and the texts generated from it: the reference, the JSON Schema, `macrotick explain`.
//!
//! `MACROTICK_BLESS=1 cargo test -p macrotick-model --test keys` writes the tables and schemas again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use macrotick_fixtures::{hold, read_tree, refusals, repository};
use macrotick_model::keys::{container_keys, explain, schema, sections, system_keys};
use macrotick_model::{Container, System};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fills the tables of a document, each between `<!-- keys: a task -->` and `<!-- end of keys -->`.
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
    for document in ["docs/reference/description.md", "docs/how-to/admit-one-more-container.md"] {
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

/// The wrong descriptions that the schema accepts, each with the reason. It must report all others.
const TAKEN: [(&str, &str); 34] = [
    ("queues", "a sum over all classes"),
    ("apart", "tasks depend on each other"),
    ("exclusive-user", "tasks depend on each other"),
    ("reserve", "the length of one thing against the period of another"),
    ("reserve-grid", "multiples of the macrotick"),
    ("reserve-unused", "whether something has windows"),
    ("anchors", "a validator replaces them by their values"),
    ("cycle", "one time must be a multiple of others"),
    ("duplicate-key", "a validator sees one of them"),
    ("duplicate-name", "all names must be different"),
    ("hosts", "hosts depend on CPUs and on each other"),
    ("hosts-idle", "the same"),
    ("hosts-network", "interfaces, flows and chains depend on hosts"),
    ("huge-period", "times are text, and a pattern cannot limit them"),
    ("hyperperiod", "the least common multiple of times is bounded"),
    ("jobs", "the number of jobs in a cycle is bounded"),
    ("lead", "times are text, and a pattern cannot limit them"),
    ("lead-auto", "the same"),
    ("lead-group", "the same"),
    ("no-table", "the key depends on another part of the description"),
    ("nothing", "one of two keys is required"),
    ("off-grid", "one time must be a multiple of another one"),
    ("preemptible-all", "the key depends on another part of the description"),
    ("pool-windows", "the owner of a window is in another part of the description"),
    ("reservations", "the range of times under SCHED_DEADLINE depends on others"),
    ("slots", "slots depend on classes, interfaces and each other"),
    ("switch-alone", "the key depends on another part of the description"),
    ("sync-class", "classes have different priorities and are counted together"),
    ("sync-long", "one time is bounded by another one"),
    ("sync-values", "times must be multiples of the macrotick"),
    ("table-overlap", "windows must not overlap"),
    ("time-order", "one time is bounded by another one"),
    ("unknown-task", "the name must be that of a task"),
    ("windows-and-budget", "one key must fit another one"),
];
/// The wrong descriptions that are not YAML for a validator, either.
const NO_TREE: [&str; 2] = ["not-yaml", "two-documents"];

/// Reads a YAML text as JSON, as an editor's validator does.
fn tree(text: &str) -> Option<serde_json::Value> {
    serde_yaml_ng::from_str(text).ok()
}

/// Returns the schema for a description by its first key, after its parser accepted it.
fn schema_of(text: &str, name: &str) -> &'static str {
    let is_container = text.lines().any(|line| line.starts_with("container:"));
    let refused = match is_container {
        true => Container::parse(text, name).map(drop),
        false => System::parse(text, name).map(drop),
    };
    refused.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    if is_container {
        "container"
    } else {
        "system"
    }
}

/// Returns the schema that a description names for editors.
fn told_to_editors(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("# yaml-language-server: $schema="))?;
    line.strip_suffix(".schema.json")?.rsplit('/').next()
}

#[test]
fn the_schemas_take_what_is_right() {
    let mut right = BTreeMap::new();
    for folder in ["examples", "bench", "crates/macrotick-plan/tests/golden"] {
        for path in yaml_files(&repository(folder)) {
            let (text, name) = (read(&path), path.display().to_string());
            let schema = schema_of(&text, &name);
            assert!(told_to_editors(&text).is_none_or(|told| told == schema), "{name}: it is a {schema}");
            assert_eq!(refusals(schema, &tree(&text).expect("YAML")), [""; 0], "{name}");
            *right.entry(schema).or_insert(0) += 1;
        }
    }
    assert!(right["system"] >= 30 && right["container"] >= 1, "only {right:?} found");
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let validator = jsonschema::validator_for(&schema(system_keys(), "s")).expect("a schema");
    let takes = |name: &str| tree(&read_tree(&format!("{ERRORS}/{name}.yaml"))).map(|tree| validator.is_valid(&tree));
    let mut others: BTreeSet<String> = yaml_files(&repository(ERRORS)).iter().map(|path| stem(path)).collect();
    for (name, why) in TAKEN {
        assert!(others.remove(name), "there is no {name}");
        assert_eq!(takes(name), Some(true), "{name} ({why})");
    }
    for name in NO_TREE {
        assert!(others.remove(name), "there is no {name}");
        assert_eq!(takes(name), None, "{name}");
    }
    assert!(others.len() >= 25, "only {others:?} refused");
    for name in others {
        assert_eq!(takes(&name), Some(false), "{name}");
    }
}

/// The descriptions that the parsers refuse.
const ERRORS: &str = "crates/macrotick-model/tests/errors";

fn stem(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
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
        ["tasks[].deadline: time; default: the period", "table[].deadline: true or false", "tasks[].supply.deadline"]
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
    assert!(explain("pools").unwrap_err().expect("a hint").contains("as one of the `groups`"));
    let lines = |key: &str| explain(key).expect("known").lines().map(|line| line.chars().count()).max();
    assert!(["lead", "kernel-threads", "", "groups"].iter().all(|key| lines(key) <= Some(100)));
    assert_eq!(explain("zzzzzz"), Err(None));
}
