//! What keys of an earlier language are now.

/// Mapping, old key, and what to write.
const RENAMED: &[(&str, &str, &str)] = &[
    ("the description", "duration", "write `experiment: {duration: TIME}`"),
    ("the description", "files", "write `lab: {files: [PATH, ...]}`"),
    ("the description", "sync", "write `clock: {tai: {period: TIME, length: TIME, bound: TIME}}`"),
    (
        "the description",
        "pools",
        "a pool is one of the `groups` now: `{name: NAME, windows: {period: TIME, length: TIME}}`",
    ),
    ("the description", "background", "test load stands under `load`, what runs in a group under its `run`"),
    ("task", "workload", "it is `run` now"),
    ("task", "runtime", "write `supply: {deadline: {runtime: TIME, cpus: [CPU, ...]}}`"),
    ("task", "cpus", "write `supply: {deadline: {cpus: [CPU, ...]}}`; a task with windows has one `cpu`"),
    ("group", "fifo", "it is `serve-fifo` now"),
    (
        "group",
        "pool",
        "its windows stand in the group itself: `windows: {period: TIME, length: TIME, order: priority}`",
    ),
    ("group", "cpu", "write `cpus: [CPU]`"),
    ("process", "load", "what it does stands in it by itself: `hog: {}`, `program: [COMMAND, ...]`"),
    ("process", "group", "it stands under `run` of its group"),
    ("process", "pool", "it stands under `run` of its group"),
    ("task of a group", "jitter", "it is `release-jitter` now"),
    ("task of a group", "bound", "it is `at-refills` now"),
];

/// What a key of that name was, in whatever mapping, and is now.
pub(crate) fn anywhere(key: &str) -> Option<String> {
    let all: Vec<String> =
        RENAMED.iter().filter(|(_, old, _)| *old == key).map(|(of, _, now)| format!("of {of}: {now}")).collect();
    (!all.is_empty()).then(|| format!("a key of an earlier language: {}", all.join("; ")))
}

/// What an unknown key of such a mapping was in an earlier language, and is now.
pub(super) fn now(noun: &str, key: &str) -> Option<String> {
    RENAMED.iter().find(|(of, old, _)| *of == noun && *old == key).map(|(.., now)| (*now).into())
}
