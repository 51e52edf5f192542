//! A container that asks to be admitted to a host, as its description says.

use crate::keys::{object, Kind};
use crate::system::{Group, GroupTask, MAX_NAME, PRIORITY};
use crate::time::Duration;

object! {
    /// One more container for a host whose groups run. When it is admitted it becomes a [`Group`](crate::Group) on one CPU.
    #[derive(Eq)]
    pub struct Container: "the description of a container" {
        "container" name: String [Kind::Name { most: MAX_NAME }], required = "Its name, and that of its group.";
        "criticality" criticality: u32, required = "How bad its failure would be: a higher number is worse.";
        "priority" priority: Option<u32> [PRIORITY], optional "by criticality" = "Its group priority.";
        "cpus" cpus: Vec<u32> [Kind::CPUS], optional "any" = "The CPUs of which it gets one.";
        "budget" budget: Option<Duration> [Kind::TIME], optional "the least with which its tasks meet their deadlines"
            = "Its budget in each server period.";
        "may-grow" may_grow: bool, optional "`false`"
            = "Whether it may get more budget when others are admitted above it.";
        "lead" lead: Option<Duration> [Group::LEAD], optional "none"
            = "How much earlier its threads wake up from sleep, to be held until the instant at which it ends.";
        "tasks" tasks: Vec<GroupTask>, optional "none" = "Its tasks; they say no `cpu`, which is the container's.";
    }
}
