//! The arguments of the calls.

use std::mem::size_of;

use crate::{call, NAME_LEN};

/// What windows serve, an ordered set of threads: `struct macrotick_entity`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// Unique in the table, terminated, not empty; see [`name`].
    pub name: [u8; NAME_LEN],
    /// What becomes of its misses: zero, [`MISS_SIGNAL`](crate::MISS_SIGNAL) or [`MISS_KILL`](crate::MISS_KILL). Or
    /// [`POOL`](crate::POOL), with [`RR`](crate::RR), [`PRIORITY`](crate::PRIORITY) or none, and perhaps with
    /// [`SLACK`](crate::SLACK). Without a pool [`MIGRATE`](crate::MIGRATE) may be added.
    pub flags: u32,
    /// After so many misses in a row it is stopped; zero: never. A pool misses nothing.
    pub max_misses: u32,
    /// How long the turns of a pool's threads are, in nanoseconds; zero: [`SLICE_NS`](crate::SLICE_NS).
    pub slice_ns: u64,
}

/// The interval `[offset, offset + length)` of every cycle: `struct macrotick_window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its beginning, in nanoseconds since the beginning of the cycle.
    pub offset_ns: u64,
    /// Its length, in nanoseconds.
    pub length_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// The place of its entity in the table's entities; zero with [`SYNC`](crate::SYNC).
    pub entity: u32,
    /// [`ACTIVATE`](crate::ACTIVATE), [`DEADLINE`](crate::DEADLINE), both or zero; or [`SYNC`](crate::SYNC).
    pub flags: u32,
    /// With [`SYNC`](crate::SYNC): by how much it may become longer or shorter, in nanoseconds. Else zero.
    pub bound_ns: u32,
}

/// A table to be installed, and why it was refused: `struct macrotick_install`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Install {
    /// Of this structure, in bytes.
    pub size: u32,
    /// [`SWAP`](crate::SWAP) or zero.
    pub flags: u32,
    /// `CLOCK_MONOTONIC` or `CLOCK_TAI`.
    pub clockid: u32,
    /// How many entities there are.
    pub nr_entities: u32,
    /// How many windows there are.
    pub nr_windows: u32,
    /// Must be zero.
    pub reserved: u32,
    /// The length of the cycle, in nanoseconds.
    pub cycle_ns: u64,
    /// The address of the first [`Entity`].
    pub entities: u64,
    /// The address of the first [`Window`]. They are sorted by CPU, then by offset.
    pub windows: u64,
    /// Out, if the call fails: one of [`error`](crate::error).
    pub error: u32,
    /// Out, if the call fails: which entity or window.
    pub error_index: u32,
    /// Out, if the call fails: which other one.
    pub error_other: u32,
    /// Out, if the call fails: zero.
    pub error_reserved: u32,
    /// How much earlier than their offsets windows with [`ACTIVATE`](crate::ACTIVATE) open, in nanoseconds.
    pub lead_ns: u64,
    /// Out, with [`SWAP`](crate::SWAP): the epoch of this table, in nanoseconds; zero if it is in place already.
    pub swap_ns: u64,
}

/// When the table begins: `struct macrotick_start`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// In: the wish; one in the past is wound forward by whole cycles. Out: the start of cycle 0. In nanoseconds.
    pub epoch_ns: u64,
}

/// The table, read back: `struct macrotick_get`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Get {
    /// Of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// Out: one of [`state`](crate::state).
    pub state: u32,
    /// Out: the clock.
    pub clockid: u32,
    /// In: room for so many entities, or zero if only the count is wanted. Out: the count.
    pub nr_entities: u32,
    /// In: room for so many windows, or zero if only the count is wanted. Out: the count.
    pub nr_windows: u32,
    /// Out: the length of the cycle, in nanoseconds.
    pub cycle_ns: u64,
    /// Out: the start of cycle 0, in nanoseconds; zero unless the table runs.
    pub epoch_ns: u64,
    /// The address to which each [`Entity`] is written.
    pub entities: u64,
    /// The address to which each [`Window`] is written.
    pub windows: u64,
    /// Out: the lead, in nanoseconds.
    pub lead_ns: u64,
    /// Out, of a running table on `CLOCK_TAI`, as what follows (else zero): by how much its grid takes that clock to be
    /// ahead of `CLOCK_MONOTONIC`, in nanoseconds.
    pub offset_ns: i64,
    /// Out: what windows with [`SYNC`](crate::SYNC) have still to make good, in nanoseconds; more than zero: by becoming
    /// longer.
    pub error_ns: i64,
    /// Out: by how much they became longer since the start, altogether, in nanoseconds.
    pub stretched_ns: u64,
    /// Out: by how much they became shorter since the start, altogether, in nanoseconds.
    pub shrunk_ns: u64,
    /// Out: how many of them became longer or shorter.
    pub corrections: u64,
}

/// The counters of an entity since the table was installed: `struct macrotick_entity_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Of this structure, in bytes.
    pub size: u32,
    /// In: its place in the table's entities.
    pub entity: u32,
    /// Its name.
    pub name: [u8; NAME_LEN],
    /// The CPU of its windows.
    pub cpu: u32,
    /// The threads that are bound to it.
    pub nr_threads: u32,
    /// Jobs released.
    pub activations: u64,
    /// Jobs completed by waiting for the next.
    pub completions: u64,
    /// Jobs incomplete at the end of a window with [`DEADLINE`](crate::DEADLINE).
    pub misses: u64,
    /// Activations lost: an older one was still pending.
    pub lost: u64,
    /// Windows passed over by a late interrupt.
    pub skipped: u64,
    /// Threads preempted at a window's end.
    pub preemptions: u64,
    /// Processor time received under [`SCHED_TT`](crate::SCHED_TT), in nanoseconds.
    pub runtime_ns: u64,
    /// The part of it in which jobs were held until their nominal instant, in nanoseconds.
    pub held_ns: u64,
    /// Jobs that the lead was too short for.
    pub late: u64,
    /// The longest time from a nominal instant to its interrupt, in nanoseconds.
    pub late_max_ns: u64,
    /// Misses with a job that had not begun.
    pub never_ran: u64,
    /// Misses since jobs were done in time.
    pub misses_in_row: u32,
    /// 1: after [`Entity::max_misses`], until a thread is bound.
    pub stopped: u32,
}

/// Where misses are signalled: `struct macrotick_notify`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Notify {
    /// Of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// The place of the entity in the table, or [`ALL_ENTITIES`](crate::ALL_ENTITIES).
    pub entity: u32,
    /// An eventfd, in place of the one before; -1: none.
    pub eventfd: i32,
}

/// A thread that becomes a member of an entity: `struct macrotick_bind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Bind {
    /// Of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// Of a process's first thread, or of any thread (`PIDFD_THREAD`); -1 is the caller.
    pub pidfd: i32,
    /// Must be zero.
    pub reserved: u32,
    /// The entity's; see [`name`].
    pub name: [u8; NAME_LEN],
}

/// A thread whose membership ends: `struct macrotick_unbind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbind {
    /// Of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// As in [`Bind`].
    pub pidfd: i32,
    /// Must be zero.
    pub reserved: u32,
}

/// The job that a wait ended with: `struct macrotick_wait`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// Of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// Out: the number of the activation since the epoch.
    pub job: u64,
    /// Out: its nominal instant on `CLOCK_MONOTONIC`, whatever the table's clock, in nanoseconds.
    pub nominal_ns: u64,
    /// Out: activations lost since the last wait.
    pub lost: u64,
}

/// The name as the kernel wants it. What is too long is cut without a terminating NUL, so that the kernel refuses it.
pub fn name(text: &str) -> [u8; NAME_LEN] {
    let mut bytes = [0; NAME_LEN];
    let length = text.len().min(NAME_LEN);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// A structure that begins with its own size, in bytes and 32 bits.
pub trait Sized32: Copy {
    /// Sets the first field to the structure's size.
    fn sized(self) -> Self;
}

/// A structure that belongs to one call.
///
/// # Safety
/// The call reads and writes `size` bytes of the structure, and writes nowhere else. That is why [`Get`] is none.
pub unsafe trait Argument: Sized32 {
    /// One of [`call`].
    const CALL: u32;
}

macro_rules! sized {
    ($($name:ident),+) => {
        $(
            impl Sized32 for $name {
                fn sized(self) -> Self {
                    $name { size: size_of::<$name>() as u32, ..self }
                }
            }
        )+
    };
}

macro_rules! argument {
    ($($name:ident: $call:ident),+) => {
        $(
            // SAFETY: the header says of each whether it has addresses, and those of Install are only read from.
            unsafe impl Argument for $name {
                const CALL: u32 = call::$call;
            }
        )+
    };
}

sized!(Install, Start, Get, Stats, Notify, Bind, Unbind, Wait);
argument!(Install: INSTALL, Start: START, Stats: STATS, Notify: NOTIFY, Bind: BIND, Unbind: UNBIND, Wait: WAIT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_is_not_terminated() {
        assert_eq!(name("a")[..2], [b'a', 0]);
        assert_eq!(name(&"x".repeat(31))[30..], [b'x', 0]);
        assert_eq!(name(&"x".repeat(40)), [b'x'; NAME_LEN]);
    }
}
