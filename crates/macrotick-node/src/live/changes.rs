//! What a change of a running deployment did.

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use crate::live::difference::{Fate, Item};

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The system's name.
    pub system: String,
    /// The parts of both deployments.
    pub items: Vec<Item>,
    /// The cycle of the former table.
    pub cycle_before: Duration,
    /// The cycle of the new one.
    pub cycle_after: Duration,
    /// The lead of the former table.
    pub lead_before: Duration,
    /// The lead of the new one.
    pub lead_after: Duration,
    /// When the tables changed; `None`: the table stayed as it was.
    pub switch: Option<Switch>,
    /// What went wrong on the side, in words.
    pub remarks: Vec<String>,
}

impl Changes {
    /// Whether everything stayed as it was.
    pub fn is_empty(&self) -> bool {
        changes_nothing(self.switch.is_some(), &self.items)
    }
}

/// Whether everything stayed as it was: no table, and none of the parts, became another one.
pub fn changes_nothing(swapped: bool, items: &[Item]) -> bool {
    !swapped && items.iter().all(|item| item.fate == Fate::Kept)
}

/// The instant at which all CPUs changed tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The table's clock.
    pub clock: String,
    /// The instant on it, in nanoseconds.
    pub ns: i64,
}
