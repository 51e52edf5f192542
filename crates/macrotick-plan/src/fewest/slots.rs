//! The slots of one CPU, and the slots that each job can use.

use macrotick_model::Duration;

use crate::demand::Demand;

/// A job. It can have time in the slots from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// The index of the task.
    pub task: usize,
    pub first: usize,
    pub last: usize,
    /// The time of the job if it has one piece.
    pub needed: Duration,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// The start of each slot, and the end of the last one.
    pub bounds: Vec<Duration>,
    /// The jobs of a cycle, sorted by task and release.
    pub jobs: Vec<Job>,
}

impl Slots {
    /// Divides a cycle at all releases and deadlines of the tasks. No job reaches over the end of its period.
    pub fn new(demands: &[Demand], tasks: &[usize], cycle: Duration) -> Slots {
        let mut jobs = Vec::new();
        for &task in tasks {
            let Demand { period, deadline, wcet, .. } = demands[task];
            for number in 0..cycle / period {
                let release = demands[task].release() + period * number;
                jobs.push((task, release, release + deadline, wcet));
            }
        }
        let ends = jobs.iter().flat_map(|&(_, release, deadline, _)| [release, deadline]);
        let mut bounds: Vec<Duration> = ends.chain([Duration::ZERO, cycle]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let slot = |instant: Duration| bounds.partition_point(|&bound| bound < instant);
        let job = |(task, release, deadline, needed)| Job {
            task,
            first: slot(release),
            last: slot(deadline).saturating_sub(1),
            needed,
        };
        let jobs = jobs.into_iter().map(job).collect();
        Slots { bounds, jobs }
    }

    /// Returns the number of slots.
    pub fn count(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns the length of a slot.
    pub fn length(&self, slot: usize) -> Duration {
        self.bounds[slot + 1] - self.bounds[slot]
    }
}
