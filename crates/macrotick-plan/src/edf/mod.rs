//! Simulation of earliest deadline first (EDF), which fills preemptible jobs into the gaps of CPUs.
//!
//! All CPUs advance together, because a job can wait for the end of a job on another CPU ([`jobs`]). A job with a bound
//! on its start has the latest start as its deadline until it has started. For one CPU and no cost of cutting, this
//! finds a table whenever there is one for these releases.
//!
//! A job without preemption runs to its end. It does not start if another job that is released meanwhile would then
//! start too late: the CPU rather waits. The simulation looks only at the next job of each task, so it can miss tables.
//!
//! A job with resources starts only where it ends before others need them. A limit is the next job that is laid out
//! already. Another one is the latest start of the next jobs of other tasks with a resource. The job is then as urgent as
//! these. The latter rule is that of CW-EDF (Nasri, Fohler: Non-work-conserving non-preemptive scheduling: motivations, challenges,
//! and potential solutions. ECRTS 2016) for one resource instead of one CPU.
//!
//! Source: Chetto, Silly, Bouchentouf: Dynamic scheduling of real-time tasks under precedence constraints. Real-Time
//! Systems 2, 1990.

mod cpu;
mod exclusive;
pub(crate) mod jobs;
mod simulation;

use macrotick_model::Duration;

use crate::cut::Cut;
use crate::demand::Demand;
use crate::exclusive::{Held, Resources};
use crate::table::Piece;
use jobs::Jobs;
use simulation::{Manner, Simulation};

/// The limit of simulated cycles. Jobs that reach over the end of the cycle make the second cycle differ from the
/// first. With a feasible load, the state at the end of the cycle repeats after one more cycle (Leung and Merrill
/// 1980). The rest is a margin for the idle time of guards and leads.
const MAX_CYCLES: i64 = 4;

/// A free interval `[start, end)` within the cycle. It starts at the end of a window or at the start of the cycle. It
/// ends at a window, at the lead before one, or at the end of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub start: Duration,
    pub end: Duration,
    /// The task with a first piece that ends at the start of the gap.
    pub behind: Option<usize>,
}

/// The jobs and gaps of one simulation.
pub(crate) struct Filling<'a> {
    pub demands: &'a [Demand],
    /// The jobs to fill in.
    pub jobs: &'a Jobs,
    /// The order among equal deadlines: the lower rank goes first, so a chain runs in its order.
    pub ranks: &'a [usize],
    /// The gaps of each CPU.
    pub gaps: &'a [Vec<Gap>],
    pub resources: &'a Resources,
    /// The jobs that have each resource and are laid out already. Empty if resources do not count.
    pub held: &'a Held,
    /// The longest time without windows that a job needs before its start.
    pub lead: Duration,
    pub cycle: Duration,
    pub macrotick: Duration,
    pub quantum: Duration,
    pub cut: Cut,
}

impl Filling<'_> {
    /// Returns the pieces of one cycle for each CPU, or the tasks that miss a deadline or their latest start.
    ///
    /// It first keeps starts off the common grid, and lets jobs end before more urgent ones that have time to wait.
    /// Only if this costs a deadline, jobs preempt at once, and then starts may be anywhere. With resources, a job first
    /// leaves them to a more urgent one on another CPU, and then takes them if it can.
    pub fn run(&self) -> Result<Vec<Vec<Piece>>, Vec<usize>> {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        let polite: &[bool] = if self.held.is_empty() { &[false] } else { &[true, false] };
        let mut found = Err(Vec::new());
        for ((guarded, patient), &polite) in
            all.into_iter().flat_map(|one| polite.iter().map(move |polite| (one, polite)))
        {
            found = self.simulate(Manner { guarded, patient, polite });
            if found.is_ok() {
                break;
            }
        }
        found
    }

    fn simulate(&self, manner: Manner) -> Result<Vec<Vec<Piece>>, Vec<usize>> {
        let mut simulation = Simulation::new(self, manner);
        let mut before = simulation.state(Duration::ZERO);
        for cycle in 0..MAX_CYCLES {
            let origin = self.cycle * cycle;
            simulation.run_cycle(origin);
            if !simulation.missed.is_empty() {
                simulation.missed.sort_unstable();
                simulation.missed.dedup();
                return Err(simulation.missed);
            }
            let after = simulation.state(origin + self.cycle);
            if after == before {
                return Ok(simulation.pieces());
            }
            before = after;
        }
        // The jobs that keep the cycles from repeating. If there are none, the idle time before the cycle does, and all
        // tasks count.
        let open: Vec<usize> = before.open.into_iter().map(|(source, ..)| self.jobs.sources[source].task).collect();
        Err(if open.is_empty() { self.jobs.sources.iter().map(|source| source.task).collect() } else { open })
    }
}
