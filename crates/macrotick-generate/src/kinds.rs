//! The kinds of random systems.

use macrotick_model::{Chain, Duration, System, Task};

use crate::shares::shares;
use crate::Random;

/// The periods of the automotive benchmark of Kramer, Ziegenbein and Hamann (WATERS 2015) in milliseconds, with the
/// share of runnables in percent. The nine periods sum to 85 %, the rest is angle-synchronous. Drawing among the nine
/// makes their sum 100 %.
pub(crate) const AUTOMOTIVE: [(i64, u64); 9] =
    [(1, 3), (2, 2), (5, 2), (10, 25), (20, 25), (50, 3), (100, 20), (200, 1), (1000, 4)];
/// Periods in milliseconds that do not divide each other, with a short common multiple.
const MIXED: [i64; 12] = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60];

/// The size of a system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// The number of tasks.
    pub tasks: usize,
    /// The number of CPUs.
    pub cpus: u32,
    /// The load of all CPUs in percent.
    pub load: u32,
}

/// The jitter bound of each task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// No bound.
    Free,
    /// The period divided by this number.
    Part(i64),
    /// Zero.
    Zero,
}

impl Jitter {
    pub(crate) fn of(self, period: Duration) -> Option<Duration> {
        match self {
            Jitter::Free => None,
            Jitter::Part(part) => Some(Duration::from_nanos(period.as_nanos() / part / 1000 * 1000)),
            Jitter::Zero => Some(Duration::ZERO),
        }
    }
}

/// Makes independent tasks with automotive periods.
pub fn independent(seed: u64, size: Size, jitter: Jitter) -> System {
    let random = &mut Random::new(seed);
    system("independent", seed, size, tasks(random, size, jitter, automotive))
}

/// Makes independent tasks with periods that do not divide each other.
pub fn with_jitter(seed: u64, size: Size, jitter: Jitter) -> System {
    let random = &mut Random::new(seed ^ 0x11);
    system("with-jitter", seed, size, tasks(random, size, jitter, mixed))
}

/// Makes chains of tasks of one period that share tasks. A value is to pass within the period. So the reaction time is
/// at most twice the period, and the data age at most the period. The tasks are listed in any order.
pub fn shared_chains(seed: u64, size: Size, jitter: Jitter) -> System {
    let random = &mut Random::new(seed ^ 0x22);
    let mut tasks = tasks(random, size, jitter, automotive);
    let chains = chained(random, &mut tasks);
    System { chains, ..system("shared-chains", seed, size, tasks) }
}

/// Draws chains of tasks of one period, and the order of tasks and chains.
pub(crate) fn chained(random: &mut Random, tasks: &mut [Task]) -> Vec<Chain> {
    // A chain follows the order of the draws, so chains never contradict each other.
    let mut chains = Vec::new();
    let mut periods: Vec<Duration> = tasks.iter().map(|task| task.period).collect();
    periods.sort_unstable();
    periods.dedup();
    for period in periods {
        let of: Vec<String> = tasks.iter().filter(|task| task.period == period).map(|task| task.name.clone()).collect();
        for _ in 0..of.len() / 4 {
            let length = random.between(3, 6) as usize;
            if of.len() < length {
                continue;
            }
            let mut members: Vec<usize> = (0..of.len()).collect();
            random.shuffle(&mut members);
            members.truncate(length);
            members.sort_unstable();
            let path = members.into_iter().map(|member| of[member].clone()).collect();
            let name = format!("chain-{}", chains.len());
            chains.push(Chain { reaction: Some(period * 2), age: Some(period), ..Chain::named(name, path) });
        }
    }
    random.shuffle(tasks);
    random.shuffle(&mut chains);
    chains
}

/// Makes tasks without jitter with periods that do not divide each other.
pub fn zero_jitter(seed: u64, size: Size) -> System {
    let random = &mut Random::new(seed ^ 0x33);
    system("zero-jitter", seed, size, tasks(random, size, Jitter::Zero, mixed))
}

/// Makes tasks that fill their CPUs to 95 %, less what is lost where each WCET is rounded down to a microsecond.
pub fn at_the_cap(seed: u64, tasks: usize, cpus: u32) -> System {
    let random = &mut Random::new(seed ^ 0x44);
    let mut made: Vec<Task> = Vec::new();
    for cpu in 0..cpus as usize {
        let count = tasks / cpus as usize + usize::from(cpu < tasks % cpus as usize);
        for share in shares(random, count, 0.95, 0.6) {
            let period = random.one(&[10, 20, 40, 50]);
            let wcet = (share * period as f64 * 1000.0) as i64;
            let name = format!("task-{}", made.len());
            made.push(Task::named(name, Duration::from_millis(period), Duration::from_micros(wcet.max(10))));
        }
    }
    random.shuffle(&mut made);
    system("at-the-cap", seed, Size { tasks, cpus, load: 95 }, made)
}

pub(crate) fn system(kind: &str, seed: u64, size: Size, tasks: Vec<Task>) -> System {
    System { cpus: (0..size.cpus).collect(), tasks, ..System::named(format!("{kind}-{seed}")) }
}

pub(crate) fn tasks(random: &mut Random, size: Size, jitter: Jitter, period: fn(&mut Random) -> i64) -> Vec<Task> {
    let sum = f64::from(size.load) / 100.0 * f64::from(size.cpus);
    let shares = shares(random, size.tasks, sum, (10.0 * sum / size.tasks as f64).min(0.6));
    let task = |(index, share): (usize, f64)| {
        let period = Duration::from_millis(period(random));
        let wcet = (share * period.as_nanos() as f64 / 1000.0) as i64;
        let wcet = Duration::from_micros(wcet.max(10));
        Task { jitter: jitter.of(period), ..Task::named(format!("task-{index}"), period, wcet) }
    };
    shares.into_iter().enumerate().map(task).collect()
}

pub(crate) fn automotive(random: &mut Random) -> i64 {
    let total = AUTOMOTIVE.iter().map(|(_, share)| share).sum();
    let mut draw = random.below(total);
    for (period, share) in AUTOMOTIVE {
        if draw < share {
            return period;
        }
        draw -= share;
    }
    unreachable!("the shares sum to the total")
}

pub(crate) fn mixed(random: &mut Random) -> i64 {
    random.one(&MIXED)
}
