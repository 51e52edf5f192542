//! An attack of our own: many threads are offered locks when their group's budget ends. The kernel must then let each
//! of these threads continue for the sake of others.

use std::thread;
use std::time::Duration;

use super::pi::Lock;
use crate::kit::clock::now_ns;
use crate::kit::process::{set_policy, spawn};

/// The number of locks that can be offered in some periods.
const LOCKS: usize = 400;
/// The priorities of the thread that gives the locks away, and of the waiting threads. The waiting threads run only
/// after the first one has exhausted the budget.
const PRIORITIES: (u32, u32) = (98, 10);
/// The time after which a thread waits for its lock again, and the time after which all threads wait.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(4)];
/// Longer than a budget.
const SPIN_NS: u64 = 1_000_000;

static ALL: [Lock; LOCKS] = [const { Lock::free() }; LOCKS];

/// Attacks without end.
pub fn run() -> Result<(), String> {
    for lock in &ALL {
        spawn(|| be_offered(lock))?;
    }
    give_away()
}

fn give_away() -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.0)?;
    loop {
        let held: Vec<&Lock> = ALL.iter().filter(|lock| lock.try_take()).collect();
        thread::sleep(PAUSES[1]);
        held.into_iter().try_for_each(Lock::give)?;
        spin();
    }
}

fn be_offered(lock: &Lock) -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.1)?;
    loop {
        lock.take()?;
        lock.give()?;
        thread::sleep(PAUSES[0]);
    }
}

fn spin() {
    let begin = now_ns();
    while now_ns() - begin < SPIN_NS {}
}
