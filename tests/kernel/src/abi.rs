//! `linux/macrotick.h`: structures, numbers and calls, raw. Times are nanoseconds, as in the header.

use std::fs::{File, OpenOptions};
use std::mem::size_of;
use std::os::fd::AsRawFd;

use crate::sys;

/// The device.
pub const DEVICE: &str = "/dev/macrotick";
/// The policy.
pub const SCHED_TT: u32 = 16;
/// With the terminating NUL.
pub const NAME_LEN: usize = 32;
/// The most entities of a table.
pub const MAX_ENTITIES: u32 = 4096;
/// The most windows of a table.
pub const MAX_WINDOWS: u32 = 1 << 20;
/// The shortest window, in nanoseconds.
pub const MIN_WINDOW_NS: u64 = 1000;
/// The longest cycle, in nanoseconds.
pub const MAX_CYCLE_NS: u64 = 3_600_000_000_000;
/// The most that windows may take of a CPU.
pub const CAP_PERMILLE: u64 = 950;

/// The window releases a job.
pub const ACTIVATE: u32 = 1;
/// The job must be complete at the window's end.
pub const DEADLINE: u32 = 2;

/// `enum macrotick_error`.
#[allow(missing_docs)] // the header has the explanations
pub mod error {
    pub const HEADER: u32 = 1;
    pub const CLOCK: u32 = 2;
    pub const CYCLE: u32 = 3;
    pub const ENTITY_NAME: u32 = 4;
    pub const ENTITY_TWICE: u32 = 5;
    pub const ENTITY_FLAGS: u32 = 6;
    pub const ENTITY_IDLE: u32 = 7;
    pub const WINDOW_FLAGS: u32 = 8;
    pub const WINDOW_CPU: u32 = 9;
    pub const WINDOW_ENTITY: u32 = 10;
    pub const WINDOW_LENGTH: u32 = 11;
    pub const WINDOW_RANGE: u32 = 12;
    pub const WINDOW_ORDER: u32 = 13;
    pub const WINDOW_OVERLAP: u32 = 14;
    pub const WINDOW_MIGRATES: u32 = 15;
    pub const CAPACITY: u32 = 16;
    pub const INSTALLED: u32 = 17;
}

/// `enum macrotick_state`.
#[allow(missing_docs)]
pub mod state {
    pub const EMPTY: u32 = 0;
    pub const STOPPED: u32 = 1;
    pub const RUNNING: u32 = 2;
}

const fn ioc(nr: u32) -> u32 {
    (3 << 30) | (0xBE << 8) | nr
}

/// `MACROTICK_IOC_*`.
#[allow(missing_docs)]
pub mod call {
    use super::ioc;
    pub const INSTALL: u32 = ioc(0x00);
    pub const START: u32 = ioc(0x01);
    pub const STOP: u32 = ioc(0x02);
    pub const REMOVE: u32 = ioc(0x03);
    pub const GET: u32 = ioc(0x04);
    pub const STATS: u32 = ioc(0x05);
    pub const BIND: u32 = ioc(0x10);
    pub const UNBIND: u32 = ioc(0x11);
    pub const WAIT: u32 = ioc(0x12);
}

/// `struct macrotick_entity`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Entity {
    pub name: [u8; NAME_LEN],
    pub flags: u32,
    pub reserved: u32,
}

/// `struct macrotick_window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Window {
    pub offset_ns: u64,
    pub length_ns: u64,
    pub cpu: u32,
    pub entity: u32,
    pub flags: u32,
    pub reserved: u32,
}

/// `struct macrotick_install`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Install {
    pub size: u32,
    pub flags: u32,
    pub clockid: u32,
    pub nr_entities: u32,
    pub nr_windows: u32,
    pub reserved: u32,
    pub cycle_ns: u64,
    pub entities: u64,
    pub windows: u64,
    pub error: u32,
    pub error_index: u32,
    pub error_other: u32,
    pub error_reserved: u32,
}

/// `struct macrotick_start`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Start {
    pub size: u32,
    pub flags: u32,
    pub epoch_ns: u64,
}

/// `struct macrotick_get`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Get {
    pub size: u32,
    pub flags: u32,
    pub state: u32,
    pub clockid: u32,
    pub nr_entities: u32,
    pub nr_windows: u32,
    pub cycle_ns: u64,
    pub epoch_ns: u64,
    pub entities: u64,
    pub windows: u64,
}

/// `struct macrotick_entity_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Stats {
    pub size: u32,
    pub entity: u32,
    pub name: [u8; NAME_LEN],
    pub cpu: u32,
    pub nr_threads: u32,
    pub activations: u64,
    pub completions: u64,
    pub misses: u64,
    pub lost: u64,
    pub skipped: u64,
    pub preemptions: u64,
    pub runtime_ns: u64,
}

/// `struct macrotick_bind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Bind {
    pub size: u32,
    pub flags: u32,
    pub pidfd: i32,
    pub reserved: u32,
    pub name: [u8; NAME_LEN],
}

/// `struct macrotick_unbind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Unbind {
    pub size: u32,
    pub flags: u32,
    pub pidfd: i32,
    pub reserved: u32,
}

/// `struct macrotick_wait`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Wait {
    pub size: u32,
    pub flags: u32,
    pub job: u64,
    pub nominal_ns: u64,
    pub lost: u64,
}

/// The name as the kernel wants it; what is too long is cut, so that it is not terminated.
pub fn name(text: &str) -> [u8; NAME_LEN] {
    let mut bytes = [0; NAME_LEN];
    let length = text.len().min(NAME_LEN);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// A structure that begins with its size.
pub trait Sized32: Copy {
    /// Sets the first field to the structure's size.
    fn sized(self) -> Self;
}

macro_rules! sized {
    ($($name:ident: $bytes:literal),+) => {
        $(
            impl Sized32 for $name {
                fn sized(self) -> Self {
                    $name { size: size_of::<$name>() as u32, ..self }
                }
            }
            // The sizes that a 64-bit C compiler gives the header's structures.
            const _: () = assert!(size_of::<$name>() == $bytes);
        )+
    };
}

sized!(Install: 64, Start: 16, Get: 56, Stats: 104, Bind: 48, Unbind: 16, Wait: 32);
const _: () = assert!(size_of::<Entity>() == 40 && size_of::<Window>() == 32);

/// The opened device.
pub struct Device(File);

impl Device {
    /// Opens it.
    pub fn open() -> Result<Device, String> {
        let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
        opened.map(Device).map_err(|error| format!("{DEVICE}: {error}"))
    }

    /// Any call with any pointer.
    ///
    /// # Safety
    /// The kernel writes through `pointer` what the call says; a bad address only gives `EFAULT`.
    pub unsafe fn raw(&self, call: u32, pointer: u64) -> Result<(), i32> {
        // SAFETY: promised by the caller.
        sys::done(unsafe { libc::ioctl(self.0.as_raw_fd(), call as _, pointer) }).map(drop)
    }

    /// A call with a structure.
    pub fn call<T>(&self, call: u32, arg: &mut T) -> Result<(), i32> {
        // SAFETY: the structure is writable, and every structure here is at least as large as it says.
        unsafe { self.raw(call, arg as *mut T as u64) }
    }

    /// Starts the table; returns the epoch in force.
    pub fn start(&self, epoch_ns: u64) -> Result<u64, i32> {
        let mut start = Start { epoch_ns, ..Default::default() }.sized();
        self.call(call::START, &mut start).map(|()| start.epoch_ns)
    }

    /// Stops the table.
    pub fn stop(&self) -> Result<(), i32> {
        // SAFETY: the call takes no argument.
        unsafe { self.raw(call::STOP, 0) }
    }

    /// Removes the table.
    pub fn remove(&self) -> Result<(), i32> {
        // SAFETY: the call takes no argument.
        unsafe { self.raw(call::REMOVE, 0) }
    }

    /// State, counts and epoch.
    pub fn get(&self) -> Result<Get, i32> {
        let mut get = Get::default().sized();
        self.call(call::GET, &mut get).map(|()| get)
    }

    /// The counters of an entity.
    pub fn stats(&self, entity: u32) -> Result<Stats, i32> {
        let mut stats = Stats { entity, ..Default::default() }.sized();
        self.call(call::STATS, &mut stats).map(|()| stats)
    }

    /// Binds the caller (-1) or what is behind a pidfd.
    pub fn bind(&self, pidfd: i32, entity: &str) -> Result<(), i32> {
        self.call(call::BIND, &mut Bind { pidfd, name: name(entity), ..Default::default() }.sized())
    }

    /// Ends a membership.
    pub fn unbind(&self, pidfd: i32) -> Result<(), i32> {
        self.call(call::UNBIND, &mut Unbind { pidfd, ..Default::default() }.sized())
    }

    /// Completes the caller's job and waits for the next.
    pub fn wait(&self) -> Result<Wait, i32> {
        let mut wait = Wait::default().sized();
        self.call(call::WAIT, &mut wait).map(|()| wait)
    }
}
