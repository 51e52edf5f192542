//! The changes between two readings that a user must see.

use macrotick_node::Status;

use crate::top::sample::Row;

/// Returns the events between two readings, in words.
pub(crate) fn between(rows: &[Row], now: &Status, before: &Status) -> Vec<String> {
    let of_row = |row: &Row| match (row.kind, row.bad.1) {
        (_, 0) => None,
        ("group", 1) => Some(format!("group {} used up a budget", row.name)),
        ("group", times) => Some(format!("group {} used up a budget {times} times", row.name)),
        (_, 1) => Some(format!("task {} missed a job", row.name)),
        (_, jobs) => Some(format!("task {} missed {jobs} jobs", row.name)),
    };
    // The text of a problem has a count, which changes: the events above tell of it.
    let is_new = |problem: &&String| !before.problems.contains(problem) && !problem.contains("missed");
    let runs = |status: &Status| status.table.as_ref().is_some_and(|table| table.running);
    let table = match (runs(before), runs(now)) {
        (true, false) => Some("the table stopped".to_owned()),
        (false, true) => Some("the table started".to_owned()),
        _ => None,
    };
    table.into_iter().chain(rows.iter().filter_map(of_row)).chain(now.problems.iter().filter(is_new).cloned()).collect()
}
