//! The clock of the tables, and how early jobs are dispatched.

use crate::keys::{forms, object, Kind};
use crate::time::Duration;

forms! {
    /// What the tables follow.
    #[derive(Copy, Eq)]
    pub enum Clock: "a clock" {
        word "monotonic" Monotonic = "`CLOCK_MONOTONIC`.";
        key "tai" Tai: SyncWindow = "`CLOCK_TAI`, which several hosts can share; it is followed in sync windows.";
    }
}

object! {
    /// A stretch of every period that no window and no lead lies in, on no CPU: there the table becomes longer or shorter, to
    /// follow its clock.
    #[derive(Copy, Eq)]
    pub struct SyncWindow: "a sync window" {
        "period" period: Duration, required
            = "Length from one sync window to the next, a multiple of the macrotick; the cycle is a multiple of it.";
        "length" length: Duration, required = "Length, a multiple of the macrotick, at most the period.";
        "bound" bound: Duration [SyncWindow::BOUND], required
            = "By how much each may become longer or shorter: less than its length, of which at least 1 us must be left.";
        "offset" offset: Duration [Kind::TIME], or "the last thing in the period" { period.checked_sub(length).unwrap_or(period) }
            = "Start within the period, a multiple of the macrotick.";
    }
}

impl SyncWindow {
    /// The kernel keeps it in 32 bits of nanoseconds.
    const BOUND: Kind = Kind::Time { least: Duration::from_nanos(1), most: Duration::from_nanos(u32::MAX as i64) };

    /// The starts within a cycle, which is a multiple of the period.
    pub fn starts(&self, cycle: Duration) -> impl Iterator<Item = Duration> {
        let SyncWindow { period, offset, .. } = *self;
        (0..cycle / period).map(move |number| offset + period * number)
    }
}

forms! {
    /// The time by which the kernel starts to dispatch a job early, to hold it until its nominal instant.
    #[derive(Copy, Eq)]
    pub enum Lead: "a lead" {
        plain Fixed: Duration [Lead::RANGE] = "That long.";
        also "auto" { Lead::Auto(Lead::DEFAULT_AT_MOST) }
            = "Measured on the host by each deployment, and a half more, at most 20 us.";
        key "auto" Auto: Duration [Lead::RANGE] = "The same, at most that long.";
    }
}

impl Lead {
    /// The bound of a measured lead where the description gives none.
    pub const DEFAULT_AT_MOST: Duration = Duration::from_micros(20);
    /// The longest lead.
    pub const MAX: Duration = Duration::from_millis(1);
    const RANGE: Kind = Kind::Time { least: Duration::from_nanos(1), most: Lead::MAX };

    /// The time that plans keep free of windows before each job: the longest that the lead can become.
    pub fn reserved(&self) -> Duration {
        match *self {
            Lead::Fixed(lead) | Lead::Auto(lead) => lead,
        }
    }
}
