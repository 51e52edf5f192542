//! Seeded random systems after the automotive benchmark of Kramer, Ziegenbein and Hamann (WATERS 2015).

use macrotick_fixtures as fixtures;
use macrotick_model::*;

/// Seeded choices.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }
    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Periods in milliseconds with the share of runnables in percent. The nine periods sum to 85 %; the rest of the
/// benchmark is angle-synchronous. Drawing among the nine makes their sum 100 %.
const PERIODS: [(i64, u64); 9] = [(1, 3), (2, 2), (5, 2), (10, 25), (20, 25), (50, 3), (100, 20), (200, 1), (1000, 4)];

/// The properties of a random system.
pub struct Shape {
    pub tasks: usize,
    pub cpus: u32,
    /// The demand in percent of all CPUs.
    pub utilisation: i64,
    pub macrotick: Duration,
    /// The percentage of tasks with a jitter bound.
    pub phased: u64,
    pub chains: usize,
    pub lead: Option<Lead>,
    pub sync: Option<SyncWindow>,
}

fn period(random: &mut Random) -> Duration {
    let total = PERIODS.iter().map(|(_, share)| share).sum();
    let mut draw = random.below(total);
    for (period, share) in PERIODS {
        if draw < share {
            return Duration::from_millis(period);
        }
        draw -= share;
    }
    unreachable!("the shares sum to the total")
}

/// Makes tasks with random shares of the given utilisation as their demands.
pub fn system(seed: u64, shape: &Shape) -> System {
    let random = &mut Random::new(seed);
    let shares: Vec<i64> = (0..shape.tasks).map(|_| random.between(10, 100)).collect();
    let sum: i64 = shares.iter().sum();
    let tasks: Vec<Task> =
        shares.iter().enumerate().map(|(index, &share)| task(random, index, share, sum, shape)).collect();
    let chains = (0..shape.chains).map(|index| chain(random, index, &tasks)).collect();
    System {
        macrotick: shape.macrotick,
        lead: shape.lead,
        clock: shape.sync.map_or(Clock::Monotonic, Clock::Tai),
        cpus: (0..shape.cpus).collect(),
        experiment: Experiment { duration: Duration::from_secs(1) },
        chains,
        ..fixtures::system(&format!("random-{seed}"), tasks)
    }
}

fn task(random: &mut Random, index: usize, share: i64, sum: i64, shape: &Shape) -> Task {
    let period = period(random);
    let grid = shape.macrotick.as_nanos();
    let demand = i128::from(period.as_nanos()) * i128::from(share) / i128::from(sum);
    let demand = demand * i128::from(shape.utilisation) * i128::from(shape.cpus) / 100;
    // No task takes more than half of its period.
    let wcet = (demand as i64).min(period.as_nanos() / 2) / grid * grid;
    let wcet = Duration::from_nanos(wcet.max(grid).max(1_000));
    let tight = random.chance(20);
    let deadline = if tight { period - Duration::from_nanos((period - wcet).as_nanos() / 4) } else { period };
    let phased = random.chance(shape.phased);
    let offset =
        random.chance(15).then(|| Duration::from_nanos(random.between(0, period.as_nanos() / grid - 1) * grid));
    Task {
        deadline,
        // An offset and a small jitter bound together fix the start. If many tasks have both, their starts contradict
        // each other.
        offset: offset.filter(|_| !phased || index % 4 == 0),
        jitter: phased.then(|| Duration::from_nanos(random.between(0, 50) * grid).min(deadline)),
        cpu: random.chance(10).then(|| random.below(u64::from(shape.cpus)) as u32),
        ..fixtures::task(&format!("task-{index}"), period, wcet)
    }
}

/// Makes a chain of three different tasks, with bounds that any table keeps that keeps all deadlines.
fn chain(random: &mut Random, index: usize, tasks: &[Task]) -> Chain {
    let mut path: Vec<&Task> = Vec::new();
    while path.len() < 3.min(tasks.len()) {
        let task = &tasks[random.below(tasks.len() as u64) as usize];
        if path.iter().all(|other| other.name != task.name) {
            path.push(task);
        }
    }
    let bound: Duration = path.iter().map(|task| task.period * 2).sum::<Duration>() + path[0].period * 2;
    let path = path.iter().map(|task| task.name.clone()).collect();
    Chain { reaction: Some(bound), age: Some(bound), ..Chain::named(format!("chain-{index}"), path) }
}
