//! Gate lists: the tables of network interfaces (IEEE 802.1Q-2022, 8.6.8.4), on the epoch of the CPUs' tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
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

impl GateList {
    /// The longest cycle of a list: the kernel stores it in nanoseconds in 31 bits.
    pub const MAX_CYCLE: Duration = Duration::from_nanos(i32::MAX as i64);
    /// The largest number of entries. The kernel has no limit of its own, but it must be able to show a list. It shows
    /// a running and a pending list of 36 bytes for each entry, in one message of at most 32 KiB (`netlink_dump()`).
    pub const MAX_ENTRIES: usize = 400;

    /// Returns the rules that the list breaks in its plan, as texts. The interface and its classes are known, the lengths
    /// sum up to the cycle, and the cycle of the plan is a multiple of it. [`Plan::load`] refuses a plan that breaks one.
    pub fn problems(&self, plan: &Plan) -> Vec<String> {
        let mut problems = Vec::new();
        let network = plan.system.network.as_ref();
        let Some((network, interface)) =
            network.and_then(|network| Some((network, network.interface(&self.interface)?)))
        else {
            return vec![format!("the system has no interface `{}`", self.interface)];
        };
        let (cycle, most) = (self.cycle, GateList::MAX_CYCLE);
        if cycle <= Duration::ZERO || cycle > most {
            problems.push(format!("cycle {cycle} is not within (0, {most}]"));
        } else if plan.cycle % cycle != Duration::ZERO {
            problems.push(format!("the cycle {} of the plan is not a multiple of {cycle}", plan.cycle));
        }
        let (entries, most) = (self.entries.len(), interface.most_entries());
        if entries > most {
            problems.push(format!("{entries} entries are too many, the limit is {most}"));
        }
        let add = |sum: Duration, entry: &GateEntry| sum.checked_add(entry.length);
        let sum = self.entries.iter().try_fold(Duration::ZERO, add);
        if sum != Some(cycle) {
            let sum = sum.map_or("more than the range of times".into(), |sum| sum.to_string());
            problems.push(format!("the entries sum up to {sum}, not to the cycle {cycle}"));
        }
        let least = interface.shortest_frame_time();
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.length < least {
                problems.push(format!("entry {index} of {} is shorter than a frame, {least}", entry.length));
            }
            let unknown = entry.open.iter().filter(|class| network.class_names().all(|known| known != *class));
            problems.extend(unknown.map(|class| format!("entry {index} opens `{class}`, which is no class")));
        }
        problems
    }
}
