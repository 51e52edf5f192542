//! The result of a change of a running deployment.

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use crate::live::difference::{Fate, Item};

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The system's name.
    pub system: String,
    /// The parts of both deployments.
    pub items: Vec<Item>,
    /// The cycle of the former table.
    pub cycle_before: Duration,
    /// The cycle of the new table.
    pub cycle_after: Duration,
    /// The lead of the former table.
    pub lead_before: Duration,
    /// The lead of the new table.
    pub lead_after: Duration,
    /// The switch of the tables. `None`: the table stayed unchanged.
    pub switch: Option<Switch>,
    /// The interfaces with another gate list. All lists change at one instant, and so does the table.
    #[serde(default)]
    pub gates: Vec<String>,
    /// Problems that did not stop the change.
    pub remarks: Vec<String>,
}

impl Changes {
    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        changes_nothing(self.switch.is_some(), &self.items) && self.gates.is_empty()
    }
}

/// Returns whether nothing changed: the table is the same, and all parts are kept.
pub fn changes_nothing(swapped: bool, items: &[Item]) -> bool {
    !swapped && items.iter().all(|item| item.fate == Fate::Kept)
}

/// The instant at which all CPUs changed tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The table's clock.
    pub clock: String,
    /// The instant on this clock, in nanoseconds.
    pub ns: i64,
}
