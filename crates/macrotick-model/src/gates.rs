//! Gate lists: the tables of network interfaces (IEEE 802.1Q-2022, 8.6.8.4), on the epoch of the CPUs' tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// The gate control list of one interface. It repeats after its cycle, like the tables of the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateList {
    /// The name of the interface in the description.
    pub interface: String,
    /// The length of the list. The cycle of the plan is a multiple of it.
    pub cycle: Duration,
    /// The entries in order. The first one starts at the epoch, and their lengths sum up to the cycle.
    pub entries: Vec<GateEntry>,
}

/// An interval of a gate list, and the gates that are open in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateEntry {
    /// The length of the interval.
    pub length: Duration,
    /// The names of the traffic classes that may start to send a frame.
    pub open: Vec<String>,
}
