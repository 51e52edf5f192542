//! The clock of a host, and the measurements of its CPUs.

use serde::{Deserialize, Serialize};

/// The state of `CLOCK_REALTIME`, from `adjtimex(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClockState {
    /// Whether a program synchronises it.
    pub synchronised: bool,
    /// Its error in microseconds, as this program has estimated it; `None` if it does not, as with linuxptp.
    pub estimated_error_us: Option<i64>,
    /// The offset of `CLOCK_TAI` from UTC, in seconds. 0: no program has set it.
    pub tai_offset_s: i32,
}

/// The measurements of one CPU: a spin that reads the clock, and sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Measured {
    /// The CPU.
    pub cpu: u32,
    /// The length of the spin, in nanoseconds.
    pub spin_ns: u64,
    /// The longest time between two readings without a switch to another thread, in nanoseconds.
    pub longest_gap_ns: u64,
    /// The sum of those above 10 us, in nanoseconds.
    pub stolen_ns: u64,
    /// The number of those above 10 us.
    pub gaps: u64,
    /// The number of sleeps.
    pub sleeps: u32,
    /// The median of their lateness, in nanoseconds.
    pub sleep_median_ns: u64,
    /// The longest lateness, in nanoseconds.
    pub sleep_worst_ns: u64,
    /// Whether the sleeping thread had `SCHED_FIFO`. Otherwise other threads delay it, too.
    pub was_fifo: bool,
}
