//! A container that asks to be admitted to a host, as its description says.

use crate::system::GroupTask;
use crate::time::Duration;

/// One more container for a host whose groups run. When it is admitted it becomes a [`Group`](crate::Group) on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name, and that of its group.
    pub name: String,
    /// How bad its failure would be; more is worse.
    pub criticality: u32,
    /// Its group priority, 1..=99; `None`: by criticality.
    pub priority: Option<u32>,
    /// The CPUs of which it gets one; empty: any.
    pub cpus: Vec<u32>,
    /// Its budget in each server period; `None`: the least with which its tasks meet their deadlines.
    pub budget: Option<Duration>,
    /// Whether it may get more budget when others are admitted above it.
    pub may_grow: bool,
    /// How much earlier its threads wake up from sleep, to be held until the instant at which it ends. `None`: none.
    pub lead: Option<Duration>,
    /// Its tasks. Their CPU is the container's, so that it says nothing before it is admitted.
    pub tasks: Vec<GroupTask>,
}
