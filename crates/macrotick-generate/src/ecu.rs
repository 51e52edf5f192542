//! Control units: tasks that are bound to cores and send messages to each other over the links between the cores.
//!
//! The shape is that of the sets in a paper (Minaeva, Akesson, Hanzalek, Dasari: Time-triggered co-scheduling of
//! computation and communication with jitter requirements, 2018). These systems are drawn here. They are not the
//! published instances. Each core has an input port, which receives one message at a time. A port is a CPU, and
//! a message is a task on it, because a description has no links of this kind.

use std::collections::BTreeSet;

use macrotick_model::{Chain, Duration, System, Task};

use crate::kinds::{Jitter, AUTOMOTIVE};
use crate::Random;

/// The number of cores. The ports are the CPUs behind them.
const CORES: usize = 3;
/// The shortest window that the kernel can use, in microseconds.
const SHORTEST: i64 = 6;
/// The most tasks that are connected with each other, and the number of their layers. A task receives messages from
/// earlier layers.
const CONNECTED: usize = 20;
const LAYERS: usize = 3;
/// The periods of a large engine control unit in milliseconds, with the share of activities. An activity has ten jobs
/// in a second on average.
const ENGINE: [(i64, u64); 7] = [(5, 1), (10, 2), (20, 3), (50, 5), (100, 20), (200, 10), (1000, 59)];

/// The size of a control unit.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The number of tasks, without messages.
    pub tasks: usize,
    /// The periods in milliseconds, with their weights.
    periods: &'static [(i64, u64)],
    /// The most tasks that a task receives messages from.
    inputs: usize,
    /// The bound on the data age of a chain, in periods.
    age: i64,
}

impl Unit {
    /// Returns the size of the systems of a set from 1 to 5. Larger sets have shorter periods.
    pub fn set(number: usize) -> Unit {
        let tasks = [20, 30, 50, 100, 500][number - 1];
        let first = [3, 3, 2, 1, 0][number - 1];
        Unit { tasks, periods: &AUTOMOTIVE[first..], inputs: 18, age: 1 }
    }

    /// Returns the size of a large engine control unit: about 10 900 activities with 107 700 jobs in a second.
    pub fn engine() -> Unit {
        Unit { tasks: 4300, periods: &ENGINE, inputs: 8, age: 2 }
    }
}

/// Makes a control unit with this load of each core in thousandths. No job is preemptible.
pub fn ecu(seed: u64, unit: Unit, permille: u32, jitter: Jitter) -> System {
    let random = &mut Random::new(seed ^ 0x77);
    let mut tasks = on_cores(random, unit, f64::from(permille) / 1000.0, jitter);
    let mut chains = Vec::new();
    let messages = connect(random, unit, &mut tasks, &mut chains, jitter);
    tasks.extend(messages);
    random.shuffle(&mut tasks);
    random.shuffle(&mut chains);
    System {
        cpus: (0..2 * CORES as u32).collect(),
        preemptible: Some(false),
        tasks,
        chains,
        ..System::named(format!("ecu-{seed}"))
    }
}

/// Draws the tasks of all cores.
fn on_cores(random: &mut Random, unit: Unit, load: f64, jitter: Jitter) -> Vec<Task> {
    let mut tasks = Vec::new();
    for core in 0..CORES {
        let count = unit.tasks / CORES + usize::from(core < unit.tasks % CORES);
        let (periods, shares) = loop {
            let periods: Vec<i64> = (0..count).map(|_| drawn(random, unit.periods)).collect();
            if let Some(shares) = shares(random, &periods, load) {
                break (periods, shares);
            }
        };
        for (period, share) in periods.into_iter().zip(shares) {
            let wcet = ((share * period as f64 * 1000.0) as i64).max(SHORTEST);
            let period = Duration::from_millis(period);
            let name = format!("task-{}", tasks.len());
            let task = Task::named(name, period, Duration::from_micros(wcet));
            tasks.push(Task { cpu: Some(core as u32), jitter: jitter.of(period), ..task });
        }
    }
    tasks
}

/// Draws shares with this sum. No job is longer than a quarter of the common divisor of the periods, so jobs fit beside
/// each other. Returns `None` if that leaves too little.
fn shares(random: &mut Random, periods: &[i64], load: f64) -> Option<Vec<f64>> {
    let common = periods.iter().copied().map(Duration::from_millis).reduce(Duration::gcd)?.as_nanos() as f64 / 1e6;
    let weights: Vec<f64> = periods.iter().map(|_| -(1.0 - random.unit()).ln()).collect();
    let share = |index: usize, factor: f64| {
        let period = periods[index] as f64;
        (weights[index] * factor).min(common / 4.0 / period).max(SHORTEST as f64 / 1000.0 / period)
    };
    let sum = |factor: f64| (0..periods.len()).map(|index| share(index, factor)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e3);
    if sum(low) > load || sum(high) < load {
        return None;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if sum(middle) < load {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((0..periods.len()).map(|index| share(index, low)).collect())
}

/// Connects tasks of the same period, and returns the messages between different cores. A chain leads to each task
/// without a receiver.
fn connect(random: &mut Random, unit: Unit, tasks: &mut [Task], chains: &mut Vec<Chain>, jitter: Jitter) -> Vec<Task> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    random.shuffle(&mut order);
    let periods: Vec<Duration> = tasks.iter().map(|task| task.period).collect();
    order.sort_by_key(|&task| periods[task]);
    let mut messages: Vec<Task> = Vec::new();
    for same in order.chunk_by(|&one, &other| periods[one] == periods[other]) {
        for connected in same.chunks(CONNECTED) {
            // The path to each task so far, with the messages on it.
            let mut paths: Vec<Vec<String>> = Vec::new();
            let mut last = vec![true; connected.len()];
            for (position, &task) in connected.iter().enumerate() {
                let mut path = Vec::new();
                let layer = |position: usize| position * LAYERS / connected.len();
                let earlier = (0..position).filter(|&other| layer(other) < layer(position)).count();
                let draws = if earlier > 0 { random.between(1, unit.inputs as i64) } else { 0 };
                let senders: BTreeSet<usize> = (0..draws).map(|_| random.below(earlier as u64) as usize).collect();
                for sender in senders {
                    last[sender] = false;
                    let by = input(tasks, connected[sender], task, &mut messages, jitter);
                    if path.is_empty() {
                        path = paths[sender].clone();
                        path.extend(by);
                    }
                }
                path.push(tasks[task].name.clone());
                paths.push(path);
            }
            for (path, _) in paths.into_iter().zip(last).filter(|(path, last)| *last && path.len() > 1) {
                let age = Some(periods[connected[0]] * unit.age);
                chains.push(Chain { age, ..Chain::named(format!("chain-{}", chains.len()), path) });
            }
        }
    }
    messages
}

/// Makes a task run after a sender: directly on the same core, or else behind a message. Returns the message.
fn input(
    tasks: &mut [Task],
    sender: usize,
    receiver: usize,
    messages: &mut Vec<Task>,
    jitter: Jitter,
) -> Option<String> {
    let (from, core, period) = (tasks[sender].name.clone(), tasks[receiver].cpu, tasks[receiver].period);
    let after = match tasks[sender].cpu == core {
        true => from,
        false => {
            let name = format!("message-{}", messages.len());
            let message = Task::named(name.clone(), period, Duration::from_micros(SHORTEST));
            let port = core.map(|core| core + CORES as u32);
            messages.push(Task { cpu: port, jitter: jitter.of(period), after: vec![from], ..message });
            name
        }
    };
    let is_message = after.starts_with("message");
    if !tasks[receiver].after.contains(&after) {
        tasks[receiver].after.push(after.clone());
    }
    is_message.then_some(after)
}

fn drawn(random: &mut Random, periods: &[(i64, u64)]) -> i64 {
    let mut draw = random.below(periods.iter().map(|(_, weight)| weight).sum());
    for &(period, weight) in periods {
        if draw < weight {
            return period;
        }
        draw -= weight;
    }
    unreachable!("the weights sum to the total")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(system: &System) -> i64 {
        system.tasks.iter().map(|task| Duration::from_secs(1) / task.period).sum()
    }

    #[test]
    fn units_have_the_size_and_the_load_of_their_set() {
        for number in 1..=5 {
            for seed in 0..5 {
                let system = ecu(seed, Unit::set(number), 900, Jitter::Zero);
                assert_eq!(system.problems(), [""; 0], "set {number}, seed {seed}");
                for core in 0..CORES as u32 {
                    let here = system.tasks.iter().filter(|task| task.cpu == Some(core));
                    let load: f64 = here.map(|task| task.wcet.as_nanos() as f64 / task.period.as_nanos() as f64).sum();
                    assert!((0.88..=0.905).contains(&load), "set {number}, core {core}: {load}");
                }
            }
        }
        let large = ecu(1, Unit::set(5), 900, Jitter::Zero);
        assert!((1500..=2500).contains(&large.tasks.len()), "{} activities", large.tasks.len());
    }

    #[test]
    fn an_engine_control_unit_is_large() {
        let system = ecu(0, Unit::engine(), 896, Jitter::Zero);
        let (activities, jobs) = (system.tasks.len(), jobs(&system));
        assert!((10_000..=11_500).contains(&activities) && (95_000..=120_000).contains(&jobs), "{activities}, {jobs}");
    }
}
