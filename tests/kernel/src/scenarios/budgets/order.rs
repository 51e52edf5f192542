//! The order of groups, of the threads in a group, and of other classes.

use macrotick_uapi::Device;

use super::spans::{ensure_spans, later, next_refill, Spans};
use super::{first_group, group, run_in, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process;
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

/// Checks that the more important group runs first, and both groups have their budgets.
pub(super) fn priorities() -> Check {
    let [high, low] = Spans::several();
    let second = first_group("low", 4, 10)?;
    let first = group("high", 6, 20)?;
    run_in(&second, 90, || low.hog())?;
    run_in(&first, 1, || high.hog())?;
    let from = next_refill();
    sys::sleep_until(from + 20 * PERIOD * unit_ns());
    let (a, b) = (high.since(from - unit_ns()), low.since(from - unit_ns()));
    ensure!(a.len() >= 19 && b.len() >= 19, "{} and {} spans", a.len(), b.len());
    ensure_spans(&a, 0, 6)?;
    ensure_spans(&b, 6, 4)?;
    // The priorities are the other way round from here.
    first.set("cpu.ds.priority", "5")?;
    let from = next_refill();
    sys::sleep_until(from + 10 * PERIOD * unit_ns());
    ensure_spans(&low.since(from - unit_ns()), 0, 4)?;
    ensure_spans(&high.since(from - unit_ns()), 4, 6)
}

pub(super) fn priorities_inside() -> Check {
    let u = unit_ns();
    let [high, low] = Spans::several();
    let group = first_group("a", 8, 1)?;
    let start = later();
    run_in(&group, 10, || low.hog())?;
    run_in(&group, 11, || {
        high.touch();
        sys::sleep_until(start + 2 * u);
        high.record(3 * u);
        sys::sleep(SECOND);
        0
    })?;
    sys::sleep_until(start + 2 * PERIOD * u);
    let seen = high.all();
    ensure_spans(&seen, 2, 3)?;
    let low = low.since(start - u);
    ensure!(low.len() >= 2, "{low:?}");
    ensure_spans(&low[..1], 0, 2)?;
    ensure_spans(&low[1..2], 5, 3)
}

/// Checks equal threads: the first runs until it waits, and sched_yield(2) lets the next one run first.
pub(super) fn fifo_inside() -> Check {
    let u = unit_ns();
    let board = Board::new(4);
    let group = first_group("a", 8, 1)?;
    let start = later();
    let yielder = run_in(&group, 10, || {
        board.set(2, 1);
        sys::sleep_until(start);
        sys::spin(2 * u);
        board.set(0, sys::now_ns());
        // SAFETY: takes nothing.
        unsafe { libc::sched_yield() };
        board.set(1, sys::now_ns());
        0
    })?;
    let other = run_in(&group, 10, || {
        board.set(3, 1);
        sys::sleep_until(start + u);
        sys::spin(u);
        0
    })?;
    ensure!(sys::eventually(SECOND, || board.get(2) + board.get(3) == 2), "they did not begin");
    sys::sleep_until(start + PERIOD * u);
    let (yielded, back) = (board.get(0), board.get(1));
    ensure!((start + 2 * u..start + 2 * u + u / 2).contains(&yielded), "yielded {} ns after", yielded - start);
    ensure!(back - yielded >= u, "back after {} ns", back - yielded);
    yielder.succeed(SECOND)?;
    other.succeed(SECOND)
}

/// Checks that a thread that was preempted inside a kernel lock continues before its equals.
pub(super) fn preempted_inside() -> Check {
    let u = unit_ns();
    let board = Board::new(2);
    sys::set_affinity(0, &[0]).explain("pin all of them")?;
    let group = first_group("a", 20, 1)?;
    let first = run_in(&group, 10, || {
        // SAFETY: takes no memory. No process reads the counter: a write does not wait.
        let file = unsafe { libc::eventfd(0, 0) };
        loop {
            // SAFETY: reads the eight bytes of a number.
            unsafe { libc::write(file, (&1u64 as *const u64).cast(), 8) };
            board.add(0, 1);
        }
    })?;
    let equal = run_in(&group, 10, || {
        board.set(1, sys::now_ns());
        sys::hog()
    })?;
    let begun = board.get(0);
    let preempts = run_in(&group, 11, || {
        (0..300).for_each(|i| sys::sleep(u / 2 + i * 37));
        0
    })?;
    preempts.succeed(10 * SECOND)?;
    ensure!(board.get(0) > begun + 1000, "{} writes", board.get(0) - begun);
    ensure_eq!(board.get(1), 0, "when an equal went ahead of it");
    first.kill(SECOND)?;
    equal.kill(SECOND)
}

/// Checks that a thread that leaves SCHED_DS for SCHED_FIFO waits for more important SCHED_FIFO threads.
pub(super) fn leaves_for_fifo() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let board = Board::new(2);
    let start = later();
    let leaver = run_in(&group, 1, || {
        sys::sleep_until(start);
        if sys::under_fifo_on(0, 10).is_err() {
            return 1;
        }
        board.set(0, sys::now_ns());
        sys::spin(10 * u);
        0
    })?;
    let hog = process::fork(|| {
        sys::prefault();
        if sys::under_fifo_on(0, 50).is_err() {
            return 1;
        }
        sys::sleep_until(start - u);
        sys::spin(3 * u);
        board.set(1, sys::now_ns());
        0
    });
    hog.succeed(5 * SECOND)?;
    leaver.succeed(SECOND)?;
    ensure!(board.get(1) <= board.get(0), "who is less important goes on for {} ns", board.get(1) - board.get(0));
    Ok(())
}

/// Checks that a group runs before real-time and deadline tasks, and they have the rest of the time.
pub(super) fn precedence() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    run_in(&group, 1, || spans.hog())?;
    process::hog(SchedAttr::fifo(80));
    sys::set_sched(process::fork(|| sys::hog()).pid, SchedAttr::deadline(20 * u, 50 * u)).explain("deadline")?;
    let from = next_refill();
    sys::sleep_until(from + 20 * PERIOD * u);
    let seen = spans.since(from - u);
    ensure!(seen.len() >= 19, "{} spans", seen.len());
    ensure_spans(&seen, 0, 5)
}

/// Checks that a window in the middle of a budget takes nothing of it.
pub(super) fn after_windows() -> Check {
    let u = unit_ns();
    let device = Device::open()?;
    Table::single(PERIOD * u, 0, 3 * u, 4 * u).install(&device)?;
    process::member_hog("t")?;
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    run_in(&group, 1, || spans.hog())?;
    device.start(next_refill()).explain("start")?;
    let from = next_refill() + PERIOD * u;
    sys::sleep_until(from + 10 * PERIOD * u);
    let seen = spans.since(from - u);
    ensure!(seen.len() >= 18, "{} spans", seen.len());
    for pair in seen.chunks_exact(2) {
        ensure_spans(&pair[..1], 0, 3)?;
        ensure_spans(&pair[1..], 7, 2)?;
    }
    Ok(())
}
