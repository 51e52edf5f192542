//! Changes of a plan: as few windows as possible move.
//!
//! First, the new tasks are planned beside all former windows. If there is no such table, the new tasks eject former ones
//! ([`crate::insert`]). If this fails too, the movable tasks of one CPU are free, then those of more CPUs, and at last
//! all. Among the tasks that move, as many as possible then get their windows back: halves first, then smaller parts. At
//! the end, each task that still moves is necessary (Zeller, Hildebrandt: Simplifying and isolating failure-inducing
//! input, IEEE Transactions on Software Engineering 28, 2002).
//!
//! Tasks keep their CPUs meanwhile: a thread cannot leave that of its windows while it runs. CPUs change only if there is
//! no table otherwise.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::visible::shortened;
use macrotick_model::{CpuSet, Duration, Plan, System};

use crate::budget;
use crate::demand::{by_name, ByName, Demand};
use crate::error::{Answer, PlanError};
use crate::folded::Problem;
use crate::frozen::{self, Frozen, Repeated, Windows};
use crate::insert::{insert, Inserted, Manner};
use crate::kept::{self, Tables};
use crate::options::Clock;

/// The trials of an attempt.
const TRIALS: u64 = 4;
/// The number of windows from which on a simulation beside all of them takes too long.
const MANY: i64 = 5000;
/// The most attempts to give windows back.
const ATTEMPTS: usize = 200;
/// The most insertions, and the number of windows that all of them handle. They bound the time without a clock.
const INSERTIONS: i64 = 30;
const WORK: i64 = 60_000;

/// A former plan, and what may change in it. All other tasks and pools with windows are movable: they move only if it is
/// necessary.
#[derive(Clone, Debug)]
pub struct Change {
    /// The windows and the demands of the former plan.
    windows: Windows,
    demands: ByName,
    frozen: BTreeSet<String>,
    free: BTreeSet<String>,
}

/// A CPU or a resource: windows and jobs take time of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Cpu(u32),
    Resource(&'a str),
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
        /// The difference.
        reason: String,
    },
}

/// The differences between the windows of two plans, by the names of tasks and pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Those with the same windows in both.
    pub kept: Vec<String>,
    /// Those with other windows, and the number of other windows in the cycle of the new plan.
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
                Some(false) => moved.moved.push((name.clone(), windows.others(&former[name]))),
            }
        }
        moved.removed = former.into_keys().filter(|name| !present.contains_key(name)).collect();
        moved
    }
}

impl Change {
    /// Returns the CPU of the first window of a task in the former plan.
    pub(crate) fn former_cpu(&self, name: &str) -> Option<u32> {
        self.windows.get(name)?.cpus().next()
    }

    /// Makes a change from a former plan to a system. Frozen tasks and pools keep their windows, free ones may get any.
    pub fn new(
        from: &Plan,
        system: &System,
        frozen: impl IntoIterator<Item = String>,
        free: impl IntoIterator<Item = String>,
    ) -> Result<Change, ChangeError> {
        let change = Change {
            windows: frozen::windows(from),
            demands: by_name(&from.system),
            frozen: frozen.into_iter().collect(),
            free: free.into_iter().collect(),
        };
        let mut named = change.frozen.iter().chain(&change.free);
        if let Some(unknown) = named.find(|name| !change.windows.contains_key(*name)) {
            return Err(ChangeError::Unknown(unknown.clone()));
        }
        if let Some(both) = change.frozen.intersection(&change.free).next() {
            return Err(ChangeError::Both(both.clone()));
        }
        let Some(cycle) = system.cycle_of_plan() else { return Ok(change) };
        let demands = by_name(system);
        for name in &change.frozen {
            let changed = |reason| ChangeError::Changed { name: name.clone(), reason };
            let Some(demand) = demands.get(name) else { return Err(ChangeError::Gone(name.clone())) };
            let demand = demand.as_ref().map_err(|error| changed(error.to_string()))?;
            change.held(system, cycle, &change.windows[name], demand).map_err(changed)?;
        }
        Ok(change)
    }

    /// Returns the windows of a task that its new parameters allow, or the reason why there are none.
    fn held(&self, system: &System, cycle: Duration, windows: &Repeated, demand: &Demand) -> Result<Repeated, String> {
        let former = self.demands.get(&demand.name).and_then(|former| former.as_ref().ok());
        let former = former.ok_or("the former plan does not state it")?;
        if let Some(what) = demand.difference(former) {
            return Err(format!("its {what} is another one"));
        }
        let cpus: BTreeSet<u32> = windows.cpus().collect();
        if let Some(cpu) = cpus.iter().find(|cpu| !system.cpus.contains(cpu)) {
            return Err(format!("its windows are on CPU {cpu}, which the description does not have"));
        }
        if !cpus.iter().all(|&cpu| demand.cpus.contains(cpu)) {
            return Err(match demand.cpus.is_several() {
                true => "it may not use their CPU".into(),
                false => "it is pinned to another CPU".into(),
            });
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
        let demands = by_name(system);
        let mut held = Windows::new();
        let mut order: Vec<(&String, &Repeated)> =
            self.windows.iter().filter(|(name, _)| !self.free.contains(*name)).collect();
        // Frozen ones first: they stay where others are in their way.
        order.sort_by_key(|(name, _)| (!self.frozen.contains(*name), *name));
        let resources: BTreeMap<&str, &[String]> =
            system.tasks.iter().map(|task| (task.name.as_str(), task.exclusive.as_slice())).collect();
        let mut taken: BTreeMap<Part, BTreeMap<Duration, Duration>> = BTreeMap::new();
        if let Some(sync) = system.sync() {
            for &cpu in &system.cpus {
                taken
                    .entry(Part::Cpu(cpu))
                    .or_default()
                    .extend(sync.starts(cycle).map(|start| (start, start + sync.length)));
            }
        }
        for (name, windows) in order {
            let Some(Ok(demand)) = demands.get(name) else { continue };
            let Ok(windows) = self.held(system, cycle, windows, demand) else { continue };
            let on_cpus = windows.busy(cycle, demand.lead).map(|(start, end, cpu)| (start, end, Part::Cpu(cpu)));
            let own = resources.get(name.as_str()).copied().unwrap_or_default().iter();
            let jobs = own.flat_map(|resource| {
                let spans = windows.spans(cycle, demand);
                spans.map(move |(start, end)| (start, end, Part::Resource(resource)))
            });
            let busy: Vec<(Duration, Duration, Part)> = on_cpus
                .chain(jobs)
                .flat_map(|(start, end, part)| in_cycle(start, end, cycle).map(move |(start, end)| (start, end, part)))
                .collect();
            let is_free = |(start, end, part): &(Duration, Duration, Part)| {
                let before = taken.get(part).and_then(|taken| taken.range(..*end).next_back());
                before.is_none_or(|(_, until)| until <= start)
            };
            if busy.iter().all(is_free) {
                busy.into_iter().for_each(|(start, end, part)| {
                    taken.entry(part).or_default().insert(start, end);
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
        let cpu = |name: &String| {
            let cpus: BTreeSet<u32> = self.windows.get(name).filter(|_| !self.free.contains(name))?.cpus().collect();
            cpus.first().copied().filter(|cpu| cpus.len() == 1 && system.cpus.contains(cpu))
        };
        let mut pinned = system.clone();
        for task in pinned.tasks.iter_mut().filter(|task| task.supply.is_windows()) {
            task.cpu = task.cpu.or_else(|| cpu(&task.name).filter(|&cpu| system.cpus_of(task).contains(cpu)));
            if task.cpu.is_some() {
                task.cpus = CpuSet::default();
            }
            task.migrate &= task.cpu.is_none();
        }
        for group in pinned.groups.iter_mut().filter(|group| group.cpus.is_empty()) {
            let found = group.pool_name().and_then(|name| cpu(&name));
            group.cpus.extend(found);
        }
        pinned
    }

    /// Returns tables with all windows except those that must make room for tasks without windows.
    fn inserted(&self, system: &System, cycle: Duration, held: &Windows, clock: &Clock) -> Option<Tables> {
        let problem = Problem::new(system, cycle, held).ok()?;
        let frozen = |task: &usize| self.frozen.contains(&problem.demands[*task].name);
        let fixed: BTreeSet<usize> = (0..problem.demands.len()).filter(frozen).collect();
        let mut best: Option<Inserted> = None;
        let work = WORK / held.values().map(|one| one.count(cycle)).sum::<i64>().max(1);
        let attempts = work.clamp(1, INSERTIONS);
        for number in 0..attempts as u64 {
            let found = insert(&problem, &fixed, Manner::of(number), best.as_ref(), clock);
            best = best.into_iter().chain(found).min_by_key(|found| found.windows);
            if best.as_ref().is_some_and(|best| best.windows == 0) {
                break;
            }
        }
        let best = best?;
        let attempt = |free: &BTreeSet<usize>| {
            let fixed = (0..problem.demands.len()).filter(|task| !free.contains(task)).collect();
            insert(&problem, &fixed, Manner::of(0), None, clock)
        };
        let found = fewest(best.moved.clone().into_iter().collect(), best, attempts as usize, clock, attempt);
        let tables = kept::enough(system, problem.finished(&found.pieces).ok()?, cycle)?;
        in_order(system, tables, cycle).ok().filter(|tables| tables.is_enough)
    }

    fn search(&self, system: &System, cycle: Duration, clock: &Clock) -> Result<Tables, PlanError> {
        let held = self.all_held(system, cycle);
        if let Some(task) = self.frozen.iter().find(|name| !held.contains_key(*name)) {
            return Err(PlanError::Frozen { task: task.clone() });
        }
        let attempt = |free: &BTreeSet<&String>, clock: &Clock| {
            let stay = held.iter().filter(|(name, _)| !free.contains(name));
            let stay = stay.map(|(name, held)| (name.clone(), held.clone())).collect();
            kept::tables(system, cycle, clock, &stay).and_then(|tables| in_order(system, tables, cycle))
        };
        let movable: BTreeSet<&String> = held.keys().filter(|name| !self.frozen.contains(*name)).collect();
        // The simulation finds each table in which nothing moves, but takes long for many windows.
        let first = match held.values().map(|one| one.count(cycle)).sum::<i64>() {
            0..=MANY => Some(attempt(&BTreeSet::new(), &clock.part(4).with_trials(TRIALS))),
            _ => None,
        };
        let is_final = |first: &Result<Tables, PlanError>| match first {
            Ok(tables) => tables.is_enough,
            Err(error) => error.answer() == Answer::Impossible,
        };
        let first = match first {
            Some(first) if is_final(&first) || movable.is_empty() => return first,
            first => first.and_then(Result::ok),
        };
        if let Some(tables) = self.inserted(system, cycle, &held, &clock.part(4)) {
            return Ok(tables);
        }
        let again = |free: &BTreeSet<&String>| {
            let found = attempt(free, &clock.part(8).with_trials(TRIALS));
            found.ok().filter(|tables| tables.is_enough)
        };
        for free in sets(system, &held, &movable) {
            if clock.is_over() {
                break;
            }
            if let Some(tables) = again(&free) {
                return Ok(fewest(by_windows(&free, &held, cycle), tables, ATTEMPTS, clock, again));
            }
        }
        match (attempt(&movable, &clock.part(2)), first) {
            (Ok(tables), _) if tables.is_enough => {
                Ok(fewest(by_windows(&movable, &held, cycle), tables, ATTEMPTS, clock, again))
            }
            // The judge may accept the first table, which the test here is too weak for.
            (_, Some(first)) => Ok(first),
            (all, None) => all,
        }
    }
}

/// Returns the tables if each job starts after those in its `after`. Windows that stay can break that order. They can also
/// leave too little for budgets: the tables then may not be enough.
fn in_order(system: &System, mut tables: Tables, cycle: Duration) -> Result<Tables, PlanError> {
    let problem = Problem::new(system, cycle, &Windows::new())?;
    let windows = frozen::windows_of(&tables.tables, cycle);
    let jobs = |task: usize| {
        let demand = &problem.demands[task];
        windows.get(&demand.name).map_or(Vec::new(), |windows| windows.jobs(demand))
    };
    for edge in &problem.plain.edges {
        let (before, then) = (jobs(edge.from), jobs(edge.to));
        let number = |task: usize, lane: i64, window: i64| window * (edge.window / problem.demands[task].period) + lane;
        let is_kept = |window: i64| {
            let before = before.get(number(edge.from, edge.from_lane, window) as usize);
            let then = then.get(number(edge.to, edge.to_lane, window) as usize);
            before.zip(then).is_none_or(|((_, end), (start, _))| end <= start)
        };
        if !(0..cycle / edge.window).all(is_kept) {
            return Err(PlanError::Frozen { task: problem.demands[edge.to].name.clone() });
        }
    }
    let all = Frozen::new(&windows, &problem.demands, &system.cpus, cycle);
    tables.is_enough &= budget::leave_enough(system, cycle, all.pieces());
    Ok(tables)
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

/// Returns the names of free tasks, those with the most windows first: these get their windows back first.
fn by_windows<'n>(free: &BTreeSet<&'n String>, held: &Windows, cycle: Duration) -> Vec<&'n String> {
    let mut free: Vec<&String> = free.iter().copied().collect();
    free.sort_by_key(|name| Reverse(held[*name].count(cycle)));
    free
}

/// Returns the result of an attempt with fewer free tasks, as few as can be. Each part of them that is not necessary is
/// not free any more. `found` is the result with all of them.
fn fewest<T: Copy + Ord, Found>(
    mut free: Vec<T>,
    mut found: Found,
    most: usize,
    clock: &Clock,
    attempt: impl Fn(&BTreeSet<T>) -> Option<Found>,
) -> Found {
    let (mut parts, mut attempts) = (2, 0);
    while !free.is_empty() {
        let size = free.len().div_ceil(parts);
        let mut fewer = None;
        for from in (0..free.len()).step_by(size) {
            attempts += 1;
            if clock.is_over() || attempts > most {
                return found;
            }
            let rest: Vec<T> = [&free[..from], &free[(from + size).min(free.len())..]].concat();
            if let Some(result) = attempt(&rest.iter().copied().collect()) {
                fewer = Some((rest, result));
                break;
            }
        }
        match fewer {
            Some(fewer) => {
                (free, found) = fewer;
                parts = (parts - 1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(free.len()),
        }
    }
    found
}

/// Returns an interval, which may begin before a cycle or end after it, as intervals within the cycle.
fn in_cycle(start: Duration, end: Duration, cycle: Duration) -> impl Iterator<Item = (Duration, Duration)> {
    let shift = Duration::from_nanos(start.as_nanos().div_euclid(cycle.as_nanos()) * cycle.as_nanos());
    let (start, end) = (start - shift, end - shift);
    let second = (end > cycle).then(|| (Duration::ZERO, end - cycle));
    std::iter::once((start, end.min(cycle))).chain(second)
}

#[cfg(test)]
mod tests {
    use macrotick_model::{CpuTable, Window};

    use super::*;

    #[test]
    fn tasks_keep_their_cpus_unless_the_description_says_another() {
        let text = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 1ms, wcet: 100us}\n  \
                    - {name: b, period: 1ms, wcet: 100us, cpu: 0}\n  - {name: c, period: 1ms, wcet: 100us}\n  \
                    - {name: d, period: 1ms, wcet: 100us, migrate: true}\n  \
                    - {name: e, period: 1ms, wcet: 100us, migrate: true}\n";
        let system = System::parse(text, "s.yaml").unwrap();
        let us = Duration::from_micros;
        let table = |cpu, names: &[&str]| {
            let windows = names.iter().zip(0..).map(|(name, at)| Window::new(*name, us(100 * at), us(100)));
            CpuTable::new(cpu, windows.collect())
        };
        let tables = vec![table(0, &["d"]), table(1, &["a", "b", "d", "e"]), table(7, &["c"])];
        let from = Plan::new("null", us(1000), tables, system.clone());
        let change = Change::new(&from, &system, [], []).unwrap();
        let kept: Vec<(Option<u32>, bool)> =
            change.pinned(&system).tasks.iter().map(|task| (task.cpu, task.migrate)).collect();
        assert_eq!(kept, [(Some(1), false), (Some(0), false), (None, false), (None, true), (Some(1), false)]);
    }
}
