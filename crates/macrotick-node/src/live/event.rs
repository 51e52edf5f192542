//! The events that a supervisor reports to its caller.

use macrotick_model::{GatesInForce, Instant};

use crate::live::changes::Changes;
use crate::live::reading::Reading;

/// An event that a supervisor reports to its caller.
#[derive(Clone, Debug)]
pub enum Event {
    /// The deployment runs from this instant on (`CLOCK_MONOTONIC`).
    Started(Instant),
    /// These gates are in force.
    Gates(Vec<GatesInForce>),
    /// The deployment was changed.
    Changed(Changes),
    /// A change was refused for this reason.
    Refused(String),
    /// Another remark, for example on a task that ended.
    Remark(String),
    /// The reading of a soak.
    Reading(Reading),
    /// A miss was recorded.
    Recorded(Recorded),
    /// The deployment ends for this reason.
    Ending(&'static str),
}

/// The recording of a miss.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The task.
    pub task: String,
    /// The number of its job since the epoch.
    pub job: u64,
    /// The cause in a sentence.
    pub sentence: String,
    /// A trace of the CPUs around the miss, for Perfetto.
    pub trace: String,
}
