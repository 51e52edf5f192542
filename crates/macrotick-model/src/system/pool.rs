//! The windows of groups.

use super::GroupThread;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// Windows that serve all threads of a group together.
    #[derive(Eq)]
    pub struct Windows: "`windows`" {
        "period" period: Duration, required
            = "Period, counted from the epoch, in which the windows sum up to the length. A multiple of the macrotick.";
        "length" length: Duration, required = "Sum of the windows in every period, at most the period.";
        "order" order: PoolOrder, or "`round-robin`" { PoolOrder::RoundRobin(PoolOrder::DEFAULT_SLICE) }
            = "The order in which ready threads run. Must be `priority` in a group that also has a budget.";
        "slack" slack: bool, optional "`false`"
            = "Whether the threads also run outside the windows, under their own policies. Not with a budget.";
    }
}

/// The windows of a group as an entity of the tables and of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The name of the entity: the name of the group, with [`Pool::BESIDE_A_BUDGET`] appended if it has a budget.
    pub name: String,
    /// The period of the window time, counted from the epoch.
    pub period: Duration,
    /// The window time in every period.
    pub length: Duration,
    /// The CPU; `None` if the solver chooses it.
    pub cpu: Option<u32>,
    /// The name of the host, in a system with several ones.
    pub host: Option<String>,
    /// The order of the ready threads.
    pub order: PoolOrder,
    /// Whether the pool also runs outside its windows, under the policies of its threads.
    pub slack: bool,
    /// The directory of an existing control group with the processes of the pool; `None` if the runner creates one.
    pub cgroup: Option<String>,
    /// The kernel threads that belong to the pool: those of its CPU and those of gates.
    pub kernel_threads: Vec<GroupThread>,
}

impl Pool {
    /// The suffix for the windows of a group with a budget. The name of the group itself belongs to the budget.
    pub const BESIDE_A_BUDGET: &'static str = ".windows";
}

forms! {
    /// The rule by which the windows choose among ready threads.
    #[derive(Copy, Eq)]
    pub enum PoolOrder: "an order" {
        word "fifo" Fifo = "The thread that has been ready longest runs until it blocks.";
        also "round-robin" { PoolOrder::RoundRobin(PoolOrder::DEFAULT_SLICE) } = "The threads take turns of 1 ms, weighted by their nice values.";
        also "priority" { PoolOrder::Priority(PoolOrder::DEFAULT_SLICE) }
            = "The thread with the highest `SCHED_FIFO` or `SCHED_RR` priority runs. Threads of equal priority take turns of 1 ms, except `SCHED_FIFO` threads.";
        key "round-robin" RoundRobin: Duration [PoolOrder::SLICE] = "As `round-robin`, with turns of this length at nice value 0.";
        key "priority" Priority: Duration [PoolOrder::SLICE] = "As `priority`, with turns of this length.";
    }
}

impl PoolOrder {
    /// The default length of a turn.
    pub const DEFAULT_SLICE: Duration = Duration::from_millis(1);
    /// The shortest and the longest turn (`MACROTICK_MIN_SLICE_NS`, `MACROTICK_MAX_SLICE_NS`).
    const SLICE: Kind = Kind::Time { least: Duration::from_micros(10), most: Duration::from_secs(1) };

    /// Returns the word in a description.
    pub fn name(self) -> &'static str {
        match self {
            PoolOrder::Fifo => "fifo",
            PoolOrder::RoundRobin(_) => "round-robin",
            PoolOrder::Priority(_) => "priority",
        }
    }

    /// Returns the length of a turn, if the order has turns.
    pub fn slice(self) -> Option<Duration> {
        match self {
            PoolOrder::Fifo => None,
            PoolOrder::RoundRobin(slice) | PoolOrder::Priority(slice) => Some(slice),
        }
    }
}

words! {
    /// A kernel thread that exists on every CPU.
    pub enum KernelThread: "a kernel thread" {
        "ksoftirqd" Ksoftirqd
            = "`ksoftirqd/N`: software interrupts, mainly of the network, that were not handled where they were raised.";
        "ktimers" Ktimers
            = "`ktimers/N`: timers that expire outside hard interrupts, on PREEMPT_RT since Linux 6.13.";
        "rcuc" Rcuc = "`rcuc/N`: RCU callbacks, on PREEMPT_RT.";
        "backlog_napi" BacklogNapi
            = "`backlog_napi/N`: packets that another CPU put into the queue of this CPU, on PREEMPT_RT.";
    }
}
