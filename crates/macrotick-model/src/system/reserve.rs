//! Time that the tables keep free.

use crate::keys::{object, Kind};
use crate::time::Duration;

object! {
    /// Time of every CPU that no window and no lead takes.
    #[derive(Copy, Eq)]
    pub struct Reserve: "`reserve`" {
        "period" period: Duration, required = "Interval in which the time is free, a multiple of the macrotick.";
        "length" length: Duration [Kind::TIME], required
            = "Free time of each CPU in every period, together, a multiple of the macrotick and at most the period.";
    }
}
