//! The fewest pieces for CPUs that are almost full.
//!
//! Each piece of a job except the first costs time ([`crate::cut`]). Where windows take all that the kernel gives to
//! them, there is room for a few such pieces at most. This search goes through the assignments that fit without them.
//! On each CPU, it looks for a table with as few pieces as there is room for. It is complete for a few tasks and
//! slots, as far as the clock allows: without a table, it then proves that there is none.

mod amounts;
mod rests;
mod search;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use macrotick_model::{Duration, SplitMix64};

use crate::cut::RESUMING;
use crate::demand::Demand;
use crate::error::{Kind, PlanError};
use crate::folded::Problem;
use crate::options::Clock;
use crate::packing::{self, Packed};
use crate::refute::Refutation;
use crate::room::beside_windows;
use crate::table::Piece;
use search::Fewest;
use slots::Slots;

/// The most assignments of tasks to CPUs that are tried.
const ASSIGNMENTS: usize = 100;
/// The most states of the search for a table, and of that for a proof.
const NARROW: usize = 8;
const WIDE: usize = 3000;
/// The most tasks for each CPU with a proof, on average.
const PROOF: usize = 7;
/// The most pieces beyond one for each job, on each CPU.
const EXTRA: usize = 24;
/// The most slots on a CPU.
const SLOTS: usize = 200;
/// The most tasks on a CPU. With more of them, earliest deadline first has to do.
const TASKS: usize = 12;

/// The answer for some tasks.
enum Divided {
    /// The pieces on each CPU.
    Found(Vec<Vec<Piece>>),
    Impossible,
    Unknown,
}

/// The answer for the tasks of one CPU.
#[derive(Clone)]
enum Filled {
    Found(Vec<Piece>),
    Never,
    Unknown,
}

impl Problem<'_> {
    /// Returns the pieces of all CPUs, or the proof that there is no table. `None` if the search finds neither, or if
    /// something else than the time of the CPUs bounds the tables.
    pub(crate) fn fewest(&self, clock: &Clock) -> Option<Result<Vec<Vec<Piece>>, PlanError>> {
        let (cpus, count) = (self.system.cpus.len(), self.demands.len());
        if !self.has_only_time() {
            return None;
        }
        let mut tasks: Vec<usize> = (0..count).collect();
        let widths = if count > PROOF * cpus { &[NARROW][..] } else { &[NARROW, WIDE] };
        let mut answers = widths.iter().map(|&width| self.divided(&tasks, width, clock));
        if let Divided::Found(pieces) = answers.find(|answer| !matches!(answer, Divided::Unknown))? {
            return Some(Ok(pieces));
        }
        // Each task that is not necessary for the conflict is left out. Small ones come first.
        let mut order = tasks.clone();
        order.sort_by_key(|&task| (self.demands[task].per_cycle(self.cycle), task));
        for task in order {
            let without: Vec<usize> = tasks.iter().copied().filter(|&other| other != task).collect();
            if matches!(self.divided(&without, WIDE, clock), Divided::Impossible) {
                tasks = without;
            }
        }
        let tasks = tasks.into_iter().map(|task| self.demands[task].name.clone()).collect();
        let (capacity, cycle) = (self.capacity(), self.cycle);
        Some(Err(PlanError::Impossible(Refutation::Pieces { tasks, cpus, capacity, cycle, each: RESUMING })))
    }

    /// Whether nothing but time bounds the tables: each job needs its wcet between its release and its deadline.
    fn has_only_time(&self) -> bool {
        let Problem { system, cycle, .. } = *self;
        let is_plain = |(task, demand): (usize, &Demand)| {
            let Demand { kind, period, wcet, needed, deadline, jitter, lead, migrate, preemptible, .. } = *demand;
            let is_whole = demand.release() + deadline <= period && wcet == needed;
            let is_free = jitter.is_none() && lead == Duration::ZERO && preemptible && !migrate;
            kind == Kind::Task && is_whole && is_free && self.is_open(task)
        };
        let is_alone = self.graph.edges.is_empty() && self.paths.is_empty() && self.resources.is_empty();
        let others = system.sync().is_some()
            || system.servers().next().is_some()
            || beside_windows(system, cycle).iter().any(|&time| time > Duration::ZERO);
        let is_fine = RESUMING % system.macrotick == Duration::ZERO;
        is_alone && !others && is_fine && self.demands.iter().enumerate().all(is_plain)
    }

    /// Divides tasks among the CPUs.
    fn divided(&self, tasks: &[usize], width: usize, clock: &Clock) -> Divided {
        let sizes: Vec<i64> = tasks.iter().map(|&task| self.demands[task].per_cycle(self.cycle).as_nanos()).collect();
        let cpus = &self.system.cpus;
        let allowed: Vec<Vec<usize>> = tasks.iter().map(|&task| self.demands[task].places(cpus).collect()).collect();
        let room = vec![self.capacity().as_nanos(); cpus.len()];
        let mut filled: BTreeMap<Vec<usize>, Filled> = BTreeMap::new();
        let (mut found, mut tried, mut is_complete) = (Vec::new(), 0, true);
        let packed = packing::each(&sizes, &allowed, &room, &mut SplitMix64::new(1), &mut |of| {
            tried += 1;
            if tried > ASSIGNMENTS || clock.is_over() {
                return None;
            }
            found.clear();
            for cpu in 0..cpus.len() {
                let here: Vec<usize> =
                    tasks.iter().zip(of).filter(|(_, own)| **own == cpu).map(|(&task, _)| task).collect();
                let result = filled.entry(here).or_insert_with_key(|here| self.filled(here, width, clock));
                match result {
                    Filled::Found(pieces) => found.push(pieces.clone()),
                    Filled::Never => return Some(false),
                    Filled::Unknown => {
                        is_complete = false;
                        return Some(false);
                    }
                }
            }
            Some(true)
        });
        match packed {
            Packed::Found(_) => Divided::Found(found),
            Packed::Impossible if is_complete => Divided::Impossible,
            Packed::Impossible | Packed::Unknown => Divided::Unknown,
        }
    }

    /// Returns the pieces of a CPU with these tasks.
    fn filled(&self, tasks: &[usize], width: usize, clock: &Clock) -> Filled {
        if let Ok(pieces) = self.fill_gaps(0, tasks, &[]) {
            return Filled::Found(pieces);
        }
        let slots = Slots::new(&self.demands, tasks, self.cycle);
        let load: Duration = tasks.iter().map(|&task| self.demands[task].per_cycle(self.cycle)).sum();
        let most = ((self.capacity() - load) / RESUMING) as usize;
        if slots.count() > SLOTS || tasks.len() > TASKS {
            return Filled::Unknown;
        }
        match search::fewest(&slots, most.min(EXTRA), width, clock) {
            Fewest::Found(contents) => amounts::pieces(&slots, &contents).map_or(Filled::Unknown, Filled::Found),
            Fewest::Never if most <= EXTRA => Filled::Never,
            Fewest::Never | Fewest::Unknown => Filled::Unknown,
        }
    }
}
