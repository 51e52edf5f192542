//! Many threads of a group get locks when the group's budget ends.

use super::spans::phase_ns;
use super::{group, run_in, set_period, stat, SECOND};
use crate::board::Board;
use crate::check::Check;
use crate::ensure;
use crate::scenarios::{is_slow, unit_ns};
use crate::sys::{self, PiLock};

/// Each waiter is a process, which takes long on a slow kernel.
const WAITERS: usize = 200;
const WAITERS_OF_SLOW: usize = 30;
/// The lengths are in units.
const PERIOD: u64 = 400;
const BUDGET: u64 = 200;
const ROUNDS: u64 = 4;

/// The words after the locks: how often each lock was taken, and how late the victim was.
const TAKEN: usize = WAITERS;
const LATE: usize = 2 * WAITERS;
/// The beginning of the first round, set when all threads are ready.
const BEGIN: usize = LATE + 1;
/// The instant at which the more important waiter got the last lock in the first round.
const GOT: usize = BEGIN + 1;

fn waiters() -> usize {
    if is_slow() {
        WAITERS_OF_SLOW
    } else {
        WAITERS
    }
}

/// Checks that the crowd delays more important threads only a little, even one that waits for a lock. The crowd uses
/// at most two budgets at once and one on average, and all its threads get their locks.
pub(super) fn are_offered_locks() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let attackers = group("a", BUDGET, 1)?;
    let other = group("b", 100, 2)?;
    let board = Board::new(GOT + 1);
    run_in(&attackers, 90, || owner(board, begun(board)))?;
    for i in 0..waiters() {
        run_in(&attackers, 10, || waiter(board, i, begun(board)))?;
    }
    let begin = (sys::now_ns() / (PERIOD * u) + 5) * PERIOD * u + phase_ns();
    board.set(BEGIN, begin);
    let victim = run_in(&other, 1, || {
        for round in 0..ROUNDS {
            for release in (0..200 * u).step_by(u as usize).map(|at| round_at(begin, round) + 150 * u + at) {
                sys::sleep_until(release);
                board.set(LATE, board.get(LATE).max(sys::now_ns() - release));
            }
        }
        0
    })?;
    let awaiting = run_in(&other, 2, || {
        sys::sleep_until(round_at(begin, 0) - PERIOD * u / 2);
        let lock = PiLock(board.futex(waiters() - 1));
        let taken = lock.lock();
        board.set(GOT, sys::now_ns());
        let code = i32::from(taken.is_err() || lock.unlock().is_err());
        // The end of a process takes long.
        sys::sleep_until(round_at(begin, ROUNDS));
        code
    })?;
    let mut most = 0;
    for round in 0..ROUNDS {
        sys::sleep_until(round_at(begin, round) - u);
        let before = stat(&attackers, "usage_usec")?;
        sys::sleep_until(round_at(begin, round) + PERIOD * u - u);
        most = most.max((stat(&attackers, "usage_usec")? - before) * 1000 / u);
    }
    sys::sleep_until(round_at(begin, ROUNDS));
    victim.succeed(10 * SECOND)?;
    awaiting.succeed(SECOND)?;
    let got = board.get(GOT) - round_at(begin, 0);
    ensure!(is_slow() || got < (BUDGET + 50) * u, "who is more important had the lock after {got} ns");
    let late = board.get(LATE);
    ensure!(late < if is_slow() { 3 * u } else { 7 * u / 10 }, "who is more important was {late} ns late");
    ensure!(most < 2 * BUDGET + 10, "{most} units used in a period of a budget of {BUDGET}");
    for i in 0..waiters() {
        let times = board.get(TAKEN + i);
        ensure!(times == ROUNDS, "lock {i} was taken {times} times in {ROUNDS} rounds");
    }
    Ok(())
}

fn round_at(begin: u64, round: u64) -> u64 {
    begin + 4 * round * PERIOD * unit_ns()
}

/// Waits until the beginning is set, and returns it.
fn begun(board: Board) -> u64 {
    while board.get(BEGIN) == 0 {
        sys::sleep(PERIOD * unit_ns());
    }
    board.get(BEGIN)
}

/// Releases all locks at the beginning of a round, and then exhausts the budget.
fn owner(board: Board, begin: u64) -> i32 {
    let all = || (0..waiters()).map(|i| PiLock(board.futex(i)));
    for round in 0..ROUNDS {
        let taken = all().all(|lock| lock.lock().is_ok());
        sys::sleep_until(round_at(begin, round));
        if !taken || !all().all(|lock| lock.is_contended() && lock.unlock().is_ok()) {
            return 1;
        }
        while sys::now_ns() < round_at(begin, round) + PERIOD * unit_ns() {}
    }
    0
}

fn waiter(board: Board, i: usize, begin: u64) -> i32 {
    let (u, lock) = (unit_ns(), PiLock(board.futex(i)));
    for round in 0..ROUNDS {
        sys::sleep_until(round_at(begin, round) - PERIOD * u);
        if lock.lock().is_err() {
            return 1;
        }
        board.add(TAKEN + i, 1);
        if lock.unlock().is_err() {
            return 2;
        }
    }
    // The end of this process would take time that others need.
    sys::sleep(60 * SECOND);
    0
}
