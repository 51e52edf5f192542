//! The threads of SCHED_DEADLINE on this host, whichever program set them.

use macrotick_analysis::deadline::Task;
use macrotick_model::CpuSet;

use crate::proc;
use crate::sys::{self, Tid};

/// A thread with a reservation of SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineThread {
    /// Its id.
    pub thread: Tid,
    /// Its times; the runtime takes the place of the WCET.
    pub task: Task,
    /// Its bandwidth in units of 2^-20 of one CPU.
    pub bandwidth: u64,
    /// The CPUs that it may run on: all those of its domain.
    pub cpus: CpuSet,
}

/// Returns these threads. Ignores a thread that ends during the read.
pub fn deadline_threads() -> impl Iterator<Item = DeadlineThread> {
    proc::processes().flat_map(proc::threads).filter_map(|thread| {
        let attr = sys::sched_attr(thread).ok()?;
        let (task, bandwidth) = (attr.promised()?, attr.bandwidth()?);
        Some(DeadlineThread { thread, task, bandwidth, cpus: sys::affinity(thread).ok()? })
    })
}
