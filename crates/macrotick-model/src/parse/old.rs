//! What keys of an earlier language are now.

/// Mapping, old key, and what to write.
const RENAMED: &[(&str, &str, &str)] = &[
    ("the description", "duration", "write `experiment: {duration: TIME}`"),
    ("the description", "files", "write `lab: {files: [PATH, ...]}`"),
    ("the description", "sync", "write `clock: {tai: {period: TIME, length: TIME, bound: TIME}}`"),
    ("task", "workload", "it is `run` now"),
    ("task", "runtime", "write `supply: {deadline: {runtime: TIME, cpus: [CPU, ...]}}`"),
    ("task", "cpus", "write `supply: {deadline: {cpus: [CPU, ...]}}`; a task with windows has one `cpu`"),
    ("pool", "slice", "write `order: {round-robin: TIME}` or `order: {priority: TIME}`"),
    ("group", "fifo", "it is `serve-fifo` now"),
    ("task of a group", "jitter", "it is `release-jitter` now"),
    ("task of a group", "bound", "it is `at-refills` now"),
];

/// What an unknown key of such a mapping was in an earlier language, and is now.
pub(super) fn now(noun: &str, key: &str) -> Option<String> {
    RENAMED.iter().find(|(of, old, _)| *of == noun && *old == key).map(|(.., now)| (*now).into())
}
