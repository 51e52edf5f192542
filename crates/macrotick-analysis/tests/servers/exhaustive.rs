//! Visits all behaviours of tiny hosts: every arrival, every release, and every choice of a unit. In each unit of time, a
//! window, a higher group or a thread of lower priority runs or does not run.

use std::collections::HashSet;

use macrotick_analysis::servers::*;
use macrotick_fixtures::ns;

use crate::by_hand::{bound, group, host, task};
use crate::draw::{windows_until, Random};
use crate::sim;

const HOSTS: u64 = 2000;
/// The limit of states for one host.
const MOST_STATES: usize = 400_000;

/// A task and its job. `since` is the time since the arrival, and at most the period, when the next job may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Job {
    since: u8,
    left: u8,
    released: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The time in the hyperperiod of table and server period.
    now: u8,
    above: u8,
    own: u8,
    /// The jobs from the highest priority down. A task that does not exist never gets a job.
    jobs: [Job; 2],
}

struct World<'a> {
    host: &'a Host,
    phase: i64,
    hyperperiod: i64,
    windows: Vec<bool>,
    /// The longest response times until then.
    longest: [i64; 2],
}

impl World<'_> {
    fn tasks(&self) -> &[GroupTask] {
        &self.host.groups[1].servers[0].tasks
    }

    /// Visits all behaviours. `None`: there are too many, or a job arrives before the last one is complete.
    fn explore(&mut self) -> Option<[i64; 2]> {
        let idle = |task: Option<&GroupTask>| Job {
            since: task.map_or(0, |task| task.period.as_nanos() as u8),
            left: 0,
            released: false,
        };
        let budget = |at: usize| self.host.groups[at].servers[0].budget.as_nanos() as u8;
        let jobs = [idle(self.tasks().first()), idle(self.tasks().get(1))];
        let start = State { now: 0, above: budget(0), own: budget(1), jobs };
        let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
        while let Some(state) = open.pop() {
            for choice in 0..128 {
                let Some(next) = self.step(state, choice) else {
                    continue;
                };
                if self.is_overrun(&next) || seen.len() > MOST_STATES {
                    return None;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        Some(self.longest)
    }

    /// Whether a job is not complete when the next one may arrive.
    fn is_overrun(&self, state: &State) -> bool {
        let late = |job: &Job, task: &GroupTask| job.left > 0 && i64::from(job.since) == task.period.as_nanos();
        state.jobs.iter().zip(self.tasks()).any(|(job, task)| late(job, task))
    }

    /// Plays one unit of time. `None`: the choice is impossible or makes no difference.
    fn step(&mut self, mut state: State, choice: u8) -> Option<State> {
        let wants = |bit: u8| choice & (1 << bit) != 0;
        let server_period = self.host.server_period.as_nanos();
        let refill = (i64::from(state.now) - self.phase).rem_euclid(server_period) == 0;
        if refill {
            state.above = self.host.groups[0].servers[0].budget.as_nanos() as u8;
            state.own = self.host.groups[1].servers[0].budget.as_nanos() as u8;
        }
        for (index, task) in self.tasks().iter().enumerate() {
            let (arrives, is_released) = (wants(index as u8), wants(2 + index as u8));
            state.jobs[index] = advance(state.jobs[index], task, refill, arrives, is_released)?;
        }
        let window = self.windows[state.now as usize];
        if wants(4) && !window {
            return None;
        }
        if !wants(4) {
            self.serve(&mut state, wants(5), wants(6));
        }
        for (index, task) in self.tasks().iter().enumerate() {
            let job = &mut state.jobs[index];
            job.since = (job.since + 1).min(task.period.as_nanos() as u8);
        }
        state.now = ((i64::from(state.now) + 1) % self.hyperperiod) as u8;
        Some(state)
    }

    fn serve(&mut self, state: &mut State, above: bool, noise: bool) {
        if above && state.above > 0 {
            state.above -= 1;
            return;
        }
        let ready = state.jobs.iter().position(|job| job.left > 0 && job.released);
        if state.own == 0 || (ready.is_none() && !noise) {
            return;
        }
        state.own -= 1;
        if let Some(index) = ready {
            let job = &mut state.jobs[index];
            job.left -= 1;
            if job.left == 0 {
                job.released = false;
                self.longest[index] = self.longest[index].max(i64::from(job.since) + 1);
            }
        }
    }
}

/// Advances a job that arrives or is released now, if it may. It is released at the latest at the end of its jitter.
fn advance(mut job: Job, task: &GroupTask, refill: bool, arrives: bool, is_released: bool) -> Option<Job> {
    if arrives {
        let at_will = task.arrival == Arrival::Unbound || refill;
        if job.left > 0 || i64::from(job.since) < task.period.as_nanos() || !at_will {
            return None;
        }
        job = Job { since: 0, left: task.wcet.as_nanos() as u8, released: false };
    }
    let must = job.left > 0 && i64::from(job.since) >= task.jitter.as_nanos();
    if is_released && (job.left == 0 || job.released || must) {
        return None;
    }
    job.released |= must || is_released;
    Some(job)
}

/// Draws a host with a group above, and a group with one or two tasks.
fn tiny(random: &mut Random) -> Host {
    let period = random.between(3, 5);
    let own = random.between(1, period - 1);
    let above = random.between(1, (period - own).max(1));
    let one = |random: &mut Random, name: &str, priority| {
        let periods = random.between(2, 3);
        let task = match random.chance(30) {
            true => bound(name, random.between(1, own + 1), period * periods, priority),
            false => task(name, random.between(1, own + 1), period * periods + random.between(0, 2), priority),
        };
        let jitter = if task.arrival == Arrival::Bound { 0 } else { random.between(0, 2).max(random.between(0, 2)) };
        GroupTask { jitter: ns(jitter), ..task }
    };
    let mut tasks = vec![one(random, "h", 2)];
    if random.chance(60) {
        tasks.push(one(random, "t", 1));
    }
    let cycle = [period, 2 * period, 3, 4, 6][random.between(0, 4) as usize];
    let start = random.between(0, cycle - 1);
    let windows = if random.chance(25) { vec![] } else { vec![(start, random.between(1, (cycle - start).min(2)))] };
    let host = host(vec![group("x", 2, above, vec![]), group("g", 1, own, tasks)], cycle, &windows);
    let refill = Refill::Lockstep(Phase::At(ns(random.between(0, cycle))));
    Host { server_period: ns(period), refill, ..host }
}

#[test]
fn nothing_that_can_happen_takes_longer_and_what_is_exact_happens() {
    let (mut exact, mut upper, mut equal) = (0, 0, 0);
    for seed in 0..HOSTS {
        let host = tiny(&mut Random::new(seed));
        let analysis = analyse(&host).unwrap();
        let found = &analysis.groups[1].servers[0].tasks;
        if !found.iter().all(TaskAnalysis::meets) {
            continue;
        }
        let Refill::Lockstep(Phase::At(phase)) = host.refill else { unreachable!() };
        let hyperperiod = host.server_period.lcm(host.cycle).unwrap().as_nanos();
        let windows = windows_until(&host, hyperperiod);
        let windows = windows.into_iter().map(|window| window != sim::Window::Free).collect();
        let mut world = World { host: &host, phase: phase.as_nanos(), hyperperiod, windows, longest: [0; 2] };
        let Some(longest) = world.explore() else {
            assert!(found
                .iter()
                .zip(world.longest)
                .all(|(task, longest)| longest <= task.response.unwrap().as_nanos()));
            continue;
        };
        for (task, longest) in found.iter().zip(longest) {
            let response = task.response.unwrap().as_nanos();
            assert!(
                longest <= response,
                "seed {seed}: {}: {longest} happens, {response} computed\n{host:#?}",
                task.name
            );
            match task.accuracy {
                Accuracy::Exact => {
                    exact += 1;
                    assert_eq!(longest, response, "seed {seed}: {}\n{host:#?}", task.name);
                }
                Accuracy::UpperBound(_) => {
                    upper += 1;
                    equal += usize::from(longest == response);
                }
            }
        }
    }
    println!("{exact} exact; of {upper} upper bounds {equal} happen");
    assert!(exact > 50 && upper > 20, "{exact} exact, {upper} upper bounds");
}
