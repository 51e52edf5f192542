//! An attack of our own: many pairs of threads, one of which owns a lock under SCHED_OTHER and never sleeps, while the other
//! waits for it under SCHED_DS. Whoever serves the waiter serves the owner.

use std::sync::{Barrier, LazyLock};
use std::thread;
use std::time::Duration;

use macrotick_uapi::SCHED_DS;

use super::pi::Lock;
use crate::kit::process::{set_policy, spawn, spin};

/// A container may have a thousand threads.
const PAIRS: usize = 450;
const PAUSE: Duration = Duration::from_millis(1);

static LOCKS: [Lock; PAIRS] = [const { Lock::free() }; PAIRS];

/// All of them wait before any of them spins.
static START: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(PAIRS + 1));

/// For ever.
pub fn run() -> Result<(), String> {
    for lock in &LOCKS {
        spawn(|| own(lock))?;
        until(|| lock.is_taken());
        spawn(|| wait(lock))?;
    }
    until(|| LOCKS.iter().all(Lock::is_wanted));
    START.wait();
    loop {
        thread::park();
    }
}

fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(PAUSE);
    }
}

fn own(lock: &Lock) -> Result<(), String> {
    set_policy(libc::SCHED_OTHER as u32, 0)?;
    lock.take()?;
    START.wait();
    spin()
}

fn wait(lock: &Lock) -> Result<(), String> {
    set_policy(SCHED_DS, 10)?;
    lock.take()?;
    Err("who spins for ever has given its lock away".into())
}
