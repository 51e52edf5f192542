//! Resources that only one job at a time has: solver and judge against each other, and against all tables of tiny
//! systems.

#[allow(dead_code)] // Only the draws are of use here.
mod common;

use std::collections::BTreeMap;
use std::time::Duration as WallTime;

use common::Random;
use macrotick_check::{check, Verdict};
use macrotick_fixtures::{self as fixtures, described, ns, task};
use macrotick_model::{CpuTable, Duration, Plan, System, Task, Window};
use macrotick_plan::{
    plan_changed, plan_within, Answer, Change, Moved, Options, PlanError, Refutation, Solver, Unwatched,
};

fn solve(system: &System, limit: u64) -> Result<Plan, PlanError> {
    let options = Options { time_limit: WallTime::from_millis(limit), ..Options::default() };
    plan_within(system, Solver::FoldedOccupancy, options)
}

fn planned(source: &str) -> Result<Plan, PlanError> {
    solve(&described(source), 2000)
}

#[track_caller]
fn feasible(plan: &Plan) -> Verdict {
    let verdict = check(plan);
    assert!(verdict.is_feasible(), "{verdict}\n{}", plan.system.to_yaml());
    verdict
}

/// Makes a random system in which some tasks share one to three resources. `load` is that of the CPUs in percent.
fn shared(seed: u64, load: i64) -> System {
    let random = &mut Random::new(seed ^ 0xca3e_2a00);
    let cpus = random.between(2, 4);
    let periods: &[i64] = if random.chance(50) { &[5, 10, 20, 40] } else { &[10, 20, 25, 50] };
    let shares: Vec<i64> = (0..random.between(2, 5) * cpus).map(|_| random.between(10, 100)).collect();
    let sum: i64 = shares.iter().sum();
    let is_phased = random.chance(40);
    let mut tasks: Vec<Task> = shares
        .iter()
        .zip(0..)
        .map(|(share, index)| {
            let period = periods[random.below(periods.len() as u64) as usize] * 1_000_000;
            let wcet = (period * load * cpus / 100 * share / sum).clamp(10_000, period * 8 / 10) / 10_000 * 10_000;
            let deadline = if random.chance(20) { period - (period - wcet) / 4 } else { period };
            let jitter = (is_phased && random.chance(30)).then(|| ns(random.between(0, 5) * period / 50));
            let cpu = random.chance(20).then(|| random.below(cpus as u64) as u32);
            Task { deadline: ns(deadline), jitter, cpu, ..task(&format!("t{index}"), ns(period), ns(wcet)) }
        })
        .collect();
    for resource in 0..random.between(1, 3) {
        let mut free: Vec<usize> = (0..tasks.len()).collect();
        for _ in 0..(random.between(2, 5) as usize).min(free.len()) {
            let user = free.swap_remove(random.below(free.len() as u64) as usize);
            tasks[user].exclusive.push(format!("resource-{resource}"));
        }
    }
    for task in tasks.iter_mut().filter(|task| !task.exclusive.is_empty()) {
        task.preemptible = random.chance(20).then_some(false);
    }
    System {
        cpus: (0..cpus as u32).collect(),
        macrotick: Duration::from_micros(10),
        ..fixtures::system("shared", tasks)
    }
}

/// Solves systems with loads from 20 to 80 %, and reports how many have a plan.
#[test]
fn the_judge_accepts_every_plan_with_resources() {
    const COUNT: u64 = 1001;
    // A search that fails takes this long.
    const LIMIT: u64 = 60;
    let mut results: BTreeMap<i64, [usize; 3]> = BTreeMap::new();
    for seed in 0..COUNT {
        let load = 20 + 10 * (seed % 7) as i64;
        let system = shared(seed, load);
        assert_eq!(system.problems(), [""; 0], "seed {seed}");
        let [planned, impossible, not_found] = results.entry(load).or_default();
        match solve(&system, LIMIT).map_err(|error| (error.answer(), error)) {
            Ok(plan) => {
                feasible(&plan);
                *planned += 1;
            }
            Err((Answer::Impossible, _)) => *impossible += 1,
            Err((_, error)) => {
                *not_found += 1;
                // Without resources there are more tables: what is impossible then is so with them.
                let mut free = system.clone();
                free.tasks.iter_mut().for_each(|task| task.exclusive.clear());
                let freed = solve(&free, 1);
                let is_proved = freed.as_ref().is_err_and(|freed| freed.answer() == Answer::Impossible);
                assert!(!is_proved, "seed {seed}: {freed:?}, but with resources: {error}");
            }
        }
    }
    for (load, [planned, impossible, not_found]) in &results {
        println!("load {load} %: {planned} planned, {impossible} proved impossible, {not_found} not found");
    }
    let sum = |at: usize| results.values().map(|of| of[at]).sum::<usize>();
    assert!(sum(0) > 500 && sum(1) > 20, "{results:?}");
}

/// The wcet of tiny systems in slots of 1 ms, less what the cuts of a job cost.
const SLACK: i64 = 100_000;

/// Makes a system of three or four tasks with periods of a few milliseconds, of which two or three share a resource.
fn tiny(seed: u64) -> System {
    let random = &mut Random::new(seed ^ 0x7179);
    let cpus = random.between(1, 2);
    let periods: &[i64] = if random.chance(50) { &[2, 4, 8] } else { &[3, 4, 6] };
    let users = random.between(2, 3);
    let tasks: Vec<String> = (0..random.between(3, 4))
        .map(|index| {
            let period = periods[random.below(periods.len() as u64) as usize];
            let slots = random.between(1, (period / 2).max(1));
            let deadline = random.between(slots, period).max(period - 1);
            let cpu = if random.chance(40) { format!(", cpu: {}", random.below(cpus as u64)) } else { String::new() };
            let own = if index < users { ", exclusive: [bus]" } else { "" };
            let whole = if random.chance(25) { ", preemptible: false" } else { "" };
            let wcet = slots * 1_000_000 - SLACK;
            format!(
                "  - {{name: t{index}, period: {period}ms, wcet: {wcet}ns, deadline: {deadline}ms{cpu}{own}{whole}}}\n"
            )
        })
        .collect();
    let cpus: Vec<String> = (0..cpus).map(|cpu| cpu.to_string()).collect();
    described(&format!("system: tiny\nmacrotick: 1ms\ncpus: [{}]\ntasks:\n{}", cpus.join(", "), tasks.concat()))
}

/// All tables of a tiny system, one choice after the other.
struct Tables<'a> {
    system: &'a System,
    cycle: usize,
    /// The CPU of each task.
    cpus: Vec<usize>,
    /// The task in each slot of each CPU, and the one that has the resource.
    slots: Vec<Vec<Option<usize>>>,
    bus: Vec<Option<usize>>,
    /// Task, first slot and last slot of each job.
    jobs: Vec<(usize, usize, usize)>,
}

impl Tables<'_> {
    /// Returns a plan of the system if there is one.
    fn first(system: &System) -> Option<Plan> {
        let cycle = system.cycle_of_plan().unwrap();
        let slots = (cycle / system.macrotick) as usize;
        let count = system.cpus.len();
        let choices = count.pow(system.tasks.len() as u32);
        (0..choices).find_map(|choice| {
            let cpus: Vec<usize> =
                (0..system.tasks.len()).map(|task| choice / count.pow(task as u32) % count).collect();
            let allowed = system.tasks.iter().zip(&cpus);
            if !allowed.clone().all(|(task, &cpu)| task.cpu.is_none_or(|own| own as usize == cpu)) {
                return None;
            }
            let mut jobs = Vec::new();
            for (index, task) in system.tasks.iter().enumerate() {
                for number in 0..cycle / task.period {
                    let release = (task.period * number / system.macrotick) as usize;
                    jobs.push((index, release, release + (task.deadline / system.macrotick) as usize));
                }
            }
            jobs.sort_by_key(|job| (job.1, job.2));
            let (slots, bus) = (vec![vec![None; slots]; count], vec![None; slots]);
            let mut tables = Tables { system, cycle: slots[0].len(), cpus, slots, bus, jobs };
            tables.fill(0).then(|| tables.plan(cycle))
        })
    }

    fn needed(&self, task: usize) -> usize {
        ((self.system.tasks[task].wcet.as_nanos() + SLACK) / 1_000_000) as usize
    }

    /// Gives slots to the jobs from one on.
    fn fill(&mut self, job: usize) -> bool {
        let Some(&(task, from, to)) = self.jobs.get(job) else { return self.is_within_the_cap() };
        let needed = self.needed(task);
        (0u32..1 << (to - from)).filter(|set| set.count_ones() as usize == needed).any(|set| {
            let own: Vec<usize> = (from..to).filter(|at| set >> (at - from) & 1 == 1).collect();
            let (first, last) = (own[0], own[own.len() - 1]);
            let description = &self.system.tasks[task];
            let (cpu, has_bus) = (self.cpus[task], !description.exclusive.is_empty());
            let is_cut = last - first + 1 > needed;
            if is_cut && description.preemptible == Some(false)
                || own.iter().any(|&at| self.slots[cpu][at].is_some())
                || has_bus && (first..=last).any(|at| self.bus[at].is_some())
            {
                return false;
            }
            own.iter().for_each(|&at| self.slots[cpu][at] = Some(job));
            let span = if has_bus { first..last + 1 } else { 0..0 };
            self.bus[span.clone()].fill(Some(job));
            if self.fill(job + 1) {
                return true;
            }
            own.iter().for_each(|&at| self.slots[cpu][at] = None);
            self.bus[span].fill(None);
            false
        })
    }

    /// The kernel keeps 5 % of each CPU.
    fn is_within_the_cap(&self) -> bool {
        self.slots.iter().all(|slots| slots.iter().flatten().count() * 100 <= self.cycle * 95)
    }

    fn plan(&self, cycle: Duration) -> Plan {
        let table = |(cpu, slots): (u32, &Vec<Option<usize>>)| {
            let mut windows: Vec<(usize, Window)> = Vec::new();
            for (at, &job) in slots.iter().enumerate() {
                let Some(job) = job else { continue };
                let offset = self.system.macrotick * at as i64;
                match windows.last_mut() {
                    Some((last, window)) if *last == job && window.offset + window.length == offset => {
                        window.length += self.system.macrotick;
                    }
                    _ => {
                        let name = self.system.tasks[self.jobs[job].0].name.as_str();
                        windows.push((job, Window::new(name, offset, self.system.macrotick)));
                    }
                }
            }
            for job in 0..self.jobs.len() {
                let own = |(other, _): &(usize, Window)| *other == job;
                if let Some(first) = windows.iter().position(own) {
                    windows[first].1.activate = true;
                    let last = windows.iter().rposition(own).unwrap();
                    windows[last].1.deadline = true;
                }
            }
            CpuTable::new(cpu, windows.into_iter().map(|(_, window)| window).collect())
        };
        let tables = (0..).zip(&self.slots).map(table).filter(|table| !table.windows.is_empty()).collect();
        Plan::new("null", cycle, tables, self.system.clone())
    }
}

/// The answer of the solver against a search through all tables.
#[test]
fn no_tiny_system_with_a_table_is_proved_impossible() {
    let (mut both, mut missed, mut none, mut proved) = (0, Vec::new(), 0, 0);
    for seed in 0..400 {
        let system = tiny(seed);
        let all = Tables::first(&system);
        all.iter().for_each(|plan| _ = feasible(plan));
        match (solve(&system, 60), all) {
            (Ok(plan), all) => {
                feasible(&plan);
                assert!(all.is_some(), "seed {seed}: the solver found a table, and the search of all did not");
                both += 1;
            }
            (Err(error), Some(_)) => {
                assert_ne!(error.answer(), Answer::Impossible, "seed {seed}: {error}\n{}", system.to_yaml());
                missed.push(seed);
            }
            (Err(error), None) => {
                none += 1;
                proved += i32::from(error.answer() == Answer::Impossible);
            }
        }
    }
    println!("{both} planned, {} missed ({missed:?}), {none} without a table, {proved} of them proved", missed.len());
    assert!(both > 100 && proved > 50 && missed.len() * 20 < both, "{both} {proved} {missed:?}");
}

const EYES: &str = "system: eyes
cpus: [0, 1]
tasks:
  - {name: front, period: 20ms, wcet: 4ms, cpu: 0, exclusive: [camera]}
  - {name: rear, period: 20ms, wcet: 5ms, cpu: 1, exclusive: [camera, gpu]}
  - {name: detect, period: 40ms, wcet: 12ms, cpu: 0, exclusive: [gpu]}
  - {name: steer, period: 5ms, wcet: 1ms}
";

/// Returns start and end of the first job of a task, of which the windows follow each other.
fn first_job(plan: &Plan, task: &str) -> (Duration, Duration) {
    let windows = || plan.tables.iter().flat_map(|table| &table.windows).filter(|window| window.task == task);
    let start = windows().find(|window| window.activate).unwrap().offset;
    let last = windows().find(|window| window.deadline && window.offset >= start).unwrap();
    (start, last.offset + last.length)
}

#[test]
fn a_job_keeps_its_resource_between_its_windows() {
    let plan = planned(EYES).unwrap();
    feasible(&plan);
    // `long` is interrupted several times, and `other` waits for its end although its CPU is free.
    let plan = planned(
        "system: s
cpus: [0, 1]
tasks:
  - {name: fast, period: 5ms, wcet: 2ms, jitter: 0us, offset: 0us, cpu: 0}
  - {name: long, period: 40ms, wcet: 9ms, deadline: 16ms, cpu: 0, exclusive: [bus]}
  - {name: other, period: 40ms, wcet: 9ms, cpu: 1, exclusive: [bus]}
",
    )
    .unwrap();
    feasible(&plan);
    let (long, other) = (first_job(&plan, "long"), first_job(&plan, "other"));
    assert!(long.1 - long.0 > Duration::from_millis(9), "{long:?}");
    assert!(long.1 <= other.0 || other.1 <= long.0, "{long:?} {other:?}");
}

#[test]
fn too_much_for_one_at_a_time_is_proved_with_its_numbers() {
    let refused = |tasks: &str| {
        let refused = planned(&format!("system: s\ncpus: [0, 1, 2]\ntasks:\n{tasks}")).unwrap_err();
        assert_eq!(refused.answer(), Answer::Impossible, "{refused}");
        refused
    };
    let full = refused(
        "  - {name: a, period: 10ms, wcet: 6ms, exclusive: [bus]}
  - {name: b, period: 10ms, wcet: 5ms, exclusive: [bus]}
  - {name: c, period: 10ms, wcet: 1ms, exclusive: [bus]}
",
    );
    assert_eq!(
        full.to_string(),
        "the tasks with `bus` need it for at least 11ms of every 10ms, but one at a time they can have at most 10ms: \
         `a`, `b`"
    );
    let at_once = refused(
        "  - {name: a, period: 20ms, wcet: 3ms, deadline: 5ms, exclusive: [bus]}
  - {name: b, period: 20ms, wcet: 3ms, deadline: 5ms, exclusive: [bus]}
",
    );
    let words = at_once.to_string();
    assert_eq!(words, "from 0ns to 5ms the jobs of `a`, `b` need 6ms, but `bus`, one at a time, can give at most 5ms");
    let between = refused(
        "  - {name: often, period: 2ms, wcet: 1ms, exclusive: [bus]}
  - {name: long, period: 20ms, wcet: 5ms, exclusive: [bus]}
",
    );
    assert_eq!(
        between.to_string(),
        "task `long` takes 5ms, but at most 2ms are free between two jobs of `often`, which also has `bus`"
    );
    assert!(matches!(between, PlanError::Impossible(Refutation::Between { .. })));
}

/// A plan that changes keeps jobs apart: with a new task, with a new resource, and with windows that are frozen.
#[test]
fn changes_keep_resources() {
    let options = Options { time_limit: WallTime::from_secs(2), ..Options::default() };
    let from = planned(
        &EYES
            .replace(", exclusive: [camera, gpu]", "")
            .replace(", exclusive: [camera]", "")
            .replace(", exclusive: [gpu]", ""),
    )
    .unwrap();
    let change = |from: &Plan, to: &System, frozen: &[&str]| {
        let change = Change::new(from, to, frozen.iter().map(|name| (*name).into()), []).unwrap();
        plan_changed(to, &change, options, &Unwatched)
    };
    let to = described(EYES);
    // All three start as early as possible in the former plan, so two of them are in each other's way.
    let plan = change(&from, &to, &[]).unwrap();
    feasible(&plan);
    let moved = Moved::between(&from, &plan);
    assert!(moved.kept.contains(&"steer".into()) && !moved.moved.is_empty(), "{moved:?}");
    let more = described(&format!("{EYES}  - {{name: log, period: 40ms, wcet: 2ms, exclusive: [camera]}}\n"));
    let next = change(&plan, &more, &[]).unwrap();
    feasible(&next);
    assert_eq!(Moved::between(&plan, &next).moved, [], "there is room for one more");
    let frozen = change(&from, &to, &["front", "rear", "detect"]).unwrap_err().to_string();
    assert!(frozen.contains("cannot stay") && frozen.contains("a resource"), "{frozen}");
    let frozen = change(&plan, &more, &["front", "rear", "detect"]).unwrap();
    feasible(&frozen);
}
