//! The backend `user`: a time-triggered dispatcher in user space (SCHED_TT paper, section 3.3).
//!
//! One process per CPU at a high `SCHED_FIFO` priority sleeps until each boundary of the CPU's table. It releases a job
//! by a futex. At the end of a window it takes the priority from a task that has not finished. The task gets
//! `SCHED_IDLE`, the lowest policy, and gets its priority back in its next window. Therefore, outside its windows, a
//! task runs only when no real-time thread is ready, and gets only a small share beside ordinary threads. A task that
//! has finished keeps its priority: it waits for its release and cannot run without it.
//!
//! The process comes from a fork without an exec, and the runner may have threads. Therefore the child must not
//! allocate.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

use macrotick_host::sys::{self, SchedAttr, Tid};
use macrotick_host::HostFailure;
use macrotick_model::{CpuSet, CpuTable, Duration, Instant};

use crate::block::abi::BlockHeader;
use crate::deployment::standing::{DISPATCHER, NOT_SERVED, SERVED};
use crate::error::NodeError;
use crate::process::child::Child;
use crate::process::{descendants, signals};

/// The actions at a boundary: end the window of one task, start the window of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    offset: Duration,
    ends: Option<usize>,
    begins: Option<usize>,
    activate: bool,
}

/// Returns the steps of one cycle. A window that ends with the cycle ends at the start of the next one. If a window
/// abuts another window of the same task, the first has no end step.
fn steps(table: &CpuTable, cycle: Duration, index_of: impl Fn(&str) -> Option<usize>) -> Vec<Step> {
    let mut steps: BTreeMap<Duration, Step> = BTreeMap::new();
    let none = |offset| Step { offset, ends: None, begins: None, activate: false };
    for window in &table.windows {
        let task = index_of(&window.task);
        let begin = steps.entry(window.offset).or_insert(none(window.offset));
        (begin.begins, begin.activate) = (task, window.activate);
        let end = window.end() % cycle;
        steps.entry(end).or_insert(none(end)).ends = task;
    }
    for step in steps.values_mut() {
        step.ends = step.ends.filter(|_| step.ends != step.begins);
    }
    steps.into_values().filter(|step| step.ends.is_some() || step.begins.is_some()).collect()
}

/// A task from the dispatcher's view.
struct Served {
    header: *const BlockHeader,
    tid: Tid,
    released: u32,
    demoted: bool,
}

impl Served {
    fn header(&self) -> &BlockHeader {
        // SAFETY: the block outlives the dispatcher's process: the mapping is shared, and fork copied it.
        unsafe { &*self.header }
    }

    fn begin(&mut self, activate: bool, served: &SchedAttr) {
        if self.demoted {
            // Fails only when the task has ended, and then there is nothing to serve.
            let _ = sys::set_sched_attr(self.tid, served);
            self.demoted = false;
        }
        if activate {
            self.released = self.released.wrapping_add(1);
            self.header().released.store(self.released, Ordering::Release);
            sys::futex_wake(&self.header().released);
        }
    }

    fn end(&mut self, not_served: &SchedAttr) {
        if self.header().completed.load(Ordering::Acquire) != self.released {
            let _ = sys::set_sched_attr(self.tid, not_served);
            self.demoted = true;
        }
    }
}

/// A running dispatcher. Dropping it ends it.
pub struct Dispatcher {
    /// Its process.
    pub pid: Tid,
    /// The name in traces and errors.
    pub name: String,
}

impl Dispatcher {
    /// Starts the dispatcher of one table. `tasks` are all tasks of the system; they are ready.
    pub fn start(table: &CpuTable, cycle: Duration, epoch: Instant, tasks: &[Child]) -> Result<Self, NodeError> {
        let steps = steps(table, cycle, |name| tasks.iter().position(|task| task.name == name));
        let serve = |task: &Child| {
            Ok(Served { header: task.block.header(), tid: task.joined_thread()?, released: 0, demoted: false })
        };
        let mut served = tasks.iter().map(serve).collect::<Result<Vec<Served>, HostFailure>>()?;
        let parent = std::process::id();
        // SAFETY: the child only makes calls that are safe after fork, and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(NodeError::system("forking a dispatcher")(io::Error::last_os_error())),
            0 => dispatch(&steps, &mut served, cycle, epoch, parent),
            pid => pid,
        };
        descendants::enter(pid);
        let dispatcher = Dispatcher { pid, name: format!("dispatcher/{}", table.cpu) };
        let name = || dispatcher.name.clone();
        let cpus = [table.cpu];
        sys::pin(pid, &cpus).map_err(|source| NodeError::Pin {
            name: name(),
            cpus: CpuSet::from_iter(cpus),
            source,
        })?;
        sys::set_standing(pid, DISPATCHER).map_err(|source| HostFailure::Policy {
            name: name(),
            standing: DISPATCHER,
            source,
        })?;
        Ok(dispatcher)
    }
}

impl Dispatcher {
    /// Returns a remark if the dispatcher ended by itself.
    pub fn describe_end(&self) -> Option<String> {
        sys::exited(self.pid).map(|status| format!("`{}` ended during the run ({status})", self.name))
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // SAFETY: our own child, not yet reaped.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
        descendants::leave(self.pid);
    }
}

/// Runs the dispatcher in its process. The process ends with the runner, the terminal's signals do not reach it, and it
/// takes no page fault. It does not use the runner's signal handlers.
fn dispatch(steps: &[Step], served: &mut [Served], cycle: Duration, epoch: Instant, parent: u32) -> ! {
    signals::let_go();
    // SAFETY: system calls without memory, except a constant name.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The runner may have ended before the request took effect.
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
        libc::prctl(libc::PR_SET_NAME, c"mt-dispatcher".as_ptr());
        libc::setpgid(0, 0);
    }
    sys::lock_memory();
    let (up, down) = (SchedAttr::new(SERVED, false), SchedAttr::new(NOT_SERVED, false));
    let mut base = epoch;
    loop {
        for step in steps {
            sys::sleep_until(base + step.offset);
            if let Some(task) = step.ends {
                served[task].end(&down);
            }
            if let Some(task) = step.begins {
                served[task].begin(step.activate, &up);
            }
        }
        base = base + cycle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::samples::window;

    #[test]
    fn boundaries_become_steps() {
        let windows = vec![
            window("a", 0, 100, true, false),
            window("b", 100, 50, true, true),
            window("a", 200, 100, false, false),
            window("a", 300, 100, false, true),
            window("b", 900, 100, false, false),
        ];
        let table = CpuTable::new(0, windows);
        let index_of = |name: &str| ["a", "b"].iter().position(|known| *known == name);
        let step = |us: i64, ends, begins, activate| Step { offset: Duration::from_micros(us), ends, begins, activate };
        assert_eq!(
            steps(&table, Duration::from_millis(1), index_of),
            [
                step(0, Some(1), Some(0), true),
                step(100, Some(0), Some(1), true),
                step(150, Some(1), None, false),
                step(200, None, Some(0), false),
                step(300, None, Some(0), false),
                step(400, Some(0), None, false),
                step(900, None, Some(1), false),
            ]
        );
    }
}
