//! SCHED_DS: control groups that have a budget in each server period.

use std::fs;

use macrotick_uapi::{Device, SCHED_DS};

use super::{unit_ns, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, Child};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("group_has_its_budget", has_its_budget).punctual(),
    Scenario::new("group_refilled_on_the_grid", refilled_on_the_grid).punctual(),
    Scenario::new("group_keeps_its_budget", keeps_its_budget).punctual(),
    Scenario::new("group_priorities", priorities).punctual(),
    Scenario::new("group_priorities_inside", priorities_inside).punctual(),
    Scenario::new("group_fifo_inside", fifo_inside).punctual(),
    Scenario::new("group_precedence", precedence).punctual(),
    Scenario::new("group_after_windows", after_windows).punctual(),
    Scenario::new("group_children", children).punctual(),
    Scenario::new("group_killed_while_throttled", killed_while_throttled),
    Scenario::new("group_moves", moves).punctual(),
    Scenario::new("group_nested", nested).punctual(),
    Scenario::new("group_budget_changes", budget_changes).punctual(),
    Scenario::new("group_inherits_inside", inherits_inside).punctual(),
    Scenario::new("group_lends_its_budget", lends_its_budget).punctual(),
    Scenario::new("group_lends_no_more_than_its_budget", lends_no_more).punctual(),
    Scenario::new("group_throttled_owner", throttled_owner).punctual(),
    Scenario::new("group_offered_while_throttled", offered_while_throttled).punctual(),
    Scenario::new("group_refusals", refusals),
    Scenario::new("group_of_another_user", of_another_user),
    Scenario::new("group_on_two_cpus", on_two_cpus).on(2),
    Scenario::new("group_off_line", off_line).on(2),
];

const SECOND: u64 = 1_000_000_000;
/// The server period, in units.
const PERIOD: u64 = 25;

fn ds(priority: u32) -> SchedAttr {
    SchedAttr { priority, ..SchedAttr::policy(SCHED_DS) }
}

fn set_period(ns: u64) -> Check {
    let us = (ns / 1000).to_string();
    // A group that was removed is gone a little later.
    let set = || fs::write("/proc/sys/kernel/sched_ds_period_us", &us).is_ok();
    ensure!(sys::eventually(SECOND, set), "the server period cannot be set");
    Ok(())
}

fn write_fails(group: &Group, file: &str, value: &str) -> Option<i32> {
    fs::write(format!("{}/{file}", group.path()), value).err().and_then(|error| error.raw_os_error())
}

/// A group with so many units of budget.
fn group(name: &str, budget: u64, priority: u32) -> Check<Group> {
    let group = Group::new(name)?;
    group.set("cpu.ds.priority", &priority.to_string())?;
    group.set("cpu.ds.budget", &(budget * unit_ns() / 1000).to_string())?;
    Ok(group)
}

fn first_group(name: &str, budget: u64, priority: u32) -> Check<Group> {
    set_period(PERIOD * unit_ns())?;
    group(name, budget, priority)
}

/// A process in a group under SCHED_DS, which it gets from here. It has taken its page faults by then.
fn run_in(group: &Group, priority: u32, body: impl FnOnce() -> i32) -> Check<Child> {
    let ready = Board::new(1);
    let child = process::fork(|| {
        sys::prefault();
        while sys::sched(0).map(|attr| attr.policy) != Ok(SCHED_DS) {
            ready.set(0, 1);
        }
        body()
    });
    ensure!(sys::eventually(10 * SECOND, || ready.get(0) == 1), "the process does not begin: {}", child.describe());
    group.take(child.pid)?;
    sys::set_sched(child.pid, ds(priority)).explain("SCHED_DS")?;
    Ok(child)
}

fn budget_of(group: &Group) -> Check<String> {
    Ok(group.get("cpu.ds.budget")?.trim().to_owned())
}

/// A number of `cpu.ds.stat`.
fn stat(group: &Group, key: &str) -> Check<u64> {
    let text = group.get("cpu.ds.stat")?;
    let value = text.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("no {key} in {text:?}"))
}

/// When somebody ran: spans of the processor's time that are as good as uninterrupted.
#[derive(Clone, Copy)]
struct Spans {
    board: Board,
    at: usize,
}

const MOST: usize = 500;
const WORDS: usize = 2 + 2 * MOST;

impl Spans {
    fn several<const N: usize>() -> [Spans; N] {
        let board = Board::new(N * WORDS);
        std::array::from_fn(|i| Spans { board, at: i * WORDS })
    }

    /// Runs for ever, or for so much processor time.
    fn record(&self, limit_ns: u64) {
        let (mut count, mut last, begin) = (0, 0, sys::cpu_time_ns());
        while limit_ns == 0 || sys::cpu_time_ns() - begin < limit_ns {
            let now = sys::now_ns();
            if now - last > unit_ns() / 2 && count < MOST {
                count += 1;
                self.board.set(self.at + 2 * count - 1, now);
            }
            self.board.set(self.at + 2 * count, now);
            self.board.set(self.at, count as u64);
            last = now;
        }
    }

    /// Its pages are there from now on.
    fn touch(&self) {
        (0..WORDS).for_each(|word| self.board.set(self.at + word, 0));
        self.board.set(self.at, u64::from(sys::now_ns() == 0) + u64::from(sys::cpu_time_ns() == 0));
    }

    fn hog(&self) -> ! {
        if self.count() == 0 {
            self.touch();
        }
        self.record(0);
        unreachable!("it runs for ever")
    }

    fn count(&self) -> usize {
        self.board.get(self.at) as usize
    }

    /// Those that began since an instant, without the last one, which may go on.
    fn since(&self, from: u64) -> Vec<(u64, u64)> {
        let span = |i| (self.board.get(self.at + 2 * i + 1), self.board.get(self.at + 2 * i + 2));
        let all: Vec<_> = (0..self.count().saturating_sub(1)).map(span).collect();
        all.into_iter().filter(|&(begin, _)| begin >= from).collect()
    }
}

/// A refill by which those that were started have begun.
fn next_refill() -> u64 {
    let period = PERIOD * unit_ns();
    (sys::now_ns() / period + 4) * period
}

/// A refill by which whoever is going to wait for it does.
fn later() -> u64 {
    next_refill() + 60 * PERIOD * unit_ns()
}

/// Each span begins so many units after a refill, and lasts as long as it should, within three fifths of a unit.
fn ensure_spans(spans: &[(u64, u64)], after: u64, length: u64) -> Check {
    let (u, period) = (unit_ns(), PERIOD * unit_ns());
    let shown = || {
        let in_units = |&(begin, end): &(u64, u64)| {
            let phase = (begin % period) as f64 / u as f64;
            format!("{phase:.2}+{:.2}", (end - begin) as f64 / u as f64)
        };
        spans.iter().take(12).map(in_units).collect::<Vec<_>>().join(" ")
    };
    for &(begin, end) in spans {
        let (phase, long) = (begin % period, end - begin);
        let is_there = phase.abs_diff(after * u) <= 3 * u / 5;
        ensure!(is_there && long.abs_diff(length * u) <= 3 * u / 5, "{} instead of {after}+{length} units", shown());
    }
    Ok(())
}

/// A hog gets its budget and nothing else, whatever else there is to do; the rest is everybody's.
fn has_its_budget() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let child = run_in(&group, 10, || sys::hog())?;
    sys::sleep_until(next_refill());
    let (before, refills) = (stat(&group, "usage_usec")?, stat(&group, "refills")?);
    let began = sys::now_ns();
    sys::sleep(100 * PERIOD * u);
    let (used, long) = ((stat(&group, "usage_usec")? - before) * 1000, sys::now_ns() - began);
    let share = used as f64 / long as f64;
    ensure!((0.199..0.207).contains(&share), "a share of {share} instead of 0.2");
    let times = stat(&group, "refills")? - refills;
    ensure!((99..=102).contains(&times), "{times} refills in 100 periods");
    ensure!(stat(&group, "exhaustions")? >= 100, "{}", group.get("cpu.ds.stat")?);
    let idle = stat(&group, "throttled_usec")? as f64 * 1000.0;
    ensure!(idle >= 0.78 * long as f64, "throttled for {idle} ns of {long}");
    child.kill(SECOND)
}

fn refilled_on_the_grid() -> Check {
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    run_in(&group, 10, || spans.hog())?;
    let from = next_refill();
    sys::sleep_until(from + 50 * PERIOD * unit_ns());
    let seen = spans.since(from - unit_ns());
    ensure!(seen.len() >= 49, "{} spans in 50 periods", seen.len());
    ensure_spans(&seen, 0, 5)
}

/// What is not used remains until the next refill, and no longer.
fn keeps_its_budget() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    let start = later();
    run_in(&group, 10, || {
        spans.touch();
        sys::sleep_until(start + 17 * u);
        spans.hog()
    })?;
    sys::sleep_until(start + 4 * PERIOD * u);
    let seen = spans.since(0);
    ensure!(seen.len() >= 2, "{seen:?}");
    ensure_spans(&seen[..1], 17, 5)?;
    ensure_spans(&seen[1..], 0, 5)?;
    // Over a refill: what is left of one period and all of the next.
    let [spans] = Spans::several();
    let start = later();
    let late = run_in(&group, 20, || {
        sys::sleep_until(start - 2 * u);
        spans.hog()
    })?;
    let hog = sys::now_ns();
    ensure!(hog < start, "too late");
    sys::sleep_until(start + 2 * PERIOD * u);
    late.kill(SECOND)
}

/// The more important group goes first, and both have their budgets.
fn priorities() -> Check {
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
    // The other way round from now on.
    first.set("cpu.ds.priority", "5")?;
    let from = next_refill();
    sys::sleep_until(from + 10 * PERIOD * unit_ns());
    ensure_spans(&low.since(from - unit_ns()), 0, 4)?;
    ensure_spans(&high.since(from - unit_ns()), 4, 6)
}

fn priorities_inside() -> Check {
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
    let seen = (0..high.count()).map(|i| (high.board.get(high.at + 2 * i + 1), high.board.get(high.at + 2 * i + 2)));
    ensure_spans(&seen.collect::<Vec<_>>(), 2, 3)?;
    let low = low.since(start - u);
    ensure!(low.len() >= 2, "{low:?}");
    ensure_spans(&low[..1], 0, 2)?;
    ensure_spans(&low[1..2], 5, 3)
}

/// Of equals the first runs until it waits; sched_yield(2) lets the next one go first.
fn fifo_inside() -> Check {
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

/// Before real-time and deadline tasks; they have what it leaves.
fn precedence() -> Check {
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

/// A window in the middle of it takes nothing of a budget.
fn after_windows() -> Check {
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

/// Children have its policy and its budget, which does not grow with them.
fn children() -> Check {
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
    // One thread has the budget for itself, first come first served: the others never begin. They are there, though.
    let there = fs::read_to_string(format!("{}/cgroup.procs", group.path())).unwrap_or_default().lines().count();
    ensure_eq!(there, 11, "processes in the group");
    let reset = run_in(&group, 20, || {
        let _ = sys::set_sched(0, SchedAttr { flags: sys::RESET_ON_FORK, ..ds(20) });
        let child = process::fork(|| i32::from(sys::sched(0).map(|attr| attr.policy) != Ok(libc::SCHED_OTHER as u32)));
        i32::from(child.succeed(SECOND).is_err())
    })?;
    reset.succeed(2 * SECOND)
}

fn killed_while_throttled() -> Check {
    let group = first_group("a", 1, 1)?;
    for _ in 0..20 {
        let child = run_in(&group, 10, || sys::hog())?;
        sys::sleep(2 * PERIOD * unit_ns());
        child.kill(SECOND)?;
    }
    Ok(())
}

/// It takes its policy along, and has what the group has where it is.
fn moves() -> Check {
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
    // Without a budget it is like SCHED_OTHER.
    Group::root().take(child.pid)?;
    let hog = process::hog(SchedAttr::fifo(50));
    let before = spans.count();
    sys::sleep(10 * PERIOD * u);
    ensure!(spans.count() <= before + 1, "it runs beside SCHED_FIFO without a budget");
    hog.kill(SECOND)?;
    ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, SCHED_DS, "its policy");
    one.take(child.pid)?;
    settles(5)
}

/// The nearest group with a budget serves; a change of it reaches those below.
fn nested() -> Check {
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

fn budget_changes() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let [spans] = Spans::several();
    run_in(&group, 10, || spans.hog())?;
    for budget in [5, 9, 2, 12, 1] {
        group.set("cpu.ds.budget", &(budget * u / 1000).to_string())?;
        ensure_eq!(budget_of(&group)?, (budget * u / 1000).to_string(), "the budget, read");
        let from = next_refill();
        sys::sleep_until(from + 5 * PERIOD * u);
        let seen = spans.since(from - u);
        ensure!(seen.len() >= 4, "{} spans", seen.len());
        ensure_spans(&seen, 0, budget)?;
    }
    Ok(())
}

const LOCK: usize = 0;
const HELD: usize = 1;
const GOT: usize = 2;
const FREED: usize = 3;

/// Takes the lock, works with it in its hands, and gives it back.
fn holds(board: Board, work_ns: u64) -> i32 {
    let lock = PiLock(board.futex(LOCK));
    if lock.lock().is_err() {
        return 1;
    }
    board.set(HELD, sys::now_ns());
    sys::spin(work_ns);
    board.set(FREED, sys::now_ns());
    i32::from(lock.unlock().is_err())
}

fn waits(board: Board) -> i32 {
    let lock = PiLock(board.futex(LOCK));
    if lock.lock().is_err() {
        return 1;
    }
    board.set(GOT, sys::now_ns());
    i32::from(lock.unlock().is_err())
}

/// Within a group the owner of a lock has its waiter's priority.
fn inherits_inside() -> Check {
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
    ensure!((start + 3 * u..start + 5 * u).contains(&got), "the lock came after {} ns", got.wrapping_sub(start));
    hog.kill(SECOND)?;
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// An owner whose own group has nothing left, and which somebody more important waits for.
fn lends_its_budget() -> Check {
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
    ensure!((start + 7 * u..start + 9 * u).contains(&got), "the lock came after {} ns", got.wrapping_sub(start));
    let charged = stat(&high, "usage_usec")? * 1000;
    ensure!(charged >= 4 * u, "{charged} ns are charged to who waits, at least {} wanted", 4 * u);
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}

/// By waiting for each other threads get no time outside of their group's budget.
fn lends_no_more() -> Check {
    let u = unit_ns();
    let group = first_group("a", 5, 1)?;
    let board = Board::new(8);
    let [spans] = Spans::several();
    // Under SCHED_OTHER, and for ever.
    let owner = process::fork(|| {
        let lock = PiLock(board.futex(LOCK));
        if lock.lock().is_err() {
            return 1;
        }
        board.set(HELD, 1);
        spans.hog()
    });
    ensure!(sys::eventually(10 * SECOND, || board.get(HELD) != 0), "the lock is not held");
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

/// Who has a lock that somebody outside of groups waits for is not frozen with it.
fn throttled_owner() -> Check {
    let u = unit_ns();
    let group = first_group("a", 2, 1)?;
    for waiter in [SchedAttr::other(), SchedAttr::fifo(30)] {
        let board = Board::new(8);
        let start = later();
        let owner = run_in(&group, 1, || {
            sys::sleep_until(start);
            holds(board, 5 * u)
        })?;
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
        ensure!(got != 0 && got < start + 9 * u, "the lock came after {} ns", got.wrapping_sub(start));
        owner.succeed(SECOND)?;
        waiter.succeed(SECOND)?;
    }
    Ok(())
}

/// Who is offered a lock while its group has nothing left takes it, and gives it back before it waits for a refill.
fn offered_while_throttled() -> Check {
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

fn refusals() -> Check {
    let u = unit_ns();
    ensure_eq!(sys::set_sched(0, ds(10)), Err(libc::ENOTCONN), "SCHED_DS without a budget");
    ensure_eq!(sys::set_sched(0, ds(0)), Err(libc::EINVAL), "priority 0");
    ensure_eq!(sys::set_sched(0, ds(100)), Err(libc::EINVAL), "priority 100");
    // SAFETY: take a number.
    let limits =
        unsafe { (libc::sched_get_priority_min(SCHED_DS as i32), libc::sched_get_priority_max(SCHED_DS as i32)) };
    ensure_eq!(limits, (1, 99), "limits of priorities");
    let group = first_group("a", 5, 1)?;
    for (text, errno) in [
        ("x", libc::EINVAL),
        (" ", libc::EINVAL),
        ("-5", libc::EINVAL),
        ("1000 0=x", libc::EINVAL),
        ("64=1000", libc::EINVAL),
        ("9", libc::ERANGE),
        ("1000001", libc::ERANGE),
    ] {
        ensure_eq!(write_fails(&group, "cpu.ds.budget", text), Some(errno), "budget {text:?}");
    }
    let all = (PERIOD * u / 1000).to_string();
    ensure_eq!(write_fails(&group, "cpu.ds.budget", &all), Some(libc::EBUSY), "all of the CPU");
    ensure_eq!(budget_of(&group)?, (5 * u / 1000).to_string(), "the budget after refusals");
    for (text, errno) in [("0", libc::ERANGE), ("100", libc::ERANGE), ("x", libc::EINVAL)] {
        ensure_eq!(write_fails(&group, "cpu.ds.priority", text), Some(errno), "priority {text:?}");
    }
    let period = fs::write("/proc/sys/kernel/sched_ds_period_us", "1000").map_err(|error| error.raw_os_error());
    ensure_eq!(period, Err(Some(libc::EBUSY)), "another period although a group has a budget");
    group.set("cpu.ds.budget", "0")?;
    set_period(10 * u)?;
    set_period(PERIOD * u)
}

/// Inside, RLIMIT_RTPRIO allows SCHED_DS; files are the administrator's.
fn of_another_user() -> Check {
    let group = first_group("a", 5, 1)?;
    process::check_in_child(5 * SECOND, || {
        group.take(0)?;
        let limit = libc::rlimit { rlim_cur: 20, rlim_max: 20 };
        // SAFETY: reads the limits; takes numbers.
        let changed =
            unsafe { libc::setrlimit(libc::RLIMIT_RTPRIO, &limit) | libc::setgid(65534) | libc::setuid(65534) };
        ensure_eq!(changed, 0, "becoming somebody else");
        ensure_eq!(sys::set_sched(0, ds(21)), Err(libc::EPERM), "a priority above the limit");
        sys::set_sched(0, ds(20)).explain("SCHED_DS")?;
        ensure_eq!(sys::sched(0).explain("policy")?.policy, SCHED_DS, "policy");
        ensure!(group.set("cpu.ds.budget", "2000").is_err(), "anybody may write a budget");
        sys::set_sched(0, SchedAttr::other()).explain("SCHED_OTHER")
    })
}

/// A budget on each CPU; threads go where there is one.
fn on_two_cpus() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &format!("1={}", 5 * u / 1000))?;
    ensure_eq!(budget_of(&group)?, format!("1={}", 5 * u / 1000), "the budget, read");
    let board = Board::new(4);
    let child = process::fork(|| {
        let _ = sys::set_affinity(0, &[1]);
        if group.take(0).is_err() || sys::set_sched(0, ds(10)).is_err() {
            return 1;
        }
        let _ = sys::set_affinity(0, &[0, 1]);
        for _ in 0..50 {
            sys::sleep(u);
            board.add(sys::this_cpu() as usize, 1);
        }
        0
    });
    child.succeed(10 * SECOND)?;
    ensure_eq!((board.get(0), board.get(1)), (0, 50), "wake-ups on each CPU");
    Ok(())
}

/// A CPU that goes off line leaves its threads to the others, budget or not.
fn off_line() -> Check {
    let u = unit_ns();
    let group = first_group("a", 3, 1)?;
    let children: Vec<Child> = (0..4)
        .map(|i| {
            run_in(&group, 10 + i, || {
                let _ = sys::set_affinity(0, &[1]);
                let _ = sys::set_affinity(0, &[0, 1]);
                sys::hog()
            })
        })
        .collect::<Check<_>>()?;
    for _ in 0..3 {
        sys::sleep(4 * PERIOD * u);
        sys::set_online(1, false).explain("off line")?;
        sys::sleep(4 * PERIOD * u);
        sys::set_online(1, true).explain("on line")?;
    }
    // The most important one first: the others have nothing to die with before.
    children.iter().rev().try_for_each(|child| child.kill(5 * SECOND))
}
