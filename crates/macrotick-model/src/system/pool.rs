//! Pools.

use super::MAX_NAME;
use crate::keys::{forms, object, words, Kind};
use crate::time::Duration;

object! {
    /// An entity whose threads are those of a control group, served by windows as a black box.
    pub struct Pool: "a pool" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required
            = "Its name, unique; also that of the pool's entity in the kernel.";
        "period" period: Duration, required = "Its windows sum up to the budget in each of these, counted from the epoch; a multiple of the macrotick.";
        "budget" budget: Duration, required = "Window time in every period, at most the period.";
        "cpu" cpu: Option<u32> [Kind::CPU], optional "the solver's choice" = "The CPU, one of `cpus`.";
        "order" order: PoolOrder, or "`round-robin`" { PoolOrder::RoundRobin(PoolOrder::DEFAULT_SLICE) }
            = "Which of its threads that are ready goes first.";
        "slack" slack: bool, optional "`false`"
            = "Whether it runs outside its windows under its threads' own policies; otherwise nowhere.";
        "cgroup" cgroup: Option<String> [Kind::Text("directory")], optional "the runner makes one"
            = "An existing control group (v2), whose processes are the pool.";
        "kernel-threads" kernel_threads: Vec<KernelThread>, optional "none"
            = "These threads of its CPU are in it, too ([why](pools.md#kernel-threads)).";
    }
}

forms! {
    /// Which of a pool's threads that are ready goes first.
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
