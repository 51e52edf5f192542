//! Attacks of our own: threads that never sleep, nearly as many as a container may have.

use crate::kit::group::write;
use crate::kit::process::{set_policy, spawn, spin};

/// Near the limit of a container's threads, which is 1000.
const MANY: usize = 900;
/// The priorities of the creating thread and of the other threads. The others start when all of them exist.
const PRIORITIES: (u32, u32) = (99, 98);

/// Attacks without end, in the caller's group: with [`MANY`] threads under SCHED_FIFO, or with the given number under
/// SCHED_OTHER.
pub fn run(ordinary: Option<usize>) -> Result<(), String> {
    let policy = match ordinary {
        None => (libc::SCHED_FIFO as u32, PRIORITIES.1),
        Some(_) => (libc::SCHED_OTHER as u32, 0),
    };
    spin_each(ordinary.unwrap_or(MANY), move |_| set_policy(policy.0, policy.1))
}

/// Attacks without end, with one thread in each child group of a group.
pub fn run_in_groups(group: &str, groups: usize) -> Result<(), String> {
    let group = group.to_owned();
    spin_each(groups, move |index| {
        write(&format!("{group}/{index}/cgroup.threads"), "0")?;
        set_policy(libc::SCHED_FIFO as u32, PRIORITIES.1)
    })
}

fn spin_each(
    threads: usize,
    prepare: impl Fn(usize) -> Result<(), String> + Clone + Send + 'static,
) -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.0)?;
    for index in 0..threads {
        let prepare = prepare.clone();
        spawn(move || {
            prepare(index)?;
            spin()
        })?;
    }
    loop {
        std::thread::park();
    }
}
