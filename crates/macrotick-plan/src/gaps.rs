//! Filling the jobs of split tasks into the gaps that everything else leaves on all CPUs.

use macrotick_model::{Duration, SyncWindow};

use crate::demand::Demand;
use crate::draft::{Draft, Failure};
use crate::folded::Problem;
use crate::occupancy::Occupancy;
use crate::pieces::{self, Place};
use crate::table::Piece;

/// A job of a split task.
struct Job {
    task: usize,
    release: Duration,
    deadline: Duration,
    /// Whether it is the last job of its task in the cycle.
    is_last: bool,
}

/// The free time of the CPUs while jobs are laid out one after the other.
struct Filling<'a> {
    problem: &'a Problem<'a>,
    /// The occupancy of each CPU over the whole cycle.
    occupancies: Vec<Occupancy>,
    budget: Budget,
    /// The start of the first job and the end of the latest job of each task.
    spans: Vec<Option<(Duration, Duration)>>,
}

impl Problem<'_> {
    /// Adds the jobs of split tasks to the pieces of all CPUs, the earliest deadline first.
    pub(crate) fn fill_gaps_of_all(
        &self,
        draft: &Draft,
        mut pieces: Vec<Vec<Piece>>,
    ) -> Result<Vec<Vec<Piece>>, Failure> {
        let mut filling = Filling {
            problem: self,
            occupancies: pieces.iter().map(|pieces| self.occupied(pieces)).collect(),
            budget: Budget::new(self, draft, &pieces),
            spans: vec![None; self.demands.len()],
        };
        for job in self.split_jobs() {
            let places = filling.lay_out(&job).ok_or(Failure::Split(job.task))?;
            self.add_job(job.task, &places, Duration::ZERO, &mut pieces);
        }
        Ok(pieces)
    }

    /// Returns all jobs of split tasks in a cycle.
    fn split_jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for task in self.splitting.tasks() {
            let demand = &self.demands[task];
            let count = self.cycle / demand.period;
            jobs.extend((0..count).map(|number| {
                let release = demand.release() + demand.period * number;
                Job { task, release, deadline: release + demand.deadline, is_last: number + 1 == count }
            }));
        }
        jobs.sort_by_key(|job| (job.deadline, job.task));
        jobs
    }

    /// Returns the occupancy of a CPU by its pieces, their leads and the sync windows.
    fn occupied(&self, pieces: &[Piece]) -> Occupancy {
        let mut occupancy = Occupancy::new([self.cycle].into_iter());
        if let Some(SyncWindow { period, offset, length, .. }) = self.system.sync() {
            occupancy.take(offset, length, period);
        }
        for piece in pieces {
            let lead = if piece.activate { self.lead } else { Duration::ZERO };
            occupancy.take(piece.start + self.cycle - lead, piece.length + lead, self.cycle);
        }
        occupancy
    }
}

impl Filling<'_> {
    /// Finds the places of a job and takes them.
    fn lay_out(&mut self, job: &Job) -> Option<Vec<Place>> {
        let demand = &self.problem.demands[job.task];
        let quotas = self.budget.quotas(demand);
        let (earliest, until) = self.bounds(job);
        let search = self.problem.search(job.task, &self.occupancies, self.problem.cycle);
        let places = search.job(earliest, until, &quotas)?;
        let (start, end) = (places.first()?.start, places.last()?.end());
        let first = self.spans[job.task].map_or(start, |(first, _)| first);
        self.spans[job.task] = Some((first, end));
        pieces::take(&mut self.occupancies, &places, demand.lead, self.problem.cycle);
        self.budget.take(&places, demand.lead);
        Some(places)
    }

    /// Returns the earliest start of a job and the instant by which it must be complete. It starts after the previous
    /// job and its own lead. The last job must be complete before the lead of the first job in the next cycle.
    fn bounds(&self, job: &Job) -> (Duration, Duration) {
        let demand = &self.problem.demands[job.task];
        let span = self.spans[job.task];
        let earliest = span.map_or(job.release, |(_, end)| job.release.max(end + demand.lead));
        let first = span.map_or(earliest, |(first, _)| first);
        let until = if job.is_last { job.deadline.min(first + self.problem.cycle - demand.lead) } else { job.deadline };
        (earliest, until)
    }
}

/// The time that split tasks can take on each CPU in one cycle. They use it evenly over time, so no CPU is full before
/// the last job is laid out.
struct Budget {
    all: Vec<Duration>,
    taken: Vec<Duration>,
    demand: Duration,
    passed: Duration,
    macrotick: Duration,
    cpus: Vec<u32>,
}

impl Budget {
    fn new(problem: &Problem, draft: &Draft, pieces: &[Vec<Piece>]) -> Budget {
        // The assignment does not contain the cost of cutting jobs.
        let left = |pieces: &Vec<Piece>| problem.capacity() - problem.time_of(pieces.iter());
        let all = draft.assignment.free_to_migrate().into_iter().zip(pieces.iter().map(left));
        let all: Vec<Duration> = all.map(|(free, left)| free.min(left)).collect();
        let demand = problem.splitting.tasks().map(|task| problem.demands[task].per_cycle(problem.cycle)).sum();
        let (taken, macrotick) = (vec![Duration::ZERO; all.len()], problem.system.macrotick);
        Budget { all, taken, demand, passed: Duration::ZERO, macrotick, cpus: problem.system.cpus.clone() }
    }

    /// Returns the time that the next job can take on each CPU, also if its lead is there.
    fn quotas(&mut self, job: &Demand) -> Vec<Duration> {
        self.passed += job.wcet + job.lead;
        let (passed, demand) = (i128::from(self.passed.as_nanos()), i128::from(self.demand.as_nanos()));
        let allowed = |all: Duration| Duration::from_nanos((i128::from(all.as_nanos()) * passed / demand) as i64);
        let left = |cpu: usize| match job.cpus.contains(self.cpus[cpu]) {
            true => (allowed(self.all[cpu]) - self.taken[cpu] - job.lead).max(Duration::ZERO),
            false => Duration::ZERO,
        };
        let on_grid = |length: Duration| length - length % self.macrotick;
        (0..self.all.len()).map(left).map(on_grid).collect()
    }

    fn take(&mut self, places: &[Place], lead: Duration) {
        places.iter().for_each(|place| self.taken[place.cpu] += place.length);
        self.taken[places[0].cpu] += lead;
    }
}
