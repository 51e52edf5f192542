//! Locks between and within groups: who serves the owner.

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

/// The lock, taken.
pub(super) fn taken(board: Board) -> Option<PiLock> {
    let lock = PiLock(board.futex(LOCK));
    lock.lock().ok()?;
    board.set(HELD, sys::now_ns());
    Some(lock)
}

/// Somebody has it.
pub(super) fn ensure_held(board: Board, owner: Child) -> Check {
    ensure!(sys::eventually(10 * SECOND, || board.get(HELD) != 0), "the lock is not held: {}", owner.describe());
    Ok(())
}

/// Takes the lock, works with it in its hands, and gives it back.
pub(super) fn holds(board: Board, work_ns: u64) -> i32 {
    let Some(lock) = taken(board) else { return 1 };
    sys::spin(work_ns);
    board.set(FREED, sys::now_ns());
    i32::from(lock.unlock().is_err())
}

/// Waits for the lock, and gives it back.
pub(super) fn waits(board: Board) -> i32 {
    let lock = PiLock(board.futex(LOCK));
    if lock.lock().is_err() {
        return 1;
    }
    board.set(GOT, sys::now_ns());
    i32::from(lock.unlock().is_err())
}

/// Somebody of a group waits for the lock.
fn awaited_by(group: &Group, board: Board) -> Check<Child> {
    let waiter = run_in(group, 50, || waits(board))?;
    let is_awaited = || PiLock(board.futex(LOCK)).is_contended();
    ensure!(sys::eventually(10 * SECOND, is_awaited), "nobody waits: {}", waiter.describe());
    Ok(waiter)
}

/// Within a group the owner of a lock has its waiter's priority.
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
    // Else the hog would use all of the budget, of this period and of those to come.
    ensure!((start + 3 * u..start + 8 * u).contains(&got), "the lock came after {} ns", got.wrapping_sub(start));
    hog.kill(SECOND)?;
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// An owner whose own group has nothing left, and which somebody more important waits for.
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
    // Else it would take two more periods. The debug kernel's paths take their time.
    ensure!((start + 7 * u..start + 20 * u).contains(&got), "the lock came after {} ns", got.wrapping_sub(start));
    let charged = stat(&high, "usage_usec")? * 1000;
    ensure!(charged >= 4 * u, "{charged} ns are charged to who waits, at least {} wanted", 4 * u);
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// By waiting for each other threads get no time outside of their group's budget.
pub(super) fn lends_no_more() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let board = Board::new(8);
    let [spans] = Spans::several();
    // Under SCHED_OTHER, and for ever.
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

/// An owner, who takes a lock at the instant that it is told, is not frozen while somebody outside of groups waits for that.
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

/// Who has a lock that somebody outside of groups waits for is not frozen with it.
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

/// Who is offered a lock while its group has nothing left takes it, and gives it back before it waits for a refill.
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
        // Its end takes long, and is more important than who comes last.
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

/// Processes that contend for locks of the kernel hand these to each other when their group has nothing left: they have
/// no more than its budget by that, and delay nobody in a group that is more important.
pub(super) fn handed_on() -> Check {
    const WORKERS: usize = 6;
    let u = unit_ns();
    let group = first_group("a", 8, 1)?;
    let other = super::group("b", 5, 2)?;
    let board = Board::new(WORKERS + 1);
    for i in 0..WORKERS {
        let work = if i < WORKERS / 2 { processes } else { memory };
        // Or the first one of these equals would keep the others waiting.
        run_in(&group, 99, || repeat(work, board, i, u / 10))?;
    }
    let start = later();
    let victim = run_in(&other, 1, || {
        for round in 0..1000 {
            // Passes over the server period.
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
    // On the debug kernel KASAN takes some milliseconds now and then.
    ensure!(is_slow() || board.get(WORKERS) < u / 2, "who is more important was {} ns late", board.get(WORKERS));
    ensure!((0..WORKERS).all(|i| board.get(i) > 0), "somebody made no progress");
    Ok(())
}

/// An owner under SCHED_DEADLINE gets another policy while a thread waits for it whose group has nothing left.
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
        // Somewhere in a period, mostly without budget.
        sys::sleep_until(next_refill() + (3 + 4 * round) * u);
        sys::set_sched(owner.pid, SchedAttr::fifo(1)).explain("SCHED_FIFO for the owner")?;
        board.set(FREED, 1);
        owner.succeed(10 * SECOND)?;
        waiter.succeed(10 * SECOND)?;
    }
    hog.kill(SECOND)
}

/// An owner under SCHED_FIFO gets SCHED_OTHER while a thread as important as it was waits for it, whose group has nothing
/// left: it lends nothing then.
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
    // It has used up what it is lent.
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

/// Who was handed a lock that others go on waiting for goes on with their priority when its group has nothing left.
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
    // By itself the second one would need five periods.
    ensure!((10 * u..2 * PERIOD * u).contains(&took), "the third one has the lock after {took} ns");
    Ok(())
}
