//! Slots of groups (TDMA), and the frames that leave in them.

use macrotick_model::{Duration, Slot};

use super::circle::Circle;

/// A slot with its place on an interface.
#[derive(Clone, Debug)]
pub(super) struct PlacedSlot<'a> {
    pub slot: &'a Slot,
    pub interface: &'a str,
    pub offset: Duration,
}

impl PlacedSlot<'_> {
    /// Returns the earliest instant from `at` on at which this much of a slot is left, if a slot is that long.
    fn earliest(&self, at: Duration, length: Duration) -> Option<Duration> {
        let Slot { period, length: whole, .. } = *self.slot;
        let phase = Duration::from_nanos((at - self.offset).as_nanos().rem_euclid(period.as_nanos()));
        match phase + length <= whole {
            true => Some(at),
            false => (length <= whole).then(|| at + period - phase),
        }
    }
}

/// Returns the earliest instant from `at` on at which a frame can leave in one of the slots. The frames that have left
/// in them before keep their time.
pub(super) fn earliest(slots: &[PlacedSlot], used: &Circle, at: Duration, length: Duration) -> Option<Duration> {
    let mut start = at;
    while start - at <= used.cycle {
        let in_slot = slots.iter().filter_map(|slot| slot.earliest(start, length)).min()?;
        let free = used.earliest(in_slot, length)?;
        if free == start {
            return Some(start);
        }
        start = free;
    }
    None
}
