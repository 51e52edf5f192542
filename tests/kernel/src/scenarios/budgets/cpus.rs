//! Budgets on several CPUs.

use super::locks::{holds, waits, GOT};
use super::spans::phase_ns;
use super::{budget_of, ds, first_group, hog_from_cpu_1, run_in, set_period, stat, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, Child};
use crate::scenarios::unit_ns;
use crate::sys;
use crate::{ensure, ensure_eq};

/// The words of the board in [`moves_asleep`].
const SLEEPS: usize = 0;
const WAKES: usize = 1;

/// Checks a budget on one of two CPUs: threads move to a CPU with a budget.
pub(super) fn on_two_cpus() -> Check {
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

/// Checks that a thread on a CPU without a budget is served like SCHED_OTHER, and has its budget again when it returns.
pub(super) fn nothing_here() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &format!("1={}", 5 * u / 1000))?;
    let board = Board::new(2);
    let child = process::fork(|| {
        let _ = sys::set_affinity(0, &[1]);
        if group.take(0).is_err() || sys::set_sched(0, ds(10)).is_err() {
            return 1;
        }
        loop {
            board.add(sys::this_cpu() as usize, 1);
        }
    });
    let runs_on = |cpu: usize| {
        let before = board.get(cpu);
        sys::eventually(10 * SECOND, || board.get(cpu) > before + 100)
    };
    for round in 0..3 {
        ensure!(runs_on(1), "it does not run on CPU 1 in round {round}: {}", child.describe());
        let usage = stat(&group, "usage_usec")?;
        let is_charged = || stat(&group, "usage_usec").is_ok_and(|now| now > usage);
        ensure!(sys::eventually(10 * SECOND, is_charged), "its group is not charged in round {round}");
        sys::set_affinity(child.pid, &[0]).explain("affinity")?;
        ensure!(runs_on(0), "it does not run on CPU 0 in round {round}: {}", child.describe());
        sys::set_affinity(child.pid, &[1]).explain("affinity")?;
    }
    child.kill(10 * SECOND)
}

/// Checks a thread that falls asleep where its group has no budget. The fair class keeps such a thread on its run queue
/// for a while, because another thread of the group is there. Meanwhile, it moves to a CPU with a budget, and back again
/// later: it must run on both.
pub(super) fn moves_asleep() -> Check {
    const ROUNDS: u64 = 20;
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &format!("1={}", 20 * u / 1000))?;
    let board = Board::new(2);
    let beside = process::fork(|| {
        let _ = sys::set_affinity(0, &[0]);
        sys::hog()
    });
    group.take(beside.pid)?;
    let sleeper = run_in(&group, 1, || {
        let _ = sys::set_affinity(0, &[0]);
        loop {
            sys::spin(30 * u);
            board.add(SLEEPS, 1);
            sys::sleep(20 * u);
            board.add(WAKES, 1);
        }
    })?;
    for round in 0..ROUNDS {
        for cpu in [1, 0] {
            let before = board.get(SLEEPS);
            let sleeps = || board.get(SLEEPS) > before;
            ensure!(sys::eventually(SECOND, sleeps), "lost in round {round}: {}", sleeper.describe());
            sys::set_affinity(sleeper.pid, &[cpu]).explain("affinity")?;
            let before = board.get(WAKES);
            let runs = || board.get(WAKES) > before + 1 && process::cpu(sleeper.pid) == Some(cpu);
            ensure!(sys::eventually(SECOND, runs), "lost on CPU {cpu} in round {round}: {}", sleeper.describe());
        }
    }
    beside.kill(SECOND)?;
    sleeper.kill(SECOND)?;
    group.remove()
}

/// Checks that the threads of a CPU that is taken offline move to other CPUs, with or without a budget.
pub(super) fn off_line() -> Check {
    let u = unit_ns();
    let group = first_group("a", 3, 1)?;
    let children: Vec<Child> = (0..4).map(|i| hog_from_cpu_1(&group, 10 + i)).collect::<Check<_>>()?;
    for _ in 0..3 {
        sys::sleep(4 * PERIOD * u);
        sys::set_online(1, false).explain("off line")?;
        sys::sleep(4 * PERIOD * u);
        sys::set_online(1, true).explain("on line")?;
    }
    // The most important thread ends first: the others have no budget left to end with before.
    children.iter().rev().try_for_each(|child| child.kill(5 * SECOND))
}

/// Checks that hotplug of other CPUs, which changes this CPU's root domain, gives its groups no more than their
/// budgets.
pub(super) fn beside_hotplug() -> Check {
    let (period, budget) = (1000 * unit_ns(), 50 * unit_ns());
    set_period(period)?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &format!("0={}", budget / 1000))?;
    let hog = run_in(&group, 1, || {
        let _ = sys::set_affinity(0, &[0]);
        sys::hog()
    })?;
    sys::sleep(period);
    let (used, refills) = (stat(&group, "usage_usec")?, stat(&group, "refills")?);
    for _ in 0..5 {
        sys::set_online(1, false).explain("off line")?;
        sys::set_online(1, true).explain("on line")?;
        sys::sleep(period);
    }
    let (used, refills) = (stat(&group, "usage_usec")? - used, stat(&group, "refills")? - refills);
    let most = (refills + 1) * budget / 1000;
    ensure!(used <= most + most / 20, "{used} us in {refills} periods, with {} us in each", budget / 1000);
    hog.kill(SECOND)
}

/// Checks an owner without budget on another, idle CPU. Its waiter's group serves it at once, although neither its
/// class nor its priority changes.
pub(super) fn lends_to_another() -> Check {
    let u = unit_ns();
    let period = 1000 * u;
    set_period(period)?;
    let (poor, rich) = (Group::new("poor")?, Group::new("rich")?);
    poor.set("cpu.ds.budget", &format!("0={}", 20 * u / 1000))?;
    rich.set("cpu.ds.budget", &format!("{}", 250 * u / 1000))?;
    let board = Board::new(8);
    let start = (sys::now_ns() / period + 3) * period + phase_ns();
    let owner = run_in(&poor, 50, || {
        let _ = sys::set_affinity(0, &[0]);
        sys::sleep_until(start);
        holds(board, 40 * u)
    })?;
    let waiter = run_in(&rich, 50, || {
        let _ = sys::set_affinity(0, &[1]);
        sys::sleep_until(start + 200 * u);
        waits(board)
    })?;
    sys::sleep_until(start + 800 * u);
    let got = board.get(GOT);
    ensure!(got != 0 && got < start + 300 * u, "the lock came after {} ns", got.wrapping_sub(start));
    owner.succeed(SECOND)?;
    waiter.succeed(SECOND)
}
