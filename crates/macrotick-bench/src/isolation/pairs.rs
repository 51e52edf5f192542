//! An attack of our own: many pairs of threads. One thread owns a lock under SCHED_OTHER and never sleeps. The other
//! one waits for the lock under SCHED_DS, and lends its budget to the owner.

use std::sync::{Barrier, LazyLock};
use std::thread;
use std::time::Duration;

use macrotick_uapi::SCHED_DS;

use super::pi::Lock;
use crate::kit::process::{set_policy, spawn, spin};

/// A container may have 1000 threads.
const PAIRS: usize = 450;
const PAUSE: Duration = Duration::from_millis(1);

static LOCKS: [Lock; PAIRS] = [const { Lock::free() }; PAIRS];

/// Opens when all threads wait: no owner spins before.
static START: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(PAIRS + 1));

/// Attacks without end.
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
    Err("an owner that spins without end has released its lock".into())
}
