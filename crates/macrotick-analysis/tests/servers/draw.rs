//! Seeded random hosts with one CPU, and random behaviours of them. They are small enough to be simulated unit by unit.

use macrotick_analysis::servers::*;
use macrotick_fixtures::{ns, tables, window};
use macrotick_model::{SplitMix64, Window};

use crate::sim;

pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.0.bits() % (high - low + 1) as u64) as i64
    }
    pub fn chance(&mut self, percent: i64) -> bool {
        self.between(0, 99) < percent
    }
}

/// The form of refills to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Known,
    AnyPhase,
    Independent,
}

/// Draws a host in units of one nanosecond.
pub fn host(seed: u64, form: Form) -> Host {
    let random = &mut Random::new(seed);
    let period = random.between(4, 16);
    let cycle = if random.chance(50) { period * random.between(1, 4) } else { random.between(4, 50) };
    let windows = if random.chance(30) { Vec::new() } else { windows(random, cycle) };
    let lead = if random.chance(30) { random.between(1, 2) } else { 0 };
    let count = random.between(1, 3);
    let mut left = period;
    let mut groups: Vec<Group> = (0..count).map(|index| group(random, index, count, period, &mut left)).collect();
    let windows = own_windows(&mut Random::new(seed ^ 0x0e11), windows, &mut groups);
    let refill = match form {
        Form::Known => Refill::Lockstep(Phase::At(ns(random.between(0, cycle)))),
        Form::AnyPhase => Refill::Lockstep(Phase::Any),
        Form::Independent => Refill::Independent,
    };
    Host {
        refill,
        granule: ns(1),
        least: ns(1),
        capacity: Capacity::AllBut(Permille(0)),
        cycle: ns(cycle),
        lead: ns(lead),
        tables: tables(windows),
        groups,
        ..Host::idle(ns(period))
    }
}

fn windows(random: &mut Random, cycle: i64) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut from = random.between(0, cycle / 2);
    for _ in 0..random.between(1, 3) {
        let length = random.between(1, (cycle / 5).max(1));
        if from + length > cycle {
            break;
        }
        let flags = if random.chance(70) { "AD" } else { "D" };
        windows.push(window("tt", ns(from), ns(length), flags));
        from += length + random.between(1, (cycle / 3).max(1));
    }
    windows
}

/// Gives some of the windows to a group, or none.
fn own_windows(random: &mut Random, mut windows: Vec<Window>, groups: &mut [Group]) -> Vec<Window> {
    let group = random.between(0, 3 * groups.len() as i64) as usize;
    let Some(group) = groups.get_mut(group) else { return windows };
    group.windows = Some("own".into());
    for window in windows.iter_mut().filter(|_| random.chance(60)) {
        (window.task, window.activate) = ("own".into(), false);
    }
    windows
}

fn group(random: &mut Random, index: i64, count: i64, period: i64, left: &mut i64) -> Group {
    let budget = random.between(1, (*left / 2).max(1));
    *left -= budget;
    let tasks = (0..random.between(1, 3)).map(|number| task(random, number, budget, period)).collect();
    let server = Server { may_grow: true, ..Server::fixed(0, ns(budget), tasks) };
    Group {
        criticality: random.between(0, 3) as u32,
        ..Group::served(format!("group-{index}"), (count - index) as u32, vec![server])
    }
}

fn task(random: &mut Random, number: i64, budget: i64, period: i64) -> GroupTask {
    let arrival = if random.chance(30) { Arrival::Bound } else { Arrival::Unbound };
    let own = match arrival {
        Arrival::Bound => period * random.between(1, 8),
        Arrival::Unbound => random.between(period, period * 8),
    };
    let most = (own * budget / period * 6 / 10).max(1);
    let wcet = random.between(1, most);
    let deadline = if random.chance(30) { random.between(own, own * 3) } else { random.between(own / 2, own) };
    let jitter = match random.between(0, 3) {
        0 => random.between(0, own),
        1 => random.between(0, period / 2),
        2 => period,
        _ => 0,
    };
    let priority = if random.chance(10) { 1 } else { number as u32 + 1 };
    GroupTask {
        deadline: ns(deadline.max(1)),
        jitter: ns(jitter),
        arrival,
        ..GroupTask::unbound(format!("task-{number}"), ns(wcet), ns(own), priority)
    }
}

/// Returns the phase of known refills, or draws one.
pub fn phase(random: &mut Random, host: &Host) -> i64 {
    match host.refill {
        Refill::Lockstep(Phase::At(phase)) => phase.as_nanos(),
        _ => random.between(0, host.cycle.as_nanos()),
    }
}

/// Returns for each unit of time the window that it lies in. A lead counts as its window.
pub fn windows_until(host: &Host, end: i64) -> Vec<sim::Window> {
    let cycle = host.cycle.as_nanos();
    let mut one = vec![sim::Window::Free; cycle as usize];
    for window in host.tables.iter().flat_map(|table| &table.windows) {
        let lead = if window.activate { host.lead.as_nanos() } else { 0 };
        let owner = host.groups.iter().find(|group| group.windows.as_ref() == Some(&window.task));
        for time in window.offset.as_nanos() - lead..window.end().as_nanos() {
            let place = &mut one[time.rem_euclid(cycle) as usize];
            // A lead comes before the window that it falls into.
            *place = match owner {
                Some(group) if *place == sim::Window::Free => sim::Window::Of(group.priority),
                _ => sim::Window::Used,
            };
        }
    }
    (0..end).map(|time| one[(time % cycle) as usize]).collect()
}

/// Draws a behaviour that the host allows.
pub fn behaviour(random: &mut Random, host: &Host, end: i64) -> sim::Cpu {
    let lockstep = phase(random, host);
    let mut windows = windows_until(host, end);
    if random.chance(50) {
        // Some windows give their time away.
        let percent = random.between(1, 60);
        for window in windows.iter_mut().filter(|window| **window == sim::Window::Used) {
            *window = if random.chance(percent) { sim::Window::Free } else { sim::Window::Used };
        }
    }
    let lazy = random.chance(30);
    let groups = host.groups.iter().map(|group| {
        let refill = match host.refill {
            Refill::Independent => random.between(0, 100),
            _ => lockstep,
        };
        let server = &group.servers[0];
        let period = host.server_period.as_nanos();
        let start = random.between(0, 2 * period);
        sim::Group {
            priority: group.priority,
            budget: server.budget.as_nanos(),
            refill,
            tasks: server.tasks.iter().map(|task| jobs(random, task, refill, period, start, lazy, end)).collect(),
            noise: noise(random, end),
        }
    });
    sim::Cpu { period: host.server_period.as_nanos(), groups: groups.collect(), windows }
}

fn noise(random: &mut Random, end: i64) -> Vec<(i64, i64)> {
    let from = random.between(0, end);
    match random.between(0, 4) {
        0 => vec![(0, end)],
        1 => vec![(0, from)],
        2 => vec![(from, end)],
        3 => {
            (0..20).map(|_| (random.between(0, end), random.between(1, 60))).map(|(at, long)| (at, at + long)).collect()
        }
        _ => Vec::new(),
    }
}

fn jobs(
    random: &mut Random,
    task: &GroupTask,
    refill: i64,
    server_period: i64,
    start: i64,
    lazy: bool,
    end: i64,
) -> sim::Task {
    let (period, jitter, wcet) = (task.period.as_nanos(), task.jitter.as_nanos(), task.wcet.as_nanos());
    let mut arrival = start;
    if task.arrival == Arrival::Bound {
        arrival += (refill - arrival).rem_euclid(server_period);
    }
    let (first, mut release) = (arrival, 0);
    let mut jobs = Vec::new();
    while arrival < end {
        // All releases are as late as that of the first job, which is as late as possible. Otherwise they are random.
        let late = if lazy { (first + jitter - arrival).max(0) } else { random.between(0, jitter) };
        release = (arrival + late).max(release);
        let work = if random.chance(80) { wcet } else { random.between(1, wcet) };
        jobs.push(sim::Job { arrival, release, work });
        let more = if lazy || random.chance(60) { 0 } else { random.between(0, period) };
        arrival += period
            + match task.arrival {
                Arrival::Unbound => more,
                Arrival::Bound => more / server_period * server_period,
            };
    }
    sim::Task { priority: task.priority, jobs }
}
