//! The description of a container that asks for admission to a host.

use crate::keys::{object, Kind};
use crate::system::{Group, GroupTask, Slot, MAX_NAME, PRIORITY};
use crate::time::Duration;

object! {
    /// One more container for a host on which groups run. After its admission it is a [`Group`](crate::Group) on one
    /// CPU.
    #[derive(Eq)]
    pub struct Container: "the description of a container" {
        "container" name: String [Kind::Name { most: MAX_NAME }], required = "The name of the container and of its group.";
        "criticality" criticality: u32, required = "How severe its failure is: a higher number is more severe.";
        "priority" priority: Option<u32> [PRIORITY], optional "by criticality" = "Priority of its group.";
        "cpus" cpus: Vec<u32> [Kind::CPUS], optional "any" = "The CPUs from which it gets one.";
        "budget" budget: Option<Duration> [Kind::TIME], optional "the least with which its tasks meet their deadlines"
            = "CPU time in each server period.";
        "may-grow" may_grow: bool, optional "`false`"
            = "Whether `macrotick admit` can increase its budget to make room for a later container of higher priority.";
        "lead" lead: Option<Duration> [Group::LEAD], optional "none"
            = "How much earlier its threads wake up from sleep. The kernel holds them until the sleep ends.";
        "tasks" tasks: Vec<GroupTask>, optional "none" = "Its tasks, without `cpu`: all run on the CPU of the container.";
        "slots" slots: Vec<ContainerSlot>, optional "none"
            = "Its slots (TDMA) on interfaces with planned gates: no other frames leave in them. Only with `--system` and a description.";
    }
}

object! {
    /// The slots of a container on an interface (TDMA).
    #[derive(Eq)]
    pub struct ContainerSlot: "a slot of a container" {
        "class" class: Option<String> [Kind::Text("class")], optional "the name of the container"
            = "The traffic class of its frames, which no other frames have on the interface.";
        "interface" interface: Option<String> [Kind::Text("interface")], optional "the only one with planned gates"
            = "The name of the interface.";
        "period" period: Duration, required = "Interval between two slots. The cycle of the system is a multiple of it.";
        "length" length: Duration, required = "Length of a slot, at most the period.";
        "offset" offset: Option<Duration> [Slot::OFFSET], optional "the planner chooses"
            = "Start of the slot within the period.";
    }
}

impl Container {
    /// Returns its slots as those of its group.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.slots.iter().map(|slot| Slot {
            group: self.name.clone(),
            class: slot.class.clone().unwrap_or_else(|| self.name.clone()),
            interface: slot.interface.clone(),
            period: slot.period,
            length: slot.length,
            offset: slot.offset,
        })
    }
}
