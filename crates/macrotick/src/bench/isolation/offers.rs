//! An attack of our own: many threads that are offered locks when their group's budget ends, each of which the kernel has
//! to let go on for the sake of others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::bench::process::{last_error, set_policy, spawn};
use crate::bench::timershield::guest::now_ns;

/// As many as can be offered in some periods.
const LOCKS: usize = 400;
/// Of who gives the locks away, and of those who wait: they do not run before it has used up the budget.
const PRIORITIES: (u32, u32) = (98, 10);
/// Those who had their locks wait for them again after so long, and all do after the longer one.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(4)];
/// More than a budget.
const SPIN_NS: u64 = 1_000_000;

static WORDS: [AtomicU32; LOCKS] = [const { AtomicU32::new(0) }; LOCKS];

/// For ever.
pub fn run() -> Result<(), String> {
    for word in &WORDS {
        spawn(|| be_offered(word))?;
    }
    give_away()
}

fn give_away() -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.0)?;
    loop {
        let held: Vec<&AtomicU32> = WORDS.iter().filter(|word| take_free(word)).collect();
        thread::sleep(PAUSES[1]);
        held.into_iter().try_for_each(unlock)?;
        spin();
    }
}

fn be_offered(word: &AtomicU32) -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITIES.1)?;
    loop {
        if !take_free(word) {
            futex(word, libc::FUTEX_LOCK_PI)?;
        }
        unlock(word)?;
        thread::sleep(PAUSES[0]);
    }
}

fn take_free(word: &AtomicU32) -> bool {
    word.compare_exchange(0, thread_id(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

fn unlock(word: &AtomicU32) -> Result<(), String> {
    match word.compare_exchange(thread_id(), 0, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => Ok(()),
        Err(_) => futex(word, libc::FUTEX_UNLOCK_PI),
    }
}

fn thread_id() -> u32 {
    // SAFETY: has no arguments.
    unsafe { libc::gettid() as u32 }
}

/// Between looking and waiting the word may have changed: that is no error.
fn futex(word: &AtomicU32, operation: i32) -> Result<(), String> {
    loop {
        // SAFETY: the word is static; no time limit.
        let done = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, 0, 0, 0) };
        match std::io::Error::last_os_error().raw_os_error() {
            _ if done == 0 => return Ok(()),
            Some(libc::EAGAIN | libc::EINTR) => {}
            _ => return Err(last_error("futex")),
        }
    }
}

fn spin() {
    let begin = now_ns();
    while now_ns() - begin < SPIN_NS {}
}
