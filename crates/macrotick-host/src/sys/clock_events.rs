//! Clocks of perf_event_open(2), each of which interrupts the CPU of its thread.

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
    /// Of the time outside of the kernel, with the flags of the kernel's structure beside.
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
        // SAFETY: reads one structure of the size that it tells; a descriptor is ours.
        unsafe {
            // Of the caller, on whatever CPU, in no group.
            let opened = check(libc::syscall(libc::SYS_perf_event_open, self as *const Attr, 0, -1, -1, 0))?;
            Ok(OwnedFd::from_raw_fd(opened as i32))
        }
    }
}

/// A clock that interrupts the caller's CPU so often while the caller has it, until it is closed.
pub fn open_clock(period: Duration) -> io::Result<OwnedFd> {
    Attr::clock(period, 0).open()
}

/// Whether a process without any privilege is given such a clock. A child tries.
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
