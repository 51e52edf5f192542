//! Compares the analysis with the simulator.

use macrotick_analysis::servers::*;
use macrotick_model::Duration;

use crate::draw::{behaviour, host, phase, windows_until, Form, Random};
use crate::sim;

/// The distance between the longest times seen and the computed ones.
#[derive(Default)]
struct Tightness {
    tasks: usize,
    equal: usize,
    sum: f64,
    least: f64,
}

impl Tightness {
    fn add(&mut self, seen: i64, computed: i64) {
        let ratio = seen as f64 / computed as f64;
        self.least = if self.tasks == 0 { ratio } else { self.least.min(ratio) };
        self.tasks += 1;
        self.equal += usize::from(seen == computed);
        self.sum += ratio;
    }

    fn print(&self, what: &str) {
        let (tasks, mean) = (self.tasks, self.sum / self.tasks as f64);
        if tasks == 0 {
            return;
        }
        println!(
            "{what}: {tasks} tasks, seen/computed {mean:.3} on average, {:.3} at least, {} equal",
            self.least, self.equal
        );
    }
}

/// Returns every task of the host with its response time, by group and index.
fn tasks<'a>(host: &'a Host, analysis: &'a Analysis) -> Vec<(usize, usize, &'a GroupTask, &'a TaskAnalysis)> {
    let mut tasks = Vec::new();
    for (at, group) in host.groups.iter().enumerate() {
        for (index, task) in group.servers[0].tasks.iter().enumerate() {
            tasks.push((at, index, task, analysis.task(&group.name, &task.name).unwrap()));
        }
    }
    tasks
}

fn compare(form: Form, seeds: std::ops::Range<u64>) {
    const BEHAVIOURS: usize = 6;
    let (mut exact, mut upper, mut feasible) = (Tightness::default(), Tightness::default(), 0);
    for seed in seeds.clone() {
        let host = host(seed, form);
        let analysis = analyse(&host).unwrap();
        feasible += usize::from(analysis.is_feasible());
        let random = &mut Random::new(seed ^ 0x5eed);
        let mut seen: Vec<Vec<i64>> = Vec::new();
        for _ in 0..BEHAVIOURS {
            let worst = sim::run(&behaviour(random, &host, 1200));
            seen = if seen.is_empty() { worst } else { longer(seen, worst) };
        }
        for (at, index, task, found) in tasks(&host, &analysis) {
            let what = || format!("seed {seed} ({form:?}): {}/{}\n{host:#?}", host.groups[at].name, task.name);
            let is_exact = found.accuracy == Accuracy::Exact;
            let directed = directed(&host, at, task, found).unwrap_or(0);
            let Some(response) = found.response.map(|response| response.as_nanos()) else {
                continue;
            };
            if !found.meets() {
                // If an exact analysis calls the task late, that is no false alarm.
                assert!(!is_exact || directed > task.deadline.as_nanos(), "not late: {}", what());
                continue;
            }
            let near = nearby(random, &host, at, task).unwrap_or(0);
            let worst = seen[at][index].max(directed).max(near);
            assert!(worst <= response, "{worst} seen, {response} computed: {}", what());
            assert!(!is_exact || directed == response, "{directed} played, {response} computed: {}", what());
            (if is_exact { &mut exact } else { &mut upper }).add(worst, response);
        }
    }
    println!("{form:?}: {feasible} of {} hosts feasible", seeds.end - seeds.start);
    exact.print("  exact");
    upper.print("  upper bounds");
    assert!(feasible * 10 >= (seeds.end - seeds.start) as usize, "too few to say anything");
}

fn longer(a: Vec<Vec<i64>>, b: Vec<Vec<i64>>) -> Vec<Vec<i64>> {
    let pair = |(a, b): (Vec<i64>, Vec<i64>)| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect();
    a.into_iter().zip(b).map(pair).collect()
}

/// Plays the worst case of `docs/explanation/feasibility.md`, and returns the response time of a job of `task` in it.
///
/// In the period before the worst refill, windows are empty and the group's noise uses up the budget. Then all tasks of
/// at least the task's priority are released, as late as their jitter allows. From the refill on, higher groups take
/// all they can. Returns `None` if the task's worst refill is not known.
fn directed(host: &Host, at: usize, task: &GroupTask, found: &TaskAnalysis) -> Option<i64> {
    let period = host.server_period.as_nanos();
    let start = host.groups[at].servers[0].budget.as_nanos() - period;
    let refill = refill_at(host, at, found.refill)?;
    let longest = (found.response? + task.period * 3).as_nanos();
    let rounds = if host.refill == Refill::Independent { longest / period + 1 } else { 1 };
    let played = (0..rounds).map(|round| {
        let storm = refill + round * period;
        play(host, at, task, &Script { refill, start: refill + start, storm, empty: true })
    });
    played.max()
}

/// Plays a case similar to the worst one, with another refill and another instant of release.
fn nearby(random: &mut Random, host: &Host, at: usize, task: &GroupTask) -> Option<i64> {
    let period = host.server_period.as_nanos();
    let first = refill_at(host, at, None)?;
    let script = |random: &mut Random| {
        let refill = first + period * random.between(0, 12);
        let start = refill - random.between(0, period);
        let storm = if random.chance(50) { start } else { refill + period * random.between(0, 3) };
        Script { refill, start, storm, empty: random.chance(50) }
    };
    (0..8).map(|_| play(host, at, task, &script(random))).max()
}

/// Returns a refill at this place in the table's cycle. It is late enough for all events that must come before it.
fn refill_at(host: &Host, at: usize, place: Option<Duration>) -> Option<i64> {
    let period = host.server_period.as_nanos();
    let phase = phase(&mut Random::new(0), host).rem_euclid(period);
    let tasks = &host.groups[at].servers[0].tasks;
    let earliest = tasks.iter().map(|task| (task.jitter + task.period).as_nanos()).max()? + 2 * period;
    let is_there = |time: &i64| {
        let here = place.is_none_or(|place| time % host.cycle.as_nanos() == place.as_nanos());
        (time - phase) % period == 0 && here
    };
    (earliest..).take(100_000).find(is_there)
}

/// The script of a played case.
struct Script {
    /// The refill that the job waits for.
    refill: i64,
    /// The end of the group's noise, which begins one period before that refill. Then jobs are released.
    start: i64,
    /// The instant from which higher groups want to run.
    storm: i64,
    /// Whether windows are empty during the noise.
    empty: bool,
}

/// Returns the longest response time of `task`.
fn play(host: &Host, at: usize, task: &GroupTask, script: &Script) -> i64 {
    let &Script { refill, start, storm, empty } = script;
    let (period, group) = (host.server_period.as_nanos(), &host.groups[at]);
    let end = refill + 4 * (task.deadline + task.period + task.jitter).as_nanos() + 10 * period;
    let mut windows = windows_until(host, end);
    let own = sim::Window::Of(group.priority);
    windows.iter_mut().filter(|window| matches!(window, sim::Window::Of(_)) && **window != own).for_each(|window| {
        *window = sim::Window::Used;
    });
    if empty {
        windows[(refill - period) as usize..start as usize].fill(sim::Window::Free);
    }
    let mut groups = higher_groups(host, at, refill, storm, end);
    let level = group.servers[0].tasks.iter().map(|other| (other.priority >= task.priority).then_some(other));
    groups.push(sim::Group {
        priority: group.priority,
        budget: group.servers[0].budget.as_nanos(),
        refill,
        tasks: level
            .map(|task| task.map_or(sim::Task::default(), |task| jobs(task, period, start, refill, end)))
            .collect(),
        noise: vec![(refill - period, start)],
    });
    let index = group.servers[0].tasks.iter().position(|other| other.name == task.name).unwrap();
    sim::run(&sim::Cpu { period, groups, windows }).last().unwrap()[index]
}

/// Returns higher groups that run from `storm` on. With refills of their own, each then has its budget twice in a row.
fn higher_groups(host: &Host, at: usize, refill: i64, storm: i64, end: i64) -> Vec<sim::Group> {
    let mut higher: Vec<&Group> = host.groups.iter().filter(|g| g.priority > host.groups[at].priority).collect();
    higher.sort_by_key(|group| std::cmp::Reverse(group.priority));
    let mut done = storm;
    let group = |group: &Group| {
        let budget = group.servers[0].budget.as_nanos();
        let own = done + budget;
        done += 2 * budget;
        let refill = if host.refill == Refill::Independent { own } else { refill };
        sim::Group { priority: group.priority, budget, refill, tasks: Vec::new(), noise: vec![(storm, end)] }
    };
    higher.into_iter().map(group).collect()
}

/// Returns the jobs of a task. The first one arrives as early as possible for a release at the start or later. The
/// others follow as densely as possible.
fn jobs(task: &GroupTask, server_period: i64, start: i64, refill: i64, end: i64) -> sim::Task {
    let jitter = task.jitter.as_nanos();
    let first = match task.arrival {
        Arrival::Unbound => start - jitter,
        Arrival::Bound => refill - (refill - start + jitter) / server_period * server_period,
    };
    let arrivals = (0..).map(|job| first + job * task.period.as_nanos()).take_while(|&arrival| arrival < end);
    let job = |arrival: i64| sim::Job { arrival, release: arrival.max(start), work: task.wcet.as_nanos() };
    sim::Task { priority: task.priority, jobs: arrivals.map(job).collect() }
}

#[test]
fn nothing_takes_longer_than_computed_with_a_known_phase() {
    compare(Form::Known, 0..6000);
}

#[test]
fn nothing_takes_longer_than_computed_with_any_phase() {
    compare(Form::AnyPhase, 10_000..13_000);
}

#[test]
fn nothing_takes_longer_than_computed_with_refills_of_their_own() {
    compare(Form::Independent, 20_000..23_000);
}
