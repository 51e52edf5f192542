//! Which group serves a thread.

use macrotick_uapi::SCHED_DS;

use super::spans::{ensure_spans, next_refill, Spans};
use super::{ds, first_group, group, run_in, stat, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process;
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

/// Checks that children have the policy and the budget of their parent. More children do not increase the budget.
pub(super) fn children() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let board = Board::new(1);
    run_in(&group, 10, || {
        for _ in 0..10 {
            process::fork(|| {
                let _ = sys::set_sched(0, ds(9));
                if sys::sched(0).is_ok_and(|attr| (attr.policy, attr.priority) == (SCHED_DS, 9)) {
                    board.add(0, 1);
                }
                sys::hog()
            });
        }
        sys::hog()
    })?;
    sys::sleep(20 * PERIOD * u);
    let before = stat(&group, "usage_usec")?;
    let began = sys::now_ns();
    sys::sleep(40 * PERIOD * u);
    let share = (stat(&group, "usage_usec")? - before) as f64 * 1000.0 / (sys::now_ns() - began) as f64;
    ensure!((0.195..0.21).contains(&share), "a share of {share} instead of 0.2");
    // With equal priorities one thread has the whole budget, first come first served, and the others never start to
    // run. But they exist.
    let there = std::fs::read_to_string(format!("{}/cgroup.procs", group.path())).unwrap_or_default().lines().count();
    ensure_eq!(there, 11, "processes in the group");
    let reset = run_in(&group, 20, || {
        let _ = sys::set_sched(0, SchedAttr { flags: sys::RESET_ON_FORK, ..ds(20) });
        let child = process::fork(|| i32::from(sys::sched(0).map(|attr| attr.policy) != Ok(libc::SCHED_OTHER as u32)));
        i32::from(child.succeed(SECOND).is_err())
    })?;
    reset.succeed(2 * SECOND)
}

/// Checks that a thread that moves keeps its policy, and is served by the group that it is in.
pub(super) fn moves() -> Check {
    let u = unit_ns();
    let one = first_group("one", 5, 1)?;
    let two = group("two", 8, 2)?;
    let [spans] = Spans::several();
    let child = run_in(&one, 10, || spans.hog())?;
    let settles = |length: u64| {
        let from = next_refill();
        sys::sleep_until(from + 5 * PERIOD * u);
        let seen = spans.since(from - u);
        ensure!(seen.len() >= 4, "{} spans", seen.len());
        ensure_spans(&seen, 0, length)
    };
    settles(5)?;
    two.take(child.pid)?;
    settles(8)?;
    // Without a budget, the thread is served like SCHED_OTHER.
    Group::root().take(child.pid)?;
    let hog = process::hog(SchedAttr::fifo(50));
    // Both threads have settled by then.
    sys::sleep(10 * PERIOD * u);
    let before = spans.count();
    sys::sleep(10 * PERIOD * u);
    ensure!(spans.count() <= before + 1, "it runs beside SCHED_FIFO without a budget");
    hog.kill(SECOND)?;
    ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, SCHED_DS, "its policy");
    one.take(child.pid)?;
    settles(5)
}

/// Checks that the nearest group with a budget serves a thread. A change of its budget affects the groups below it.
pub(super) fn nested() -> Check {
    let u = unit_ns();
    let top = first_group("top", 5, 1)?;
    top.set("cgroup.subtree_control", "+cpu")?;
    let inner = top.child("inner")?;
    let [spans] = Spans::several();
    let child = run_in(&inner, 10, || spans.hog())?;
    let settles = |length: u64| {
        let from = next_refill();
        sys::sleep_until(from + 5 * PERIOD * u);
        ensure!(spans.since(from - u).len() >= 4, "spans");
        ensure_spans(&spans.since(from - u), 0, length)
    };
    settles(5)?;
    inner.set("cpu.ds.budget", &(3 * u / 1000).to_string())?;
    settles(3)?;
    inner.set("cpu.ds.budget", "0")?;
    settles(5)?;
    child.kill(SECOND)
}

/// Checks a program that only knows SCHED_FIFO, in a group with `cpu.ds.fifo`: it and its children have the group's
/// budget.
pub(super) fn takes_fifo() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let [spans, of_child] = Spans::several();
    let child = process::fork(|| {
        sys::prefault();
        if group.take(0).is_err() || sys::set_sched(0, SchedAttr::fifo(50)).is_err() {
            return 1;
        }
        sys::sleep(10 * PERIOD * u);
        process::fork(|| of_child.hog());
        spans.hog()
    });
    let is_fifo = || sys::sched(child.pid).is_ok_and(|attr| attr.policy == libc::SCHED_FIFO as u32);
    ensure!(sys::eventually(SECOND, is_fifo), "no SCHED_FIFO: {}", child.describe());
    ensure_eq!(stat(&group, "usage_usec")?, 0, "what SCHED_FIFO is charged without the file");
    group.set("cpu.ds.fifo", "1")?;
    ensure_eq!(group.get("cpu.ds.fifo")?, "1\n", "the file, read");
    ensure!(sys::eventually(10 * SECOND, || spans.count() + of_child.count() > 10), "they do not run");
    let from = next_refill();
    sys::sleep_until(from + 5 * PERIOD * u);
    let either = |one: &Spans| one.since(from - u);
    let seen = [either(&spans), either(&of_child)].concat();
    ensure!(seen.len() >= 4, "{} spans", seen.len());
    ensure_spans(&seen, 0, 5)?;
    ensure!(is_fifo(), "its policy inside is another one");
    group.set("cpu.ds.fifo", "0")?;
    sys::sleep(5 * PERIOD * u);
    let usage = stat(&group, "usage_usec")?;
    sys::sleep(5 * PERIOD * u);
    ensure_eq!(stat(&group, "usage_usec")?, usage, "what the group is charged without the file");
    child.kill(SECOND)
}
