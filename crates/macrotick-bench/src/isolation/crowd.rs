//! Attacks of our own: threads that never sleep, as many as a container may have.

use crate::kit::group::write;
use crate::kit::process::{set_policy, spawn, spin};

/// A container may have a thousand.
const MANY: usize = 900;
/// Of who makes the others: they begin once there are all of them.
const PRIORITIES: (u32, u32) = (99, 98);

/// For ever, in the caller's group: many under SCHED_FIFO, so many under SCHED_OTHER.
pub fn run(ordinary: Option<usize>) -> Result<(), String> {
    let policy = match ordinary {
        None => (libc::SCHED_FIFO as u32, PRIORITIES.1),
        Some(_) => (libc::SCHED_OTHER as u32, 0),
    };
    spin_each(ordinary.unwrap_or(MANY), move |_| set_policy(policy.0, policy.1))
}

/// For ever, one in each of so many groups below one.
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
