//! The jobs of one cycle that a simulation lays out, with their limits and the order among them.

use macrotick_model::Duration;

use crate::demand::Demand;
use crate::phases::Phase;

/// No limit: later than every instant of a simulation.
pub(crate) const NEVER: Duration = Duration::from_nanos(i64::MAX / 4);

/// A job of cycle 0. All instants count from the start of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The earliest start, or the end of the first piece for a job that has started.
    pub earliest: Duration,
    /// The latest start. [`NEVER`] if there is no bound.
    pub start_by: Duration,
    /// The instant by which it must be complete.
    pub deadline: Duration,
}

/// The jobs of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The index of the task.
    pub task: usize,
    /// The index of its CPU.
    pub cpu: usize,
    /// The time that the simulation gives to each job.
    pub needed: Duration,
    /// Whether the first piece of each job is laid out already, and ends at the earliest start.
    pub begun: bool,
    /// The index of its first job.
    pub first: usize,
    /// The number of its jobs in a cycle.
    pub count: usize,
}

/// A job that waits for the end of another one.
pub(crate) type Wait = (usize, usize);

/// All jobs of one cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jobs {
    pub sources: Vec<Source>,
    pub all: Vec<Job>,
    /// For each job, the jobs that must end before it starts. Empty if no job waits.
    pub before: Vec<Vec<usize>>,
    /// For each job, the jobs that wait for it. Empty if no job waits.
    pub after: Vec<Vec<usize>>,
}

impl Jobs {
    /// Adds the jobs of a task on a CPU. `limits` has the earliest start and the latest end of each job after its
    /// release.
    pub fn add(
        &mut self,
        task: usize,
        demand: &Demand,
        cpu: usize,
        cycle: Duration,
        release: Duration,
        limits: (Duration, Duration),
    ) {
        let start_by = demand.jitter.map(|jitter| jitter.min(demand.deadline - demand.wcet));
        let job = |number: i64| {
            let release = release + demand.period * number;
            let start_by = start_by.map_or(NEVER, |jitter| release + jitter);
            Job { earliest: (release + limits.0).min(start_by), start_by, deadline: release + limits.1 }
        };
        self.push(
            Source { task, cpu, needed: demand.needed, begun: false, first: 0, count: 0 },
            cycle / demand.period,
            job,
        );
    }

    /// Adds the rest of the jobs of a task with a first piece on this phase, which end by `limit` of their period.
    pub fn add_rest(
        &mut self,
        task: usize,
        demand: &Demand,
        cpu: usize,
        cycle: Duration,
        first: &Phase,
        limit: Duration,
    ) {
        // Without an offset, the deadline counts from the start.
        let deadline = (demand.offset.unwrap_or(first.start) + demand.deadline).min(limit);
        let job = |number: i64| {
            let shift = demand.period * number;
            Job { earliest: first.end() + shift, start_by: NEVER, deadline: deadline + shift }
        };
        let needed = demand.needed - first.length;
        self.push(Source { task, cpu, needed, begun: true, first: 0, count: 0 }, cycle / demand.period, job);
    }

    fn push(&mut self, source: Source, count: i64, job: impl Fn(i64) -> Job) {
        self.sources.push(Source { first: self.all.len(), count: count as usize, ..source });
        self.all.extend((0..count).map(job));
    }

    /// Makes jobs wait for others, and moves the deadlines of the others so that EDF prefers them in time. The waits
    /// must have no circle, and `waits` is sorted so that a job waits before others wait for it.
    pub fn order(&mut self, waits: &[Wait]) {
        if waits.is_empty() {
            return;
        }
        (self.before, self.after) = (vec![Vec::new(); self.all.len()], vec![Vec::new(); self.all.len()]);
        for &(first, then) in waits {
            self.before[then].push(first);
            self.after[first].push(then);
        }
        let mut needed = vec![Duration::ZERO; self.all.len()];
        for source in &self.sources {
            needed[source.first..source.first + source.count].fill(source.needed);
        }
        for &(first, then) in waits.iter().rev() {
            let latest = self.all[then].start_by.min(self.all[then].deadline - needed[then]);
            self.all[first].deadline = self.all[first].deadline.min(latest);
        }
    }

    /// Returns a task with a job that has too little time between its limits.
    pub fn hopeless(&self) -> Option<usize> {
        let late = |source: &&Source| {
            let jobs = &self.all[source.first..source.first + source.count];
            jobs.iter().any(|job| job.earliest > job.start_by || job.earliest + source.needed > job.deadline)
        };
        self.sources.iter().find(late).map(|source| source.task)
    }
}
