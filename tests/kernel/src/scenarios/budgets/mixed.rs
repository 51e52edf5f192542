//! Threads with windows and a budget: a pool of a control group that also has a budget.

pub(super) mod changes;
pub(super) mod locks;

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::spans::{ensure_spans, later, next_refill, Spans};
use super::{first_group, run_in, stat, PERIOD, SECOND};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, Child};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

/// The pool `p` has `[10, 14)` of each server period. Its control group has a budget of 5 units.
struct Stage {
    device: Device,
    group: Group,
    u: u64,
}

impl Stage {
    fn new(flags: u32) -> Check<Stage> {
        let (u, device) = (unit_ns(), Device::open()?);
        // The table is installed only after a removed group and its budget are gone.
        let group = first_group("a", 5, 1)?;
        Table::new(PERIOD * u).window("p", 0, 10 * u, 4 * u, 0).pool(flags, 0).install(&device)?;
        Ok(Stage { device, group, u })
    }

    fn start(&self) -> Check {
        self.device.start(next_refill()).map(drop).explain("start")
    }

    /// Sets another budget, in units.
    fn give(&self, budget: u64) -> Check {
        self.group.set("cpu.ds.budget", &(budget * self.u / 1000).to_string())
    }

    /// Moves the processes of the control group into the pool. They must run, as this one does.
    fn serve(&self, child: Child) -> Check {
        self.group.serve("p")?;
        let inside = || sys::sched(child.pid).is_ok_and(|attr| attr.policy == SCHED_TT);
        ensure!(sys::eventually(SECOND, inside), "who is in the group is not in the pool: {}", child.describe());
        Ok(())
    }

    /// Forks a process in the pool. Outside of the pool it has SCHED_DS.
    fn run(&self, body: impl FnOnce() -> i32) -> Check<Child> {
        let child = run_in(&self.group, 10, || {
            while sys::sched(0).map(|attr| attr.policy) != Ok(SCHED_TT) {}
            body()
        })?;
        self.serve(child).map(|()| child)
    }

    /// Checks the spans of a thread in each of the next server periods: the beginning and the length of each.
    fn ensure_served(&self, spans: Spans, each: &[(u64, u64)]) -> Check {
        let (from, before) = (next_refill(), spans.count());
        // [`Spans`] can record a limited number.
        ensure!(before < 400, "{before} spans");
        sys::sleep_until(from + 5 * PERIOD * self.u);
        let seen = spans.since(from - self.u);
        ensure!(seen.len() + 1 >= 5 * each.len(), "{} spans in 5 periods, not {each:?}", seen.len());
        for turn in seen.chunks_exact(each.len()) {
            for (span, &(after, length)) in turn.iter().zip(each) {
                ensure_spans(&[*span], after, length)?;
            }
        }
        Ok(())
    }
}

const BOTH: [(u64, u64); 2] = [(0, 5), (10, 4)];
const WINDOWS: [(u64, u64); 1] = [(10, 4)];
const BUDGET: [(u64, u64); 1] = [(0, 5)];

/// Checks that beside a busy SCHED_FIFO thread, a thread gets exactly the sum of both. The time in windows is not
/// charged.
pub(super) fn has_both() -> Check {
    let stage = Stage::new(0)?;
    let [spans] = Spans::several();
    let child = stage.run(|| spans.hog())?;
    process::hog(SchedAttr::fifo(50));
    stage.start()?;
    stage.ensure_served(spans, &BOTH)?;
    let (used, windows) = (stat(&stage.group, "usage_usec")?, stage.device.stats(0).explain("stats")?.runtime_ns);
    let began = sys::now_ns();
    sys::sleep(40 * PERIOD * stage.u);
    let long = (sys::now_ns() - began) as f64;
    let charged = (stat(&stage.group, "usage_usec")? - used) as f64 * 1000.0 / long;
    let served = (stage.device.stats(0).explain("stats")?.runtime_ns - windows) as f64 / long;
    ensure!((0.195..0.21).contains(&charged), "a share of {charged} is charged, not 0.2");
    ensure!((0.155..0.165).contains(&served), "a share of {served} in windows, not 0.16");
    child.kill(SECOND)
}

/// Checks that a thread that wakes up has its budget at once, until its window begins. After the window it has the rest
/// of the budget.
pub(super) fn wakes_between_windows() -> Check {
    let stage = Stage::new(0)?;
    let u = stage.u;
    let spans: [Spans; 4] = Spans::several();
    // The check skips the first span: lockdep needs half a unit for the locks of a CPU that wakes up after many cycles.
    let (works, start) = ([(7, 8), (7, 8), (11, 6), (17, 3)], later());
    stage.run(|| {
        spans.iter().for_each(Spans::touch);
        for (period, ((at, work), spans)) in (0..).zip(works.iter().zip(&spans)) {
            sys::sleep_until(start + (period * PERIOD + at) * u);
            spans.record(work * u);
        }
        sys::sleep_until(start + 100 * PERIOD * u);
        0
    })?;
    stage.start()?;
    sys::sleep_until(start + 5 * PERIOD * u);
    // From 7 on: 3 units of the budget, 4 of the window, 1 of the remaining budget.
    for ((at, work), spans) in works.into_iter().zip(spans).skip(1) {
        let seen = spans.all();
        ensure_eq!(seen.len(), 1, "spans at {at}");
        ensure_spans(&seen, at, work)?;
    }
    Ok(())
}

/// Checks a pool with slack: threads with a budget get no slack, threads without a budget do.
pub(super) fn with_slack() -> Check {
    let stage = Stage::new(abi::SLACK | abi::PRIORITY)?;
    let [served, slack] = Spans::several();
    let other = process::fork_into(stage.group.path(), || slack.hog())?;
    let child = stage.run(|| served.hog())?;
    stage.start()?;
    stage.ensure_served(served, &BOTH)?;
    // A kernel thread sometimes runs in the slack.
    let in_slack = || stage.ensure_served(slack, &[(5, 5), (14, 11)]);
    in_slack().or_else(|_| in_slack())?;
    child.kill(SECOND)?;
    other.kill(SECOND)
}

/// Checks that children also have both, together no more than one thread. All of them can be killed.
pub(super) fn children() -> Check {
    let stage = Stage::new(0)?;
    let board = Board::new(1);
    stage.run(|| {
        sys::sleep_until(later());
        for _ in 0..10 {
            process::fork(|| {
                // A busy child that started too early would stop the parent from forking the other children.
                sys::eventually(u64::MAX / 2, || board.get(0) == 1);
                sys::hog()
            });
        }
        board.set(0, 1);
        sys::hog()
    })?;
    stage.start()?;
    let forked = || std::fs::read_to_string(format!("{}/cgroup.procs", stage.group.path()));
    let there = || forked().is_ok_and(|text| text.lines().count() == 11);
    ensure!(sys::eventually(10 * SECOND, there), "processes in the group: {:?}", forked());
    let used = stat(&stage.group, "usage_usec")?;
    let began = sys::now_ns();
    sys::sleep(40 * PERIOD * stage.u);
    let share = (stat(&stage.group, "usage_usec")? - used) as f64 * 1000.0 / (sys::now_ns() - began) as f64;
    ensure!((0.195..0.24).contains(&share), "a share of {share} instead of 0.2");
    stage.group.set("cgroup.kill", "1")?;
    // The processes end on the group's budget, which takes long on a slow kernel.
    let gone = || forked().is_ok_and(|text| text.is_empty());
    ensure!(sys::eventually(60 * SECOND, gone), "processes in the group: {:?}", forked());
    Ok(())
}
