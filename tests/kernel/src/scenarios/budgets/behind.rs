//! Waiters behind the first waiter of a lock: a group without budget does not keep the lock from them.

use super::locks::{ensure_held, taken, waits, LOCK};
use super::spans::later;
use super::{ds, first_group, group, run_in, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::ensure;
use crate::group::Group;
use crate::process::{self, Child};
use crate::scenarios::storm::{memory, processes, repeat};
use crate::scenarios::{is_slow, unit_ns};
use crate::sys::{self, PiLock, SchedAttr};

/// The words of the board beside those of the lock.
const FREED: usize = 5;
const ASKED: usize = 6;
const LAST: usize = 7;
const IS_THERE: usize = 8;

/// Lets two threads of a group without budget own a lock and wait for it, in front of another thread. `of_last` sets
/// the policy or group of this last thread, and returns further processes to end.
fn is_kept(a: &Group, what: &str, of_last: impl FnOnce(Child) -> Check<Vec<Child>>) -> Check {
    let (u, board) = (unit_ns(), Board::new(9));
    let owner = run_in(a, 30, || {
        let Some(lock) = taken(board) else { return 1 };
        while board.get(FREED) == 0 {
            sys::relax();
        }
        i32::from(lock.unlock().is_err())
    })?;
    ensure_held(board, owner)?;
    let first = run_in(a, 50, || waits(board))?;
    let lock = PiLock(board.futex(LOCK));
    ensure!(sys::eventually(10 * SECOND, || lock.is_contended()), "nobody waits");
    // The hog takes all of the budget.
    let hog = run_in(a, 60, || sys::hog())?;
    sys::sleep(2 * PERIOD * u);
    let last = process::fork(|| {
        sys::prefault();
        board.set(IS_THERE, 1);
        while board.get(ASKED) == 0 {
            sys::sleep(u);
        }
        sys::sleep_until(board.get(ASKED));
        let taken = lock.lock().is_ok();
        board.set(LAST, sys::now_ns());
        i32::from(!taken || lock.unlock().is_err())
    });
    ensure!(sys::eventually(10 * SECOND, || board.get(IS_THERE) == 1), "the last one does not begin");
    let others = of_last(last)?;
    board.set(FREED, 1);
    let asked = sys::now_ns() + 3 * u;
    board.set(ASKED, asked);
    // There are three critical sections: the last thread's own, and those of the owner and the first waiter. If the
    // last thread is in a group, it may have to wait for a refill.
    let limit = 2 * PERIOD * u;
    let got = sys::eventually(20 * limit, || board.get(LAST) != 0);
    let took = board.get(LAST).saturating_sub(asked);
    ensure!(got, "no lock for {what} behind a group whose budget is used up");
    ensure!(took < limit, "{what} got the lock {took} ns after asking");
    last.succeed(SECOND)?;
    for other in others.iter().chain([&hog]) {
        other.kill(SECOND)?;
    }
    first.succeed(10 * SECOND)?;
    owner.succeed(10 * SECOND)
}

/// Checks that the policy or group of the last waiter serves the owner, and then the first waiter.
pub(super) fn lend() -> Check {
    let a = first_group("a", 4, 2)?;
    let more_important = group("b", 5, 3)?;
    let less_important = group("c", 5, 1)?;
    is_kept(&a, "SCHED_OTHER", |_| Ok(Vec::new()))?;
    is_kept(&a, "SCHED_FIFO", |last| {
        sys::set_sched(last.pid, SchedAttr::fifo(10)).explain("SCHED_FIFO")?;
        Ok(vec![process::hog(SchedAttr::fifo(5))])
    })?;
    for (name, other) in [("a group before it", &more_important), ("a group after it", &less_important)] {
        is_kept(&a, name, |last| {
            other.take(last.pid)?;
            sys::set_sched(last.pid, ds(10)).explain("SCHED_DS")?;
            Ok(vec![process::hog(SchedAttr::fifo(5))])
        })?;
    }
    Ok(())
}

/// Checks that processes of a group that contend for kernel locks do not stop other processes. The others need the same
/// locks, and have all of the remaining time.
pub(super) fn storm() -> Check {
    const WORKERS: usize = 6;
    const OTHERS: usize = 2;
    let u = unit_ns();
    let a = first_group("a", 8, 1)?;
    let board = Board::new(WORKERS + 2 * OTHERS);
    for i in 0..WORKERS {
        let work = if i < WORKERS / 2 { processes } else { memory };
        run_in(&a, 99, || repeat(work, board, i, u / 10))?;
    }
    let start = later();
    for i in 0..OTHERS {
        process::fork(|| {
            sys::sleep_until(start);
            loop {
                let began = sys::now_ns();
                let done = if i == 0 { processes(0) } else { memory(0) };
                if !done {
                    return 1;
                }
                let longest = WORKERS + 2 * i + 1;
                board.set(longest, board.get(longest).max(sys::now_ns() - began));
                board.add(WORKERS + 2 * i, 1);
                sys::sleep(u);
            }
        });
    }
    sys::sleep_until(start + 40 * PERIOD * u);
    for i in 0..OTHERS {
        let (rounds, longest) = (board.get(WORKERS + 2 * i), board.get(WORKERS + 2 * i + 1));
        // A round takes about two units of CPU time.
        ensure!(rounds > 5, "{rounds} rounds of {i} beside a group that hands locks from one to the next");
        ensure!(is_slow() || longest < 20 * PERIOD * u, "a round of {i} took {longest} ns");
    }
    Ok(())
}
