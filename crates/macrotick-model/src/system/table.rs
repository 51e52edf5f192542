//! Tables by hand.

use crate::keys::{object, Kind};
use crate::time::Duration;

object! {
    /// A window of a table by hand.
    pub struct GivenWindow: "a window" {
        "task" task: String, required = "The name of the task, or of the pool of a group, that the window serves.";
        "cpu" cpu: u32 [Kind::Cpu], required = "The CPU of the window, one of `cpus`.";
        "offset" offset: Duration [Kind::TIME], required = "Start of the window within the cycle, a multiple of the macrotick.";
        "length" length: Duration, required = "Length of the window, a multiple of the macrotick.";
        "activate" activate: bool, optional "`false`" = "Whether the window releases a job. Not for a pool.";
        "deadline" deadline: bool, optional "`false`" = "Whether the deadline of the job is the end of the window. Not for a pool.";
    }
}
