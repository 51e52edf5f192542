//! A running process in a reservation, and the return of its former state.
//!
//! A keeper restores the state: when the process has ended, or when this process ends for any reason.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use macrotick_host::cgroup::{below_root_of, turn, ProgramGroup};
use macrotick_host::sys::{self, fork_keeper, Forked, SchedAttr, Standing, Tid};
use macrotick_host::{proc, HostFailure};
use macrotick_model::CpuSet;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::budget::Budget;
use crate::error::ReserveError;
use crate::facts::Facts;
use crate::refusal;
use crate::start::{make, remove, serve, PRIORITY};

/// How often the keeper of a group looks for its processes, in milliseconds.
const LOOK: u16 = 100;
/// How often new threads of a process are looked for, while it is moved.
const ROUNDS: usize = 10;

/// The times that a reservation has at its end, if it is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// Those that it began with. Another program has set other ones.
    TheSame,
    /// Any, because this program changes them.
    Any,
}

/// Reserves for one thread, as long as `during` takes. `during` gets input that ends with the keeper.
pub fn by_deadline<T>(
    thread: Tid,
    attr: &SchedAttr,
    pin: Option<&CpuSet>,
    facts: &Facts,
    at_end: AtEnd,
    during: impl FnOnce(&File) -> Result<T, ReserveError>,
) -> Result<T, ReserveError> {
    let gone = |_| ReserveError::NoProcess(thread);
    let before = Former { thread, attr: sys::sched_attr(thread).map_err(gone)?, cpus: facts.affinity.clone() };
    match fork_keeper().map_err(HostFailure::system("fork"))? {
        Forked::Keeper { caller, alive } => {
            sys::set_thread_name("macrotick-keep");
            // Before Linux 6.9 only a process has a descriptor.
            let process = || sys::pidfd_open(facts.process, facts.process);
            if let Ok(end) = sys::pidfd_open(facts.process, thread).or_else(|_| process()) {
                wait_for_either(&caller, &end);
                before.restore_deadline(attr, at_end, pin);
            }
            drop(alive);
            exit(0);
        }
        Forked::Caller { alive, keeper } => {
            let reserved = reserve(thread, attr, pin, facts);
            finish(reserved.and_then(|()| during(&keeper)), alive, keeper)
        }
    }
}

fn reserve(thread: Tid, attr: &SchedAttr, pin: Option<&CpuSet>, facts: &Facts) -> Result<(), ReserveError> {
    if let Some(cpus) = pin {
        sys::pin(thread, cpus.as_slice()).map_err(|source| ReserveError::Cpus { cpus: cpus.clone(), source })?;
    }
    let affinity = pin.unwrap_or(&facts.affinity);
    refusal::reserve(thread, attr, affinity, facts)
}

/// Moves a process with all its threads into a group with a budget, as long as `during` takes.
pub fn in_group<T>(
    facts: &Facts,
    budget: &Budget,
    during: impl FnOnce(&File, &ProgramGroup) -> Result<T, ReserveError>,
) -> Result<T, ReserveError> {
    let process = facts.process;
    let home = below_root_of(&process.to_string())?.unwrap_or_default();
    let former = Former::of_all(process);
    let turn = turn()?;
    let group = make(&process.to_string(), budget)?;
    match fork_keeper().map_err(HostFailure::system("fork"))? {
        Forked::Keeper { caller, alive } => {
            // Its file is closed in this process, and the caller holds it.
            std::mem::forget(turn);
            sys::set_thread_name("macrotick-keep");
            while !ends_within(&caller, LOOK) {
                // It is empty until the process enters it.
                if group.is_empty() && !proc::threads(process).any(|_| true) {
                    break;
                }
            }
            restore_group(&group, &home, &former);
            remove(group);
            drop(alive);
            exit(0);
        }
        Forked::Caller { alive, keeper } => {
            let entered = group.enter(process).map_err(ReserveError::from).and_then(|()| serve_all(&group, &former));
            drop(turn);
            let done = entered.and_then(|()| during(&keeper, &group));
            // The keeper removes it.
            std::mem::forget(group);
            finish(done, alive, keeper)
        }
    }
}

/// Makes the budget serve all threads of the group, including those that appear meanwhile. Threads under SCHED_FIFO
/// keep their priority, because the budget serves them, too.
fn serve_all(group: &ProgramGroup, former: &[Former]) -> Result<(), ReserveError> {
    let first = former.first().map(|first| first.attr);
    for _ in 0..ROUNDS {
        let mut changed = false;
        for thread in group.threads() {
            let Ok(now) = sys::sched_attr(thread) else { continue };
            if now.has_no_supply() && now.real_time_priority().is_none() {
                let resets = first.is_some_and(|first| first.resets_on_fork());
                match serve(thread, &SchedAttr::new(Standing::Budget(PRIORITY), resets)) {
                    // It has ended meanwhile.
                    Err(_) if sys::sched_attr(thread).is_err() => {}
                    served => served?,
                }
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

/// Returns all processes of the group to their former place, and the threads to their former policies. Threads that are
/// new since then get the policy of the first one.
fn restore_group(group: &ProgramGroup, home: &str, former: &[Former]) {
    let served = SchedAttr::new(Standing::Budget(PRIORITY), false);
    let threads = group.threads();
    for &thread in &threads {
        let before = former.iter().find(|one| one.thread == thread).or(former.first());
        let is_served = sys::sched_attr(thread).is_ok_and(|now| now.policy == served.policy);
        if let (Some(before), true) = (before, is_served) {
            let _ = sys::set_sched_attr(thread, &before.attr);
        }
    }
    group.leave(home);
    for one in former.iter().filter(|one| threads.contains(&one.thread)) {
        if sys::affinity(one.thread).is_ok_and(|now| now != one.cpus) {
            let _ = sys::pin(one.thread, one.cpus.as_slice());
        }
    }
}

/// The state of a thread before the reservation.
struct Former {
    thread: Tid,
    attr: SchedAttr,
    cpus: CpuSet,
}

impl Former {
    /// Returns the state of each thread of a process, the first thread first.
    fn of_all(process: Tid) -> Vec<Former> {
        let former =
            |thread| Some(Former { thread, attr: sys::sched_attr(thread).ok()?, cpus: sys::affinity(thread).ok()? });
        let mut all: Vec<Former> = proc::threads(process).filter_map(former).collect();
        all.sort_by_key(|one| one.thread != process);
        all
    }

    /// Restores it after a reservation of SCHED_DEADLINE. Settings of another program stay.
    fn restore_deadline(&self, attr: &SchedAttr, at_end: AtEnd, pin: Option<&CpuSet>) {
        let is_ours = sys::sched_attr(self.thread).is_ok_and(|now| match at_end {
            AtEnd::TheSame => now.promised() == attr.promised(),
            AtEnd::Any => now.promised().is_some(),
        });
        if is_ours {
            let _ = sys::end_reservation(self.thread, &self.attr);
        }
        let is_pinned = pin.is_some_and(|cpus| sys::affinity(self.thread).is_ok_and(|now| now == *cpus));
        if is_pinned {
            let _ = sys::pin(self.thread, self.cpus.as_slice());
        }
    }
}

/// Waits until the former state is back.
fn finish<T>(done: Result<T, ReserveError>, alive: OwnedFd, mut keeper: File) -> Result<T, ReserveError> {
    drop(alive);
    let _ = keeper.read_to_end(&mut Vec::new());
    done
}

/// Waits until the keeper or a signal ends the reservation.
pub fn wait_for_signal(keeper: &File) -> Result<(), ReserveError> {
    signal_or_end(keeper).map_err(|error| HostFailure::system("waiting for a signal")(error).into())
}

fn signal_or_end(keeper: &File) -> io::Result<()> {
    let mut signals = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| signals.add(signal));
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    wait_for_either(keeper, &signals);
    Ok(())
}

/// Waits until one of two descriptors has input or ends.
fn wait_for_either(one: &impl AsFd, other: &impl AsFd) {
    let mut both = [PollFd::new(one.as_fd(), PollFlags::POLLIN), PollFd::new(other.as_fd(), PollFlags::POLLIN)];
    while poll(&mut both, PollTimeout::NONE) == Err(nix::errno::Errno::EINTR) {}
}

/// Whether the input has ended, after a wait of at most so many milliseconds.
fn ends_within(input: &File, milliseconds: u16) -> bool {
    let mut one = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    poll(&mut one, milliseconds).is_ok_and(|ready| ready > 0)
}
