//! Tasks that fit on no CPU and may migrate: the choice of tasks to split over several CPUs, and of the way.
//!
//! The solver splits tasks only if it finds no table otherwise. It splits the task that did not fit, or else the one
//! with the largest demand that may migrate. If that is not enough, it splits another one. Everything else is assigned,
//! placed and filled in as usual. There are two ways to lay out a split task, tried in turn ([`Way`]).
//! [`crate::pieces`] finds the pieces of a job.
//!
//! If slots divide all periods, every CPU gives the same time to the split tasks in each slot, and EDF has all the
//! rest. So finer slots help where coarser ones fail, but need more pieces.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use macrotick_model::{CpuTable, Duration};

use crate::draft::Draft;
use crate::error::PlanError;
use crate::folded::Problem;
use crate::occupancy::Occupancy;
use crate::pieces::{Place, Search};

/// The way to lay out the jobs of split tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// After everything else, each job on its own, into the gaps of all CPUs in order of time ([`crate::gaps`]).
    Gaps,
    /// Before everything else that the solver can choose, the same in every period. Each job is distributed evenly over
    /// slots of this length. Within a slot, each CPU gets a part in proportion to its free time.
    Slots(Duration),
}

/// The split tasks, and the way to lay them out.
#[derive(Clone, Debug)]
pub(crate) struct Splitting {
    tasks: Vec<bool>,
    pub way: Way,
}

impl Splitting {
    /// Makes a splitting without split tasks, for `count` tasks and pools.
    pub fn none(count: usize) -> Splitting {
        Splitting { tasks: vec![false; count], way: Way::Gaps }
    }

    /// Whether a task is split.
    pub fn has(&self, task: usize) -> bool {
        self.tasks[task]
    }

    /// Returns all split tasks.
    pub fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.tasks.len()).filter(|&task| self.tasks[task])
    }

    /// Returns the length of the slots of a task, if it has slots.
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
    /// Returns tables with tasks on several CPUs. `whole` is the reason why there are none otherwise.
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

    /// Returns the task that did not fit, or the one with the largest demand. The number of split tasks is at most the
    /// number of CPUs minus one; more are never necessary.
    fn next_to_split(&self, error: &PlanError) -> Option<usize> {
        let name = error.unplaced()?;
        if self.splitting.tasks().count() + 1 >= self.system.cpus.len() {
            return None;
        }
        let open = (0..self.demands.len()).filter(|&task| self.demands[task].migrate && self.is_open(task));
        open.max_by_key(|&task| {
            let demand = &self.demands[task];
            (demand.name == name, demand.per_cycle(self.cycle), Reverse(task))
        })
    }

    /// Returns the ways to try: the gaps first, for tasks that may start anywhere. Slots follow, from whole periods
    /// down to the common divisor of all periods.
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

    /// Returns the places of job 0 of a split task, the same in every period.
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

    /// Makes a search for the pieces of a split task's jobs in this fold.
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
