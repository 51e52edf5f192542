//! An attack of our own: each of many threads has a lock and waits for that of the one before, and the priority of the last one
//! changes all the time. The kernel hands each change on, from owner to owner.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::pi::{thread_id, Lock};
use crate::kit::process::{set_policy, set_policy_of, spawn};

/// A container may have a thousand threads.
const LINKS: usize = 900;
/// Of who changes, of all who wait, and what the last one gets.
const PRIORITIES: (u32, u32, u32) = (98, 10, 97);
const PAUSE: Duration = Duration::from_millis(1);

static LOCKS: [Lock; LINKS] = [const { Lock::free() }; LINKS];
static LAST: AtomicU32 = AtomicU32::new(0);

/// For ever.
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

/// The first one waits for nobody.
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
