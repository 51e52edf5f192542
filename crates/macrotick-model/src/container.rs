//! The description of a container that asks for admission to a host.

use crate::keys::{object, Kind};
use crate::system::{Group, GroupTask, MAX_NAME, PRIORITY};
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
    }
}
