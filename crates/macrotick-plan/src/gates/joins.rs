//! Gaps between intervals of one class that stay open, so that a gate list is short enough for its device.
//!
//! An interval takes up to three entries: its own, the time of the other classes, and the closed time before the next
//! interval. Joined intervals take those once. A frame of the class can leave in the gap as well, and come to the next
//! interface sooner. So the placement is repeated with the joined intervals.

use std::collections::BTreeMap;

use macrotick_model::Duration;

use super::place::Placement;
use super::GateError;

/// The entries that a join saves.
const SAVED: usize = 3;

/// The longest gap of each interface that stays open.
#[derive(Default)]
pub(super) struct Joins(BTreeMap<String, Duration>);

impl Joins {
    /// Returns the longest gap of an interface that stays open.
    pub fn of(&self, interface: &str) -> Duration {
        self.0.get(interface).copied().unwrap_or(Duration::ZERO)
    }

    /// Lengthens the gaps of an interface with too many entries. Returns whether there are longer ones.
    pub fn lengthen(&mut self, placed: &Placement, error: &GateError) -> bool {
        let GateError::Entries { interface, entries, most } = error else { return false };
        let former = self.of(interface);
        let longer: Vec<Duration> = placed.circle(interface).gaps().into_iter().filter(|gap| *gap > former).collect();
        let count = entries.saturating_sub(*most).div_ceil(SAVED).clamp(1, longer.len().max(1));
        let Some(gap) = longer.get(count - 1) else { return false };
        self.0.insert(interface.clone(), *gap);
        true
    }
}
