//! The pages of the reference have the names that the sources define, and no others.

use std::collections::BTreeSet;

use macrotick_fixtures::read_tree;
use serde_json::Value;

const UAPI: &str = "kernel/overlay/include/uapi/linux/macrotick.h";

/// The words of a text that begin with one of the prefixes.
fn words<'a>(text: &'a str, prefixes: &[&str]) -> BTreeSet<&'a str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || "_.".contains(c))).map(|word| word.trim_end_matches('.'));
    words.filter(|word| prefixes.iter().any(|prefix| word.len() > prefix.len() && word.starts_with(prefix))).collect()
}

/// The names between two texts, wherever both stand in one line.
fn between<'a>(text: &'a str, before: &str, after: &str) -> BTreeSet<&'a str> {
    text.lines().filter_map(|line| Some(line.split_once(before)?.1.split_once(after)?.0)).collect()
}

/// Fails if a page lacks one of the names.
fn has(page: &str, names: &BTreeSet<&str>, at_least: usize) {
    let text = read_tree(page);
    assert!(names.len() >= at_least, "only {names:?}");
    let missing: Vec<&&str> = names.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{page} lacks {missing:?}");
}

/// Fails if a page has a name that its source lacks.
fn has_only(page: &str, prefixes: &[&str], source: &str) {
    let text = read_tree(page);
    let strange: Vec<&str> = words(&text, prefixes).into_iter().filter(|word| !source.contains(word)).collect();
    assert!(strange.is_empty(), "{page} has {strange:?}, which the source lacks");
}

#[test]
fn the_device_has_its_calls_flags_and_errors() {
    let header = read_tree(UAPI);
    let defined = words(&header, &["MACROTICK_IOC_", "MACROTICK_ENTITY_", "MACROTICK_WINDOW_"]);
    has("docs/reference/device.md", &defined, 20);
    // The table of errors has the prefix in its head, and no row for success.
    let errors = words(&header, &["MACROTICK_ERR_"]);
    let errors = errors.iter().filter_map(|name| name.strip_prefix("MACROTICK_ERR_")).filter(|name| *name != "NONE");
    has("docs/reference/device.md", &errors.collect(), 30);
    has_only("docs/reference/device.md", &["MACROTICK_IOC_", "MACROTICK_ENTITY_", "MACROTICK_WINDOW_"], &header);
}

#[test]
fn trace_points_have_their_page() {
    let [class, shield] = ["macrotick", "timershield"].map(|name| {
        let path = format!("kernel/overlay/include/trace/events/{name}.h");
        read_tree(&path)
    });
    let events = format!("{class}{shield}");
    let single = events.lines().filter_map(|line| line.strip_prefix("TRACE_EVENT(")?.strip_suffix(','));
    let of_classes = events.lines().filter_map(|line| line.strip_prefix("DEFINE_EVENT(")?.split(", ").nth(1));
    let names: BTreeSet<&str> = single.chain(of_classes.map(|name| name.trim_end_matches(','))).collect();
    has("docs/reference/tracepoints.md", &names, 9);
    let fields: BTreeSet<&str> =
        between(&events, "__field(", ")").iter().filter_map(|field| field.split(", ").nth(1)).collect();
    has("docs/reference/tracepoints.md", &fields, 8);
}

#[test]
fn group_files_have_their_page() {
    let sources =
        ["pool.c", "ds_group.c"].map(|file| read_tree(&format!("kernel/overlay/kernel/sched/macrotick/{file}")));
    let sources = sources.concat();
    let files = between(&sources, ".name\t\t= \"", "\"");
    let files: Vec<String> = files.iter().map(|name| format!("cpu.{name}")).collect();
    has("docs/reference/group-files.md", &files.iter().map(String::as_str).collect(), 7);
    let known = files.concat() + "cpu.max cpu.stat cpu.weight cpu.pressure";
    has_only("docs/reference/group-files.md", &["cpu.ds.", "cpu.tt."], &known);
}

#[test]
fn counters_have_their_page() {
    let schema: Value = serde_json::from_str(&read_tree("schema/observation.schema.json")).unwrap();
    let properties = |name: &str| {
        let part = schema["$defs"][name]["properties"].as_object().unwrap_or_else(|| panic!("no {name}"));
        part.keys().map(String::as_str).filter(|key| *key != "name").collect::<Vec<_>>()
    };
    let parts = ["EntityCounters", "PoolObservation", "GroupObservation"];
    has("docs/reference/counters.md", &parts.into_iter().flat_map(properties).collect(), 12);
}
