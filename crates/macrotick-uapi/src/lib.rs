//! The kernel's interface, `linux/macrotick.h` (`kernel/overlay/include/uapi`), for Rust.
//!
//! The header is the source, and explains the interface. This crate only repeats its numbers and structures. It adds no
//! checks, because tests must be able to make calls that no sensible program makes. `tests/header.rs` compares all of
//! it with the C compiler's view of the header.
//!
//! Every time is a plain integer of nanoseconds. Every instant is on the clock of the table (`CLOCK_MONOTONIC` or
//! `CLOCK_TAI`), except that nominal instants of jobs are always on `CLOCK_MONOTONIC`. Calls that fail return the
//! errno.

mod device;
pub mod error;
mod rings;
mod structures;

pub use device::{Device, OpenError};
pub use rings::Rings;
pub use structures::{
    name, Argument, Bind, Entity, Event, Get, Install, Notify, Recorder, Sized32, Start, Stats, Unbind, Wait, Window,
};

/// The path of the device: `MACROTICK_DEVICE`.
pub const DEVICE: &str = "/dev/macrotick";
/// The number of the policy, for `sched_setattr(2)`: `SCHED_TT`.
pub const SCHED_TT: u32 = 16;
/// The number of the policy of groups with a budget: `SCHED_DS`.
pub const SCHED_DS: u32 = 17;

/// The bytes of a name, with the terminating NUL: `MACROTICK_NAME_LEN`.
pub const NAME_LEN: usize = 32;
/// The greatest number of entities of a table: `MACROTICK_MAX_ENTITIES`.
pub const MAX_ENTITIES: u32 = 4096;
/// The greatest number of windows of a table: `MACROTICK_MAX_WINDOWS`.
pub const MAX_WINDOWS: u32 = 1 << 20;
/// The greatest number of threads of an entity: `MACROTICK_MAX_THREADS`. Further children are left out of the class.
pub const MAX_THREADS: u32 = 256;
/// The greatest number of threads of an entity with [`MIGRATE`], likewise: `MACROTICK_MAX_MIGRATING`.
pub const MAX_MIGRATING: u32 = 16;
/// The shortest window, in nanoseconds: `MACROTICK_MIN_WINDOW_NS`.
pub const MIN_WINDOW_NS: u64 = 1000;
/// The longest cycle, in nanoseconds (one hour): `MACROTICK_MAX_CYCLE_NS`.
pub const MAX_CYCLE_NS: u64 = 3_600_000_000_000;
/// The longest lead, in nanoseconds: `MACROTICK_MAX_LEAD_NS`.
pub const MAX_LEAD_NS: u64 = 1_000_000;
/// The greatest share of a CPU for all windows and leads together, in thousandths: `MACROTICK_CAP_PERMILLE`.
pub const CAP_PERMILLE: u64 = 950;

/// The window releases a job of its entity: `MACROTICK_WINDOW_ACTIVATE`.
pub const ACTIVATE: u32 = 1 << 0;
/// A job that is not complete at the end of the window is a miss: `MACROTICK_WINDOW_DEADLINE`.
pub const DEADLINE: u32 = 1 << 1;
/// The window serves no thread, and makes the table follow its clock: `MACROTICK_WINDOW_SYNC`.
pub const SYNC: u32 = 1 << 2;

/// The table replaces the installed one: `MACROTICK_INSTALL_SWAP`.
pub const SWAP: u32 = 1 << 0;
/// The thread with a missed job gets `SIGXCPU`: `MACROTICK_ENTITY_MISS_SIGNAL`.
pub const MISS_SIGNAL: u32 = 1 << 0;
/// The process of the thread with a missed job gets `SIGKILL`: `MACROTICK_ENTITY_MISS_KILL`.
pub const MISS_KILL: u32 = 1 << 1;
/// The threads of a control group share the entity's windows and have no jobs: `MACROTICK_ENTITY_POOL`.
pub const POOL: u32 = 1 << 2;
/// A pool's threads take turns, weighted by their nice values: `MACROTICK_ENTITY_RR`.
pub const RR: u32 = 1 << 3;
/// A pool's threads run by their own priorities: `MACROTICK_ENTITY_PRIORITY`.
pub const PRIORITY: u32 = 1 << 4;
/// Outside its windows, the threads of a pool run under their own policies: `MACROTICK_ENTITY_SLACK`.
pub const SLACK: u32 = 1 << 5;
/// The entity may have windows on several CPUs, and its threads move with them: `MACROTICK_ENTITY_MIGRATE`.
pub const MIGRATE: u32 = 1 << 6;
/// The default length of a turn, in nanoseconds: `MACROTICK_SLICE_NS`.
pub const SLICE_NS: u64 = 1_000_000;
/// The shortest turn, in nanoseconds: `MACROTICK_MIN_SLICE_NS`.
pub const MIN_SLICE_NS: u64 = 10_000;
/// The longest turn, in nanoseconds: `MACROTICK_MAX_SLICE_NS`.
pub const MAX_SLICE_NS: u64 = 1_000_000_000;
/// Every entity of the table, for [`Notify::entity`]: `MACROTICK_ALL_ENTITIES`.
pub const ALL_ENTITIES: u32 = u32::MAX;

/// The greatest number of events of a ring: `MACROTICK_MAX_EVENTS`.
pub const MAX_EVENTS: u32 = 1 << 17;

/// The values of [`Event::kind`]: `enum macrotick_event_kind`.
pub mod event {
    /// The CPU changes to another thread.
    pub const SWITCH: u16 = 1;
    /// A thread becomes ready.
    pub const WAKES: u16 = 2;
    /// A thread ends.
    pub const EXITS: u16 = 3;
    /// The interrupt of a device begins.
    pub const IRQ_BEGINS: u16 = 4;
    /// It ends.
    pub const IRQ_ENDS: u16 = 5;
    /// An interrupt of the CPU itself begins, on x86-64.
    pub const VECTOR_BEGINS: u16 = 6;
    /// It ends.
    pub const VECTOR_ENDS: u16 = 7;
    /// The work of a softirq begins.
    pub const SOFTIRQ_BEGINS: u16 = 8;
    /// It ends.
    pub const SOFTIRQ_ENDS: u16 = 9;
    /// The thread waits for a lock of the kernel.
    pub const LOCK_BEGINS: u16 = 10;
    /// It has waited.
    pub const LOCK_ENDS: u16 = 11;
    /// The thread touches a page that it cannot use yet, on x86-64.
    pub const PAGE_FAULT: u16 = 12;
    /// A window begins.
    pub const WINDOW_BEGINS: u16 = 13;
    /// A window had passed when its interrupt came.
    pub const WINDOW_SKIPPED: u16 = 14;
    /// A job was not complete at its deadline.
    pub const MISSES: u16 = 15;
    /// The thread gets a job.
    pub const JOB_BEGINS: u16 = 16;
    /// The thread has done a job.
    pub const JOB_ENDS: u16 = 17;
}

/// The values of [`Get::state`]: `enum macrotick_state`.
pub mod state {
    /// There is no table.
    pub const EMPTY: u32 = 0;
    /// A table is installed, but does not run.
    pub const STOPPED: u32 = 1;
    /// The table runs.
    pub const RUNNING: u32 = 2;
}

/// The numbers of the calls, for `ioctl(2)`: `MACROTICK_IOC_*`.
///
/// They do not contain the size of the argument, which is a field of the argument.
pub mod call {
    /// `_IOC(_IOC_READ | _IOC_WRITE, 0xBE, nr, 0)`.
    const fn ioc(nr: u32) -> u32 {
        (3 << 30) | (0xBE << 8) | nr
    }

    /// Takes [`Install`](crate::Install).
    pub const INSTALL: u32 = ioc(0x00);
    /// Takes [`Start`](crate::Start).
    pub const START: u32 = ioc(0x01);
    /// Takes no argument.
    pub const STOP: u32 = ioc(0x02);
    /// Takes no argument.
    pub const REMOVE: u32 = ioc(0x03);
    /// Takes [`Get`](crate::Get).
    pub const GET: u32 = ioc(0x04);
    /// Takes [`Stats`](crate::Stats).
    pub const STATS: u32 = ioc(0x05);
    /// Takes [`Notify`](crate::Notify).
    pub const NOTIFY: u32 = ioc(0x06);
    /// Takes [`Recorder`](crate::Recorder).
    pub const RECORD: u32 = ioc(0x07);
    /// Takes [`Bind`](crate::Bind).
    pub const BIND: u32 = ioc(0x10);
    /// Takes [`Unbind`](crate::Unbind).
    pub const UNBIND: u32 = ioc(0x11);
    /// Takes [`Wait`](crate::Wait).
    pub const WAIT: u32 = ioc(0x12);
}
