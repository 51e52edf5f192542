//! An attack of our own: clocks of perf_event_open(2). Each of them interrupts the processor every 10 us.

use std::os::fd::OwnedFd;

use macrotick_host::sys::open_clock;
use macrotick_model::Duration;

use crate::kit::process::{set_policy, spin};

const CLOCKS: usize = 50;
/// The shortest period that the kernel accepts.
const PERIOD: Duration = Duration::from_micros(10);

/// Attacks without end. If the kernel refuses all clocks, only the busy loop remains.
pub fn run() -> Result<(), String> {
    let clocks: Vec<OwnedFd> = (0..CLOCKS).map_while(|_| open_clock(PERIOD).ok()).collect();
    eprintln!("{} clocks", clocks.len());
    set_policy(libc::SCHED_FIFO as u32, 98)?;
    spin()
}
