//! The clock of the tables, and the time by which the kernel dispatches jobs early.

use crate::keys::{forms, object, Kind};
use crate::time::Duration;

forms! {
    /// The clock that the tables follow.
    #[derive(Copy, Eq)]
    pub enum Clock: "a clock" {
        word "monotonic" Monotonic = "`CLOCK_MONOTONIC`.";
        key "tai" Tai: SyncWindow = "`CLOCK_TAI`, which several hosts can share. The tables follow it in sync windows.";
    }
}

object! {
    /// An interval of every period in which no CPU has a window or a lead. There the table becomes longer or shorter to
    /// follow its clock.
    #[derive(Copy, Eq)]
    pub struct SyncWindow: "a sync window" {
        "period" period: Duration, required
            = "Interval from one sync window to the next, a multiple of the macrotick. The cycle is a multiple of it.";
        "length" length: Duration, required = "Length of a sync window: a multiple of the macrotick, at most the period.";
        "bound" bound: Duration [SyncWindow::BOUND], required
            = "The most by which a sync window becomes longer or shorter. At least 1 us of the window must remain.";
        "offset" offset: Duration [Kind::TIME], or "at the end of the period" { period.checked_sub(length).unwrap_or(period) }
            = "Start of the sync window within the period, a multiple of the macrotick.";
    }
}

impl SyncWindow {
    /// The kernel stores it as nanoseconds in 32 bits.
    const BOUND: Kind = Kind::Time { least: Duration::from_nanos(1), most: Duration::from_nanos(u32::MAX as i64) };

    /// Returns the starts within a cycle, which must be a multiple of the period.
    pub fn starts(&self, cycle: Duration) -> impl Iterator<Item = Duration> {
        let SyncWindow { period, offset, .. } = *self;
        (0..cycle / period).map(move |number| offset + period * number)
    }
}

forms! {
    /// The time by which the kernel starts to dispatch a job early, to hold it until its nominal instant.
    #[derive(Copy, Eq)]
    pub enum Lead: "a lead" {
        plain Fixed: Duration [Lead::RANGE] = "The lead has this length.";
        also "auto" { Lead::Auto(Lead::DEFAULT_AT_MOST) }
            = "1.5 times the longest lateness that the deployment measures on the host, at most 20 us.";
        key "auto" Auto: Duration [Lead::RANGE] = "As `auto`, with this upper bound instead of 20 us.";
    }
}

impl Lead {
    /// The default bound of a measured lead.
    pub const DEFAULT_AT_MOST: Duration = Duration::from_micros(20);
    /// The longest lead.
    pub const MAX: Duration = Duration::from_millis(1);
    const RANGE: Kind = Kind::Time { least: Duration::from_nanos(1), most: Lead::MAX };

    /// Returns the time that plans keep free of windows before each job: the longest possible lead.
    pub fn reserved(&self) -> Duration {
        match *self {
            Lead::Fixed(lead) | Lead::Auto(lead) => lead,
        }
    }
}
