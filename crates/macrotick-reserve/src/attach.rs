//! A running process in a reservation, and the return of its former state.
//!
//! A keeper restores the state: when the process has ended, or when this process ends for any reason. If the keeper is
//! killed, this process restores it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::exit;

use macrotick_host::cgroup::{below_root_of, turn, ProgramGroup};
use macrotick_host::sys::{self, fork_keeper, Forked, SchedAttr, Standing, Tid};
use macrotick_host::{proc, HostFailure};
use macrotick_model::CpuSet;

use crate::budget::Budget;
use crate::error::ReserveError;
use crate::facts::Facts;
use crate::former::{restore_group, AtEnd, Former, ROUNDS};
use crate::refusal;
use crate::start::{make, remove, serve, PRIORITY};
use crate::wait::{ends_within, wait_for_either};

/// How often a keeper looks for its processes, in milliseconds.
const LOOK: u16 = 100;

/// Reserves for one thread, as long as `during` takes. `during` gets input that ends with the keeper.
pub fn by_deadline<T>(
    thread: Tid,
    attr: &SchedAttr,
    pin: Option<&CpuSet>,
    facts: &Facts,
    at_end: AtEnd,
    during: impl FnOnce(&File) -> Result<T, ReserveError>,
) -> Result<T, ReserveError> {
    // Until the reservation is there, no other command may read the state of this thread. Only root can take the turn;
    // another user with CAP_SYS_NICE reserves without it.
    let turn = turn().ok();
    let before = Former::of_one(thread, facts.started)?;
    match fork_keeper().map_err(HostFailure::system("fork"))? {
        Forked::Keeper { caller, alive } => {
            // Its file is closed in this process, and the caller holds it.
            std::mem::forget(turn);
            sys::set_thread_name("macrotick-keep");
            wait_for_end(&before, facts.process, &caller);
            before.restore_deadline(attr, at_end, pin);
            end_in_order(alive);
        }
        Forked::Caller { alive, keeper } => {
            let reserved = reserve(&before, attr, pin, facts);
            drop(turn);
            let done = reserved.and_then(|()| during(&keeper));
            finish(done, alive, keeper, || {
                let is_there = before.is_there();
                before.restore_deadline(attr, at_end, pin);
                is_there
            })
        }
    }
}

/// Waits for the end of a thread or of the caller.
fn wait_for_end(before: &Former, process: Tid, caller: &File) {
    match sys::pidfd_open(process, before.thread) {
        // The descriptor can be that of a later thread with this id.
        Ok(end) if before.is_there() => wait_for_either(caller, &end),
        Ok(_) => {}
        // Before Linux 6.9 only the first thread of a process has a descriptor.
        Err(_) => while before.is_there() && !ends_within(caller, LOOK) {},
    }
}

fn reserve(before: &Former, attr: &SchedAttr, pin: Option<&CpuSet>, facts: &Facts) -> Result<(), ReserveError> {
    let thread = before.thread;
    if let Some(cpus) = pin {
        pin_to(before, cpus)?;
    }
    let affinity = pin.unwrap_or(&facts.affinity);
    refusal::reserve(thread, attr, affinity, facts)?;
    match before.is_there() {
        true => Ok(()),
        // A thread that has ended meanwhile has no use for it. If it is not reaped, the kernel would keep the bandwidth.
        false => Err(ReserveError::NoProcess(thread)),
    }
}

/// Pins a thread to all of these CPUs, or to none of them.
fn pin_to(before: &Former, cpus: &CpuSet) -> Result<(), ReserveError> {
    let thread = before.thread;
    sys::pin(thread, cpus.as_slice()).map_err(|source| match source.raw_os_error() {
        Some(libc::ESRCH) => ReserveError::NoProcess(thread),
        _ => ReserveError::Cpus { cpus: cpus.clone(), source },
    })?;
    // The kernel takes the CPUs that the cpuset has, and leaves out the others without a word.
    match sys::affinity(thread) {
        Ok(now) if now != *cpus => {
            before.restore_cpus();
            Err(ReserveError::BeyondCpuset { cpus: cpus.clone(), present: now })
        }
        Ok(_) => Ok(()),
        Err(_) => Err(ReserveError::NoProcess(thread)),
    }
}

/// Moves a process with all its threads into a group with a budget, as long as `during` takes.
pub fn in_group<T>(
    facts: &Facts,
    budget: &Budget,
    during: impl FnOnce(&File, &ProgramGroup) -> Result<T, ReserveError>,
) -> Result<T, ReserveError> {
    let process = facts.process;
    let turn = turn()?;
    let former = Former::of_all(process)?;
    if proc::started(facts.thread) != Some(facts.started) {
        return Err(ReserveError::NoProcess(facts.thread));
    }
    let home = home_of(process, &former)?;
    let group = make(&process.to_string(), budget)?;
    match fork_keeper().map_err(HostFailure::system("fork"))? {
        Forked::Keeper { caller, alive } => {
            // Its file is closed in this process, and the caller holds it.
            std::mem::forget(turn);
            sys::set_thread_name("macrotick-keep");
            while !ends_within(&caller, LOOK) {
                // It is empty until the process enters it.
                if group.is_empty() && !former.iter().any(Former::is_there) {
                    break;
                }
            }
            restore_group(&group, &home, &former);
            remove(group);
            end_in_order(alive);
        }
        Forked::Caller { alive, keeper } => {
            let entered = enter(&group, process).and_then(|()| serve_all(&group));
            drop(turn);
            let done = entered.and_then(|()| during(&keeper, &group));
            let mut group = Some(group);
            let done = finish(done, alive, keeper, || {
                let was_there = former.iter().any(Former::is_there);
                if let Some(group) = group.take() {
                    restore_group(&group, &home, &former);
                    remove(group);
                }
                was_there
            });
            // The keeper has removed it.
            std::mem::forget(group);
            done
        }
    }
}

/// Returns the group of a process. Its threads must all be there: only whole processes can return.
fn home_of(process: Tid, threads: &[Former]) -> Result<String, ReserveError> {
    let group_of = |thread: Tid| below_root_of(&thread.to_string()).map(Option::unwrap_or_default);
    let gone = |_| ReserveError::NoProcess(process);
    let home = group_of(process).map_err(gone)?;
    if home.split('/').any(|name| name == "..") {
        return Err(ReserveError::ForeignGroup { process, group: home });
    }
    for one in threads {
        match group_of(one.thread) {
            Ok(other) if other != home => return Err(ReserveError::SeveralGroups { process, one: home, other }),
            // It may have ended.
            _ => {}
        }
    }
    Ok(home)
}

fn enter(group: &ProgramGroup, process: Tid) -> Result<(), ReserveError> {
    group.enter(process).map_err(|failure| match failure.errno() {
        Some(libc::ESRCH) => ReserveError::NoProcess(process),
        _ => failure.into(),
    })
}

/// Makes the budget serve all threads of the group, including those that appear meanwhile. Threads under SCHED_FIFO
/// keep their priority, because the budget serves them, too.
fn serve_all(group: &ProgramGroup) -> Result<(), ReserveError> {
    for _ in 0..ROUNDS {
        let mut changed = false;
        for thread in group.threads() {
            let Ok(now) = sys::sched_attr(thread) else { continue };
            if now.has_no_supply() && now.real_time_priority().is_none() {
                match serve(thread, &SchedAttr::new(Standing::Budget(PRIORITY), now.resets_on_fork())) {
                    Err(_) if proc::has_ended(thread) => {}
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

/// Ends the keeper after it has restored the state. The caller learns it by a byte.
fn end_in_order(alive: OwnedFd) -> ! {
    let _ = File::from(alive).write_all(b".");
    exit(0);
}

/// Waits until the former state is back. If the keeper was killed, `restore` does its work, and returns whether there was
/// a thread to restore.
fn finish<T>(
    done: Result<T, ReserveError>,
    alive: OwnedFd,
    mut keeper: File,
    restore: impl FnOnce() -> bool,
) -> Result<T, ReserveError> {
    drop(alive);
    let mut last = Vec::new();
    let _ = keeper.read_to_end(&mut last);
    match last.is_empty() && restore() {
        true => done.and(Err(ReserveError::KeeperKilled)),
        false => done,
    }
}
