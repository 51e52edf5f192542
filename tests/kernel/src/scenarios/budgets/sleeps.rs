//! TimerShield and groups: a sleep in a group ends without an interrupt while a more important group runs.

use super::spans::later;
use super::{first_group, group, run_in, set_period, unit_ns, PERIOD};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::ensure;
use crate::group::Group;
use crate::process::Child;
use crate::scenarios::is_slow;
use crate::scenarios::shield::{count_interrupts, ensure_at, set, soon, stats, succeed, LOCK};
use crate::sys::{self, PiLock};

/// Makes groups with these priorities. Their budgets suffice for the scenarios.
fn groups<const N: usize>(priorities: [u32; N]) -> Check<[Group; N]> {
    set_period(1000 * unit_ns())?;
    let made: Check<Vec<Group>> = priorities
        .iter()
        .enumerate()
        .map(|(i, &priority)| group(&format!("g{i}"), if i == 0 { 500 } else { 200 }, priority))
        .collect();
    Ok(made?.try_into().expect("as many groups as priorities"))
}

fn sleeper(group: &Group, at_ns: u64, board: Board, word: usize) -> Check<Child> {
    run_in(group, 80, move || {
        sys::sleep_until(at_ns);
        board.set(word, sys::now_ns());
        0
    })
}

/// Forks a thread that does something and is busy between two instants. It ends later, because its end takes long.
fn busy(group: &Group, from_ns: u64, to_ns: u64, first: impl FnOnce() -> Check) -> Check<Child> {
    run_in(group, 10, move || {
        sys::sleep_until(from_ns);
        let done = first();
        sys::spin_until(to_ns);
        sys::sleep(30 * unit_ns());
        i32::from(done.is_err())
    })
}

/// Counts the timer interrupts of a busy thread of a group while ten sleeps of another group end.
fn interrupts(on: bool, busy: &Group, others: &Group) -> Check<u64> {
    set(on)?;
    let (u, board, t) = (unit_ns(), Board::new(64), soon(11));
    let counting = run_in(busy, 10, move || count_interrupts(t, board))?;
    let one = |i: u64| sleeper(others, t + 55 * u + 3 * u * i, board, 1 + i as usize);
    let sleepers: Vec<Child> = (0..10).map(one).collect::<Check<_>>()?;
    ensure!(sys::now_ns() < t, "the sleepers were late by {} ns", sys::now_ns() - t);
    sys::sleep_until(t + 110 * u);
    succeed(sleepers.into_iter().chain([counting]))?;
    Ok(board.get(0))
}

/// Checks that the priorities of the groups count: within their group, the sleepers have the greater priority.
pub(super) fn masked() -> Check {
    let [high, low, equal] = groups([5, 4, 5])?;
    // The others are a tick each millisecond, and a refill.
    let others = 50 * unit_ns() / 1_000_000 + 2;
    let before = stats()?;
    let (without, with) = (interrupts(false, &high, &low)?, interrupts(true, &high, &low)?);
    let beside_equal = interrupts(true, &high, &equal)?;
    println!("# {without} interrupts, with TimerShield {with}, beside a group of equal priority {beside_equal}");
    ensure!(without >= others + 5, "{without} interrupts without TimerShield");
    ensure!(with <= others, "{with} interrupts with TimerShield");
    ensure!(beside_equal >= others + 5, "{beside_equal} interrupts beside a group of equal priority");
    let after = stats()?;
    // On a slow kernel, some of the ten sleeps end in another interrupt.
    let least = if is_slow() { 1 } else { 10 };
    ensure!(after.deferred >= before.deferred + least, "{before:?}, {after:?}");
    Ok(())
}

/// A change that a busy thread makes while a thread of another group sleeps. The arguments are both groups and the
/// sleeper.
type Change = fn(&Group, &Group, i32) -> Check;

/// Checks that a sleep in a group with this priority ends when a busy thread of priority 5 has run for this many units.
/// The busy thread makes a change meanwhile. Returns how many timers were moved.
fn ensure_ends(sleepers_priority: u32, change: Change, after: u64, what: &str) -> Check<u64> {
    let [busy_group, other] = groups([5, sleepers_priority])?;
    set(true)?;
    let (u, board, t) = (unit_ns(), Board::new(1), soon(2));
    let child = sleeper(&other, t + 30 * u, board, 0)?;
    let hog = busy(&busy_group, t, t + 80 * u, || change(&busy_group, &other, child.pid))?;
    let before = stats()?;
    sys::sleep_until(t + 90 * u);
    succeed([child, hog])?;
    ensure_at(board.get(0), t + after * u, what)?;
    Ok(stats()?.moved - before.moved)
}

fn ensure_moves(sleepers_priority: u32, change: Change, after: u64, what: &str) -> Check {
    ensure!(ensure_ends(sleepers_priority, change, after, what)? > 0, "no timer was moved");
    Ok(())
}

pub(super) fn raised() -> Check {
    let raise: Change = |_, other, _| other.set("cpu.ds.priority", "9");
    ensure_moves(2, raise, 30, "in a group that was raised a sleep ended")
}

pub(super) fn lowered() -> Check {
    let lower: Change = |_, other, _| other.set("cpu.ds.priority", "2");
    ensure_moves(9, lower, 80, "in a group that was lowered a sleep ended")
}

/// Checks a running group that becomes less important than the sleeper's group.
pub(super) fn lowers_itself() -> Check {
    let lower: Change = |busy, _, _| busy.set("cpu.ds.priority", "2");
    ensure_ends(3, lower, 30, "in a group that another one has put itself below a sleep ended").map(drop)
}

/// Checks a sleep in a group when another CPU changes the group's priority. The sleep ends this many units after the
/// busy thread started.
fn ensure_ends_by_another_cpu(sleepers_priority: u32, to: u32, after: u64) -> Check {
    let [busy_group, other] = groups([5, sleepers_priority])?;
    set(true)?;
    sys::set_affinity(0, &[0]).explain("affinity")?;
    let (u, board, t) = (unit_ns(), Board::new(1), soon(2));
    let child = sleeper(&other, t + 30 * u, board, 0)?;
    let hog = busy(&busy_group, t, t + 80 * u, || Ok(()))?;
    for one in [child, hog] {
        sys::set_affinity(one.pid, &[1]).explain("affinity")?;
    }
    sys::sleep_until(t + 10 * u);
    other.set("cpu.ds.priority", &to.to_string())?;
    sys::sleep_until(t + 90 * u);
    succeed([child, hog])?;
    let units = (board.get(0) - t) / u;
    // Several virtual CPUs take turns.
    ensure!((after..after + 20).contains(&units), "the sleep ended after {units} units, not {after}");
    Ok(())
}

pub(super) fn raised_by_another_cpu() -> Check {
    ensure_ends_by_another_cpu(2, 9, 30)
}

pub(super) fn lowered_by_another_cpu() -> Check {
    ensure_ends_by_another_cpu(9, 2, 80)
}

/// Checks that a sleep is as important as its group, whatever the sleeper's SCHED_FIFO priority is, even after it
/// leaves SCHED_DS.
pub(super) fn leaves() -> Check {
    let leave: Change = |_, _, sleeper| {
        sys::set_sched(sleeper, sys::SchedAttr::fifo(99)).map_err(|error| format!("SCHED_FIFO: {error}"))
    };
    ensure_moves(9, leave, 80, "the sleep of one that left for SCHED_FIFO ended")
}

/// Returns how late a group with an exhausted budget continues at a refill. This many sleeps of a less important group
/// end at the same instant.
fn late_at_a_refill(busy: &Group, others: &Group, sleeps: usize) -> Check<u64> {
    let (u, board, refill) = (unit_ns(), Board::new(64), later());
    let hog = run_in(busy, 10, move || {
        sys::sleep_until(refill - PERIOD * u + u);
        sys::spin_until(refill);
        board.set(0, sys::now_ns() - refill);
        0
    })?;
    let sleepers: Vec<Child> = (1..=sleeps).map(|word| sleeper(others, refill, board, word)).collect::<Check<_>>()?;
    sys::sleep_until(refill + 20 * PERIOD * u);
    succeed(sleepers.into_iter().chain([hog]))?;
    Ok(board.get(0))
}

pub(super) fn at_a_refill() -> Check {
    let (high, low) = (first_group("high", 5, 9)?, group("low", 5, 5)?);
    set(true)?;
    let [alone, among_many] = [0, 30].map(|sleeps| late_at_a_refill(&high, &low, sleeps));
    let (alone, among_many) = (alone?, among_many?);
    println!("# {alone} ns after the refill, where 30 sleeps end {among_many} ns");
    ensure!(among_many < alone + unit_ns() / 10, "{alone} ns after the refill, where 30 sleeps end {among_many} ns");
    Ok(())
}

/// Checks an owner in the least important group that sleeps with the lock, while a thread of the most important group
/// waits.
pub(super) fn boosted() -> Check {
    let [middle, low, high] = groups([5, 2, 9])?;
    set(true)?;
    let (u, board, t) = (unit_ns(), Board::new(64), soon(3));
    let lock = PiLock(board.futex(LOCK));
    let owner = run_in(&low, 10, move || {
        let locked = lock.lock();
        sys::sleep_until(t + 30 * u);
        i32::from(locked.is_err() || lock.unlock().is_err())
    })?;
    let waiter = run_in(&high, 10, move || {
        sys::sleep_until(t + 5 * u);
        let locked = lock.lock();
        board.set(0, sys::now_ns());
        i32::from(locked.is_err() || lock.unlock().is_err())
    })?;
    let hog = busy(&middle, t + 10 * u, t + 80 * u, || Ok(()))?;
    sys::sleep_until(t + 90 * u);
    succeed([owner, waiter, hog])?;
    ensure_at(board.get(0), t + 30 * u, "the waiter had the lock")
}
