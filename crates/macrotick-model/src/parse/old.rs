//! Keys of an earlier language and their present form.

/// The mapping, the old key, and the text to write.
const RENAMED: &[(&str, &str, &str)] = &[
    ("the description", "duration", "write `experiment: {duration: TIME}`"),
    ("the description", "files", "write `lab: {files: [PATH, ...]}`"),
    ("the description", "sync", "write `clock: {tai: {period: TIME, length: TIME, bound: TIME}}`"),
    (
        "the description",
        "pools",
        "write it as one of the `groups`: `{name: NAME, windows: {period: TIME, length: TIME}}`",
    ),
    ("the description", "background", "list test load under `load`, and processes of a group under `run` of the group"),
    ("task", "workload", "write `run`"),
    ("task", "runtime", "write `supply: {deadline: {runtime: TIME, cpus: [CPU, ...]}}`"),
    ("group", "fifo", "write `serve-fifo`"),
    ("group", "pool", "write `windows: {period: TIME, length: TIME, order: priority}` in the group"),
    ("group", "cpu", "write `cpus: [CPU]`"),
    ("process", "load", "write the work as a key of the process: `hog: {}`, `program: [COMMAND, ...]`"),
    ("process", "group", "list the process under `run` of its group"),
    ("process", "pool", "list the process under `run` of its group"),
    ("task of a group", "jitter", "write `release-jitter`"),
    ("task of a group", "bound", "write `at-refills`"),
];

/// Returns the present form of an old key, in all mappings that had it.
pub(crate) fn anywhere(key: &str) -> Option<String> {
    let all: Vec<String> =
        RENAMED.iter().filter(|(_, old, _)| *old == key).map(|(of, _, now)| format!("in {of}: {now}")).collect();
    (!all.is_empty()).then(|| format!("a key of an earlier language: {}", all.join("; ")))
}

/// Returns the present form of an unknown key of this mapping, if it is an old key.
pub(super) fn now(noun: &str, key: &str) -> Option<String> {
    RENAMED.iter().find(|(of, old, _)| *of == noun && *old == key).map(|(.., now)| (*now).into())
}
