//! How the thread of the probe runs: its policy, its CPU, or the task of a plan.

use macrotick_host::sys::{self, Standing};
use macrotick_model::Duration;

use crate::error::ProbeError;

/// How the thread runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// As it was started.
    #[default]
    Unchanged,
    /// Under `SCHED_FIFO` with a priority.
    Fifo(u8),
    /// Under `SCHED_DEADLINE`, with this budget in each period.
    Deadline {
        /// The budget.
        runtime: Duration,
        /// The period and the deadline.
        period: Duration,
    },
    /// As a task of the plan that runs: the jobs of this task are the cycles. `None`: the task for which the runner
    /// started this process.
    Task(Option<String>),
}

/// Gives the calling thread its policy and CPU, locks its memory, and makes its sleeps precise.
pub fn settle(policy: &Policy, cpu: Option<u32>) -> Result<(), ProbeError> {
    sys::lock_memory();
    // Under a real-time policy it has no effect, and needs none.
    let _ = nix::sys::prctl::set_timerslack(1);
    let refused = |what: String, remedy| move |source| ProbeError::Standing { what, source, remedy };
    if let Some(cpu) = cpu {
        let remedy = ": choose an online CPU of this process's cpuset";
        sys::pin(0, &[cpu]).map_err(refused(format!("CPU {cpu}"), remedy))?;
    }
    let (standing, remedy) = match *policy {
        Policy::Unchanged | Policy::Task(_) => return Ok(()),
        Policy::Fifo(priority) => (Standing::Fifo(priority), ": it needs CAP_SYS_NICE or RLIMIT_RTPRIO"),
        Policy::Deadline { runtime, period } => {
            let remedy = ": it needs CAP_SYS_NICE, free bandwidth, and no pinned CPU outside an exclusive cpuset";
            (Standing::Deadline { runtime, deadline: period, period }, remedy)
        }
    };
    sys::set_standing(0, standing).map_err(refused(standing.to_string(), remedy))
}
