//! An attack of our own: clocks of perf_event_open(2), each of which interrupts the processor every 10 us.

use crate::kit::process::{set_policy, spin};

const CLOCKS: usize = 50;
/// The kernel takes no less.
const PERIOD_NS: u64 = 10_000;

/// `struct perf_event_attr`, as first published.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    rest: [u64; 2],
}

const SOFTWARE: u32 = 1;
const WITHOUT_KERNEL: u64 = (1 << 5) | (1 << 6);

/// For ever. Who gets no clocks is a hog.
pub fn run() -> Result<(), String> {
    let size = size_of::<Attr>() as u32;
    let attr = Attr { kind: SOFTWARE, size, period: PERIOD_NS, flags: WITHOUT_KERNEL, ..Default::default() };
    // SAFETY: reads one structure; a descriptor that stays open is returned.
    let open = || unsafe { libc::syscall(libc::SYS_perf_event_open, &attr, 0, -1, -1, 0) };
    let clocks = (0..CLOCKS).take_while(|_| open() >= 0).count();
    eprintln!("{clocks} clocks");
    set_policy(libc::SCHED_FIFO as u32, 98)?;
    spin()
}
