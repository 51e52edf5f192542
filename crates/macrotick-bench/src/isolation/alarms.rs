//! An attack of our own: the sleeps of many threads end at the same instants, each in the timer interrupt.

use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::process::{set_policy, spawn};

const THREADS: u64 = 200;
const PRIORITY: u32 = 98;
/// Not in step with the victim's jobs. Within this period all threads go back to sleep.
const PERIOD_NS: u64 = 20_300_000;

/// Attacks without end.
pub fn run() -> Result<(), String> {
    for _ in 1..THREADS {
        spawn(sleep)?;
    }
    sleep()
}

fn sleep() -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITY)?;
    loop {
        sleep_until(now_ns().next_multiple_of(PERIOD_NS));
    }
}
