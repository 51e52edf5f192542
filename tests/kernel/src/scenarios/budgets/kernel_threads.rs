//! Kernel threads in a group: per-CPU threads and interrupt threads.

use super::{group, set_period, stat, write_fails, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::console::{self, Interrupt, DEVICE};
use crate::group::Group;
use crate::process::{self, Child};
use crate::scenarios::{is_slow, unit_ns};
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

const FILE: &str = "cpu.ds.kthreads";

fn assigned(group: &Group) -> Check<Vec<i32>> {
    let text = group.get(FILE)?;
    text.lines().map(|line| line.parse().map_err(|_| format!("{FILE} has a line {line:?}"))).collect()
}

/// Forks ordinary processes. Their timers expire in the softirq all the time.
fn sleepers(board: &Board) -> Vec<Child> {
    let sleeper = || loop {
        sys::sleep(unit_ns() / 10);
        board.add(0, 1);
    };
    (0..if is_slow() { 2 } else { 8 }).map(|_| process::fork(sleeper)).collect()
}

/// Returns the microseconds that a group has used per server period.
fn usage_by_period(group: &Group) -> Check<u64> {
    const PERIODS: u64 = 40;
    let before = stat(group, "usage_usec")?;
    sys::sleep(PERIODS * PERIOD * unit_ns());
    Ok((stat(group, "usage_usec")? - before) / PERIODS)
}

/// The policies of kernel threads. Each scenario restores them at its end: the whole machine needs these threads.
struct Policies(Vec<(i32, SchedAttr)>);

impl Policies {
    fn of(pids: &[i32]) -> Check<Policies> {
        let one = |pid: &i32| Ok((*pid, sys::sched(*pid).explain("policy")?));
        pids.iter().map(one).collect::<Check<_>>().map(Policies)
    }
}

impl Drop for Policies {
    fn drop(&mut self) {
        for (pid, attr) in &self.0 {
            // A failure here fails the scenario.
            sys::set_sched(*pid, *attr).expect("its policy of before");
        }
    }
}

fn set_fifo(pid: i32) -> Check {
    sys::set_sched(pid, SchedAttr { priority: 50, ..SchedAttr::policy(libc::SCHED_FIFO as u32) }).explain("SCHED_FIFO")
}

/// Checks that the work of softirqs for timers costs the group's budget, and no more than that. Afterwards it is
/// unlimited again.
pub(super) fn of_a_softirq() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let (ample, little) = (10 * u / 1000, u / 10_000);
    let group = group("a", 10, 1)?;
    let pid = process::kernel_thread("ksoftirqd/0")?;
    let _policies = Policies::of(&[pid])?;
    group.set(FILE, &pid.to_string())?;
    ensure_eq!(assigned(&group)?, vec![pid], "threads of the group");
    set_fifo(pid)?;
    group.set("cpu.ds.fifo", "1")?;
    let board = Board::new(1);
    let sleepers = sleepers(&board);
    // Without PREEMPT_RT, softirqs run at the end of interrupts, charged to no group.
    if sys::is_preempt_rt() {
        let free = usage_by_period(&group)?;
        ensure!(free > 5 * little, "{free} us by period, of {ample}");
        group.set("cpu.ds.budget", &little.to_string())?;
        sys::sleep(2 * PERIOD * u);
        let bounded = usage_by_period(&group)?;
        ensure!((little / 2..=3 * little).contains(&bounded), "{bounded} us by period with a budget of {little}");
        ensure!(stat(&group, "exhaustions")? >= 20, "{}", group.get("cpu.ds.stat")?);
    }
    group.set(FILE, &format!("-{pid}"))?;
    ensure!(assigned(&group)?.is_empty(), "threads of the group afterwards: {:?}", assigned(&group)?);
    ensure_eq!(usage_by_period(&group)?, 0, "usage without it");
    let woken = board.get(0);
    ensure!(sys::eventually(SECOND, || board.get(0) > woken + 1000), "nobody wakes up afterwards");
    sleepers.iter().try_for_each(|child| child.kill(SECOND))
}

/// Checks which threads a group accepts, and that they survive the group's end.
pub(super) fn come_and_go() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let (one, two) = (group("one", 5, 1)?, group("two", 5, 2)?);
    let names = ["ksoftirqd/0", "rcuc/0", "backlog_napi/0", "ktimers/0", "kthreadd"];
    let pids: Vec<i32> = names.iter().filter_map(|name| process::kernel_thread(name).ok()).collect();
    for pid in &pids {
        one.set(FILE, &pid.to_string())?;
    }
    let sorted = |group: &Group| {
        let mut pids = assigned(group)?;
        pids.sort_unstable();
        Check::Ok(pids)
    };
    let mut all = pids.clone();
    all.sort_unstable();
    ensure_eq!(sorted(&one)?, all, "threads of the first group");
    two.set(FILE, &pids[0].to_string())?;
    all.retain(|pid| *pid != pids[0]);
    ensure_eq!((sorted(&one)?, assigned(&two)?), (all, vec![pids[0]]), "threads of both groups");

    let stopper = process::kernel_thread("migration/0")?;
    let fails = |text: &str| write_fails(&one, FILE, text);
    ensure_eq!(fails(&stopper.to_string()), Some(libc::EINVAL), "the thread that moves others");
    ensure_eq!(fails(&std::process::id().to_string()), Some(libc::EINVAL), "a process");
    ensure_eq!(fails(&format!("-{}", pids[0])), Some(libc::ESRCH), "one of another group");
    ensure_eq!(fails("4000000"), Some(libc::ESRCH), "nobody");
    for text in ["0", "x", "1 2", "99999999999"] {
        ensure_eq!(fails(text), Some(libc::EINVAL), "what {text:?} gives");
    }

    // The group is removed while it serves a thread that has work to do.
    let thread = pids[0];
    let policies = Policies::of(&[thread])?;
    two.set("cpu.ds.fifo", "1")?;
    set_fifo(thread)?;
    let board = Board::new(1);
    let sleepers = sleepers(&board);
    sys::sleep(4 * PERIOD * u);
    let removed = two.remove().and(one.remove());
    let woken = board.get(0);
    let goes_on = sys::eventually(SECOND, || board.get(0) > woken + 1000);
    drop(policies);
    removed?;
    ensure!(goes_on, "nobody wakes up after the group's end");
    // After the group's end, another group can take the thread.
    let three = group("three", 5, 1)?;
    three.set(FILE, &thread.to_string())?;
    ensure_eq!(assigned(&three)?, vec![thread], "threads of a new group");
    sleepers.iter().try_for_each(|child| child.kill(SECOND))
}

/// Checks that the work of an interrupt's thread is charged when SCHED_DS serves it.
pub(super) fn of_an_interrupt() -> Check {
    let Ok(Interrupt { pid, .. }) = console::interrupt() else {
        ensure!(!sys::is_preempt_rt(), "no thread of the console's interrupt");
        return Ok(());
    };
    set_period(PERIOD * unit_ns())?;
    let group = group("a", 5, 1)?;
    let _policies = Policies::of(&[pid])?;
    let write = || -> Check<u64> {
        let usage = stat(&group, "usage_usec")?;
        for _ in 0..20 {
            std::fs::write(DEVICE, b"..............\n").map_err(|error| format!("{DEVICE}: {error}"))?;
            sys::sleep(PERIOD * unit_ns());
        }
        Ok(stat(&group, "usage_usec")? - usage)
    };
    ensure_eq!(write()?, 0, "usage before");
    group.set(FILE, &pid.to_string())?;
    ensure_eq!(write()?, 0, "usage under SCHED_FIFO, which does not mean SCHED_DS here");
    sys::set_sched(pid, super::ds(50)).explain("SCHED_DS")?;
    let used = write()?;
    ensure!(used >= 20, "{used} us for 20 lines");
    Ok(())
}

/// Checks that a CPU can be taken offline when its threads have exhausted their budget.
pub(super) fn off_line() -> Check {
    let u = unit_ns();
    set_period(PERIOD * u)?;
    let group = Group::new("a")?;
    group.set("cpu.ds.budget", &(u / 1000).to_string())?;
    group.set("cpu.ds.fifo", "1")?;
    let board = Board::new(1);
    let sleepers = sleepers(&board);
    let names = ["ksoftirqd/1", "rcuc/1", "ktimers/1", "cpuhp/1"];
    let pids: Vec<i32> = names.iter().filter_map(|name| process::kernel_thread(name).ok()).collect();
    let _policies = Policies::of(&pids)?;
    for round in 0..2 {
        for pid in &pids {
            group.set(FILE, &pid.to_string())?;
            set_fifo(*pid)?;
        }
        for child in &sleepers {
            sys::set_affinity(child.pid, &[0, 1]).explain("affinity")?;
        }
        sys::sleep(4 * PERIOD * u);
        sys::set_online(1, false).explain("off line")?;
        sys::sleep(4 * PERIOD * u);
        sys::set_online(1, true).explain("on line")?;
        let woken = board.get(0);
        ensure!(sys::eventually(5 * SECOND, || board.get(0) > woken + 200), "nobody wakes up in round {round}");
    }
    for pid in assigned(&group)? {
        group.set(FILE, &format!("-{pid}"))?;
    }
    sleepers.iter().try_for_each(|child| child.kill(SECOND))
}
