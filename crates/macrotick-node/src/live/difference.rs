//! What a change of a running deployment does to each of its parts, and whether it can be made at all: decided from the
//! two plans, before anything is touched.

use std::collections::BTreeSet;

use macrotick_model::{Background, CpuSet, Duration, OnMiss, Plan, Pool, Task, Window, Workload};
use serde::{Deserialize, Serialize};

/// Most windows of a common cycle that are compared one by one.
const MOST_WINDOWS: i64 = 100_000;

/// Why a running deployment cannot become another one. It stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeFault {
    /// One change at a time.
    #[error("another change is under way")]
    UnderWay,
    /// The deployment ends meanwhile.
    #[error("the deployment was stopped before the change was made")]
    Ending,
    /// There is nothing to change.
    #[error("somebody else stopped or removed the table: `macrotick stop` first")]
    TableGone,
    /// There is a table from the start to the end, or none.
    #[error(
        "{}: `macrotick stop` first",
        if *.running { "the running deployment has windows, the new one none" } else { "the running deployment has no windows" }
    )]
    Windows {
        /// Whether the running one has some.
        running: bool,
    },
    /// A running table stays on its clock.
    #[error("the running table is on {running}, the new one on {wanted}: `macrotick stop` first")]
    Clock {
        /// The clock of the running table.
        running: &'static str,
        /// The clock of the new one.
        wanted: &'static str,
    },
    /// Namespaces are made at the start.
    #[error("the network namespaces are made at the start, and the new ones differ: `macrotick stop` first")]
    Namespaces,
    /// Groups get their budgets at the start.
    #[error("groups and the server period are set at the start, and the new ones differ: `macrotick stop` first")]
    Groups,
    /// Reservations, and the CPUs that are divided for them, are set at the start.
    #[error("tasks of SCHED_DEADLINE are set at the start, and the new ones differ: `macrotick stop` first")]
    Reservations,
    /// The new table would begin in the middle of a server period, and was checked as if it began with a refill.
    #[error("the running cycle has no whole number of server periods, the new one would not begin with a refill: `macrotick stop` first")]
    Refills,
    /// What has threads stays on its CPUs.
    #[error(
        "`{name}` runs on CPU {running} and cannot move to CPU {wanted}: give it {}another name, or `macrotick stop` first",
        stay(.running)
    )]
    Moves {
        /// The task or pool.
        name: String,
        /// The CPUs of its windows.
        running: CpuSet,
        /// The CPUs of its windows in the new plan.
        wanted: CpuSet,
    },
    /// A pool keeps what decides which threads are in it, and where they run.
    #[error("pool `{pool}` cannot get another `{key}` while it runs: give it another name, or `macrotick stop` first")]
    Pool {
        /// The pool.
        pool: String,
        /// The key of the description.
        key: &'static str,
    },
    /// A name of both a task and a pool.
    #[error("`{0}` cannot become a task or a pool while it runs: give it another name, or `macrotick stop` first")]
    Kind(String),
}

/// What keeps a task or pool where it is, if a description can say so.
fn stay(running: &CpuSet) -> String {
    match running.as_slice() {
        [cpu] => format!("`cpu: {cpu}`, or "),
        _ => String::new(),
    }
}

/// What a part of a deployment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A task.
    Task,
    /// A pool.
    Pool,
    /// A background load.
    Background,
}

/// What a change does to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Its processes go on.
    Kept,
    /// It was not there before.
    Added,
    /// Its processes end, and new ones take their place.
    Replaced,
    /// It is not there any more.
    Removed,
}

/// The windows of a task or pool in one cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Their CPUs: one, unless it is of a task that migrates.
    pub cpus: CpuSet,
    /// How many.
    pub windows: usize,
    /// Their lengths, all together.
    pub time: Duration,
    /// Where the first one begins.
    pub first: Duration,
}

impl Service {
    fn of(plan: &Plan, name: &str) -> Option<Service> {
        let windows = windows_of(plan, name);
        let (_, first) = windows.first()?;
        let time = windows.iter().map(|(_, window)| window.length).sum();
        Some(Service { cpus: plan.cpus(name), windows: windows.len(), time, first: first.offset })
    }
}

/// A part of either deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub fate: Fate,
    /// Its windows in the former table; `None`: it had none.
    pub before: Option<Service>,
    /// Its windows in the new table; `None`: it has none.
    pub after: Option<Service>,
    /// It is in both, and its windows are at other places, or do other things.
    pub rearranged: bool,
}

/// How a task that runs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// As it should be.
    Sound,
    /// Its process has ended.
    Dead,
    /// The kernel stopped it because it missed too often.
    Stopped,
}

/// What a change does, part by part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The parts of the new deployment in its order, then those that leave.
    pub items: Vec<Item>,
    /// Whether the kernel gets another table.
    pub swaps: bool,
}

impl Difference {
    /// Compares a plan with the one that runs, whose tasks are as `condition` says by name. A task that is dead or
    /// stopped is replaced. What only a new lead changes is not seen here.
    pub fn between(
        running: &Plan,
        wanted: &Plan,
        condition: &dyn Fn(&str) -> Condition,
    ) -> Result<Difference, ChangeFault> {
        refuse(running, wanted, condition)?;
        // One without windows stays as it is, or the change was refused.
        let is_reserved = |task: &Task| task.reservation().is_some();
        let same_task = |old: &Task, new: &Task| {
            is_reserved(new) || (is_same_program(old, new) && condition(&old.name) == Condition::Sound)
        };
        let (old, new) = (&running.system, &wanted.system);
        let pick = |item| describe(running, wanted, item);
        let mut items: Vec<Item> = fates(&old.tasks, &new.tasks, |task| &task.name, same_task)
            .map(|(name, fate)| pick((Kind::Task, name, fate)))
            .collect();
        // What of a pool may change is the table's.
        let pools = fates(&old.pools, &new.pools, |pool: &Pool| &pool.name, |_, _| true);
        items.extend(pools.map(|(name, fate)| pick((Kind::Pool, name, fate))));
        let loads = fates(&old.background, &new.background, |load: &Background| &load.name, PartialEq::eq);
        items.extend(loads.map(|(name, fate)| pick((Kind::Background, name, fate))));
        // Stable: what leaves goes behind the rest.
        items.sort_by_key(|item| item.fate == Fate::Removed);
        Ok(Difference { items, swaps: has_other_table(running, wanted) })
    }

    /// What becomes of a part.
    pub fn fate(&self, kind: Kind, name: &str) -> Option<Fate> {
        self.items.iter().find(|item| item.kind == kind && item.name == name).map(|item| item.fate)
    }

    /// The names of those parts that have a fate, in order.
    pub fn names(&self, kind: Kind, fate: Fate) -> impl Iterator<Item = &str> {
        self.items.iter().filter(move |item| item.kind == kind && item.fate == fate).map(|item| item.name.as_str())
    }

    /// Whether a part's processes are new.
    pub fn is_fresh(&self, kind: Kind, name: &str) -> bool {
        matches!(self.fate(kind, name), Some(Fate::Added | Fate::Replaced))
    }
}

fn describe(running: &Plan, wanted: &Plan, (kind, name, fate): (Kind, String, Fate)) -> Item {
    let service = |plan: &Plan| if kind == Kind::Background { None } else { Service::of(plan, &name) };
    let (before, after) = (service(running).filter(|_| fate != Fate::Added), service(wanted));
    let after = after.filter(|_| fate != Fate::Removed);
    let rearranged = before.is_some() && after.is_some() && !has_same_pattern(running, wanted, &name);
    Item { kind, name, fate, before, after, rearranged }
}

/// Name and fate of the parts of one kind: the new ones in their order, then those that leave.
fn fates<'a, T>(
    old: &'a [T],
    new: &'a [T],
    name: impl Fn(&T) -> &str + Copy + 'a,
    is_same: impl Fn(&T, &T) -> bool + 'a,
) -> impl Iterator<Item = (String, Fate)> + 'a {
    let stay = new.iter().map(move |part| {
        let fate = match old.iter().find(|other| name(other) == name(part)) {
            None => Fate::Added,
            Some(former) if is_same(former, part) => Fate::Kept,
            Some(_) => Fate::Replaced,
        };
        (name(part).to_string(), fate)
    });
    let leaves = move |part: &&T| !new.iter().any(|other| name(other) == name(part));
    stay.chain(old.iter().filter(leaves).map(move |part| (name(part).to_string(), Fate::Removed)))
}

/// Whether a process of one is a process of the other. A program knows nothing of what becomes of its misses; built-in
/// workloads prepare for a signal.
fn is_same_program(old: &Task, new: &Task) -> bool {
    let is_signalled = |task: &Task| task.on_miss == OnMiss::Signal;
    let prepares = !matches!(new.workload, Workload::Program(_)) && is_signalled(old) != is_signalled(new);
    old.workload == new.workload && old.namespace == new.namespace && !prepares
}

fn refuse(running: &Plan, wanted: &Plan, condition: &dyn Fn(&str) -> Condition) -> Result<(), ChangeFault> {
    let (old, new) = (&running.system, &wanted.system);
    if old.has_windows() != new.has_windows() {
        return Err(ChangeFault::Windows { running: old.has_windows() });
    }
    if old.sync.is_some() != new.sync.is_some() {
        return Err(ChangeFault::Clock { running: clock(running), wanted: clock(wanted) });
    }
    if old.namespaces != new.namespaces {
        return Err(ChangeFault::Namespaces);
    }
    if (&old.groups, old.server_period) != (&new.groups, new.server_period) {
        return Err(ChangeFault::Groups);
    }
    if !old.reserved().map(|(task, _)| task).eq(new.reserved().map(|(task, _)| task)) {
        return Err(ChangeFault::Reservations);
    }
    let meets = |plan: &Plan| plan.cycle.is_multiple_of(plan.system.server_period);
    if !new.groups.is_empty() && meets(wanted) && !meets(running) {
        return Err(ChangeFault::Refills);
    }
    let pools = |plan: &Plan| plan.system.pools.iter().map(|pool| pool.name.clone()).collect::<BTreeSet<_>>();
    let tasks = |plan: &Plan| plan.system.tasks.iter().map(|task| task.name.clone()).collect::<BTreeSet<_>>();
    let turned = |from: BTreeSet<String>, to: BTreeSet<String>| from.intersection(&to).next().cloned();
    if let Some(name) = turned(tasks(running), pools(wanted)).or_else(|| turned(pools(running), tasks(wanted))) {
        return Err(ChangeFault::Kind(name));
    }
    for pool in &new.pools {
        if let Some(former) = old.pools.iter().find(|former| former.name == pool.name) {
            refuse_pool(former, pool)?;
        }
    }
    let with_threads = new.tasks.iter().map(|task| &task.name).filter(|name| condition(name) != Condition::Dead);
    with_threads.chain(new.pools.iter().map(|pool| &pool.name)).try_for_each(|name| refuse_move(running, wanted, name))
}

fn refuse_pool(former: &Pool, pool: &Pool) -> Result<(), ChangeFault> {
    let same = [
        ("cgroup", former.cgroup == pool.cgroup),
        ("kernel-threads", former.kernel_threads == pool.kernel_threads),
        ("slack", former.slack == pool.slack),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((key, _)) => Err(ChangeFault::Pool { pool: pool.name.clone(), key }),
        None => Ok(()),
    }
}

fn refuse_move(running: &Plan, wanted: &Plan, name: &str) -> Result<(), ChangeFault> {
    let (from, to) = (running.cpus(name), wanted.cpus(name));
    match from.is_empty() || to.is_empty() || from == to {
        true => Ok(()),
        false => Err(ChangeFault::Moves { name: name.into(), running: from, wanted: to }),
    }
}

/// The clock of a plan's table.
pub fn clock(plan: &Plan) -> &'static str {
    plan.system.sync.map_or("CLOCK_MONOTONIC", |_| "CLOCK_TAI")
}

/// The windows of a task or pool with their CPUs, in order of time.
fn windows_of<'a>(plan: &'a Plan, name: &str) -> Vec<(u32, &'a Window)> {
    let each = plan.tables.iter().flat_map(|table| table.windows.iter().map(|window| (table.cpu, window)));
    let mut windows: Vec<(u32, &Window)> = each.filter(|(_, window)| window.task == name).collect();
    windows.sort_by_key(|(_, window)| window.offset);
    windows
}

/// Whether a task or pool, which has windows in both, has them at the same instants, whatever the cycles.
fn has_same_pattern(running: &Plan, wanted: &Plan, name: &str) -> bool {
    let (old, new) = (windows_of(running, name), windows_of(wanted, name));
    let Some(cycle) = running.cycle.lcm(wanted.cycle) else { return false };
    let (times_old, times_new) = (cycle / running.cycle, cycle / wanted.cycle);
    let (count, other) = (times_old * old.len() as i64, times_new * new.len() as i64);
    if count != other || count > MOST_WINDOWS {
        return false;
    }
    let each = |windows: Vec<(u32, &Window)>, cycle: Duration, times: i64| -> Vec<(u32, Window)> {
        let turns = (0..times).flat_map(|turn| {
            let shift = cycle * turn;
            let later = move |window: &Window| Window { offset: window.offset + shift, ..window.clone() };
            windows.iter().map(move |&(cpu, window)| (cpu, later(window)))
        });
        turns.collect()
    };
    each(old, running.cycle, times_old) == each(new, wanted.cycle, times_new)
}

/// Whether the kernel's table would differ in anything but the lead.
fn has_other_table(running: &Plan, wanted: &Plan) -> bool {
    let tasks = |plan: &Plan| -> Vec<(String, OnMiss, Option<u32>)> {
        plan.system.tasks.iter().map(|task| (task.name.clone(), task.on_miss, task.max_misses)).collect()
    };
    let filled =
        |plan: &Plan| -> Vec<_> { plan.tables.iter().filter(|table| !table.windows.is_empty()).cloned().collect() };
    running.cycle != wanted.cycle
        || filled(running) != filled(wanted)
        || running.system.sync != wanted.system.sync
        || running.system.pools != wanted.system.pools
        || tasks(running) != tasks(wanted)
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{self as fixtures, hog, reserved, spin, sync, table, us};
    use macrotick_model::{Group, PoolOrder};

    use super::*;
    use crate::deployment::tests::{plan, task, window};

    const MS: Duration = Duration::from_millis(1);

    /// `a` and `b`, each with a window per millisecond.
    fn two() -> Plan {
        plan(
            vec![task("a", MS, None), task("b", MS, None)],
            vec![window("a", 0, 100, true, true), window("b", 200, 100, true, true)],
        )
    }

    fn one(cpu: u32) -> CpuSet {
        [cpu].into_iter().collect()
    }

    fn pool(name: &str) -> Pool {
        fixtures::pool(name, MS, us(100))
    }

    fn group() -> Group {
        fixtures::group("g", 1, us(100))
    }

    fn between(running: &Plan, wanted: &Plan) -> Result<Difference, ChangeFault> {
        Difference::between(running, wanted, &|_| Condition::Sound)
    }

    fn all_fates(difference: &Difference) -> Vec<(&str, Fate)> {
        difference.items.iter().map(|item| (item.name.as_str(), item.fate)).collect()
    }

    #[test]
    fn the_same_plan_changes_nothing() {
        let mut later = two();
        // None of this is part of what runs.
        later.system.duration = MS;
        later.solver = "another".into();
        later.tables.push(table(1, []));
        let difference = between(&two(), &later).unwrap();
        assert_eq!(all_fates(&difference), [("a", Fate::Kept), ("b", Fate::Kept)]);
        assert!(!difference.swaps && difference.items.iter().all(|item| !item.rearranged));
    }

    #[test]
    fn parts_come_go_and_stay_by_their_names() {
        let mut wanted = plan(
            vec![task("c", MS, None), task("b", MS, None)],
            vec![window("c", 0, 50, true, true), window("b", 200, 100, true, true)],
        );
        let mut running = two();
        running.system.background = vec![hog("hog"), hog("other")];
        wanted.system.background = vec![Background { cpu: Some(0), ..hog("other") }, hog("new")];
        let difference = between(&running, &wanted).unwrap();
        let expected = [
            ("c", Fate::Added),
            ("b", Fate::Kept),
            ("other", Fate::Replaced),
            ("new", Fate::Added),
            ("a", Fate::Removed),
            ("hog", Fate::Removed),
        ];
        assert_eq!(all_fates(&difference), expected);
        assert!(difference.swaps && difference.is_fresh(Kind::Background, "other"));
        let item = &difference.items[0];
        let service = Service { cpus: one(0), windows: 1, time: us(50), first: Duration::ZERO };
        assert_eq!((item.kind, &item.before, &item.after), (Kind::Task, &None, &Some(service)));
        assert_eq!(difference.names(Kind::Task, Fate::Removed).collect::<Vec<_>>(), ["a"]);
        assert_eq!(difference.fate(Kind::Pool, "a"), None);
    }

    #[test]
    fn another_program_replaces_the_process() {
        let changed = |change: fn(&mut Task)| {
            let mut wanted = two();
            change(&mut wanted.system.tasks[0]);
            between(&two(), &wanted).unwrap().fate(Kind::Task, "a")
        };
        assert_eq!(changed(|task| task.wcet = us(90)), Some(Fate::Kept));
        assert_eq!(changed(|task| task.on_miss = OnMiss::Restart), Some(Fate::Kept));
        assert_eq!(changed(|task| task.on_miss = OnMiss::Signal), Some(Fate::Replaced));
        assert_eq!(changed(|task| task.workload = spin(MS)), Some(Fate::Replaced));
        assert_eq!(changed(|task| task.namespace = Some("n".into())), Some(Fate::Replaced));
    }

    #[test]
    fn reservations_stay_as_they_are() {
        let with = |runtime: Duration| {
            let mut plan = two();
            plan.system.tasks[1].supply = reserved(runtime, &[0]);
            plan.tables[0].windows.retain(|window| window.task != "b");
            plan
        };
        assert_eq!(between(&with(MS), &with(us(999))), Err(ChangeFault::Reservations));
        assert_eq!(between(&with(MS), &two()), Err(ChangeFault::Reservations));
        let dead = Difference::between(&with(MS), &with(MS), &|_| Condition::Dead).unwrap();
        assert_eq!(all_fates(&dead), [("a", Fate::Replaced), ("b", Fate::Kept)]);
    }

    #[test]
    fn who_is_not_sound_is_replaced_and_who_is_dead_may_move() {
        let mut elsewhere = two();
        let windows = elsewhere.tables[0].windows.split_off(1);
        elsewhere.tables.push(table(1, windows));
        for condition in [Condition::Dead, Condition::Stopped] {
            let of = |name: &str| if name == "b" { condition } else { Condition::Sound };
            let same = Difference::between(&two(), &two(), &of).unwrap();
            assert_eq!(all_fates(&same), [("a", Fate::Kept), ("b", Fate::Replaced)]);
            assert!(!same.swaps);
            let moved = Difference::between(&two(), &elsewhere, &of);
            match condition {
                Condition::Dead => assert!(moved.is_ok_and(|moved| moved.swaps)),
                _ => assert_eq!(moved, Err(ChangeFault::Moves { name: "b".into(), running: one(0), wanted: one(1) })),
            }
        }
    }

    #[test]
    fn a_task_on_several_cpus_stays_on_all_of_them() {
        let on_both = |second: i64| {
            let mut plan = two();
            plan.system.tasks[0].migrate = true;
            plan.tables[0].windows[0].deadline = false;
            plan.tables.push(table(1, [window("a", second, 50, false, true)]));
            plan
        };
        let same = between(&on_both(100), &on_both(100)).unwrap();
        assert!(!same.swaps && same.items.iter().all(|item| !item.rearranged));
        let later = between(&on_both(100), &on_both(150)).unwrap();
        assert!(later.swaps && later.items[0].rearranged && !later.items[1].rearranged);
        let both: CpuSet = [0, 1].into_iter().collect();
        let service = Service { cpus: both.clone(), windows: 2, time: us(150), first: Duration::ZERO };
        assert_eq!(later.items[0].after, Some(service));
        let fault = between(&on_both(100), &two()).unwrap_err();
        assert_eq!(fault, ChangeFault::Moves { name: "a".into(), running: both, wanted: one(0) });
        let text = "`a` runs on CPU 0, 1 and cannot move to CPU 0: give it another name, or `macrotick stop` first";
        assert_eq!(fault.to_string(), text);
        let text =
            "`a` runs on CPU 0 and cannot move to CPU 0, 1: give it `cpu: 0`, or another name, or `macrotick stop` \
                    first";
        assert_eq!(between(&two(), &on_both(100)).unwrap_err().to_string(), text);
        let dead = Difference::between(&on_both(100), &two(), &|_| Condition::Dead);
        assert!(dead.is_ok_and(|moved| moved.swaps));
    }

    #[test]
    fn windows_are_compared_over_both_cycles() {
        let twice = |second: i64| {
            let mut plan = two();
            plan.cycle = MS * 2;
            let windows = &mut plan.tables[0].windows;
            windows.extend([window("a", second, 100, true, true), window("b", 1200, 100, true, true)]);
            plan
        };
        let rearranged = |wanted: &Plan| -> Vec<bool> {
            let difference = between(&two(), wanted).unwrap();
            assert!(difference.swaps);
            difference.items.iter().map(|item| item.rearranged).collect()
        };
        assert_eq!(rearranged(&twice(1000)), [false, false]);
        assert_eq!(rearranged(&twice(1050)), [true, false]);
        let mut undemanding = two();
        undemanding.tables[0].windows[1].deadline = false;
        assert_eq!(rearranged(&undemanding), [false, true]);
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_before() {
        let mut following = two();
        following.system.sync = Some(sync(MS, us(900), us(100), us(50)));
        let fault = ChangeFault::Clock { running: "CLOCK_MONOTONIC", wanted: "CLOCK_TAI" };
        assert_eq!(between(&two(), &following), Err(fault));

        let mut empty = two();
        empty.system.tasks.clear();
        assert_eq!(between(&two(), &empty), Err(ChangeFault::Windows { running: true }));
        assert_eq!(between(&empty, &two()), Err(ChangeFault::Windows { running: false }));

        let mut connected = two();
        connected.system.namespaces = vec![fixtures::namespace("n", "10.0.0.1/24")];
        assert_eq!(between(&two(), &connected), Err(ChangeFault::Namespaces));

        let mut slower = two();
        slower.system.server_period = MS;
        assert_eq!(between(&two(), &slower), Err(ChangeFault::Groups));

        let mut led = two();
        led.system.groups = vec![group()];
        assert!(between(&led, &led).is_ok());
        let running = led.clone();
        led.system.groups[0].lead = Some(us(20));
        assert_eq!(between(&running, &led), Err(ChangeFault::Groups));
        assert_eq!(between(&led, &running), Err(ChangeFault::Groups));

        let mut pooled = two();
        pooled.system.tasks.remove(1);
        pooled.system.pools.push(pool("b"));
        assert_eq!(between(&two(), &pooled), Err(ChangeFault::Kind("b".into())));
        assert_eq!(between(&pooled, &two()), Err(ChangeFault::Kind("b".into())));

        let mut other = pooled.clone();
        other.system.pools[0].order = PoolOrder::RoundRobin { slice: MS };
        assert_eq!(between(&pooled, &other).unwrap().fate(Kind::Pool, "b"), Some(Fate::Kept));
        other.system.pools[0].slack = true;
        assert_eq!(between(&pooled, &other), Err(ChangeFault::Pool { pool: "b".into(), key: "slack" }));
        other.system.pools[0].cgroup = Some("/sys/fs/cgroup/x".into());
        assert_eq!(between(&pooled, &other), Err(ChangeFault::Pool { pool: "b".into(), key: "cgroup" }));
    }
}
