//! Threads of a group with a lead wake up early. The kernel holds them until their sleep is over.

use std::sync::atomic::{AtomicU32, Ordering};

use super::spans::next_refill;
use super::{first_group, run_in, PERIOD, SECOND};
use crate::board::Board;
use crate::check::Check;
use crate::group::Group;
use crate::process::Child;
use crate::scenarios::{is_slow, unit_ns};
use crate::sys;
use crate::{ensure, ensure_eq};

/// Returns a lead that is longer than a wakeup takes.
fn lead_us() -> u64 {
    if is_slow() {
        800
    } else {
        40
    }
}

/// Returns the lateness limit of a held thread: a round of the loop, and the return to user space.
fn bound_ns() -> u64 {
    if is_slow() {
        200_000
    } else {
        2000
    }
}

fn group_with_lead() -> Check<Group> {
    let group = first_group("a", 15, 1)?;
    group.set("cpu.ds.lead", &lead_us().to_string())?;
    ensure_eq!(group.get("cpu.ds.lead")?, format!("{}\n", lead_us()), "the lead, read");
    Ok(group)
}

const TIMES: usize = 40;

/// Measures how late a thread of the group continues after repeated sleeps. The sleeps end away from refills and ticks.
fn lateness(group: &Group, clock: libc::clockid_t, now: fn() -> u64) -> Check<Vec<u64>> {
    let (u, board) = (unit_ns(), Board::new(TIMES));
    let child = run_in(group, 10, || {
        board.words().iter().for_each(|word| word.store(0, Ordering::SeqCst));
        let offset = now().wrapping_sub(sys::now_ns());
        let from = next_refill() + 6 * u + u / 3;
        for (i, word) in board.words().iter().enumerate() {
            let at = (from + i as u64 * PERIOD * u).wrapping_add(offset);
            sys::sleep_until_on(clock, at);
            word.store(now().wrapping_sub(at), Ordering::SeqCst);
        }
        0
    })?;
    // `succeed()` polls with timers. Without PREEMPT_RT these expire in the interrupt, while the thread is held.
    sys::sleep((TIMES as u64 + 5) * PERIOD * u);
    child.succeed(10 * SECOND)?;
    let mut all: Vec<u64> = (0..TIMES).map(|i| board.get(i)).collect();
    all.sort_unstable();
    Ok(all)
}

pub(super) fn held() -> Check {
    let group = group_with_lead()?;
    let mut with = 0;
    for (clock, now) in [
        (libc::CLOCK_MONOTONIC, sys::now_ns as fn() -> u64),
        (libc::CLOCK_REALTIME, sys::real_ns),
        (libc::CLOCK_TAI, sys::tai_ns),
    ] {
        let all = lateness(&group, clock, now)?;
        with = all[TIMES / 2];
        ensure!(with <= bound_ns(), "clock {clock}: {with} ns late with a lead: {all:?}");
        // A thread that continues too early has a very large lateness.
        ensure!(all[TIMES - 1] <= lead_us() * 1000, "clock {clock}: {all:?}");
    }
    group.set("cpu.ds.lead", "0")?;
    let without = lateness(&group, libc::CLOCK_MONOTONIC, sys::now_ns)?;
    ensure!(without[0] > 2 * with, "{} ns late without a lead, {with} ns with one", without[0]);
    Ok(())
}

/// Sleeps for this long, starting now.
fn nap(ns: u64, rest: Option<&mut libc::timespec>) -> i32 {
    let length = sys::timespec(ns);
    // SAFETY: reads a time, and writes one if there is a place for it.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            0,
            &length,
            rest.map_or(std::ptr::null_mut(), |rest| rest as *mut libc::timespec),
        )
    }
}

/// Checks that every sleep, however short, lasts at least its length.
pub(super) fn never_early() -> Check {
    let group = group_with_lead()?;
    let child = run_in(&group, 10, || {
        let lead = lead_us() * 1000;
        for ns in [0, 1, 500, lead / 2, lead - 1, lead, lead + 1, 3 * lead] {
            for _ in 0..5 {
                let before = sys::now_ns();
                if nap(ns, None) != 0 || sys::now_ns() - before < ns {
                    return 1;
                }
            }
        }
        // An instant in the past, and the clock's zero.
        sys::sleep_until(sys::now_ns() - 1);
        sys::sleep_until(0);
        0
    })?;
    child.succeed(10 * SECOND)
}

/// The longest possible lead.
const LONGEST_US: u64 = 1000;

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn note(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

/// Checks that a signal interrupts a sleep and the call returns the remaining time. A thread that was stopped continues
/// its sleep.
pub(super) fn interrupted() -> Check {
    let (u, board, group) = (unit_ns(), Board::new(1), group_with_lead()?);
    group.set("cpu.ds.lead", &LONGEST_US.to_string())?;
    let child = run_in(&group, 10, || {
        // SAFETY: a handler that adds to a number.
        unsafe { libc::signal(libc::SIGUSR1, note as extern "C" fn(libc::c_int) as libc::sighandler_t) };
        let mut rest = sys::timespec(0);
        board.set(0, 1);
        let before = sys::now_ns();
        let result = nap(1000 * u, Some(&mut rest));
        let slept = sys::now_ns() - before;
        let left = rest.tv_sec as u64 * SECOND + rest.tv_nsec as u64;
        // The kernel read the remaining time before the thread read its clock.
        if result != libc::EINTR || left > 1000 * u || slept + left < 1000 * u {
            return 1;
        }
        let before = sys::now_ns();
        board.set(0, 2);
        let result = nap(1000 * u, None);
        if result != 0 || sys::now_ns() - before < 1000 * u {
            return 2;
        }
        // A stop does not end an endless sleep.
        board.set(0, 3);
        3 + i32::from(nap(u64::MAX, None) == libc::EINTR)
    })?;
    let asleep = |stage: u64| {
        ensure!(sys::eventually(SECOND, || board.get(0) == stage), "stage {stage}: {}", child.describe());
        sys::sleep(100 * u);
        Ok(())
    };
    asleep(1)?;
    child.signal(libc::SIGUSR1);
    asleep(2)?;
    stop_and_go_on(&child);
    asleep(3)?;
    stop_and_go_on(&child);
    sys::sleep(100 * u);
    ensure!(child.poll().is_none(), "a sleep without end has ended: {}", child.describe());
    child.kill(SECOND)
}

fn stop_and_go_on(child: &Child) {
    child.signal(libc::SIGSTOP);
    sys::sleep(10 * unit_ns());
    child.signal(libc::SIGCONT);
}

/// Checks that a thread does not continue early if it leaves the group, or the group loses its lead, while it sleeps.
pub(super) fn taken_away() -> Check {
    let (u, group) = (unit_ns(), group_with_lead()?);
    // This is longer than a wakeup takes under SCHED_OTHER.
    group.set("cpu.ds.lead", &LONGEST_US.to_string())?;
    let sleeper = || {
        run_in(&group, 10, || {
            let end = sys::now_ns() + 200 * u;
            sys::sleep_until(end);
            i32::from(sys::now_ns() < end)
        })
    };
    let moved = sleeper()?;
    sys::sleep(100 * u);
    Group::root().take(moved.pid)?;
    moved.succeed(SECOND)?;
    let without = sleeper()?;
    sys::sleep(100 * u);
    group.set("cpu.ds.lead", "0")?;
    without.succeed(SECOND)
}
