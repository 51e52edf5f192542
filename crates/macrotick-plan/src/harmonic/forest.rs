//! Harmonic windows as a packing: bins of the shortest period, and the windows of each period.

use std::collections::BTreeMap;

use macrotick_model::{Duration, SyncWindow};

use crate::demand::{round_up, Demand};
use crate::folded::Problem;
use crate::occupancy::Occupancy;

/// The most bins of the longest period, and the longest bin in steps. Both bound memory and the time of a step.
const MOST_BINS: i64 = 4096;
const LONGEST_BIN: i64 = 1 << 14;

/// The windows that share some CPUs, and the free time of these CPUs.
pub(super) struct Forest {
    /// The shortest period.
    pub base: Duration,
    /// All lengths are multiples of this.
    pub step: Duration,
    pub roots: Vec<Root>,
    /// The windows of each period, the shortest period first.
    pub levels: Vec<Level>,
}

/// Free time of a CPU, given by its index, that repeats with the shortest period.
pub(super) struct Root {
    pub cpu: usize,
    pub start: Duration,
    /// The length in steps.
    pub capacity: usize,
}

/// The windows of one period. The longest comes first.
pub(super) struct Level {
    /// The number of bins that each rest of the level before makes. One for the first level.
    pub factor: usize,
    pub tasks: Vec<usize>,
    /// The lengths with their leads, in steps.
    pub lengths: Vec<usize>,
}

impl Forest {
    /// Returns the forest of each set of CPUs. There is none if the system has anything else than harmonic windows without
    /// jitter. There is none either if two sets of CPUs overlap, or if a forest is too large.
    pub fn all(problem: &Problem) -> Option<Vec<Forest>> {
        let system = problem.system;
        let is_plain = |(task, demand): (usize, &Demand)| {
            let (earliest, latest) = demand.starts();
            let anywhere = earliest == Duration::ZERO && latest == demand.period - demand.wcet;
            !demand.is_pool() && demand.jitter == Some(Duration::ZERO) && anywhere && problem.is_open(task)
        };
        let has_others = system.servers().next().is_some()
            || system.reserved().next().is_some()
            || system.network.is_some()
            || !system.chains.is_empty()
            || !problem.graph.edges.is_empty();
        if has_others || !problem.demands.iter().enumerate().all(is_plain) {
            return None;
        }
        let mut sets: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for (task, demand) in problem.demands.iter().enumerate() {
            sets.entry(demand.places(&system.cpus).collect()).or_default().push(task);
        }
        let mut taken = vec![false; system.cpus.len()];
        let mut forests = Vec::new();
        for (cpus, tasks) in sets {
            if cpus.iter().any(|&cpu| std::mem::replace(&mut taken[cpu], true)) {
                return None;
            }
            forests.push(Forest::of(problem, &tasks, &cpus)?);
        }
        Some(forests)
    }

    fn of(problem: &Problem, tasks: &[usize], cpus: &[usize]) -> Option<Forest> {
        let length = |task: usize| problem.demands[task].wcet + problem.demands[task].lead;
        let step = tasks.iter().map(|&task| length(task)).reduce(Duration::gcd)?;
        let mut periods: BTreeMap<Duration, Vec<usize>> = BTreeMap::new();
        for &task in tasks {
            periods.entry(problem.demands[task].period).or_default().push(task);
        }
        let base = *periods.keys().next()?;
        let steps = |length: Duration| (length / step) as usize;
        let (mut levels, mut before) = (Vec::new(), base);
        for (period, mut tasks) in periods {
            if !period.is_multiple_of(before) {
                return None;
            }
            tasks.sort_by_key(|&task| (std::cmp::Reverse(length(task)), task));
            let lengths = tasks.iter().map(|&task| steps(length(task))).collect();
            levels.push(Level { factor: (period / before) as usize, tasks, lengths });
            before = period;
        }
        let free = free(problem, base);
        let root = |cpu: usize| free.iter().map(move |&(start, length)| Root { cpu, start, capacity: steps(length) });
        let roots: Vec<Root> = cpus.iter().flat_map(|&cpu| root(cpu)).collect();
        let bins = (before / base).checked_mul(roots.len() as i64)?;
        let fits = bins <= MOST_BINS && base / step <= LONGEST_BIN;
        fits.then_some(Forest { base, step, roots, levels })
    }

    /// Whether the windows take nearly all time. Otherwise the other searches find a table, in which starts can keep off
    /// the timers of the system.
    pub fn is_tight(&self) -> bool {
        (0..=self.capacity() / 20).contains(&self.slack())
    }

    /// Returns the length of the shortest window of all longer periods, in steps.
    pub fn shortest_behind(&self, level: usize) -> usize {
        self.levels[level + 1..].iter().flat_map(|level| &level.lengths).copied().min().unwrap_or(1)
    }

    /// Returns the number of bins of the longest period that a rest of each level becomes.
    pub fn leaves(&self) -> Vec<i64> {
        let mut leaves = vec![1; self.levels.len()];
        for index in (1..leaves.len()).rev() {
            leaves[index - 1] = leaves[index] * self.levels[index].factor as i64;
        }
        leaves
    }

    /// Returns the time of all bins, in steps of bins of the longest period.
    fn capacity(&self) -> i64 {
        self.roots.iter().map(|root| root.capacity).sum::<usize>() as i64 * self.leaves()[0]
    }

    /// Returns the time that stays free, in steps of bins of the longest period. It is negative if the windows are too
    /// long.
    pub fn slack(&self) -> i64 {
        let leaves = self.leaves();
        let own = |(level, leaves): (&Level, &i64)| level.lengths.iter().sum::<usize>() as i64 * leaves;
        self.capacity() - self.levels.iter().zip(&leaves).map(own).sum::<i64>()
    }
}

/// Returns the free time of a CPU beside the sync windows, which repeats with the shortest period: starts and lengths.
fn free(problem: &Problem, base: Duration) -> Vec<(Duration, Duration)> {
    let mut occupancy = Occupancy::new(std::iter::once(base));
    if let Some(SyncWindow { period, offset, length, .. }) = problem.system.sync() {
        occupancy.take(offset, length, period);
    }
    let (mut free, mut at) = (Vec::new(), Duration::ZERO);
    while let Some((from, end)) = occupancy.next_free(base, at).filter(|(from, _)| *from < base) {
        let start = round_up(from, problem.system.macrotick);
        free.push((start, (end - start).max(Duration::ZERO)));
        at = end;
    }
    // The kernel gives windows less than all of it. The longest interval is shortened.
    let given = Duration::from_nanos(problem.capacity().as_nanos() / (problem.cycle / base));
    let excess = free.iter().map(|&(_, length)| length).sum::<Duration>() - given;
    if let Some(longest) = free.iter_mut().max_by_key(|interval| interval.1).filter(|_| excess > Duration::ZERO) {
        longest.1 = (longest.1 - excess).max(Duration::ZERO);
    }
    free
}
