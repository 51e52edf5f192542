//! The state of threads before a reservation, and its return.

use macrotick_host::cgroup::ProgramGroup;
use macrotick_host::proc;
use macrotick_host::sys::{self, SchedAttr, Standing, Tid};
use macrotick_model::CpuSet;

use crate::error::ReserveError;
use crate::start::PRIORITY;

/// How often new threads of a group are looked for, while others leave it or enter it.
pub const ROUNDS: usize = 10;

/// The times that a reservation has at its end, if it is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// Those that it began with. Another program has set other ones.
    TheSame,
    /// Any, because this program changes them.
    Any,
}

/// The state of a thread before the reservation.
pub struct Former {
    /// The thread.
    pub thread: Tid,
    /// Its attributes.
    pub attr: SchedAttr,
    cpus: CpuSet,
    /// When it began. A later thread can have its id.
    started: u64,
}

impl Former {
    /// Reads the state of a thread. `None`: it has ended.
    fn of(thread: Tid) -> Option<Former> {
        let started = proc::started(thread)?;
        let (attr, cpus) = (sys::sched_attr(thread).ok()?, sys::affinity(thread).ok()?);
        let former = Former { thread, attr, cpus, started };
        former.is_there().then_some(former)
    }

    /// Reads the state of the thread that began then.
    ///
    /// # Errors
    ///
    /// The thread has ended, or it has got a supply since the choice of the mechanism.
    pub fn of_one(thread: Tid, started: u64) -> Result<Former, ReserveError> {
        let former = Former::of(thread).filter(|former| former.started == started);
        let former = former.ok_or(ReserveError::NoProcess(thread))?;
        without_supply(thread, [&former])?;
        Ok(former)
    }

    /// Reads the state of each thread of a process, the first thread first.
    ///
    /// # Errors
    ///
    /// All threads have ended, or one of them has got a supply since the choice of the mechanism.
    pub fn of_all(process: Tid) -> Result<Vec<Former>, ReserveError> {
        let mut all: Vec<Former> = proc::threads(process).filter_map(Former::of).collect();
        all.sort_by_key(|one| one.thread != process);
        without_supply(process, &all)?;
        match all.is_empty() {
            true => Err(ReserveError::NoProcess(process)),
            false => Ok(all),
        }
    }

    /// Whether the thread is there: neither ended, nor a later one with its id. The kernel accepts a reservation for a
    /// thread that has ended and is not reaped, and keeps its bandwidth meanwhile.
    pub fn is_there(&self) -> bool {
        proc::started(self.thread) == Some(self.started) && !proc::has_ended(self.thread)
    }

    /// Restores it after a reservation of SCHED_DEADLINE. Settings of another program stay.
    pub fn restore_deadline(&self, attr: &SchedAttr, at_end: AtEnd, pin: Option<&CpuSet>) {
        if proc::started(self.thread) != Some(self.started) {
            return;
        }
        let is_ours = sys::sched_attr(self.thread).is_ok_and(|now| match at_end {
            AtEnd::TheSame => now.promised() == attr.promised(),
            AtEnd::Any => now.promised().is_some(),
        });
        if is_ours {
            let _ = sys::end_reservation(self.thread, &self.attr);
        }
        let is_pinned = pin.is_some_and(|cpus| sys::affinity(self.thread).is_ok_and(|now| now == *cpus));
        if is_pinned {
            self.restore_cpus();
        }
    }

    /// Lets the thread run on its former CPUs.
    pub fn restore_cpus(&self) {
        if sys::affinity(self.thread).is_ok_and(|now| now != self.cpus) {
            let _ = sys::pin(self.thread, self.cpus.as_slice());
        }
    }
}

/// Two commands can reserve for the same process. The second one must not take the reservation of the first one for the
/// former state.
fn without_supply<'a>(id: Tid, all: impl IntoIterator<Item = &'a Former>) -> Result<(), ReserveError> {
    match all.into_iter().find(|one| !one.attr.has_no_supply()) {
        Some(one) => Err(ReserveError::Reserved { process: id, policy: sys::policy_name(one.attr.policy) }),
        None => Ok(()),
    }
}

/// Returns all processes of the group to their former place, and the threads to their former policies. Threads that are
/// new since then get the policy of the first one.
pub fn restore_group(group: &ProgramGroup, home: &str, former: &[Former]) {
    let threads = group.threads();
    // A thread that is born meanwhile has the policy of its parent.
    for _ in 0..ROUNDS {
        if !restore_policies(&group.threads(), former) {
            break;
        }
    }
    let left = group.leave(home);
    let late: Vec<Tid> = left.into_iter().flat_map(proc::threads).collect();
    restore_policies(&late, former);
    for one in former.iter().filter(|one| threads.contains(&one.thread) && one.is_there()) {
        one.restore_cpus();
    }
}

/// Gives the threads that the budget serves their former policies. Returns whether there was one.
fn restore_policies(threads: &[Tid], former: &[Former]) -> bool {
    let served = SchedAttr::new(Standing::Budget(PRIORITY), false).policy;
    let mut found = false;
    for &thread in threads {
        let before = former.iter().find(|one| one.thread == thread && one.is_there()).or(former.first());
        let is_served = sys::sched_attr(thread).is_ok_and(|now| now.policy == served) && !proc::has_ended(thread);
        if let (Some(before), true) = (before, is_served) {
            let _ = sys::set_sched_attr(thread, &before.attr);
            found = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_thread_and_a_later_one_with_its_id_are_not_there() {
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        let id = child.id() as Tid;
        let former = Former::of(id).unwrap();
        assert!(former.is_there() && Former::of_all(id).is_ok_and(|all| all.len() == 1));
        assert!(!Former { started: former.started + 1, ..Former::of(id).unwrap() }.is_there());
        assert!(matches!(Former::of_one(id, former.started + 1), Err(ReserveError::NoProcess(_))));
        child.kill().unwrap();
        while !proc::has_ended(id) {
            std::thread::yield_now();
        }
        assert!(sys::sched_attr(id).is_ok(), "it is not reaped");
        assert!(!former.is_there() && Former::of(id).is_none());
        assert!(matches!(Former::of_all(id), Err(ReserveError::NoProcess(_))));
        child.wait().unwrap();
        assert!(!former.is_there());
    }

    #[test]
    fn a_reservation_of_another_command_is_no_former_state() {
        let own = Former::of(sys::own_tid()).unwrap();
        assert!(without_supply(1, [&own]).is_ok());
        let ms = macrotick_model::Duration::from_millis;
        let attr = SchedAttr::new(Standing::Deadline { runtime: ms(1), deadline: ms(9), period: ms(9) }, true);
        let said = without_supply(1, [&own, &Former { attr, ..Former::of(own.thread).unwrap() }]).unwrap_err();
        assert_eq!(said.to_string(), "process 1 has a thread under SCHED_DEADLINE: it has a supply already");
    }
}
