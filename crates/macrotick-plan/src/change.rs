//! Changes of a plan: as few windows as possible move.
//!
//! First, all windows of the former plan stay that can, and the new ones go beside them. If there is no table, the
//! movable tasks of one CPU are free, then those of more CPUs, and at last all. Tasks keep their CPUs meanwhile: a
//! thread cannot leave that of its windows while it runs. CPUs change only if there is no table otherwise. Among the free
//! tasks, as many as possible then get their windows back: halves first, then smaller parts, until each task that is
//! still free is necessary
//! (Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, IEEE Transactions on Software Engineering 28,
//! 2002).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::visible::shortened;
use macrotick_model::{Duration, Plan, System};

use crate::demand::{demand_of, lead, Demand};
use crate::error::{Answer, PlanError};
use crate::frozen::{self, Repeated, Windows};
use crate::kept::{self, Tables};
use crate::options::Clock;

/// The trials while all windows stay, and in each further attempt.
const FIRST_TRIALS: u64 = 64;
const TRIALS: u64 = 8;
/// The most attempts to give windows back.
const ATTEMPTS: usize = 200;

/// A former plan, and what may change in it. All other tasks and pools with windows are movable: they move only if it is
/// necessary.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    from: &'a Plan,
    frozen: BTreeSet<String>,
    free: BTreeSet<String>,
}

/// A task or pool that cannot be frozen or free.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// It has no windows in the former plan.
    #[error("`{}` has no windows in the former plan", shortened(.0))]
    Unknown(String),
    /// It is frozen and free at the same time.
    #[error("`{}` cannot be frozen and free", shortened(.0))]
    Both(String),
    /// It is frozen, but the new system does not have it.
    #[error("`{0}` cannot be frozen: the description does not have it")]
    Gone(String),
    /// It is frozen, but its windows do not fit to its new parameters.
    #[error("`{name}` cannot be frozen: {reason}")]
    Changed {
        /// The task or pool.
        name: String,
        /// What is different.
        reason: String,
    },
}

/// The differences between the windows of two plans, by the names of tasks and pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Those with the same windows in both.
    pub kept: Vec<String>,
    /// Those with other windows, and their number in the cycle of the new plan.
    pub moved: Vec<(String, i64)>,
    /// Those that only the new plan has.
    pub added: Vec<String>,
    /// Those that only the former plan has.
    pub removed: Vec<String>,
}

impl Moved {
    /// Compares the windows of two plans.
    pub fn between(before: &Plan, after: &Plan) -> Moved {
        let (former, present) = (frozen::windows(before), frozen::windows(after));
        let common = before.cycle.gcd(after.cycle);
        let mut moved = Moved::default();
        for (name, windows) in &present {
            let within = |windows: &Repeated| windows.within(common, common);
            match former.get(name).map(|former| within(former).is_some_and(|one| Some(one) == within(windows))) {
                None => moved.added.push(name.clone()),
                Some(true) => moved.kept.push(name.clone()),
                Some(false) => moved.moved.push((name.clone(), windows.count(after.cycle))),
            }
        }
        moved.removed = former.into_keys().filter(|name| !present.contains_key(name)).collect();
        moved
    }
}

impl<'a> Change<'a> {
    /// Makes a change from a former plan to a system. Frozen tasks and pools keep their windows, free ones may get any.
    pub fn new(
        from: &'a Plan,
        system: &System,
        frozen: impl IntoIterator<Item = String>,
        free: impl IntoIterator<Item = String>,
    ) -> Result<Change<'a>, ChangeError> {
        let change = Change { from, frozen: frozen.into_iter().collect(), free: free.into_iter().collect() };
        let former = frozen::windows(from);
        let mut named = change.frozen.iter().chain(&change.free);
        if let Some(unknown) = named.find(|name| !former.contains_key(*name)) {
            return Err(ChangeError::Unknown(unknown.clone()));
        }
        if let Some(both) = change.frozen.intersection(&change.free).next() {
            return Err(ChangeError::Both(both.clone()));
        }
        let Some(cycle) = system.cycle_of_plan() else { return Ok(change) };
        for name in &change.frozen {
            let changed = |reason| ChangeError::Changed { name: name.clone(), reason };
            let Some(demand) = demand_of(system, name) else { return Err(ChangeError::Gone(name.clone())) };
            let demand = demand.map_err(|error| changed(error.to_string()))?;
            change.held(system, cycle, &former[name], &demand).map_err(changed)?;
        }
        Ok(change)
    }

    /// Returns the windows of a task that its new parameters allow, or the reason why there are none.
    fn held(&self, system: &System, cycle: Duration, windows: &Repeated, demand: &Demand) -> Result<Repeated, String> {
        let former = demand_of(&self.from.system, &demand.name).and_then(Result::ok);
        let former = former.ok_or("the former plan does not state it")?;
        if let Some(what) = demand.difference(&former) {
            return Err(format!("its {what} is another one"));
        }
        let cpus: BTreeSet<u32> = windows.cpus().collect();
        if let Some(cpu) = cpus.iter().find(|cpu| !system.cpus.contains(cpu)) {
            return Err(format!("its windows are on CPU {cpu}, which the description does not have"));
        }
        if demand.cpu.is_some_and(|cpu| cpus.iter().any(|&other| other != cpu)) {
            return Err("it is pinned to another CPU".into());
        }
        if cpus.len() > 1 && !demand.migrate {
            return Err("it has several CPUs, and may not migrate".into());
        }
        if !windows.is_on(system.macrotick) {
            return Err(format!("its windows are not on the macrotick of {}", system.macrotick));
        }
        let within = windows.within(cycle, demand.period);
        within.ok_or_else(|| format!("its windows do not repeat in the cycle of {cycle}"))
    }

    /// Returns the windows that can stay together.
    fn all_held(&self, system: &System, cycle: Duration) -> Windows {
        let former = frozen::windows(self.from);
        let mut held = Windows::new();
        let mut order: Vec<(&String, &Repeated)> =
            former.iter().filter(|(name, _)| !self.free.contains(*name)).collect();
        // Frozen ones first: they stay where others are in their way.
        order.sort_by_key(|(name, _)| (!self.frozen.contains(*name), *name));
        let mut taken: BTreeMap<u32, BTreeMap<Duration, Duration>> = BTreeMap::new();
        if let Some(sync) = system.sync() {
            for &cpu in &system.cpus {
                taken.entry(cpu).or_default().extend(sync.starts(cycle).map(|start| (start, start + sync.length)));
            }
        }
        for (name, windows) in order {
            let Some(Ok(demand)) = demand_of(system, name) else { continue };
            let Ok(windows) = self.held(system, cycle, windows, &demand) else { continue };
            let lead = if demand.is_pool() { Duration::ZERO } else { lead(system) };
            let busy: Vec<(Duration, Duration, u32)> = windows
                .busy(cycle, lead)
                .flat_map(|(start, end, cpu)| in_cycle(start, end, cycle).map(move |(start, end)| (start, end, cpu)))
                .collect();
            let is_free = |&(start, end, cpu): &(Duration, Duration, u32)| {
                let before = taken.get(&cpu).and_then(|taken| taken.range(..end).next_back());
                before.is_none_or(|(_, &until)| until <= start)
            };
            if busy.iter().all(is_free) {
                busy.into_iter().for_each(|(start, end, cpu)| {
                    taken.entry(cpu).or_default().insert(start, end);
                });
                held.insert(name.clone(), windows);
            }
        }
        held
    }

    /// Returns the tables, with other CPUs for tasks of the former plan only if there are none otherwise.
    pub(crate) fn tables(&self, system: &System, cycle: Duration, clock: &Clock) -> Result<Tables, PlanError> {
        let pinned = self.pinned(system);
        let first = self.search(&pinned, cycle, &clock.part(2));
        if pinned == *system || first.as_ref().is_ok_and(|tables| tables.is_enough) {
            return first;
        }
        match (self.search(system, cycle, clock), first) {
            (Ok(tables), _) if tables.is_enough => Ok(tables),
            (_, Ok(first)) => Ok(first),
            (second, Err(_)) => second,
        }
    }

    /// Pins tasks and groups to the only CPU of their windows, if the system leaves it to the solver.
    fn pinned(&self, system: &System) -> System {
        let former = frozen::windows(self.from);
        let cpu = |name: &String| {
            let cpus: BTreeSet<u32> = former.get(name).filter(|_| !self.free.contains(name))?.cpus().collect();
            cpus.first().copied().filter(|cpu| cpus.len() == 1 && system.cpus.contains(cpu))
        };
        let mut pinned = system.clone();
        for task in pinned.tasks.iter_mut().filter(|task| task.supply.is_windows()) {
            task.cpu = task.cpu.or_else(|| cpu(&task.name));
            task.migrate &= task.cpu.is_none();
        }
        for group in pinned.groups.iter_mut().filter(|group| group.cpus.is_empty()) {
            let found = group.pool_name().and_then(|name| cpu(&name));
            group.cpus.extend(found);
        }
        pinned
    }

    fn search(&self, system: &System, cycle: Duration, clock: &Clock) -> Result<Tables, PlanError> {
        let held = self.all_held(system, cycle);
        if let Some(task) = self.frozen.iter().find(|name| !held.contains_key(*name)) {
            return Err(PlanError::Frozen { task: task.clone() });
        }
        let attempt = |free: &BTreeSet<&String>, clock: &Clock| {
            let stay = held.iter().filter(|(name, _)| !free.contains(name));
            kept::tables(system, cycle, clock, &stay.map(|(name, held)| (name.clone(), held.clone())).collect())
        };
        let movable: BTreeSet<&String> = held.keys().filter(|name| !self.frozen.contains(*name)).collect();
        let first = attempt(&BTreeSet::new(), &clock.part(4).with_trials(FIRST_TRIALS));
        let is_final = match &first {
            Ok(tables) => tables.is_enough,
            Err(error) => error.answer() == Answer::Impossible,
        };
        if is_final || movable.is_empty() {
            return first;
        }
        for free in sets(system, &held, &movable) {
            if clock.is_over() {
                break;
            }
            let found = attempt(&free, &clock.part(8).with_trials(TRIALS));
            if let Some(tables) = found.ok().filter(|tables| tables.is_enough) {
                return Ok(give_back(free, tables, &held, cycle, clock, attempt));
            }
        }
        match (attempt(&movable, &clock.part(2)), first) {
            (Ok(tables), _) if tables.is_enough => Ok(give_back(movable, tables, &held, cycle, clock, attempt)),
            // The judge may accept what nobody is sure of here.
            (_, Ok(first)) => Ok(first),
            (all, Err(_)) => all,
        }
    }
}

/// Returns the sets of tasks that may move together: those of one CPU, the fewest first, then those of more CPUs.
fn sets<'n>(system: &System, held: &Windows, movable: &BTreeSet<&'n String>) -> Vec<BTreeSet<&'n String>> {
    let on = |cpus: &[u32]| -> BTreeSet<&String> {
        movable.iter().copied().filter(|name| held[*name].cpus().any(|cpu| cpus.contains(&cpu))).collect()
    };
    let mut sets: Vec<BTreeSet<&String>> = system.cpus.iter().map(|&cpu| on(&[cpu])).collect();
    sets.sort_by_key(BTreeSet::len);
    let counts = std::iter::successors(Some(2), |count| Some(count * 2));
    sets.extend(counts.take_while(|&count| count < system.cpus.len()).map(|count| on(&system.cpus[..count])));
    sets
}

/// Gives as many free tasks as possible their windows back, those with the most windows first.
fn give_back<'n>(
    free: BTreeSet<&'n String>,
    mut tables: Tables,
    held: &Windows,
    cycle: Duration,
    clock: &Clock,
    attempt: impl Fn(&BTreeSet<&'n String>, &Clock) -> Result<Tables, PlanError>,
) -> Tables {
    let mut free: Vec<&String> = free.into_iter().collect();
    free.sort_by_key(|name| Reverse(held[*name].count(cycle)));
    let (mut parts, mut attempts) = (2, 0);
    while !free.is_empty() && attempts < ATTEMPTS {
        let size = free.len().div_ceil(parts);
        let mut found = None;
        for from in (0..free.len()).step_by(size) {
            attempts += 1;
            if clock.is_over() || attempts > ATTEMPTS {
                return tables;
            }
            let rest: Vec<&String> = free
                .iter()
                .enumerate()
                .filter(|(at, _)| *at < from || *at >= from + size)
                .map(|(_, name)| *name)
                .collect();
            let set = rest.iter().copied().collect();
            let fewer = attempt(&set, &clock.part(8).with_trials(TRIALS));
            if let Some(fewer) = fewer.ok().filter(|tables| tables.is_enough) {
                found = Some((rest, fewer));
                break;
            }
        }
        match found {
            Some((rest, fewer)) => {
                (free, tables) = (rest, fewer);
                parts = (parts - 1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(free.len()),
        }
    }
    tables
}

/// Returns an interval, which may begin before a cycle or end after it, as intervals within the cycle.
fn in_cycle(start: Duration, end: Duration, cycle: Duration) -> impl Iterator<Item = (Duration, Duration)> {
    let shift = Duration::from_nanos(start.as_nanos().div_euclid(cycle.as_nanos()) * cycle.as_nanos());
    let (start, end) = (start - shift, end - shift);
    let second = (end > cycle).then(|| (Duration::ZERO, end - cycle));
    std::iter::once((start, end.min(cycle))).chain(second)
}
