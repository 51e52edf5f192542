//! Measures each CPU: a spin that reads the clock, and sleeps.
//!
//! The spin has the ordinary policy: a running plan keeps its CPU. A gap with a switch to another thread is not counted.
//! Interrupts, firmware or a hypervisor took the rest.

use std::collections::BTreeSet;
use std::thread;

use macrotick_host::sys::{self, Standing};
use macrotick_model::Duration;

use crate::host::Measured;

/// The length of the spin.
const SPIN: Duration = Duration::from_secs(1);
/// A longer time between two readings is a gap.
const GAP: Duration = Duration::from_micros(10);
/// The number of sleeps, and the length of each.
const SLEEPS: u32 = 400;
const SLEEP: Duration = Duration::from_millis(1);

/// Measures these CPUs, all at once.
pub(super) fn all(cpus: &BTreeSet<u32>) -> Vec<Measured> {
    let threads: Vec<_> = cpus.iter().map(|&cpu| thread::spawn(move || one(cpu))).collect();
    threads.into_iter().filter_map(|thread| thread.join().ok()?).collect()
}

fn one(cpu: u32) -> Option<Measured> {
    sys::pin(0, &[cpu]).ok()?;
    let mut measured = spin(cpu);
    sleeps(&mut measured);
    Some(measured)
}

/// Returns the switches to other threads, of both kinds.
fn switches() -> i64 {
    // SAFETY: fills one structure.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        // The fields' types differ between targets.
        #[allow(clippy::unnecessary_cast)]
        let switches = usage.ru_nivcsw as i64 + usage.ru_nvcsw as i64;
        switches
    }
}

fn spin(cpu: u32) -> Measured {
    let mut measured = Measured {
        cpu,
        spin_ns: SPIN.as_nanos() as u64,
        longest_gap_ns: 0,
        stolen_ns: 0,
        gaps: 0,
        sleeps: SLEEPS,
        sleep_median_ns: 0,
        sleep_worst_ns: 0,
        was_fifo: false,
    };
    let end = sys::now() + SPIN;
    let mut seen = switches();
    let mut last = sys::now();
    while last < end {
        let now = sys::now();
        let gap = now - last;
        if gap > GAP {
            let switches = switches();
            if switches == seen {
                let gap = gap.as_nanos() as u64;
                measured.longest_gap_ns = measured.longest_gap_ns.max(gap);
                measured.stolen_ns += gap;
                measured.gaps += 1;
            }
            seen = switches;
            last = sys::now();
        } else {
            last = now;
        }
    }
    measured
}

fn sleeps(measured: &mut Measured) {
    measured.was_fifo = sys::set_standing(0, Standing::Fifo(1)).is_ok();
    let mut late: Vec<u64> = (0..SLEEPS)
        .map(|_| {
            let until = sys::now() + SLEEP;
            sys::sleep_until(until);
            (sys::now() - until).as_nanos() as u64
        })
        .collect();
    late.sort_unstable();
    measured.sleep_median_ns = late[late.len() / 2];
    measured.sleep_worst_ns = *late.last().expect("there are sleeps");
}
