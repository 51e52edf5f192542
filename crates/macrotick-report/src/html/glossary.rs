//! The terms that a report uses; `docs/reference/glossary.md` has all of them.

use super::write::{self, definitions};

const TERMS: [(&str, &str); 16] = [
    ("cycle", "the length after which the table repeats"),
    ("epoch", "the instant of cycle 0; all instants in a report count from it"),
    ("table", "the schedule of one host: per CPU, sorted windows that do not overlap"),
    ("window", "one interval of the table, given to one task or pool"),
    ("task", "a periodic source of jobs"),
    ("pool", "the threads of a control group, which share windows and have no jobs"),
    ("job", "one activation of a task: released by an ACTIVATE window, due at the end of its DEADLINE window"),
    ("nominal instant", "the start of a job's ACTIVATE window; all times count from it, never from a wake-up"),
    ("lateness", "first instruction of a job minus its nominal instant"),
    ("response", "last instruction of a job minus its nominal instant"),
    ("slack", "deadline of a job minus its last instruction; negative: a miss"),
    ("miss", "a job not complete at the end of its DEADLINE window"),
    ("p99, p99.9", "nearest rank: the smallest measured time that at least 99 % (99.9 %) of the jobs did not exceed"),
    ("std dev", "standard deviation of all jobs of the run (divided by their number)"),
    ("tier", "the enforcement that a run really had: kernel class, user-space dispatcher, or none"),
    ("lab", "the deterministic virtual machine; its clock counts instructions"),
];

/// Returns the glossary.
pub(super) fn section() -> String {
    write::section("Glossary", "", &definitions(TERMS))
}
