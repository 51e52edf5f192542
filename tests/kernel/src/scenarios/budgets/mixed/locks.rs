//! Windows, a budget, and locks.

use macrotick_uapi as abi;

use super::{Stage, BOTH};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::scenarios::budgets::locks::{ensure_held, ensure_lends_outside, holds, taken, waits, GOT, LOCK};
use crate::scenarios::budgets::spans::{later, Spans};
use crate::scenarios::budgets::{PERIOD, SECOND};
use crate::sys::{self, PiLock, SchedAttr};
use crate::{ensure, process};

/// Checks that an owner continues at the end of its window and of its budget, while an outside thread waits for its
/// lock.
/// budget.
pub fn lends_its_lock() -> Check {
    let stage = Stage::new(0)?;
    let u = stage.u;
    for waiter in [SchedAttr::other(), SchedAttr::fifo(30)] {
        ensure_lends_outside(waiter, |board, start| {
            let owner = stage.run(|| {
                sys::sleep_until(start);
                let code = holds(board, 12 * u);
                // The end of a process takes long, and it is as important as a waiter under SCHED_OTHER.
                sys::sleep_until(start + PERIOD * u);
                code
            })?;
            stage.start().map(|()| owner)
        })?;
        stage.device.stop().explain("stop")?;
        stage.group.serve("")?;
    }
    Ok(())
}

/// Checks that an owner without the right to the budget has only its windows and its waiter's budget. The waiter asks
/// at an instant of a server period, in units: outside of the window, or inside.
pub fn lends_no_more(at: u64) -> Check {
    let stage = Stage::new(abi::PRIORITY)?;
    let u = stage.u;
    let board = Board::new(8);
    let [spans] = Spans::several();
    let owner = process::fork_into(stage.group.path(), || match taken(board) {
        Some(_) => spans.hog(),
        None => 1,
    })?;
    ensure_held(board, owner)?;
    let start = later();
    let waiter = stage.run(|| {
        sys::sleep_until(start + at * u);
        waits(board)
    })?;
    process::hog(SchedAttr::fifo(5));
    stage.start()?;
    sys::sleep_until(start + PERIOD * u);
    ensure!(PiLock(board.futex(LOCK)).is_contended(), "nobody waits: {}", waiter.describe());
    stage.ensure_served(spans, &BOTH)?;
    owner.kill(SECOND)
}

/// Checks that a waiter lends no SCHED_DS priority to an owner outside when its group has no budget.
pub fn lends_no_priority_alone() -> Check {
    let stage = Stage::new(0)?;
    let board = Board::new(8);
    let owner = process::fork(|| match taken(board) {
        Some(_) => loop {
            sys::sleep(SECOND);
        },
        None => 1,
    });
    ensure_held(board, owner)?;
    let waiter = stage.run(|| {
        while stage.group.get("cpu.ds.budget").is_ok_and(|budget| budget.trim() != "0") {
            sys::sleep(stage.u);
        }
        waits(board)
    })?;
    stage.start()?;
    stage.give(0)?;
    let waits = || PiLock(board.futex(LOCK)).is_contended();
    ensure!(sys::eventually(SECOND, waits), "nobody waits: {}", waiter.describe());
    let priority = process::priority(owner.pid);
    ensure!(priority == Some(20), "the owner has priority {priority:?}");
    waiter.kill(SECOND)?;
    owner.kill(SECOND)
}

/// Checks that a thread that waits for a lock when its window begins has the window as soon as it has the lock.
pub fn waits_at_its_window() -> Check {
    let stage = Stage::new(0)?;
    let u = stage.u;
    let board = Board::new(8);
    let start = later();
    let owner = process::fork(|| {
        sys::prefault();
        let _ = sys::set_sched(0, SchedAttr::fifo(40));
        let Some(lock) = taken(board) else { return 1 };
        // The owner sleeps, because its work would be charged to the waiter.
        sys::sleep_until(start + 11 * u);
        i32::from(lock.unlock().is_err())
    });
    ensure_held(board, owner)?;
    let waiter = stage.run(|| {
        sys::prefault();
        sys::sleep_until(start + 8 * u);
        let code = waits(board);
        // The work ends before the window, also on slow kernels.
        sys::spin(u);
        code
    })?;
    stage.start()?;
    let served = || stage.device.stats(0).explain("stats").map(|stats| stats.runtime_ns);
    sys::sleep_until(start);
    let before = served()?;
    sys::sleep_until(start + 14 * u);
    let got = board.get(GOT).wrapping_sub(start);
    ensure!((10 * u..12 * u).contains(&got), "the lock came after {got} ns");
    let served = served()? - before;
    ensure!(served >= u, "{served} ns in its window: the others are charged to its budget");
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}
