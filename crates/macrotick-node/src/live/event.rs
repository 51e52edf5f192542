//! What a supervisor tells its caller.

use macrotick_model::Instant;

use crate::live::changes::Changes;

/// What a supervisor tells its caller.
#[derive(Clone, Debug)]
pub enum Event {
    /// The deployment runs from this instant on (`CLOCK_MONOTONIC`).
    Started(Instant),
    /// It was changed.
    Changed(Changes),
    /// A change was refused, and why.
    Refused(String),
    /// Something else that should be known, such as a task that ended.
    Remark(String),
    /// It ends, and why.
    Ending(&'static str),
}
