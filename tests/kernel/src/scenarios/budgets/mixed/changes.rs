//! Changes of the service of a thread that may have windows and a budget.

use macrotick_uapi::{SCHED_DS, SCHED_TT};

use super::{Stage, BOTH, BUDGET, WINDOWS};
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::scenarios::budgets::spans::{ensure_spans, later, next_refill, Spans};
use crate::scenarios::budgets::{ds, run_in, PERIOD, SECOND};
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq, process};

/// Checks that a thread without the right to the budget has only the windows, and a thread without windows only the
/// budget.
pub fn by_policy() -> Check {
    let stage = Stage::new(0)?;
    let [spans] = Spans::several();
    let child = stage.run(|| spans.hog())?;
    stage.start()?;
    let set = |attr: SchedAttr| sys::set_sched(child.pid, attr).explain("policy");
    for _ in 0..2 {
        set(SchedAttr::other())?;
        stage.ensure_served(spans, &WINDOWS)?;
        set(ds(20))?;
        stage.ensure_served(spans, &BOTH)?;
        set(SchedAttr::fifo(20))?;
        stage.ensure_served(spans, &WINDOWS)?;
        stage.group.set("cpu.ds.fifo", "1")?;
        stage.ensure_served(spans, &BOTH)?;
        stage.group.set("cpu.ds.fifo", "0")?;
        stage.ensure_served(spans, &WINDOWS)?;
    }
    child.kill(SECOND)
}

/// Checks a budget, a table and a pool that come and go.
pub fn comes_and_goes() -> Check {
    let stage = Stage::new(0)?;
    let [spans] = Spans::several();
    let child = stage.run(|| spans.hog())?;
    // The table is not started: the thread only has the budget.
    stage.ensure_served(spans, &BUDGET)?;
    stage.start()?;
    stage.ensure_served(spans, &BOTH)?;
    stage.give(0)?;
    stage.ensure_served(spans, &WINDOWS)?;
    stage.give(5)?;
    stage.ensure_served(spans, &BOTH)?;
    stage.device.stop().explain("stop")?;
    stage.ensure_served(spans, &BUDGET)?;
    stage.start()?;
    stage.ensure_served(spans, &BOTH)?;
    stage.group.serve("")?;
    stage.ensure_served(spans, &BUDGET)?;
    ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, SCHED_DS, "its policy without the pool");
    stage.serve(child)?;
    stage.ensure_served(spans, &BOTH)?;
    // The thread leaves its group and keeps its policy.
    Group::root().take(child.pid)?;
    let outside = || sys::sched(child.pid).is_ok_and(|attr| attr.policy == SCHED_DS);
    ensure!(sys::eventually(SECOND, outside), "its policy in the root's group");
    child.kill(SECOND)
}

/// Checks that a frozen thread gets the budget as soon as it has a right to it, and loses it with the right.
pub fn policy_at_once() -> Check {
    let stage = Stage::new(0)?;
    let u = stage.u;
    let [spans] = Spans::several();
    let child = stage.run(|| spans.hog())?;
    let set = |attr: SchedAttr| sys::set_sched(child.pid, attr).explain("policy");
    set(SchedAttr::other())?;
    stage.start()?;
    stage.ensure_served(spans, &WINDOWS)?;
    let refill = next_refill();
    sys::sleep_until(refill + 16 * u);
    set(ds(20))?;
    sys::sleep_until(refill + (PERIOD + 16) * u);
    set(SchedAttr::other())?;
    sys::sleep_until(refill + 4 * PERIOD * u);
    let seen = spans.since(refill + 15 * u);
    ensure_eq!(seen.len(), 4, "spans since it has another policy");
    for (span, (after, length)) in seen.into_iter().zip([(16, 5), (0, 5), (10, 4), (10, 4)]) {
        ensure_spans(&[span], after, length)?;
    }
    child.kill(SECOND)
}

/// Checks a change of the priority with the same policy, which is not the policy of the class.
pub fn priority_alone() -> Check {
    let stage = Stage::new(0)?;
    let child = stage.run(|| sys::hog())?;
    let set = |priority| sys::set_priority(child.pid, priority);
    set(30).explain("priority of SCHED_DS")?;
    ensure_eq!(set(0), Err(libc::EINVAL), "no priority under SCHED_DS");
    stage.group.serve("")?;
    let outside = || sys::sched(child.pid).is_ok_and(|attr| (attr.policy, attr.priority) == (SCHED_DS, 30));
    ensure!(sys::eventually(SECOND, outside), "priority outside of the pool: {:?}", sys::sched(child.pid));
    stage.serve(child)?;
    sys::set_sched(child.pid, SchedAttr::other()).explain("SCHED_OTHER")?;
    ensure_eq!(set(1), Err(libc::EINVAL), "a priority under SCHED_OTHER");
    set(0).explain("no priority under SCHED_OTHER")?;
    ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, SCHED_TT, "policy in the pool");
    child.kill(SECOND)
}

/// Checks a group that gets a budget while all its threads sleep: they get the windows that begin from then on.
pub fn budget_while_asleep() -> Check {
    let stage = Stage::new(0)?;
    let u = stage.u;
    let [spans] = Spans::several();
    let start = later();
    let child = run_in(&stage.group, 10, || {
        spans.touch();
        while sys::sched(0).map(|attr| attr.policy) != Ok(SCHED_TT) {}
        sys::sleep_until(start + 8 * u);
        spans.record(8 * u);
        sys::sleep_until(start + 100 * PERIOD * u);
        0
    })?;
    stage.give(0)?;
    stage.serve(child)?;
    process::hog(SchedAttr::fifo(5));
    stage.start()?;
    sys::sleep_until(start - 2 * PERIOD * u);
    stage.give(5)?;
    sys::sleep_until(start + PERIOD * u);
    let seen = spans.all();
    ensure_eq!(seen.len(), 1, "spans");
    ensure_spans(&seen, 8, 8)?;
    child.kill(SECOND)
}
