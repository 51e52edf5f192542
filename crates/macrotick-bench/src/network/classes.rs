//! The traffic classes and gate lists of the parts.

use macrotick_host::net::{Entry, GateClock, Mapping, Mode, Taprio};
use macrotick_model::Duration;

/// A microsecond in nanoseconds.
pub const MICROSECOND: i64 = 1000;
/// The lead of exact gates.
pub const LEAD_NS: i64 = 60 * MICROSECOND;

/// Returns gates that begin at the epoch of `CLOCK_TAI`, with one queue per class. An entry is a mask of open classes and a
/// length in nanoseconds. The last class has the priorities that are not in the list.
pub fn gates(mode: Mode, entries: &[(u32, i64)], classes: u16, priorities: &[(u8, u8)]) -> Taprio {
    let entry = |&(open, length): &(u32, i64)| Entry { length: Duration::from_nanos(length), open };
    Taprio {
        mode,
        clock: GateClock::Tai,
        base_time: 0,
        cycle: Duration::from_nanos(entries.iter().map(|(_, length)| length).sum()),
        entries: entries.iter().map(entry).collect(),
        mapping: Mapping::one_queue_each(classes, priorities),
        max_sdu: Vec::new(),
    }
}

/// Returns the mode of exact gates.
pub fn exact() -> Mode {
    Mode::Exact { lead: Duration::from_nanos(LEAD_NS) }
}
