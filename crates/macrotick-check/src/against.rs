//! Whether a plan is one of a description: it must state the same system.
//!
//! A description can leave values open, and the plan has them. It also has the groups for threads that open gates. The
//! other checks judge both.

use std::collections::BTreeMap;

use macrotick_model::{Plan, System};
use serde_json::{Map, Value};

use crate::Violation;

/// The keys of values that a description can leave to the planner.
const OPEN: [&str; 4] = ["budget", "priority", "runtime", "cpus"];
/// The start of the name of a kernel thread that opens gates.
const GATE: &str = "gate/";

/// Compares the system of a plan with a description. Each difference is a [`Violation::OtherSystem`].
pub fn against(plan: &Plan, system: &System) -> Vec<Violation> {
    let [described, planned] = [system, &plan.system].map(|system| serde_json::to_value(system).expect("always JSON"));
    let mut found = Vec::new();
    compare("", Some(&described), Some(&planned), &mut found);
    found
}

/// Compares two values at a place. A missing value is `None`.
fn compare(at: &str, described: Option<&Value>, planned: Option<&Value>, found: &mut Vec<Violation>) {
    match (described, planned) {
        (Some(Value::Object(described)), Some(Value::Object(planned))) => objects(at, described, planned, found),
        (Some(Value::Array(described)), Some(Value::Array(planned))) => lists(at, described, planned, found),
        (Some(Value::String(key)), Some(Value::Object(planned))) if is_filled(key, planned) => {}
        (None, Some(Value::Array(planned))) if planned.iter().all(is_added) => {}
        (None, Some(_)) if OPEN.iter().any(|key| at.rsplit('.').next() == Some(key)) => {}
        _ if described == planned => {}
        _ => {
            found.push(Violation::OtherSystem { at: at.to_owned(), described: text(described), planned: text(planned) })
        }
    }
}

/// Whether a key without values, as in `supply: deadline`, has got them.
fn is_filled(key: &str, planned: &Map<String, Value>) -> bool {
    planned.len() == 1
        && planned
            .get(key)
            .and_then(Value::as_object)
            .is_some_and(|values| values.keys().all(|key| OPEN.contains(&key.as_str())))
}

fn objects(at: &str, described: &Map<String, Value>, planned: &Map<String, Value>, found: &mut Vec<Violation>) {
    for (key, value) in described {
        compare(&under(at, key), Some(value), planned.get(key), found);
    }
    for (key, value) in planned.iter().filter(|(key, _)| !described.contains_key(*key)) {
        compare(&under(at, key), None, Some(value), found);
    }
}

/// Compares lists: items with names by these names, others by their places.
fn lists(at: &str, described: &[Value], planned: &[Value], found: &mut Vec<Violation>) {
    let Some(names) = named(described).zip(named(planned)) else {
        for index in 0..described.len().max(planned.len()) {
            compare(&under(at, &index.to_string()), described.get(index), planned.get(index), found);
        }
        return;
    };
    for (name, value) in &names.0 {
        compare(&under(at, name), Some(value), names.1.get(*name).copied(), found);
    }
    for (name, value) in names.1.iter().filter(|(name, value)| !names.0.contains_key(*name) && !is_added(value)) {
        compare(&under(at, name), None, Some(value), found);
    }
}

fn named(list: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    list.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect()
}

/// Whether an item is the group of a thread that opens gates, which a plan adds.
fn is_added(item: &Value) -> bool {
    let threads = item.get("kernel-threads").and_then(Value::as_array);
    threads.is_some_and(|threads| {
        matches!(threads.as_slice(), [thread] if thread.as_str().is_some_and(|thread| thread.starts_with(GATE)))
    })
}

fn under(at: &str, key: &str) -> String {
    if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    }
}

/// Returns a value as the message shows it. Objects can be long: their names suffice.
fn text(value: Option<&Value>) -> String {
    match value {
        None => "nothing".into(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(Value::Object(_)) => "an entry".into(),
        Some(Value::Array(list)) => format!("{} entries", list.len()),
        Some(other) => format!("`{other}`"),
    }
}
