//! Small systems with all features at once.
//!
//! Tasks have jitter, offsets, deadlines, pins, sets of CPUs, hosts, `after`, migration or reservations. There are chains,
//! leads, sync windows, coarse grids, and groups with budgets, tasks or windows.

use macrotick_model::System;

use crate::Random;

/// The most tasks of a system.
const TASKS: i64 = 9;
/// Periods in milliseconds. Their common multiple is 120 ms.
const PERIODS: [i64; 9] = [2, 4, 5, 6, 8, 10, 12, 20, 30];

/// Makes a system of all features. Returns `None` if the description breaks a rule. That happens seldom.
pub fn anything(seed: u64) -> Option<System> {
    System::parse(&description(&mut Random::new(seed ^ 0x77), seed), "anything").ok()
}

/// A task that windows serve, as far as other parts of the description depend on it.
struct Served {
    name: String,
    period: i64,
    host: Option<&'static str>,
}

/// The machine or the machines that a system is for.
#[derive(Clone, Copy)]
struct Machine {
    cpus: i64,
    /// The CPU from which on the CPUs belong to the second of two hosts.
    second: Option<i64>,
}

impl Machine {
    /// Returns the host of a CPU.
    fn host(self, cpu: i64) -> Option<&'static str> {
        Some(if cpu < self.second? { "one" } else { "two" })
    }
}

fn description(random: &mut Random, seed: u64) -> String {
    let cpus = random.one(&[1, 1, 2, 2, 3]);
    let grid = random.one(&[1, 1, 10, 50]);
    let mut text = format!("system: anything-{seed}\nmacrotick: {grid}us\n");
    text += &format!("cpus: [{}]\n", (0..cpus).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(", "));
    if random.chance(25) {
        text += random.one(&["lead: 6500ns\n", "lead: 20us\n", "lead: auto\n"]);
    }
    let second = (cpus > 1 && random.chance(25)).then(|| random.between(1, cpus - 1));
    let machine = Machine { cpus, second };
    if let Some(second) = second {
        let list = |range: std::ops::Range<i64>| range.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(", ");
        text += &format!("hosts:\n  - {{name: one, cpus: [{}]}}\n", list(0..second));
        text += &format!("  - {{name: two, cpus: [{}]}}\n", list(second..cpus));
    }
    if second.is_some() || random.chance(15) {
        let length = random.one(&[100, 200, 500]);
        text += &format!("clock: {{tai: {{period: 10ms, length: {length}us, bound: 20us}}}}\n");
    }
    let load = random.between(20, 95) * cpus;
    let count = random.between(1, TASKS);
    let shares: Vec<i64> = (0..count).map(|_| random.between(10, 100)).collect();
    let sum: i64 = shares.iter().sum();
    let mut served = Vec::new();
    text += "tasks:\n";
    for (index, share) in shares.iter().enumerate() {
        let period = random.one(&PERIODS);
        // In microseconds, on the grid.
        let wcet = (period * 10 * load * share / sum / grid * grid).clamp(grid.max(10), period * 900 / grid * grid);
        text += &task(random, index, (period, wcet, grid), machine, &mut served);
    }
    text + &chains(random, &served) + &groups(random, cpus)
}

fn task(
    random: &mut Random,
    index: usize,
    (period, wcet, grid): (i64, i64, i64),
    machine: Machine,
    served: &mut Vec<Served>,
) -> String {
    let cpus = machine.cpus;
    let mut keys = format!("name: t{index}, period: {period}ms, wcet: {wcet}us");
    let cpu = random.below(cpus as u64) as i64;
    let mut host = machine.host(cpu).filter(|_| random.chance(80));
    let mut deadline = period * 1000;
    if random.chance(30) {
        deadline = random.between(wcet, deadline) / grid * grid;
        keys += &format!(", deadline: {}us", deadline.max(wcet));
    }
    if random.chance(10) {
        let supply = match random.chance(30) {
            true => format!("{{deadline: {{cpus: [{cpu}]}}}}"),
            false => "deadline".to_owned(),
        };
        keys += &host.map_or(String::new(), |host| format!(", host: {host}"));
        return format!("  - {{{keys}, supply: {supply}}}\n");
    }
    match random.below(4) {
        0 => keys += ", jitter: 0us",
        1 => keys += &format!(", jitter: {}us", random.between(0, deadline.max(wcet))),
        _ => {}
    }
    if random.chance(20) {
        keys += &format!(", offset: {}us", random.between(0, period * 1000 - 1) / grid * grid);
    }
    if random.chance(20) {
        (host, keys) = (machine.host(cpu), keys + &format!(", cpu: {cpu}"));
    } else {
        let other = random.below(cpus as u64) as i64;
        if cpu != other && random.chance(30) {
            keys += &format!(", cpus: [{}, {}]", cpu.min(other), cpu.max(other));
            host = machine.host(cpu).filter(|host| machine.host(other) == Some(*host));
        } else if let Some(host) = host {
            keys += &format!(", host: {host}");
        }
        if cpus > 1 && (machine.second.is_none() || host.is_some()) && random.chance(20) {
            keys += ", migrate: true";
        }
    }
    let before: Vec<&str> =
        served.iter().filter(|other| other.period == period).map(|other| other.name.as_str()).collect();
    if !before.is_empty() && random.chance(30) {
        keys += &format!(", after: [{}]", random.one(&before));
    }
    if machine.second.is_none() || host.is_some() {
        served.push(Served { name: format!("t{index}"), period, host });
    }
    format!("  - {{{keys}}}\n")
}

fn chains(random: &mut Random, served: &[Served]) -> String {
    let mut text = String::new();
    for index in 0..random.below(3) {
        let mut path: Vec<&Served> = served.iter().collect();
        random.shuffle(&mut path);
        // Nothing takes a value from one host to another.
        let host = path.first().and_then(|task| task.host);
        path.retain(|task| task.host == host);
        path.truncate(random.between(2, 4) as usize);
        if path.len() < 2 {
            continue;
        }
        let names: Vec<&str> = path.iter().map(|task| task.name.as_str()).collect();
        let sum: i64 = path.iter().map(|task| task.period).sum();
        let bound = sum * 10 * random.between(60, 220);
        let key = random.one(&["reaction", "age"]);
        let begin = if text.is_empty() { "chains:\n" } else { "" };
        text += &format!("{begin}  - {{name: c{index}, path: [{}], {key}: {bound}us}}\n", names.join(", "));
    }
    text
}

fn groups(random: &mut Random, cpus: i64) -> String {
    let mut text = String::new();
    for index in 0..random.below(3) {
        let cpu = random.below(cpus as u64);
        let keys = match random.below(3) {
            0 => format!("priority: {}, budget: {}us, cpus: [{cpu}]", 10 + index, random.between(2, 60) * 10),
            1 => {
                let (period, wcet) = (random.one(&[10, 20, 50]), random.between(2, 40) * 10);
                let task = format!("{{name: loop, period: {period}ms, wcet: {wcet}us}}");
                format!("criticality: {}, cpus: [{cpu}], tasks: [{task}]", 10 + index)
            }
            _ => {
                let period = random.one(&PERIODS);
                format!("windows: {{period: {period}ms, length: {}us}}, cpus: [{cpu}]", random.between(1, 4) * 100)
            }
        };
        let begin = if text.is_empty() { "groups:\n" } else { "" };
        text += &format!("{begin}  - {{name: g{index}, {keys}}}\n");
    }
    text
}
