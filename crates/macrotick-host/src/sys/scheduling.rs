//! Policies and affinities of threads.

use std::io;
use std::mem::size_of;

use macrotick_analysis::deadline::Task;
use macrotick_model::{CpuSet, Duration};
use serde::{Deserialize, Serialize};

use super::{check, Tid};

/// The scheduling policy of a thread, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// `SCHED_OTHER` with a nice value.
    Other(i8),
    /// `SCHED_IDLE`: a very small share beside `SCHED_OTHER`.
    Idle,
    /// `SCHED_FIFO` with a priority.
    Fifo(u8),
    /// `SCHED_DS` with a priority: served by the budget of its group.
    Budget(u8),
    /// `SCHED_DEADLINE`.
    Deadline {
        /// Budget per period.
        runtime: Duration,
        /// Relative deadline.
        deadline: Duration,
        /// Period.
        period: Duration,
    },
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Standing::Other(nice) => write!(f, "SCHED_OTHER with nice {nice}"),
            Standing::Idle => write!(f, "SCHED_IDLE"),
            Standing::Fifo(priority) => write!(f, "SCHED_FIFO with priority {priority}"),
            Standing::Budget(priority) => write!(f, "SCHED_DS with priority {priority}"),
            Standing::Deadline { runtime, deadline, period } => {
                write!(f, "SCHED_DEADLINE with {runtime} in {deadline} every {period}")
            }
        }
    }
}

/// `struct sched_attr` up to its first published size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedAttr {
    size: u32,
    /// The number of the policy in `sched_setattr(2)`.
    pub policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
const SCHED_BATCH: u32 = 3;
const SCHED_IDLE: u32 = 5;
const SCHED_DEADLINE: u32 = 6;
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;
const SCHED_FLAG_RECLAIM: u64 = 2;
const SCHED_FLAG_DL_OVERRUN: u64 = 4;

/// The options of a reservation of SCHED_DEADLINE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineOptions {
    /// The thread may also use bandwidth that other reservations leave unused (`SCHED_FLAG_RECLAIM`).
    pub reclaim: bool,
    /// The kernel sends the thread SIGXCPU when it has used up its runtime (`SCHED_FLAG_DL_OVERRUN`).
    pub overrun_signal: bool,
}

/// Returns the name of a policy.
pub fn policy_name(policy: u32) -> &'static str {
    match policy {
        SCHED_OTHER => "SCHED_OTHER",
        SCHED_FIFO => "SCHED_FIFO",
        SCHED_RR => "SCHED_RR",
        SCHED_BATCH => "SCHED_BATCH",
        SCHED_IDLE => "SCHED_IDLE",
        SCHED_DEADLINE => "SCHED_DEADLINE",
        macrotick_uapi::SCHED_DS => "SCHED_DS",
        macrotick_uapi::SCHED_TT => "SCHED_TT",
        _ => "another policy",
    }
}

impl SchedAttr {
    /// Makes the attributes of a standing. With `reset_on_fork`, children start under `SCHED_OTHER`.
    pub fn new(standing: Standing, reset_on_fork: bool) -> Self {
        let flags = if reset_on_fork { SCHED_FLAG_RESET_ON_FORK } else { 0 };
        let base = SchedAttr { size: size_of::<SchedAttr>() as u32, flags, ..Default::default() };
        match standing {
            Standing::Other(nice) => SchedAttr { policy: SCHED_OTHER, nice: nice.into(), ..base },
            Standing::Idle => SchedAttr { policy: SCHED_IDLE, ..base },
            Standing::Fifo(priority) => SchedAttr { policy: SCHED_FIFO, priority: priority.into(), ..base },
            Standing::Budget(priority) => {
                SchedAttr { policy: macrotick_uapi::SCHED_DS, priority: priority.into(), ..base }
            }
            Standing::Deadline { runtime, deadline, period } => SchedAttr {
                policy: SCHED_DEADLINE,
                // A deadline task may fork only if its children leave the class.
                flags: SCHED_FLAG_RESET_ON_FORK,
                runtime: runtime.as_nanos() as u64,
                deadline: deadline.as_nanos() as u64,
                period: period.as_nanos() as u64,
                ..base
            },
        }
    }
}

impl std::fmt::Display for SchedAttr {
    /// Writes the policy with its priority or nice value, as in `SCHED_FIFO 50`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parameter = self.real_time_priority().map_or(self.nice, i32::from);
        write!(f, "{} {parameter}", policy_name(self.policy))
    }
}

/// The flag of kernel threads with a formal reservation, which admission does not count (`SCHED_FLAG_SUGOV`).
const UNCOUNTED: u64 = 0x1000_0000;
/// The unit of bandwidths is a CPU divided by two to this power, as in the kernel (`BW_SHIFT`).
const BANDWIDTH_SHIFT: u32 = 20;

impl SchedAttr {
    /// Returns the priority under SCHED_FIFO, SCHED_RR or SCHED_DS.
    pub fn real_time_priority(&self) -> Option<u8> {
        u8::try_from(self.priority).ok().filter(|priority| *priority > 0)
    }

    /// Whether the policy is SCHED_FIFO or SCHED_RR with at least this priority. SCHED_FIFO threads with this priority
    /// do not preempt such a thread.
    pub fn is_beside(&self, priority: u8) -> bool {
        [SCHED_FIFO, SCHED_RR].contains(&self.policy) && self.priority >= priority.into()
    }

    /// Returns the priority under SCHED_FIFO.
    pub(crate) fn fifo_priority(&self) -> Option<u8> {
        self.real_time_priority().filter(|_| self.policy == SCHED_FIFO)
    }

    /// Whether the policy is one of Linux itself without a reservation. Threads under another policy have a supply.
    pub fn has_no_supply(&self) -> bool {
        [SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE].contains(&self.policy)
    }

    /// Whether its policy puts it before all SCHED_OTHER threads without a window or a budget, or behind all of them.
    pub fn is_no_ordinary_thread(&self) -> bool {
        [SCHED_FIFO, SCHED_RR, SCHED_DEADLINE, SCHED_IDLE].contains(&self.policy)
    }

    /// Adds the options of a reservation.
    pub fn with(self, options: DeadlineOptions) -> SchedAttr {
        let reclaim = if options.reclaim { SCHED_FLAG_RECLAIM } else { 0 };
        let overrun = if options.overrun_signal { SCHED_FLAG_DL_OVERRUN } else { 0 };
        SchedAttr { flags: self.flags | reclaim | overrun, ..self }
    }

    /// Returns the options of the reservation.
    pub fn options(&self) -> DeadlineOptions {
        DeadlineOptions {
            reclaim: self.flags & SCHED_FLAG_RECLAIM != 0,
            overrun_signal: self.flags & SCHED_FLAG_DL_OVERRUN != 0,
        }
    }

    /// Whether children start under `SCHED_OTHER`.
    pub fn resets_on_fork(&self) -> bool {
        self.flags & SCHED_FLAG_RESET_ON_FORK != 0
    }

    /// Returns the times of a reservation of SCHED_DEADLINE; the runtime takes the place of the WCET. `None`: the
    /// thread has another policy.
    pub fn promised(&self) -> Option<Task> {
        let length = |ns: u64| Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        let period = if self.period > 0 { self.period } else { self.deadline };
        let task = Task { wcet: length(self.runtime), period: length(period), deadline: length(self.deadline) };
        self.bandwidth().map(|_| task)
    }

    /// Returns the bandwidth that SCHED_DEADLINE has promised, rounded down like in the kernel (`to_ratio()`). `None`:
    /// the thread has another policy.
    pub fn bandwidth(&self) -> Option<u64> {
        let counts = self.policy == SCHED_DEADLINE && self.flags & UNCOUNTED == 0;
        let period = if self.period > 0 { self.period } else { self.deadline };
        counts.then(|| ((u128::from(self.runtime) << BANDWIDTH_SHIFT) / u128::from(period.max(1))) as u64)
    }
}

/// Sets the attributes of a thread; 0 is the caller.
pub fn set_sched_attr(tid: Tid, attr: &SchedAttr) -> io::Result<()> {
    // SAFETY: reads one sched_attr with the size in its field.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, attr as *const SchedAttr, 0) }).map(drop)
}

/// Returns the attributes of a thread; 0 is the caller.
pub fn sched_attr(tid: Tid) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: writes at most the size that is passed.
    check(unsafe {
        libc::syscall(libc::SYS_sched_getattr, tid, &mut attr as *mut SchedAttr, size_of::<SchedAttr>(), 0)
    })?;
    Ok(attr)
}

/// Puts a thread under a policy; 0 is the caller.
pub fn set_standing(tid: Tid, standing: Standing) -> io::Result<()> {
    set_sched_attr(tid, &SchedAttr::new(standing, false))
}

/// Ends the reservation of another thread, and gives it the attributes that it had before.
///
/// Linux 6.12 was seen to keep the bandwidth of a thread that sleeps after its 0-lag time. Therefore the reservation
/// shrinks first, to one that the kernel counts as no bandwidth.
pub fn end_reservation(tid: Tid, before: &SchedAttr) -> io::Result<()> {
    let (runtime, period) = SMALLEST;
    let now = sched_attr(tid)?;
    if now.promised().is_some() {
        let options = DeadlineOptions::default();
        let attr = SchedAttr::new(Standing::Deadline { runtime, deadline: period, period }, true).with(options);
        // The longest period may be set lower than that; the reservation then ends as it is.
        let _ = set_sched_attr(tid, &attr);
    }
    set_sched_attr(tid, before)
}

/// The runtime and the period of a reservation that rounds down to no bandwidth.
const SMALLEST: (Duration, Duration) = (Duration::from_nanos(1024), Duration::from_secs(2));

/// Pins a thread to one CPU, or to several.
pub fn pin(tid: Tid, cpus: &[u32]) -> io::Result<()> {
    // SAFETY: the set is plain bits; CPU_SET ignores CPUs beyond its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu as usize, &mut set));
        check(libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &set).into()).map(drop)
    }
}

/// Returns the CPUs that a thread may run on; 0 is the caller.
pub fn affinity(tid: Tid) -> io::Result<CpuSet> {
    // SAFETY: the set is plain bits; the kernel writes within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(tid, size_of::<libc::cpu_set_t>(), &mut set).into())?;
        Ok((0..libc::CPU_SETSIZE as u32).filter(|&cpu| libc::CPU_ISSET(cpu as usize, &set)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_of_real_time_priorities_are_beside_each_other() {
        let attr = |standing| SchedAttr::new(standing, false);
        let round_robin = SchedAttr { policy: SCHED_RR, ..attr(Standing::Fifo(99)) };
        assert!(attr(Standing::Fifo(99)).is_beside(99) && round_robin.is_beside(99));
        assert!(!attr(Standing::Fifo(98)).is_beside(99) && !attr(Standing::Budget(99)).is_beside(99));
    }

    #[test]
    fn a_bandwidth_is_in_parts_of_a_cpu() {
        let ms = Duration::from_millis;
        let deadline = Standing::Deadline { runtime: ms(1), deadline: ms(2), period: ms(3) };
        let attr = SchedAttr::new(deadline, false);
        assert_eq!(attr.bandwidth(), Some((1 << 20) / 3));
        // Without a period, the deadline is the period.
        assert_eq!(SchedAttr { period: 0, ..attr }.bandwidth(), Some(1 << 19));
        assert_eq!(SchedAttr { flags: UNCOUNTED, ..attr }.bandwidth(), None);
        assert_eq!(SchedAttr::new(Standing::Fifo(1), false).bandwidth(), None);
        assert_eq!(attr.promised(), Some(Task { wcet: ms(1), deadline: ms(2), period: ms(3) }));
        let (runtime, period) = SMALLEST;
        let least = SchedAttr::new(Standing::Deadline { runtime, deadline: period, period }, true);
        assert_eq!(least.bandwidth(), Some(0), "it ends without a trace");
    }

    #[test]
    fn options_are_flags_of_the_reservation() {
        let ms = Duration::from_millis;
        let attr = SchedAttr::new(Standing::Deadline { runtime: ms(1), deadline: ms(2), period: ms(3) }, false);
        for (reclaim, overrun_signal, flags) in [(false, false, 1), (true, false, 3), (false, true, 5), (true, true, 7)]
        {
            let options = DeadlineOptions { reclaim, overrun_signal };
            let with = attr.with(options);
            assert_eq!((with.flags, with.options(), with.resets_on_fork()), (flags, options, true));
        }
    }
}
