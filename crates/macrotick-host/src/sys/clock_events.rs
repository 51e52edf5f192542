//! Clocks of perf_event_open(2). Each one interrupts the CPU of its thread.

use std::io;
use std::mem::size_of;
use std::os::fd::{FromRawFd, OwnedFd};

use macrotick_model::Duration;

use super::check;

/// `struct perf_event_attr` of `linux/perf_event.h`, as first published.
#[repr(C)]
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
const CPU_CLOCK: u64 = 0;
const DISABLED: u64 = 1;
const WITHOUT_KERNEL: u64 = (1 << 5) | (1 << 6);

impl Attr {
    /// Describes a clock of the time outside of the kernel, with additional flags of the kernel's structure.
    fn clock(period: Duration, flags: u64) -> Attr {
        Attr {
            kind: SOFTWARE,
            size: size_of::<Attr>() as u32,
            config: CPU_CLOCK,
            period: period.as_nanos() as u64,
            sample: 0,
            read: 0,
            flags: WITHOUT_KERNEL | flags,
            rest: [0; 2],
        }
    }

    fn open(&self) -> io::Result<OwnedFd> {
        // SAFETY: reads one structure with the size in its field; the returned descriptor is ours.
        unsafe {
            // The clock is for the caller, on any CPU, in no group.
            let opened = check(libc::syscall(libc::SYS_perf_event_open, self as *const Attr, 0, -1, -1, 0))?;
            Ok(OwnedFd::from_raw_fd(opened as i32))
        }
    }
}

/// Opens a clock with this period, until it is closed. It interrupts the caller's CPU while the caller runs.
pub fn open_clock(period: Duration) -> io::Result<OwnedFd> {
    Attr::clock(period, 0).open()
}

/// Whether the kernel gives such a clock to a process without privileges. A child process tries it.
pub fn may_sample_unprivileged() -> bool {
    const NOBODY: libc::c_long = 65_534;
    let attr = Attr::clock(Duration::from_secs(1), DISABLED);
    // SAFETY: the child makes system calls and nothing else; the parent waits for its own child.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => {
                let has_none = libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0
                    && libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0;
                let is_given = has_none && attr.open().is_ok();
                libc::_exit(i32::from(!is_given))
            }
            child => {
                let mut status = 0;
                while libc::waitpid(child, &mut status, 0) < 0 && *libc::__errno_location() == libc::EINTR {}
                status == 0
            }
        }
    }
}
