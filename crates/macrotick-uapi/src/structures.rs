//! The arguments of the calls.

use std::mem::size_of;

use crate::{call, NAME_LEN};

/// The unit that a window serves, an ordered set of threads: `struct macrotick_entity`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// The name: unique in the table, terminated, not empty; see [`name`].
    pub name: [u8; NAME_LEN],
    /// The reaction to a miss: zero, [`MISS_SIGNAL`](crate::MISS_SIGNAL) or [`MISS_KILL`](crate::MISS_KILL). Or
    /// [`POOL`](crate::POOL), optionally with [`RR`](crate::RR) or [`PRIORITY`](crate::PRIORITY), and with
    /// [`SLACK`](crate::SLACK). An entity that is no pool may also have [`MIGRATE`](crate::MIGRATE).
    pub flags: u32,
    /// The number of misses in a row after which the entity is stopped; zero: never. A pool has no misses.
    pub max_misses: u32,
    /// The length of the turns of a pool's threads, in nanoseconds; zero: [`SLICE_NS`](crate::SLICE_NS).
    pub slice_ns: u64,
}

/// The interval `[offset, offset + length)` of every cycle: `struct macrotick_window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The start, in nanoseconds since the start of the cycle.
    pub offset_ns: u64,
    /// The length, in nanoseconds.
    pub length_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// The index of its entity in the table; zero with [`SYNC`](crate::SYNC).
    pub entity: u32,
    /// [`ACTIVATE`](crate::ACTIVATE), [`DEADLINE`](crate::DEADLINE), both or zero; or [`SYNC`](crate::SYNC).
    pub flags: u32,
    /// With [`SYNC`](crate::SYNC), the most by which it may become longer or shorter, in nanoseconds. Otherwise zero.
    pub bound_ns: u32,
}

/// A table to install, and the reason of a refusal: `struct macrotick_install`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Install {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// [`SWAP`](crate::SWAP) or zero.
    pub flags: u32,
    /// `CLOCK_MONOTONIC` or `CLOCK_TAI`.
    pub clockid: u32,
    /// The number of entities.
    pub nr_entities: u32,
    /// The number of windows.
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
    /// Out, if the call fails: the index of an entity or window.
    pub error_index: u32,
    /// Out, if the call fails: the index of the other one.
    pub error_other: u32,
    /// Out, if the call fails: zero.
    pub error_reserved: u32,
    /// The time by which windows with [`ACTIVATE`](crate::ACTIVATE) open before their offsets, in nanoseconds.
    pub lead_ns: u64,
    /// Out, with [`SWAP`](crate::SWAP): the epoch of this table, in nanoseconds; zero if it is already in place.
    pub swap_ns: u64,
}

/// The start of the table: `struct macrotick_start`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// In: the requested start of cycle 0; the kernel moves a past one forward by whole cycles. Out: the start of cycle
    /// 0. In nanoseconds.
    pub epoch_ns: u64,
}

/// The table, read back: `struct macrotick_get`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Get {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// Out: one of [`state`](crate::state).
    pub state: u32,
    /// Out: the clock.
    pub clockid: u32,
    /// In: room for this number of entities, or zero for the count only. Out: the count.
    pub nr_entities: u32,
    /// In: room for this number of windows, or zero for the count only. Out: the count.
    pub nr_windows: u32,
    /// Out: the length of the cycle, in nanoseconds.
    pub cycle_ns: u64,
    /// Out: the start of cycle 0, in nanoseconds; zero unless the table runs.
    pub epoch_ns: u64,
    /// The address to which the kernel writes each [`Entity`].
    pub entities: u64,
    /// The address to which the kernel writes each [`Window`].
    pub windows: u64,
    /// Out: the lead, in nanoseconds.
    pub lead_ns: u64,
    /// Out: the time by which `CLOCK_TAI` is ahead of `CLOCK_MONOTONIC` according to the table's grid, in nanoseconds.
    /// This field and the following ones are zero unless a table on `CLOCK_TAI` runs.
    pub offset_ns: i64,
    /// Out: the remaining correction for windows with [`SYNC`](crate::SYNC), in nanoseconds; they must become longer if
    /// it is positive.
    pub error_ns: i64,
    /// Out: the sum by which they became longer since the start, in nanoseconds.
    pub stretched_ns: u64,
    /// Out: the sum by which they became shorter since the start, in nanoseconds.
    pub shrunk_ns: u64,
    /// Out: the number of windows that became longer or shorter.
    pub corrections: u64,
}

/// The counters of an entity since the table was installed: `struct macrotick_entity_stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// In: the entity's index in the table.
    pub entity: u32,
    /// The entity's name.
    pub name: [u8; NAME_LEN],
    /// The CPU of its windows.
    pub cpu: u32,
    /// The number of threads that are bound to it.
    pub nr_threads: u32,
    /// Released jobs.
    pub activations: u64,
    /// Jobs that completed when their thread waited for the next one.
    pub completions: u64,
    /// Jobs incomplete at the end of a window with [`DEADLINE`](crate::DEADLINE).
    pub misses: u64,
    /// Activations that were lost, because an older one was pending.
    pub lost: u64,
    /// Windows skipped by a late interrupt.
    pub skipped: u64,
    /// Times a thread was preempted at a window's end.
    pub preemptions: u64,
    /// Processor time under [`SCHED_TT`](crate::SCHED_TT), in nanoseconds.
    pub runtime_ns: u64,
    /// The part of it in which the kernel held jobs until their nominal instant, in nanoseconds.
    pub held_ns: u64,
    /// Jobs for which the lead was too short.
    pub late: u64,
    /// The longest time from a nominal instant to its interrupt, in nanoseconds.
    pub late_max_ns: u64,
    /// Misses with a job that had not started.
    pub never_ran: u64,
    /// Misses since the last job that was in time.
    pub misses_in_row: u32,
    /// 1 after [`Entity::max_misses`], until a thread is bound.
    pub stopped: u32,
}

/// The eventfd for misses: `struct macrotick_notify`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Notify {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// The index of the entity in the table, or [`ALL_ENTITIES`](crate::ALL_ENTITIES).
    pub entity: u32,
    /// An eventfd, which replaces the previous one; -1: none.
    pub eventfd: i32,
}

/// A thread that becomes a member of an entity: `struct macrotick_bind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Bind {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// The pidfd of a process's first thread, or of any thread (`PIDFD_THREAD`); -1 is the caller.
    pub pidfd: i32,
    /// Must be zero.
    pub reserved: u32,
    /// The entity's name; see [`name`].
    pub name: [u8; NAME_LEN],
}

/// The end of a thread's membership: `struct macrotick_unbind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbind {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// The thread, as in [`Bind`].
    pub pidfd: i32,
    /// Must be zero.
    pub reserved: u32,
}

/// The job at the end of a wait: `struct macrotick_wait`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// The size of this structure, in bytes.
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

/// Returns the name in the kernel's format. A text that is too long loses its end and the terminating NUL, and the
/// kernel refuses it.
pub fn name(text: &str) -> [u8; NAME_LEN] {
    let mut bytes = [0; NAME_LEN];
    let length = text.len().min(NAME_LEN);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// A structure that starts with its own size, in bytes and 32 bits.
pub trait Sized32: Copy {
    /// Returns the structure with its size in the first field.
    fn sized(self) -> Self;
}

/// A structure that belongs to one call.
///
/// # Safety
/// The call reads and writes `size` bytes of the structure, and writes nowhere else. [`Get`] is therefore no
/// `Argument`.
pub unsafe trait Argument: Sized32 {
    /// The number of the call, one of [`call`].
    const CALL: u32;
}

/// The flight recorder to start: `struct macrotick_recorder`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorder {
    /// The size of this structure, in bytes.
    pub size: u32,
    /// Must be zero.
    pub flags: u32,
    /// The events of each ring: a power of two, up to [`MAX_EVENTS`](crate::MAX_EVENTS).
    pub nr_events: u32,
    /// The kernel writes the number of rings, one for each possible CPU.
    pub nr_rings: u32,
}

/// An event of a ring: `struct macrotick_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its number on its CPU; zero: no event, or the kernel is writing it.
    pub sequence: u32,
    /// One of [`event`](crate::event).
    pub kind: u16,
    /// Zero.
    pub reserved: u16,
    /// Its instant, in nanoseconds of `CLOCK_MONOTONIC`.
    pub ns: u64,
    /// The thread that the CPU was running.
    pub thread: u32,
    /// A thread, an interrupt, the kind of a softirq, or the lower half of a job's number.
    pub object: u32,
    /// The header has the meaning for each kind.
    pub data: u64,
    /// The name of a thread or an entity; of other kinds, bytes without meaning.
    pub name: [u8; NAME_LEN],
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
            // SAFETY: according to the header, only Install has addresses, and the kernel only reads from them.
            unsafe impl Argument for $name {
                const CALL: u32 = call::$call;
            }
        )+
    };
}

sized!(Install, Start, Get, Stats, Notify, Recorder, Bind, Unbind, Wait);
argument!(Install: INSTALL, Start: START, Stats: STATS, Notify: NOTIFY, Recorder: RECORD, Bind: BIND, Unbind: UNBIND,
    Wait: WAIT);

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
