//! Windows of groups.

use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// Windows that serve what is in a group as a black box.
    #[derive(Eq)]
    pub struct Windows: "`windows`" {
        "period" period: Duration, required
            = "In each, counted from the epoch, the windows sum up to the length; a multiple of the macrotick.";
        "length" length: Duration, required = "Window time in every period, at most the period.";
        "order" order: PoolOrder, or "`round-robin`" { PoolOrder::RoundRobin(PoolOrder::DEFAULT_SLICE) }
            = "Which of the threads that are ready goes first; with a budget besides it is `priority`.";
        "slack" slack: bool, optional "`false`"
            = "Whether the threads run outside the windows, too, under their own policies; not with a budget.";
    }
}

/// The windows of a group as the tables and the kernel have them: an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name of the entity: the group's, or that with [`Pool::BESIDE_A_BUDGET`] behind it.
    pub name: String,
    /// The windows sum up to the length in each of these, counted from the epoch.
    pub period: Duration,
    /// Window time in every period.
    pub length: Duration,
    /// The CPU; `None` leaves it to the solver.
    pub cpu: Option<u32>,
    /// Which of its threads goes first.
    pub order: PoolOrder,
    /// Outside its windows it runs under its threads' own policies; otherwise nowhere.
    pub slack: bool,
    /// The directory of an existing control group whose processes are the pool; `None`: the runner makes a group.
    pub cgroup: Option<String>,
    /// Kernel threads of its CPU that are in it, too.
    pub kernel_threads: Vec<KernelThread>,
}

impl Pool {
    /// What the name of a group has behind it where a budget serves it besides: that has the name of the group.
    pub const BESIDE_A_BUDGET: &'static str = ".windows";
}

forms! {
    /// Which of the threads that are ready goes first in windows.
    #[derive(Copy, Eq)]
    pub enum PoolOrder: "an order" {
        word "fifo" Fifo = "The one that has been ready for longest, until it blocks.";
        also "round-robin" { PoolOrder::RoundRobin(PoolOrder::DEFAULT_SLICE) } = "They take turns of 1 ms, weighted by their nice values.";
        also "priority" { PoolOrder::Priority(PoolOrder::DEFAULT_SLICE) }
            = "By the priorities of `SCHED_FIFO` and `SCHED_RR`; those of equal priority take turns of 1 ms, but for `SCHED_FIFO`.";
        key "round-robin" RoundRobin: Duration [PoolOrder::SLICE] = "The same, with turns of that length at nice value 0.";
        key "priority" Priority: Duration [PoolOrder::SLICE] = "The same, with turns of that length.";
    }
}

impl PoolOrder {
    /// The length of a turn where the description gives none.
    pub const DEFAULT_SLICE: Duration = Duration::from_millis(1);
    /// Shortest and longest turn (`MACROTICK_MIN_SLICE_NS`, `MACROTICK_MAX_SLICE_NS`).
    const SLICE: Kind = Kind::Time { least: Duration::from_micros(10), most: Duration::from_secs(1) };

    /// The word in a description.
    pub fn name(self) -> &'static str {
        match self {
            PoolOrder::Fifo => "fifo",
            PoolOrder::RoundRobin(_) => "round-robin",
            PoolOrder::Priority(_) => "priority",
        }
    }

    /// The length of a turn, where there are any.
    pub fn slice(self) -> Option<Duration> {
        match self {
            PoolOrder::Fifo => None,
            PoolOrder::RoundRobin(slice) | PoolOrder::Priority(slice) => Some(slice),
        }
    }
}

words! {
    /// A thread of the kernel that every CPU has one of.
    pub enum KernelThread: "a kernel thread" {
        "ksoftirqd" Ksoftirqd
            = "`ksoftirqd/N`: software interrupts that whoever raised them did not get done, those of the network above all.";
        "ktimers" Ktimers
            = "`ktimers/N`: timers that expire outside hard interrupts, on PREEMPT_RT from Linux 6.13 on.";
        "rcuc" Rcuc = "`rcuc/N`: callbacks of RCU, on PREEMPT_RT.";
        "backlog_napi" BacklogNapi
            = "`backlog_napi/N`: packets that another CPU put into the queue of this one, on PREEMPT_RT.";
    }
}
