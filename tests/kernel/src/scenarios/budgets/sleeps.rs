//! TimerShield and groups: sleeps in a group end without an interrupt while a more important one runs.

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

/// Groups with a budget for all that happens here, by their priorities.
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

/// One that is busy from one instant to another, after it has done something. It ends later, which takes long.
fn busy(group: &Group, from_ns: u64, to_ns: u64, first: impl FnOnce() -> Check) -> Check<Child> {
    run_in(group, 10, move || {
        sys::sleep_until(from_ns);
        let done = first();
        sys::spin_until(to_ns);
        sys::sleep(30 * unit_ns());
        i32::from(done.is_err())
    })
}

/// How many interrupts of the timer a busy thread of a group gets while ten sleeps in another one end.
fn interrupts(on: bool, busy: &Group, others: &Group) -> Check<u64> {
    set(on)?;
    let (u, board, t) = (unit_ns(), Board::new(64), soon(11));
    let counting = run_in(busy, 10, move || count_interrupts(t, board))?;
    let one = |i: u64| sleeper(others, t + 55 * u + 3 * u * i, board, 1 + i as usize);
    let sleepers: Vec<Child> = (0..10).map(one).collect::<Check<_>>()?;
    sys::sleep_until(t + 110 * u);
    succeed(sleepers.into_iter().chain([counting]))?;
    Ok(board.get(0))
}

/// Inside their group sleepers have the greater priority: it is the groups' that counts.
pub(super) fn masked() -> Check {
    let [high, low, equal] = groups([5, 4, 5])?;
    // A tick each millisecond, and a refill.
    let others = 50 * unit_ns() / 1_000_000 + 2;
    let before = stats()?;
    let (without, with) = (interrupts(false, &high, &low)?, interrupts(true, &high, &low)?);
    let beside_equal = interrupts(true, &high, &equal)?;
    println!("# {without} interrupts, with TimerShield {with}, beside a group of equal priority {beside_equal}");
    ensure!(without >= others + 5, "{without} interrupts without TimerShield");
    ensure!(with <= others, "{with} interrupts with TimerShield");
    ensure!(beside_equal >= others + 5, "{beside_equal} interrupts beside a group of equal priority");
    let after = stats()?;
    // On a slow kernel some of the ten end in another interrupt.
    let least = if is_slow() { 1 } else { 10 };
    ensure!(after.deferred >= before.deferred + least, "{before:?}, {after:?}");
    Ok(())
}

/// What somebody of a busy group changes while somebody of the other one sleeps: the groups, and the sleeper.
type Change = fn(&Group, &Group, i32) -> Check;

/// A sleep of a group with this priority ends when a busy one of priority 5, which makes a change meanwhile, has run for
/// so many units. Returns how many timers were moved.
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

/// The group that runs becomes less important than the sleeper's.
pub(super) fn lowers_itself() -> Check {
    let lower: Change = |busy, _, _| busy.set("cpu.ds.priority", "2");
    ensure_ends(3, lower, 30, "in a group that another one has put itself below a sleep ended").map(drop)
}

/// A sleep on one CPU, in a group whose priority is changed on another one, ends so many units after the busy one began.
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

/// Its sleep is as important as its group, whatever SCHED_FIFO is: also once it leaves SCHED_DS.
pub(super) fn leaves() -> Check {
    let leave: Change = |_, _, sleeper| {
        sys::set_sched(sleeper, sys::SchedAttr::fifo(99)).map_err(|error| format!("SCHED_FIFO: {error}"))
    };
    ensure_moves(9, leave, 80, "the sleep of one that left for SCHED_FIFO ended")
}

/// How late a group whose budget was used up goes on at a refill, at which so many sleeps of a less important one end.
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

/// The owner of a lock sleeps with it in the least important group; somebody of the most important one waits.
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
