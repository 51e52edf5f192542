//! A table by hand.

use crate::keys::{object, Kind};
use crate::time::Duration;

object! {
    /// A window of a table given by hand.
    pub struct GivenWindow: "a window" {
        "task" task: String, required = "Name of the task or pool served.";
        "cpu" cpu: u32 [Kind::Cpu], required = "The CPU, one of `cpus`.";
        "offset" offset: Duration [Kind::TIME], required = "Start within the cycle, a multiple of the macrotick.";
        "length" length: Duration, required = "Length, a multiple of the macrotick.";
        "activate" activate: bool, optional "`false`" = "Whether it releases a job; not for a pool.";
        "deadline" deadline: bool, optional "`false`" = "Whether the job must be done at its end; not for a pool.";
    }
}
