//! Locks between and within groups: the service of the owner.

use super::spans::{ensure_spans, later, next_refill, Spans};
use super::{first_group, group, run_in, stat, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::ensure;
use crate::group::Group;
use crate::process::{self, Child};
use crate::scenarios::storm::{memory, processes, repeat};
use crate::scenarios::{is_slow, unit_ns};
use crate::sys::{self, PiLock, SchedAttr};

pub(super) const LOCK: usize = 0;
const HELD: usize = 1;
pub(super) const GOT: usize = 2;
const FREED: usize = 3;
const READY: usize = 4;

/// Takes the lock, and returns it.
pub(super) fn taken(board: Board) -> Option<PiLock> {
    let lock = PiLock(board.futex(LOCK));
    lock.lock().ok()?;
    board.set(HELD, sys::now_ns());
    Some(lock)
}

/// Checks that a process has taken the lock.
pub(super) fn ensure_held(board: Board, owner: Child) -> Check {
    ensure!(sys::eventually(10 * SECOND, || board.get(HELD) != 0), "the lock is not held: {}", owner.describe());
    Ok(())
}

/// Takes the lock, works while holding it, and releases it.
pub(super) fn holds(board: Board, work_ns: u64) -> i32 {
    let Some(lock) = taken(board) else { return 1 };
    sys::spin(work_ns);
    board.set(FREED, sys::now_ns());
    i32::from(lock.unlock().is_err())
}

/// Waits for the lock, and releases it.
pub(super) fn waits(board: Board) -> i32 {
    let lock = PiLock(board.futex(LOCK));
    if lock.lock().is_err() {
        return 1;
    }
    board.set(GOT, sys::now_ns());
    i32::from(lock.unlock().is_err())
}

/// Forks a thread of a group that waits for the lock.
fn awaited_by(group: &Group, board: Board) -> Check<Child> {
    let waiter = run_in(group, 50, || waits(board))?;
    let is_awaited = || PiLock(board.futex(LOCK)).is_contended();
    ensure!(sys::eventually(10 * SECOND, is_awaited), "nobody waits: {}", waiter.describe());
    Ok(waiter)
}

/// Checks that within a group the owner of a lock has its waiter's priority.
pub(super) fn inherits_inside() -> Check {
    let u = unit_ns();
    let group = first_group("a", 8, 1)?;
    let board = Board::new(8);
    let start = later();
    let owner = run_in(&group, 1, || {
        sys::sleep_until(start);
        holds(board, 3 * u)
    })?;
    let hog = run_in(&group, 5, || {
        sys::sleep_until(start + u);
        sys::hog()
    })?;
    let waiter = run_in(&group, 9, || {
        sys::sleep_until(start + 2 * u);
        waits(board)
    })?;
    sys::sleep_until(start + PERIOD * u);
    let got = board.get(GOT);
    // Otherwise the hog would use the whole budget of this period and of the following ones.
    ensure!((start + 3 * u..start + 8 * u).contains(&got), "the lock came after {} ns", got.wrapping_sub(start));
    hog.kill(SECOND)?;
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// Checks an owner in a group without budget, while a more important thread waits for the lock.
pub(super) fn lends_its_budget() -> Check {
    let u = unit_ns();
    let low = first_group("low", 2, 1)?;
    let high = group("high", 10, 9)?;
    let board = Board::new(8);
    let start = later();
    let owner = run_in(&low, 1, || {
        sys::sleep_until(start);
        holds(board, 6 * u)
    })?;
    let waiter = run_in(&high, 1, || {
        sys::sleep_until(start + 4 * u);
        waits(board)
    })?;
    sys::sleep_until(start + PERIOD * u - u);
    let got = board.get(GOT);
    // Otherwise the wait would take two more periods. The debug kernel's paths take more time.
    ensure!((start + 7 * u..start + 20 * u).contains(&got), "the lock came after {} ns", got.wrapping_sub(start));
    let charged = stat(&high, "usage_usec")? * 1000;
    ensure!(charged >= 4 * u, "{charged} ns are charged to who waits, at least {} wanted", 4 * u);
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// Checks that threads that wait for each other get no more time than their group's budget.
pub(super) fn lends_no_more() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let board = Board::new(8);
    let [spans] = Spans::several();
    // The owner is under SCHED_OTHER, and keeps the lock endlessly.
    let owner = process::fork(|| match taken(board) {
        Some(_) => spans.hog(),
        None => 1,
    });
    ensure_held(board, owner)?;
    run_in(&group, 50, || waits(board))?;
    let hog = process::hog(SchedAttr::fifo(20));
    let from = next_refill() + PERIOD * u;
    sys::sleep_until(from + 20 * PERIOD * u);
    let seen = spans.since(from - u);
    ensure!(seen.len() >= 19, "{} spans", seen.len());
    ensure_spans(&seen, 0, 5)?;
    owner.kill(SECOND)?;
    hog.kill(SECOND)
}

/// Checks that an owner continues to run while a thread outside of groups waits for its lock. `own` forks the owner,
/// which takes the lock at the given instant.
pub(super) fn ensure_lends_outside(waiter: SchedAttr, own: impl FnOnce(Board, u64) -> Check<Child>) -> Check {
    let u = unit_ns();
    let board = Board::new(8);
    let start = later();
    let owner = own(board, start)?;
    let waiter = process::fork(|| {
        sys::prefault();
        sys::sleep_until(start + u);
        match sys::set_sched(0, waiter) {
            Ok(()) => waits(board),
            Err(errno) => errno,
        }
    });
    sys::sleep_until(start + PERIOD * u - u);
    let got = board.get(GOT);
    ensure!(got != 0 && got < start + 20 * u, "the lock came after {} ns", got.wrapping_sub(start));
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// Checks that the kernel does not throttle an owner while a thread outside of groups waits for its lock.
pub(super) fn throttled_owner() -> Check {
    let u = unit_ns();
    let group = first_group("a", 2, 1)?;
    for waiter in [SchedAttr::other(), SchedAttr::fifo(30)] {
        ensure_lends_outside(waiter, |board, start| {
            run_in(&group, 1, || {
                sys::sleep_until(start);
                holds(board, 5 * u)
            })
        })?;
    }
    Ok(())
}

/// Checks that a thread of a throttled group takes a lock that is offered to it, and releases it before it waits for a
/// refill.
pub(super) fn offered_while_throttled() -> Check {
    let u = unit_ns();
    let group = first_group("a", 3, 1)?;
    let board = Board::new(8);
    let start = later();
    let owner = process::fork(|| {
        sys::prefault();
        let _ = sys::set_sched(0, SchedAttr::fifo(40));
        sys::sleep_until(start);
        let code = holds(board, 10 * u);
        // The end of a process takes long, and it is more important than the last waiter.
        sys::sleep_until(start + PERIOD * u);
        code
    });
    let waiter = run_in(&group, 10, || {
        sys::sleep_until(start + u / 2);
        waits(board)
    })?;
    let hog = run_in(&group, 5, || {
        sys::sleep_until(start + u);
        sys::hog()
    })?;
    let last = process::fork(|| {
        sys::prefault();
        let _ = sys::set_sched(0, SchedAttr::fifo(30));
        sys::sleep_until(start + 12 * u);
        let lock = PiLock(board.futex(LOCK));
        let locked = lock.lock();
        board.set(5, sys::now_ns());
        i32::from(locked.is_err() || lock.unlock().is_err())
    });
    sys::sleep_until(start + PERIOD * u - u);
    let last_got = board.get(5);
    let at = |word: usize| board.get(word).wrapping_sub(start) as i64;
    let (held, freed, got) = (at(HELD), at(FREED), at(GOT));
    ensure!(last_got != 0, "no lock before a refill: held at {held}, freed at {freed}, offered and taken at {got}");
    hog.kill(SECOND)?;
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)?;
    last.succeed(SECOND)
}

/// Checks processes that contend for kernel locks and hand them to each other while their group is throttled. They get
/// no more than their budget, and do not delay threads of a more important group.
pub(super) fn handed_on() -> Check {
    const WORKERS: usize = 6;
    let u = unit_ns();
    let group = first_group("a", 8, 1)?;
    let other = super::group("b", 5, 2)?;
    let board = Board::new(WORKERS + 1);
    for i in 0..WORKERS {
        let work = if i < WORKERS / 2 { processes } else { memory };
        // Without the short sleeps, the first of these equal threads would keep the others waiting.
        run_in(&group, 99, || repeat(work, board, i, u / 10))?;
    }
    let start = later();
    let victim = run_in(&other, 1, || {
        for round in 0..1000 {
            // The releases pass over all phases of the server period.
            let release = start + round * (9 * u + u / 7);
            sys::sleep_until(release);
            board.set(WORKERS, board.get(WORKERS).max(sys::now_ns() - release));
        }
        0
    })?;
    sys::sleep_until(start);
    let before = stat(&group, "usage_usec")?;
    victim.succeed(60 * SECOND)?;
    let used = (stat(&group, "usage_usec")? - before) * 1000;
    let share = used as f64 * PERIOD as f64 / (sys::now_ns() - start) as f64;
    ensure!((6.0..8.4).contains(&share), "{share} units by period with a budget of 8");
    // On the debug kernel, KASAN sometimes needs some milliseconds.
    ensure!(is_slow() || board.get(WORKERS) < u / 2, "who is more important was {} ns late", board.get(WORKERS));
    ensure!((0..WORKERS).all(|i| board.get(i) > 0), "somebody made no progress");
    Ok(())
}

/// Checks that an owner under SCHED_DEADLINE can change its policy while a thread of a throttled group waits for it.
pub(super) fn owner_leaves_deadline() -> Check {
    let u = unit_ns();
    let group = first_group("a", 1, 1)?;
    let hog = run_in(&group, 30, || sys::hog())?;
    for round in 0..5 {
        let board = Board::new(8);
        let owner = process::fork(|| {
            if sys::set_sched(0, SchedAttr::deadline(2 * u, 20 * u)).is_err() {
                return 1;
            }
            let Some(lock) = taken(board) else { return 1 };
            while board.get(FREED) == 0 {
                sys::sleep(u);
            }
            i32::from(lock.unlock().is_err())
        });
        ensure_held(board, owner)?;
        let waiter = awaited_by(&group, board)?;
        // The change comes at different places of a period, mostly while the group has no budget.
        sys::sleep_until(next_refill() + (3 + 4 * round) * u);
        sys::set_sched(owner.pid, SchedAttr::fifo(1)).explain("SCHED_FIFO for the owner")?;
        board.set(FREED, 1);
        owner.succeed(10 * SECOND)?;
        waiter.succeed(10 * SECOND)?;
    }
    hog.kill(SECOND)
}

/// Checks an owner that changes from SCHED_FIFO to SCHED_OTHER. Meanwhile a thread as important as the owner was waits
/// for it, in a throttled group. The waiter then lends no priority.
pub(super) fn owner_leaves_fifo() -> Check {
    let u = unit_ns();
    let group = first_group("a", 2, 1)?;
    let board = Board::new(8);
    let owner = process::fork(|| {
        if sys::set_sched(0, SchedAttr::fifo(50)).is_err() {
            return 1;
        }
        let Some(lock) = taken(board) else { return 1 };
        while board.get(READY) == 0 {
            sys::sleep(u);
        }
        while board.get(FREED) == 0 {
            sys::spin(u / 10);
        }
        i32::from(lock.unlock().is_err())
    });
    ensure_held(board, owner)?;
    let waiter = awaited_by(&group, board)?;
    board.set(READY, 1);
    // The owner has used up the budget that its waiter lends.
    sys::sleep_until(next_refill() + (PERIOD + PERIOD / 2) * u);
    sys::set_sched(owner.pid, SchedAttr::other()).explain("SCHED_OTHER for the owner")?;
    let less = process::fork(|| {
        if sys::set_sched(0, SchedAttr::fifo(40)).is_err() {
            return 1;
        }
        sys::spin(3 * PERIOD * u);
        0
    });
    less.succeed(SECOND).map_err(|reason| format!("who is less important than the owner was: {reason}"))?;
    board.set(FREED, 1);
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// Checks an owner that got a lock from its former owner while others wait for it. When its own group is throttled, it
/// continues with their priority.
pub(super) fn handed_on_owner() -> Check {
    let u = unit_ns();
    let group = first_group("a", 2, 1)?;
    let board = Board::new(8);
    let first = process::fork(|| {
        let Some(lock) = taken(board) else { return 1 };
        while board.get(READY) == 0 {
            sys::sleep(u);
        }
        sys::sleep_until(board.get(READY));
        i32::from(lock.unlock().is_err())
    });
    ensure_held(board, first)?;
    let second = run_in(&group, 50, || holds(board, 10 * u))?;
    let third = process::fork(|| {
        if sys::set_sched(0, SchedAttr::fifo(30)).is_err() {
            return 1;
        }
        waits(board)
    });
    sys::sleep(4 * PERIOD * u);
    let start = next_refill() + 2 * PERIOD * u;
    board.set(READY, start);
    [first, second, third].iter().try_for_each(|child| child.succeed(SECOND))?;
    let took = board.get(GOT).wrapping_sub(start);
    // With its own budget, the second thread would need five periods.
    ensure!((10 * u..2 * PERIOD * u).contains(&took), "the third one has the lock after {took} ns");
    Ok(())
}
