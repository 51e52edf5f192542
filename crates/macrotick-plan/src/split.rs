//! Tasks that fit on no CPU and may migrate: which of them are split over several CPUs, and how.
//!
//! Only where no table is found without: then the task that did not fit, or else the most demanding one that may migrate,
//! is split, and another one where that is not enough. Everything else is assigned, placed and filled in as ever. A split
//! task is laid out in one of two ways, tried in turn ([`Way`]); [`crate::pieces`] finds the pieces of a job.
//!
//! Within slots that divide all periods, every CPU gives the same time to the split tasks in each slot: there EDF has all
//! the rest. So finer slots help where coarser ones do not, at the price of more pieces.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use macrotick_model::{CpuTable, Duration};

use crate::draft::Draft;
use crate::error::PlanError;
use crate::folded::Problem;
use crate::occupancy::Occupancy;
use crate::pieces::{Place, Search};

/// How the jobs of split tasks are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Behind everything else, each job on its own, into the gaps of all CPUs in order of time ([`crate::gaps`]).
    Gaps,
    /// Before everything else that leaves the solver a choice, the same in every period. Each job is shared out evenly
    /// over slots of this length, and within each over CPUs in proportion to what they have left.
    Slots(Duration),
}

/// What is split, and how.
#[derive(Clone, Debug)]
pub(crate) struct Splitting {
    tasks: Vec<bool>,
    pub way: Way,
}

impl Splitting {
    /// Nothing of so many tasks and pools.
    pub fn none(count: usize) -> Splitting {
        Splitting { tasks: vec![false; count], way: Way::Gaps }
    }

    /// Whether a task is split.
    pub fn has(&self, task: usize) -> bool {
        self.tasks[task]
    }

    /// All split tasks.
    pub fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(|&task| self.tasks[task])
    }

    /// The length of the slots that a task is shared out over, if it is.
    pub fn slot(&self, task: usize) -> Option<Duration> {
        match self.way {
            Way::Slots(slot) if self.has(task) => Some(slot),
            _ => None,
        }
    }

    /// Whether split tasks are placed, before others.
    pub fn is_placed(&self) -> bool {
        self.way != Way::Gaps
    }
}

impl Problem<'_> {
    /// Tables with tasks on several CPUs, as there are none without, for the reason that is given.
    pub(crate) fn split(mut self, whole: PlanError) -> Result<Vec<CpuTable>, PlanError> {
        let mut latest: Option<PlanError> = None;
        while let Some(task) = self.next_to_split(latest.as_ref().unwrap_or(&whole)) {
            self.splitting.tasks[task] = true;
            for way in self.ways() {
                self.splitting.way = way;
                match self.tables() {
                    Ok(tables) => return Ok(tables),
                    Err(error) => latest = Some(error),
                }
            }
        }
        Err(match latest {
            Some(split) => PlanError::Split { whole: Box::new(whole), split: Box::new(split) },
            None => whole,
        })
    }

    /// The one that did not fit, or the most demanding one. More than one less than there are CPUs need not be split.
    fn next_to_split(&self, error: &PlanError) -> Option<usize> {
        let name = error.unplaced()?;
        if self.splitting.tasks().count() + 1 >= self.system.cpus.len() {
            return None;
        }
        let open = (0..self.demands.len()).filter(|&task| self.demands[task].migrate && !self.splitting.has(task));
        open.max_by_key(|&task| {
            let demand = &self.demands[task];
            (demand.name == name, demand.per_cycle(self.cycle), Reverse(task))
        })
    }

    /// The gaps first, for what may start anywhere; then slots from whole periods down to what divides all of them.
    fn ways(&self) -> Vec<Way> {
        let phased = self.splitting.tasks().any(|task| self.demands[task].needs_phase());
        let mut slots = BTreeSet::new();
        for task in self.splitting.tasks() {
            let period = self.demands[task].period;
            slots.extend(self.demands.iter().map(|other| period.gcd(other.period)));
        }
        slots.extend(self.demands.iter().map(|demand| demand.period).reduce(Duration::gcd));
        let slots = slots.into_iter().rev().filter(|&slot| slot >= self.shortest_piece() * 2).map(Way::Slots);
        (!phased).then_some(Way::Gaps).into_iter().chain(slots).collect()
    }

    /// The places of job 0 of a split task, the same in every period.
    pub(crate) fn place_split(
        &self,
        draft: &Draft,
        task: usize,
        slot: Duration,
        occupancies: &[Occupancy],
    ) -> Option<Vec<Place>> {
        let search = self.search(task, occupancies, self.demands[task].period);
        search.slots(slot, &draft.assignment.shares[task])
    }

    /// A search for pieces of a split task's jobs, in a fold of what is taken of each CPU.
    pub(crate) fn search<'b>(&'b self, task: usize, occupancies: &'b [Occupancy], fold: Duration) -> Search<'b> {
        Search {
            occupancies,
            fold,
            demand: &self.demands[task],
            macrotick: self.system.macrotick,
            shortest: self.shortest_piece().min(self.demands[task].wcet),
        }
    }
}
