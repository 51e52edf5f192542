//! System calls, as safe functions.
//!
//! They have no undo of their own. They change only this process, a child process that ends with its purpose, or the
//! standing of a thread. For a thread, the caller reads the standing before with [`sched_attr`], and restores it.

mod attributes;
mod clock_events;
mod cpus;
mod detached;
mod memory;
mod namespace;
mod process;
mod scheduling;
mod socket;
mod time;

use std::io;

pub(crate) use attributes::{attribute, set_attribute};
pub(crate) use clock_events::may_sample_unprivileged;
pub use clock_events::open_clock;
pub use cpus::{cpu_list, cpu_mask, online_cpus, parse_cpu_list, parse_cpu_mask};
pub use detached::{fork_keeper, Forked};
pub use memory::{lock_memory, memory_file, seal_size};
pub use namespace::{in_network_namespace, is_in_first_user_namespace};
pub use process::{
    exited, has_ended_child, ignore_miss_signal, is_subreaper, kill, own_tid, pidfd_open, reap, set_subreaper,
    set_thread_name, signal, signal_on_parent_death, user,
};
pub use scheduling::{
    affinity, end_reservation, pin, policy_name, sched_attr, set_sched_attr, set_standing, DeadlineOptions, SchedAttr,
    Standing,
};
pub use socket::{peer, set_priority, Peer};
pub use time::{cpu_clock, futex_wake, now, sleep, sleep_until, time_of, timespec, unix_now};

/// The id of a thread or process in the kernel.
pub type Tid = i32;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
