//! The start of new processes under a runner with real-time priority. The runner waits until they have executed their
//! programs. Until then they also come before all load. Otherwise the runner would wait for the load.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

use macrotick_host::sys::{self, SchedAttr, Standing, Tid};

use crate::deployment::standing::{NEW_PROCESS, RUNNER};

static WAITING: AtomicBool = AtomicBool::new(false);

/// Starts a command, and returns after exec. If the runner has real-time priority, the process gets the priority right
/// below it. Processes that it forks get ordinary priority. [`calm`] makes the process itself ordinary.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let Some(_lent) = Lent::lend() else { return command.spawn() };
    // SAFETY: one system call between fork and exec.
    unsafe { command.pre_exec(|| sys::set_sched_attr(0, &SchedAttr::new(NEW_PROCESS, true))) };
    WAITING.store(true, Ordering::Relaxed);
    let child = command.spawn();
    WAITING.store(false, Ordering::Relaxed);
    child
}

/// Returns whether the runner waits until a new process has executed its program.
pub fn is_waiting() -> bool {
    WAITING.load(Ordering::Relaxed)
}

/// Puts a process that [`spawn`] started under SCHED_OTHER. It gets the nice value that it would have inherited.
pub fn calm(pid: Tid) {
    if is_first() {
        // SAFETY: no memory is passed.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, pid as libc::id_t) };
        // Fails if the process has ended.
        let _ = sys::set_standing(pid, Standing::Other(nice.clamp(0, 19) as i8));
    }
}

/// A guard: while it exists, processes that the calling thread forks inherit its policy.
struct Lent {
    before: SchedAttr,
}

impl Lent {
    /// Returns `None` if the calling thread is an ordinary one.
    fn lend() -> Option<Lent> {
        let before = sys::sched_attr(0).ok().filter(|_| is_first())?;
        sys::set_sched_attr(0, &SchedAttr::new(RUNNER, false)).ok()?;
        Some(Lent { before })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = sys::set_sched_attr(0, &self.before);
    }
}

fn is_first() -> bool {
    sys::sched_attr(0).is_ok_and(|attr| attr.policy == libc::SCHED_FIFO as u32)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Another process spins under SCHED_FIFO on the same CPU.
    #[test]
    fn a_new_process_does_not_wait_for_the_load() {
        let before = sys::sched_attr(0).unwrap();
        if sys::set_sched_attr(0, &SchedAttr::new(RUNNER, true)).is_err() {
            eprintln!("skipped: needs root");
            return;
        }
        let affinity = sys::affinity(0).unwrap();
        sys::pin(0, &affinity.as_slice()[..1]).unwrap();
        let mut hog = Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        sys::set_standing(hog.id() as Tid, Standing::Fifo(50)).unwrap();
        let mut killed = Vec::new();
        let mut took: Vec<Duration> = (0..3)
            .map(|_| {
                let start = Instant::now();
                let mut child = spawn(Command::new("/bin/sleep").arg("1000")).unwrap();
                let took = start.elapsed();
                let policy = |pid| sys::sched_attr(pid).unwrap().policy;
                let (first, runner) = (policy(child.id() as Tid), policy(0));
                calm(child.id() as Tid);
                let calmed = policy(child.id() as Tid);
                child.kill().unwrap();
                killed.push(child);
                assert_eq!([first, runner, calmed], [libc::SCHED_FIFO as u32, libc::SCHED_FIFO as u32, 0]);
                // The other process has the CPU in between.
                sys::sleep(macrotick_model::Duration::from_millis(20));
                took
            })
            .collect();
        hog.kill().unwrap();
        hog.wait().unwrap();
        killed.iter_mut().for_each(|child| _ = child.wait().unwrap());
        sys::pin(0, affinity.as_slice()).unwrap();
        sys::set_sched_attr(0, &before).unwrap();
        // A start that waited would take about a second, the time until the kernel lets SCHED_OTHER run. Other load may
        // delay one start.
        took.sort();
        assert!(took[1] < Duration::from_millis(400), "{took:?}");
    }
}
