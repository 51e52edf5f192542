//! A program that starts in its reservation. It takes the place of this process.

use std::ffi::OsString;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::process::exit;

use macrotick_host::cgroup::{turn, ProgramGroup};
use macrotick_host::lock::Turn;
use macrotick_host::sys::{self, fork_keeper, Forked, SchedAttr, Standing};
use macrotick_host::HostFailure;
use macrotick_model::CpuSet;

use crate::budget::{no_room, Budget};
use crate::error::ReserveError;
use crate::facts::Facts;
use crate::{program, refusal};

/// The priority under SCHED_DS of threads that ask for none. Threads that ask for SCHED_FIFO come first.
pub const PRIORITY: u8 = 1;

/// Executes a program under SCHED_DEADLINE. The reservation ends with its first thread, however that ends.
pub fn by_deadline(
    words: &[OsString],
    attr: &SchedAttr,
    pin: Option<&CpuSet>,
    facts: &Facts,
    made: impl FnOnce(),
) -> Result<(), ReserveError> {
    if let Some(cpus) = pin {
        sys::pin(0, cpus.as_slice()).map_err(|source| ReserveError::Cpus { cpus: cpus.clone(), source })?;
    }
    let affinity = pin.unwrap_or(&facts.affinity);
    refusal::reserve(0, attr, affinity, facts)?;
    made();
    Err(program::execute(words))
}

/// Executes a program in a group with a budget.
pub fn in_group(words: &[OsString], name: &str, budget: &Budget, made: impl FnOnce()) -> Result<(), ReserveError> {
    let kept = Kept::make(name, budget)?;
    kept.group.enter(0)?;
    serve(0, &SchedAttr::new(Standing::Budget(PRIORITY), false))?;
    made();
    Err(program::execute(words))
}

/// A group with a budget for a program that starts. A keeper, which is outside of the group, removes it when its last
/// process has ended.
pub struct Kept {
    /// The group. Only the keeper removes it.
    pub group: ManuallyDrop<ProgramGroup>,
    /// Keeps other programs from taking the group for one that is left, and from disabling its controllers, before it has
    /// a process.
    pub turn: Turn,
    /// The keeper waits for the first process until this is closed, at the latest by the end of this process.
    _alive: OwnedFd,
}

impl Kept {
    /// Makes the group.
    pub fn make(name: &str, budget: &Budget) -> Result<Kept, ReserveError> {
        let turn = turn()?;
        let group = make(name, budget)?;
        match fork_keeper().map_err(HostFailure::system("fork"))? {
            Forked::Keeper { mut caller, alive } => {
                // Its file is closed in this process, and the caller holds it.
                std::mem::forget(turn);
                sys::set_thread_name("macrotick-keep");
                let _ = caller.read_to_end(&mut Vec::new());
                group.wait();
                remove(group);
                drop(alive);
                exit(0);
            }
            Forked::Caller { alive, .. } => Ok(Kept { group: ManuallyDrop::new(group), turn, _alive: alive }),
        }
    }
}

/// Makes the group of a budget.
pub fn make(name: &str, budget: &Budget) -> Result<ProgramGroup, ReserveError> {
    let mut group = ProgramGroup::make(name)?;
    group.bind(&budget.cpus)?;
    give(&group, budget)?;
    Ok(group)
}

/// Gives a group its budget.
pub fn give(group: &ProgramGroup, budget: &Budget) -> Result<(), ReserveError> {
    let given = group.give(&budget.text(), budget.priority, &budget.declared);
    given.map_err(|failure| match failure.errno() {
        Some(libc::EBUSY) => no_room(budget),
        _ => failure.into(),
    })
}

/// Removes a group. Other programs may be about to use its controllers, so it waits for the turn.
pub fn remove(group: ProgramGroup) {
    let _turn = turn();
    drop(group);
}

/// Makes the budget of its group serve a thread; 0 is the caller.
pub fn serve(thread: sys::Tid, attr: &SchedAttr) -> Result<(), ReserveError> {
    sys::set_sched_attr(thread, attr).map_err(|source| {
        HostFailure::Policy { name: "the program".into(), standing: Standing::Budget(PRIORITY), source }.into()
    })
}
