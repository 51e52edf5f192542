//! The JSON files of rt-app (`scheduler-tools/rt-app`, `doc/tutorial.txt`).
//!
//! All times of rt-app are whole microseconds, except `duration`, which counts seconds. rt-app ignores keys that it
//! does not know. An export uses this: it writes values that rt-app lacks, such as the WCET, into objects named
//! `macrotick`, and an import reads them.
//!
//! | module | part |
//! |---|---|
//! | `json` | the grammar: JSON with comments, repeated keys, trailing commas and keys without a value |
//! | `fields` | the values of an object, with their paths and ranges |
//! | `events` | the events of a thread: computing, timers, sleeps |
//! | `policy` | the policy of a thread |
//! | `own` | the objects named `macrotick` |
//! | `thread` | one object of `tasks`, with its only phase |
//! | `task` | a thread that becomes tasks |
//! | `load` | a thread that becomes load |
//! | `global` | the object `global` |
//! | `import` | the file |
//! | `export` | the way back |
//! | `written` | the text of an exported file |

mod events;
mod export;
mod fields;
mod global;
mod import;
mod json;
mod load;
mod own;
mod policy;
mod task;
mod thread;
mod written;

pub use export::export;
pub use import::{import, Options};

/// The longest time of rt-app in microseconds: it counts in C's `int`.
const MOST_MICROS: i64 = i32::MAX as i64;
