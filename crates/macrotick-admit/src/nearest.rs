//! The nearest changes of a description without a plan with which it has one.
//!
//! Each way to change one value has steps from a small change to a large one. If the largest step of a way gives a plan,
//! a bisection finds the smallest one. So everything that is returned was planned, and the judge accepted it.

use std::time::{Duration as WallTime, Instant};

use macrotick_check::check;
use macrotick_model::{CpuSet, Duration, Reserve, System, Task};
use macrotick_plan::{plan_in_trials, Answer, Bound, Conflict, Options, PlanError, Progress, Solver, Watch};

/// The longest time of the search.
const LIMIT: WallTime = WallTime::from_secs(5);
/// The most trials for each step. They bound the time without a clock, so the result is the same on every machine.
const TRIALS: u64 = 24;
/// The number of changes that are returned.
const SHOWN: usize = 2;
/// The most tasks of a conflict that are changed.
const TASKS: usize = 4;
/// The sizes of changes without a number, compared with the relative change of a number.
const OTHER_PREEMPTION: f64 = 0.2;
const OTHER_CPU: f64 = 0.25;
const MIGRATION: f64 = 0.3;
const ONE_MORE_CPU: f64 = 0.5;
const DROPPED: f64 = 0.5;

/// A change of one value.
struct Step {
    system: System,
    words: String,
    /// The size of the change relative to the value.
    size: f64,
}

/// The steps of one value, the smallest change first.
type Way = Vec<Step>;

/// Returns the smallest changes that give a plan, in words: "`deadline: 12ms` for task `a` (10ms now)".
pub(crate) fn nearest(system: &System, error: &PlanError, options: Options, watch: &dyn Watch) -> Vec<String> {
    use PlanError::{Frozen, Gates, NoStart, TooManyWindows};
    // No change below is about these.
    let is_other = matches!(error, Gates(_) | NoStart { .. } | TooManyWindows { .. } | Frozen { .. });
    if is_other || error.answer() == Answer::Unanswered || system.table.is_some() {
        return Vec::new();
    }
    let search = Search { options, watch, end: Instant::now() + options.time_limit.min(LIMIT) };
    let mut found: Vec<Step> =
        ways(system, &error.conflict()).into_iter().filter_map(|way| search.smallest(way)).collect();
    found.sort_by(|one, other| one.size.total_cmp(&other.size));
    found.truncate(SHOWN);
    found.into_iter().map(|step| step.words).collect()
}

struct Search<'a> {
    options: Options,
    watch: &'a dyn Watch,
    end: Instant,
}

/// Ends with the search that it belongs to, and keeps its failed trials to itself.
struct Quietly<'a>(&'a dyn Watch);

impl Watch for Quietly<'_> {
    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    fn tell(&self, _progress: &Progress) {}
}

impl Search<'_> {
    /// Returns the smallest step with a plan, if the largest one has a plan.
    fn smallest(&self, mut way: Way) -> Option<Step> {
        if !self.has_plan(&way.last()?.system) {
            return None;
        }
        let (mut fails, mut holds) = (0, way.len() - 1);
        while fails < holds {
            let middle = (fails + holds) / 2;
            match self.has_plan(&way[middle].system) {
                true => holds = middle,
                false => fails = middle + 1,
            }
        }
        Some(way.swap_remove(holds))
    }

    fn has_plan(&self, system: &System) -> bool {
        let rest = self.end.saturating_duration_since(Instant::now());
        if rest.is_zero() || self.watch.is_over() || !system.problems().is_empty() {
            return false;
        }
        // One hard step leaves time to the others.
        let options = Options { time_limit: rest / 4, ..self.options };
        let plan = plan_in_trials(system, Solver::FoldedOccupancy, options, TRIALS, &Quietly(self.watch));
        let plan = plan.ok().and_then(|plan| macrotick_analysis::assign(plan).ok());
        plan.is_some_and(|plan| check(&plan).is_feasible())
    }
}

/// Returns all ways to change one value that the conflict is about.
fn ways(system: &System, conflict: &Conflict) -> Vec<Way> {
    let mut ways = Vec::new();
    for task in indices(system, conflict) {
        numbers(system, task, &mut ways);
        places(system, task, &mut ways);
        shared(system, task, &mut ways);
    }
    ways.extend(conflict.chain.as_ref().and_then(|(name, kind)| bound(system, name, *kind)));
    ways.extend(reserve(system));
    ways.extend(one_more_cpu(system));
    ways.retain(|way| !way.is_empty());
    ways
}

/// Returns the tasks of the conflict: those that it names, those of its chain, or else those with the largest shares.
fn indices(system: &System, conflict: &Conflict) -> Vec<usize> {
    let chain = conflict.chain.iter().filter_map(|(name, _)| system.chains.iter().find(|chain| chain.name == *name));
    let names: Vec<&String> = conflict.tasks.iter().chain(chain.flat_map(|chain| &chain.path)).collect();
    let index = |name: &&String| system.tasks.iter().position(|task| task.name == **name);
    let mut found: Vec<usize> = names.iter().filter_map(index).collect();
    if names.is_empty() {
        found = (0..system.tasks.len()).filter(|&task| system.tasks[task].supply.is_windows()).collect();
        let share = |task: &Task| task.wcet.as_nanos() as f64 / task.period.as_nanos() as f64;
        found.sort_by(|&one, &other| share(&system.tasks[other]).total_cmp(&share(&system.tasks[one])));
    }
    found.truncate(TASKS);
    found
}

fn changed(system: &System, task: usize, change: impl FnOnce(&mut Task)) -> System {
    let mut system = system.clone();
    change(&mut system.tasks[task]);
    system
}

/// Returns the part of a value by which it changes.
fn part(from: Duration, to: Duration, of: Duration) -> f64 {
    (to - from).as_nanos().unsigned_abs() as f64 / of.as_nanos().max(1) as f64
}

/// Adds the steps of the numbers of a task: a longer deadline, a larger jitter bound, a smaller wcet.
fn numbers(system: &System, task: usize, ways: &mut Vec<Way>) {
    let of = &system.tasks[task];
    let step = |key: &str, from: Duration, to: Duration, whole: Duration, change: fn(&mut Task, Duration)| Step {
        system: changed(system, task, |task| change(task, to)),
        words: format!("`{key}: {to}` for task `{}` ({from} now)", of.name),
        size: part(from, to, whole),
    };
    let longer = rounded(of.deadline, of.period).into_iter();
    ways.push(longer.map(|to| step("deadline", of.deadline, to, of.deadline, |task, to| task.deadline = to)).collect());
    if let Some(jitter) = of.jitter {
        let whole = if jitter > Duration::ZERO { jitter } else { of.deadline };
        let larger = rounded(jitter, of.deadline).into_iter();
        ways.push(larger.map(|to| step("jitter", jitter, to, whole, |task, to| task.jitter = Some(to))).collect());
    }
    let least = Duration::from_nanos(of.wcet.as_nanos() / 10);
    let mut shorter = rounded(least, of.wcet);
    shorter.retain(|&to| to < of.wcet);
    let shorter = shorter.into_iter().rev();
    ways.push(shorter.map(|to| step("wcet", of.wcet, to, of.wcet, |task, to| task.wcet = to)).collect());
}

/// Adds other CPUs, preemption and migration of a task.
fn places(system: &System, task: usize, ways: &mut Vec<Way>) {
    let of = &system.tasks[task];
    let name = &of.name;
    let one = |words: String, size: f64, change: &dyn Fn(&mut Task)| {
        vec![Step { system: changed(system, task, change), words, size }]
    };
    let own = system.cpus_of(of);
    if of.supply.is_windows() && system.hosts.is_empty() {
        for &cpu in system.cpus.iter().filter(|&&cpu| !own.contains(cpu)) {
            let more: CpuSet = own.as_slice().iter().copied().chain([cpu]).collect();
            let now = of.cpu.map_or_else(|| list(own.as_slice()), |cpu| format!("`cpu: {cpu}`"));
            let words = format!("`cpus: {}` for task `{name}` ({now} now)", list(more.as_slice()));
            ways.push(one(words, OTHER_CPU, &|task| (task.cpu, task.cpus) = (None, more.clone())));
        }
    }
    if !system.is_preemptible(of) {
        let words = format!("`preemptible: true` for task `{name}`");
        ways.push(one(words, OTHER_PREEMPTION, &|task| task.preemptible = Some(true)));
    }
    if !of.migrate && own.is_several() {
        let words = format!("`migrate: true` for task `{name}`");
        ways.push(one(words, MIGRATION, &|task| task.migrate = true));
    }
}

/// Adds the systems without a resource of a task, or without a task that it is apart from.
fn shared(system: &System, task: usize, ways: &mut Vec<Way>) {
    let of = &system.tasks[task];
    for resource in &of.exclusive {
        let mut without = changed(system, task, |task| task.exclusive.retain(|other| other != resource));
        let left = without.tasks.iter().filter(|other| other.exclusive.contains(resource)).count();
        // A resource of one task is none.
        if left < 2 {
            without.tasks.iter_mut().for_each(|task| task.exclusive.retain(|other| other != resource));
        }
        let words = match left < 2 {
            true => format!("no task with `{resource}` in `exclusive`"),
            false => format!("no `{resource}` in `exclusive` of task `{}`", of.name),
        };
        ways.push(vec![Step { system: without, words, size: DROPPED }]);
    }
    for name in &of.apart {
        let without = changed(system, task, |task| task.apart.retain(|other| other != name));
        let words = format!("no `{name}` in `apart` of task `{}`", of.name);
        ways.push(vec![Step { system: without, words, size: DROPPED }]);
    }
}

/// Returns the steps of a longer bound of a chain.
fn bound(system: &System, name: &str, kind: Bound) -> Option<Way> {
    let chain = system.chains.iter().position(|chain| chain.name == name)?;
    let (key, from) = match kind {
        Bound::Reaction => ("reaction", system.chains[chain].reaction?),
        Bound::Age => ("age", system.chains[chain].age?),
    };
    let step = |to: Duration| {
        let mut system = system.clone();
        match kind {
            Bound::Reaction => system.chains[chain].reaction = Some(to),
            Bound::Age => system.chains[chain].age = Some(to),
        }
        Step { system, words: format!("`{key}: {to}` for chain `{name}` ({from} now)"), size: part(from, to, from) }
    };
    Some(rounded(from, from * 10).into_iter().map(step).collect())
}

/// Returns the steps of a shorter reserve. The last one has none.
fn reserve(system: &System) -> Option<Way> {
    let Reserve { period, length } = system.reserve?;
    let mut shorter = rounded(Duration::from_nanos(length.as_nanos() / 10), length);
    shorter.retain(|&to| to < length);
    let step = |to: Duration| Step {
        system: System { reserve: Some(Reserve { period, length: to }), ..system.clone() },
        words: format!("`reserve: {{period: {period}, length: {to}}}` ({length} now)"),
        size: part(length, to, length),
    };
    let none = System { reserve: None, ..system.clone() };
    let none = Step { system: none, words: "no `reserve`".into(), size: DROPPED };
    Some(shorter.into_iter().rev().map(step).chain([none]).collect())
}

fn one_more_cpu(system: &System) -> Option<Way> {
    let next = system.cpus.iter().max()?.checked_add(1).filter(|_| system.hosts.is_empty())?;
    let cpus: Vec<u32> = system.cpus.iter().copied().chain([next]).collect();
    let words = format!("`cpus: {}` ({} now)", list(&cpus), list(&system.cpus));
    Some(vec![Step { system: System { cpus, ..system.clone() }, words, size: ONE_MORE_CPU }])
}

fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    format!("[{}]", cpus.join(", "))
}

/// Returns the times with two digits between two times, then the second one, in ascending order.
fn rounded(from: Duration, to: Duration) -> Vec<Duration> {
    let (from, to) = (from.as_nanos(), to.as_nanos());
    let least = 10i64.pow(to.max(1).ilog10().saturating_sub(2));
    let mut found = Vec::new();
    let mut at = from;
    loop {
        // The step is one of the second digit. From zero on, it begins with a hundredth of the range or less.
        let mut step = if from == 0 { least } else { 1 };
        while at >= step.saturating_mul(100) {
            step *= 10;
        }
        at = (at / step + 1) * step;
        if at >= to {
            break;
        }
        found.push(Duration::from_nanos(at));
    }
    if to > from {
        found.push(Duration::from_nanos(to));
    }
    found
}

#[cfg(test)]
mod tests {
    use macrotick_plan::{plan_within, Unwatched};

    use super::*;

    const OPTIONS: Options = Options { time_limit: WallTime::from_secs(3), seed: 1, jobs: 1 };

    fn parsed(source: &str) -> System {
        System::parse(source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn has_plan(source: &str) -> bool {
        let plan = plan_within(&parsed(source), Solver::FoldedOccupancy, OPTIONS);
        plan.is_ok_and(|plan| check(&plan).is_feasible())
    }

    fn found(source: &str) -> Vec<String> {
        let system = parsed(source);
        let error = plan_within(&system, Solver::FoldedOccupancy, OPTIONS).expect_err("no plan");
        nearest(&system, &error, OPTIONS, &Unwatched)
    }

    /// Checks that a change is among those found, and that the description with it has a plan. The text `now` becomes
    /// `then`, or `less` for a change that is too small.
    #[track_caller]
    fn holds(source: &str, words: &str, (now, then): (&str, &str), less: Option<&str>) {
        let found = found(source);
        assert!(found.iter().any(|found| found == words), "{found:#?}");
        assert!(source.contains(now), "{now}");
        assert!(has_plan(&source.replace(now, then)), "{then}");
        assert!(less.is_none_or(|less| !has_plan(&source.replace(now, less))), "{less:?}");
    }

    #[test]
    fn times_have_two_digits() {
        let us = Duration::from_micros;
        let of = |from, to| rounded(us(from), us(to));
        assert_eq!(of(9800, 12_500), [9900, 10_000, 11_000, 12_000, 12_500].map(us));
        assert_eq!(of(10, 10), []);
        assert_eq!((of(0, 10_000)[0], of(0, 7_000)[0], of(0, 7_000).pop()), (us(100), us(10), Some(us(7_000))));
        assert!(of(0, 10_000).len() < 120 && rounded(Duration::ZERO, Duration::from_nanos(3)).len() == 3);
    }

    #[test]
    fn a_longer_deadline_is_enough() {
        let source = "system: s\ntasks:\n  - {name: a, period: 20ms, wcet: 5ms, deadline: 8ms}\n  \
                      - {name: b, period: 20ms, wcet: 4ms, deadline: 8ms}\n";
        let deadline = |deadline| format!("wcet: 5ms, deadline: {deadline}");
        holds(
            source,
            "`deadline: 9ms` for task `a` (8ms now)",
            (&deadline("8ms"), &deadline("9ms")),
            Some(&deadline("8900us")),
        );
        assert_eq!(found(source).len(), SHOWN);
        assert_eq!(found(source), found(source));
    }

    #[test]
    fn a_larger_jitter_bound_is_enough() {
        let source = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 4ms, offset: 0us, jitter: 0us, preemptible: false}\n  \
                      - {name: b, period: 10ms, wcet: 5ms, offset: 2900us, jitter: 1ms, preemptible: false}\n";
        let words = "`jitter: 1100us` for task `b` (1ms now)";
        holds(source, words, ("jitter: 1ms", "jitter: 1100us"), Some("jitter: 1099us"));
    }

    #[test]
    fn a_longer_bound_of_a_chain_is_enough() {
        let source =
            "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n  - {name: b, period: 10ms, wcet: 1ms}\n\
                      chains:\n  - {name: c, path: [a, b], reaction: 11ms}\n";
        let words = "`reaction: 12ms` for chain `c` (11ms now)";
        holds(source, words, ("reaction: 11ms", "reaction: 12ms"), Some("reaction: 11900us"));
        let source = source.replace("reaction: 11ms", "age: 1900us");
        holds(&source, "`age: 2ms` for chain `c` (1900us now)", ("age: 1900us", "age: 2ms"), Some("age: 1999us"));
    }

    #[test]
    fn a_smaller_wcet_is_enough() {
        let source =
            "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 6ms}\n  - {name: b, period: 10ms, wcet: 4ms}\n";
        let words = "`wcet: 5500us` for task `a` (6ms now)";
        holds(source, words, ("wcet: 6ms", "wcet: 5500us"), Some("wcet: 5501us"));
    }

    #[test]
    fn another_cpu_is_enough() {
        let source = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 10ms, wcet: 8ms, cpu: 0}\n  \
                      - {name: b, period: 10ms, wcet: 6ms, cpu: 0}\n";
        let words = "`cpus: [0, 1]` for task `a` (`cpu: 0` now)";
        holds(source, words, ("wcet: 8ms, cpu: 0", "wcet: 8ms, cpus: [0, 1]"), None);
    }

    #[test]
    fn one_more_cpu_is_enough() {
        let full = "  - {name: a, period: 10ms, wcet: 9500us}\n  - {name: b, period: 10ms, wcet: 9500us}\n";
        let source = format!("system: s\ncpus: [3]\ntasks:\n{full}");
        holds(&source, "`cpus: [3, 4]` ([3] now)", ("cpus: [3]", "cpus: [3, 4]"), None);
    }

    #[test]
    fn preemption_is_enough() {
        let source = "system: s\ntasks:\n  - {name: a, period: 2ms, wcet: 500us}\n  \
                      - {name: b, period: 20ms, wcet: 8ms, preemptible: false}\n";
        let words = "`preemptible: true` for task `b`";
        holds(source, words, ("preemptible: false", "preemptible: true"), None);
    }

    #[test]
    fn migration_is_enough() {
        let source = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 10ms, wcet: 6ms}\n  \
                      - {name: b, period: 10ms, wcet: 6ms}\n  - {name: c, period: 10ms, wcet: 6ms}\n";
        holds(source, "`migrate: true` for task `a`", ("wcet: 6ms}", "wcet: 6ms, migrate: true}"), None);
    }

    #[test]
    fn a_shorter_reserve_is_enough() {
        let source =
            "system: s\nreserve: {period: 5ms, length: 3ms}\ntasks:\n  - {name: a, period: 10ms, wcet: 4500us}\n";
        let words = "`reserve: {period: 5ms, length: 2700us}` (3ms now)";
        holds(source, words, ("length: 3ms", "length: 2700us"), Some("length: 2800us"));
    }

    #[test]
    fn without_a_resource_or_with_tasks_together_there_is_a_plan() {
        let source = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 10ms, wcet: 9ms, exclusive: [bus]}\n  \
                      - {name: b, period: 10ms, wcet: 9ms, exclusive: [bus]}\n";
        holds(source, "no task with `bus` in `exclusive`", (", exclusive: [bus]", ""), None);
        let source = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms, apart: [b]}\n  \
                      - {name: b, period: 10ms, wcet: 1ms}\n";
        holds(source, "no `b` in `apart` of task `a`", (", apart: [b]", ""), None);
    }

    #[test]
    fn nothing_is_named_without_a_plan_for_it() {
        let long: String = (0..30).map(|at| format!("  - {{name: t{at}, period: 10ms, wcet: 9ms}}\n")).collect();
        assert_eq!(found(&format!("system: s\ntasks:\n{long}")), [""; 0]);
    }
}
