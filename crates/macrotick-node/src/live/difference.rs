//! The difference of two plans: the effect of a change on each part, and whether the change is possible. All of this is
//! decided before anything changes.

use macrotick_model::{CpuSet, Duration, OnMiss, Placed, Plan, Pool, System, Task, Window, Workload};
use serde::{Deserialize, Serialize};

use crate::deployment::network::{other_gates, priority_of};
use crate::error::ChangeFault;
use crate::live::possible::{self, Condition};

/// The maximum number of windows of a common cycle that are compared one by one.
const MOST_WINDOWS: i64 = 100_000;

/// The kind of a part of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A task.
    Task,
    /// A pool.
    Pool,
    /// A process, in a group or as load.
    Process,
}

/// The effect of a change on a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Its processes continue.
    Kept,
    /// It is new.
    Added,
    /// Its processes end, and new ones replace them.
    Replaced,
    /// It is in the former deployment only.
    Removed,
}

/// The windows of a task or pool in one cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Their CPUs: one, unless the task migrates.
    pub cpus: CpuSet,
    /// The number of windows.
    pub windows: usize,
    /// The sum of their lengths.
    pub time: Duration,
    /// The start of the first window.
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

/// A part of the former or the new deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The kind of the part.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The effect of the change on it.
    pub fate: Fate,
    /// Its windows in the former table. `None`: it had none.
    pub before: Option<Service>,
    /// Its windows in the new table. `None`: it has none.
    pub after: Option<Service>,
    /// Whether it is in both tables, and its windows have other places or flags.
    pub rearranged: bool,
}

/// The effects of a change, part by part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The parts of the new deployment in its order, then the removed ones.
    pub items: Vec<Item>,
    /// Whether the kernel gets a new table.
    pub swaps: bool,
    /// The interfaces with another gate list.
    pub gates: Vec<String>,
}

impl Difference {
    /// Compares a plan with the running one. `condition` returns the condition of a running task or process. Dead or
    /// stopped tasks and processes are replaced. The result ignores a change of the lead only.
    pub fn between(
        running: &Plan,
        wanted: &Plan,
        condition: &dyn Fn(Kind, &str) -> Condition,
    ) -> Result<Difference, ChangeFault> {
        possible::refuse(running, wanted, &|name| condition(Kind::Task, name))?;
        // A task without windows stays unchanged, or `refuse` has rejected the change.
        let is_reserved = |task: &Task| task.reservation().is_some();
        let priority = |plan: &Plan, task: &Task| priority_of(&plan.system, &task.name);
        let same_task = |old: &Task, new: &Task| {
            let same_program = is_same_program(old, new) && priority(running, old) == priority(wanted, new);
            is_reserved(new) || (same_program && condition(Kind::Task, &old.name) == Condition::Sound)
        };
        let (old, new) = (&running.system, &wanted.system);
        let pick = |item| describe(running, wanted, item);
        let mut items: Vec<Item> = fates(&old.tasks, &new.tasks, |task| &task.name, same_task)
            .map(|(name, fate)| pick((Kind::Task, name, fate)))
            .collect();
        // Only the properties of a pool in the table may change.
        let pools = |system: &System| system.pools().collect::<Vec<_>>();
        let (had, has) = (pools(old), pools(new));
        let pools = fates(&had, &has, |pool: &Pool| &pool.name, |_, _| true);
        items.extend(pools.map(|(name, fate)| pick((Kind::Pool, name, fate))));
        let processes = |system: &System| system.processes().collect::<Vec<_>>();
        let (had, has) = (processes(old), processes(new));
        let same_process =
            |old: &Placed, new: &Placed| old == new && condition(Kind::Process, &old.name) == Condition::Sound;
        let processes = fates(&had, &has, |process: &Placed| &process.name, same_process);
        items.extend(processes.map(|(name, fate)| pick((Kind::Process, name, fate))));
        // The sort is stable: it moves the removed parts to the end.
        items.sort_by_key(|item| item.fate == Fate::Removed);
        Ok(Difference { items, swaps: has_other_table(running, wanted), gates: other_gates(running, wanted) })
    }

    /// Returns the effect on a part.
    pub fn fate(&self, kind: Kind, name: &str) -> Option<Fate> {
        self.items.iter().find(|item| item.kind == kind && item.name == name).map(|item| item.fate)
    }

    /// Returns the names of the parts with this fate, in order.
    pub fn names(&self, kind: Kind, fate: Fate) -> impl Iterator<Item = &str> {
        self.items.iter().filter(move |item| item.kind == kind && item.fate == fate).map(|item| item.name.as_str())
    }

    /// Returns whether a part's processes are new.
    pub fn is_fresh(&self, kind: Kind, name: &str) -> bool {
        matches!(self.fate(kind, name), Some(Fate::Added | Fate::Replaced))
    }
}

fn describe(running: &Plan, wanted: &Plan, (kind, name, fate): (Kind, String, Fate)) -> Item {
    let service = |plan: &Plan| if kind == Kind::Process { None } else { Service::of(plan, &name) };
    let (before, after) = (service(running).filter(|_| fate != Fate::Added), service(wanted));
    let after = after.filter(|_| fate != Fate::Removed);
    let rearranged = before.is_some() && after.is_some() && !has_same_pattern(running, wanted, &name);
    Item { kind, name, fate, before, after, rearranged }
}

/// Returns name and fate of the parts of one kind: the new ones in their order, then the removed ones.
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

/// Returns whether a process of one task can serve as a process of the other. A program does not depend on the reaction
/// to a miss. A built-in workload prepares for a signal.
fn is_same_program(old: &Task, new: &Task) -> bool {
    let is_signalled = |task: &Task| task.on_miss == OnMiss::Signal;
    let prepares = !matches!(new.run, Workload::Program(_)) && is_signalled(old) != is_signalled(new);
    old.run == new.run && old.namespace == new.namespace && !prepares
}

/// Returns the windows of a task or pool with their CPUs, in order of time.
fn windows_of<'a>(plan: &'a Plan, name: &str) -> Vec<(u32, &'a Window)> {
    let each = plan.tables.iter().flat_map(|table| table.windows.iter().map(|window| (table.cpu, window)));
    let mut windows: Vec<(u32, &Window)> = each.filter(|(_, window)| window.task == name).collect();
    windows.sort_by_key(|(_, window)| window.offset);
    windows
}

/// Returns whether a task or pool with windows in both plans has them at the same instants. The cycles may differ.
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

/// Returns whether the kernel's tables differ in more than the lead.
fn has_other_table(running: &Plan, wanted: &Plan) -> bool {
    let tasks = |plan: &Plan| -> Vec<(String, OnMiss, Option<u32>)> {
        plan.system.tasks.iter().map(|task| (task.name.clone(), task.on_miss, task.max_misses)).collect()
    };
    let filled =
        |plan: &Plan| -> Vec<_> { plan.tables.iter().filter(|table| !table.windows.is_empty()).cloned().collect() };
    running.cycle != wanted.cycle
        || filled(running) != filled(wanted)
        || running.system.sync() != wanted.system.sync()
        || !running.system.pools().eq(wanted.system.pools())
        || tasks(running) != tasks(wanted)
}

#[cfg(test)]
pub mod tests {
    use macrotick_fixtures::{group, hog, reserved, spin, table, us};
    use macrotick_model::{Group, Process};

    use super::*;
    use crate::deployment::samples::{plan, task, window};

    const MS: Duration = Duration::from_millis(1);

    /// Returns a plan with `a` and `b`, each with one window per millisecond.
    pub fn two() -> Plan {
        plan(
            vec![task("a", MS, None), task("b", MS, None)],
            vec![window("a", 0, 100, true, true), window("b", 200, 100, true, true)],
        )
    }

    fn one(cpu: u32) -> CpuSet {
        [cpu].into_iter().collect()
    }

    pub fn between(running: &Plan, wanted: &Plan) -> Result<Difference, ChangeFault> {
        Difference::between(running, wanted, &|_, _| Condition::Sound)
    }

    fn all_fates(difference: &Difference) -> Vec<(&str, Fate)> {
        difference.items.iter().map(|item| (item.name.as_str(), item.fate)).collect()
    }

    #[test]
    fn the_same_plan_changes_nothing() {
        let mut later = two();
        // These values are not part of the running deployment.
        later.system.experiment.duration = MS;
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
        running.system.load = vec![hog("hog"), hog("other")];
        wanted.system.load = vec![Process { cpu: Some(0), ..hog("other") }, hog("new")];
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
        assert!(difference.swaps && difference.is_fresh(Kind::Process, "other"));
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
        assert_eq!(changed(|task| task.run = spin(MS)), Some(Fate::Replaced));
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
        let dead = Difference::between(&with(MS), &with(MS), &|_, _| Condition::Dead).unwrap();
        assert_eq!(all_fates(&dead), [("a", Fate::Replaced), ("b", Fate::Kept)]);
    }

    #[test]
    fn who_is_not_sound_is_replaced_and_who_is_dead_may_move() {
        let mut elsewhere = two();
        let windows = elsewhere.tables[0].windows.split_off(1);
        elsewhere.tables.push(table(1, windows));
        for condition in [Condition::Dead, Condition::Stopped] {
            let of = |_: Kind, name: &str| if name == "b" { condition } else { Condition::Sound };
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
    fn a_process_that_is_dead_is_replaced() {
        let mut loaded = two();
        loaded.system.load = vec![hog("hog"), hog("other")];
        loaded.system.groups = vec![Group { run: vec![hog("inside")], ..group("g", 1, us(100)) }];
        let of = |kind: Kind, name: &str| match (kind, name) {
            (Kind::Process, "other" | "inside") => Condition::Dead,
            _ => Condition::Sound,
        };
        let difference = Difference::between(&loaded, &loaded, &of).unwrap();
        let fate = |name| difference.fate(Kind::Process, name);
        assert_eq!(fate("hog"), Some(Fate::Kept));
        assert_eq!([fate("other"), fate("inside")], [Some(Fate::Replaced); 2]);
        assert!(!difference.swaps);
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
        let text = "`a` runs on CPU 0, 1 and cannot move to CPU 0: give it another name, or run `macrotick stop` first";
        assert_eq!(fault.to_string(), text);
        let text =
            "`a` runs on CPU 0 and cannot move to CPU 0, 1: give it `cpu: 0`, or another name, or run `macrotick stop` \
                    first";
        assert_eq!(between(&two(), &on_both(100)).unwrap_err().to_string(), text);
        let dead = Difference::between(&on_both(100), &two(), &|_, _| Condition::Dead);
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
}
