//! An attack of our own: the sleeps of many threads end at the same instants, each in the timer's interrupt.

use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::process::{set_policy, spawn};

const THREADS: u64 = 200;
const PRIORITY: u32 = 98;
/// Not in step with the victim's jobs. They all get to sleep again within it.
const PERIOD_NS: u64 = 20_300_000;

/// For ever.
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
