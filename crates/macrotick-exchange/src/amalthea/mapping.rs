//! The CPUs of tasks: their affinity, or the responsibility of their scheduler.

use std::collections::{BTreeMap, BTreeSet};

use super::element::{Element, Key, Refusal};
use super::hardware::{Hardware, MOST_CPUS};
use super::model::Model;
use crate::findings::Findings;

/// The allocations of a model.
pub struct Mapping<'a> {
    /// The allocations of each task. A task that an allocation names several times has it once.
    tasks: BTreeMap<Key, BTreeSet<usize>>,
    /// The processing units of each allocation. A refusal counts only for its tasks.
    allocations: Vec<Result<Units<'a>, Refusal>>,
}

/// Processing units.
#[derive(Clone, Copy, Default)]
struct Units<'a> {
    /// A bit for each CPU: the union for each allocation of each task takes a few steps.
    cpus: [u64; MOST_CPUS / 64],
    /// A unit that is no CPU.
    other: Option<Element<'a>>,
}

impl<'a> Units<'a> {
    fn extend(&mut self, units: Vec<Element<'a>>, hardware: &Hardware) {
        for unit in units {
            match hardware.cpu(unit) {
                Some(cpu) => self.cpus[cpu as usize / 64] |= 1 << (cpu % 64),
                None => self.other = Some(unit),
            }
        }
    }

    fn join(&mut self, more: &Units<'a>) {
        self.cpus.iter_mut().zip(more.cpus).for_each(|(cpus, more)| *cpus |= more);
        self.other = self.other.or(more.other);
    }

    fn numbers(&self) -> Vec<u32> {
        (0..MOST_CPUS as u32).filter(|cpu| self.cpus[*cpu as usize / 64] >> (cpu % 64) & 1 != 0).collect()
    }
}

impl<'a> Mapping<'a> {
    /// Reads the mapping of all files.
    ///
    /// # Errors
    ///
    /// If a reference names no element.
    pub fn read(model: &Model<'a>, hardware: &Hardware, findings: &mut Findings) -> Result<Mapping<'a>, Refusal> {
        let mut mapping = Mapping { tasks: BTreeMap::new(), allocations: Vec::new() };
        let mut schedulers = Schedulers::read(model, hardware)?;
        for (index, allocation) in model.all("mappingModel", "taskAllocation").enumerate() {
            for task in model.targets(allocation, "task")? {
                mapping.tasks.entry(task.key()).or_default().insert(index);
            }
            mapping.allocations.push(schedulers.allocated(allocation, model, hardware));
        }
        for allocation in model.all("mappingModel", "runnableAllocation") {
            findings.remark(allocation.path(), "is left out: runnables run in their tasks");
        }
        Ok(mapping)
    }

    /// Returns the CPUs that a task can have, in ascending order. Without an allocation there are none.
    ///
    /// # Errors
    ///
    /// If a reference names no element, or the task has only units that are no CPU.
    pub fn cpus(&self, task: Element<'a>, findings: &mut Findings) -> Result<Vec<u32>, Refusal> {
        let mut units = Units::default();
        for index in self.tasks.get(&task.key()).into_iter().flatten() {
            units.join(self.allocations[*index].as_ref().map_err(Refusal::clone)?);
        }
        let cpus = units.numbers();
        if let Some(unit) = units.other.filter(|_| cpus.is_empty()) {
            let text = format!("the task is on `{}`, which is no CPU: name it with `--leave-out`", unit.path());
            return Err(task.refusal(text));
        }
        if cpus.is_empty() {
            findings.remark(task.path(), "the model gives it no CPU: the planner chooses one");
        }
        Ok(cpus)
    }
}

/// The schedulers of a model.
struct Schedulers<'a> {
    /// The processing units of each scheduler that has its own.
    units: BTreeMap<Key, Units<'a>>,
    /// The scheduler with the units of each scheduler that was looked up: itself, or one above it.
    managers: BTreeMap<Key, Result<Option<Key>, Refusal>>,
}

impl<'a> Schedulers<'a> {
    fn read(model: &Model<'a>, hardware: &Hardware) -> Result<Schedulers<'a>, Refusal> {
        let mut schedulers = Schedulers { units: BTreeMap::new(), managers: BTreeMap::new() };
        // Older files name the same allocation otherwise.
        for (tag, key) in [("schedulerAllocation", "responsibility"), ("coreAllocation", "core")] {
            for allocation in model.all("mappingModel", tag) {
                if let Some(scheduler) = model.target_of(allocation, "scheduler")? {
                    let units = schedulers.units.entry(scheduler.key()).or_default();
                    units.extend(model.targets(allocation, key)?, hardware);
                }
            }
        }
        Ok(schedulers)
    }

    /// Returns the processing units of an allocation of tasks.
    fn allocated(
        &mut self,
        allocation: Element<'a>,
        model: &Model<'a>,
        hardware: &Hardware,
    ) -> Result<Units<'a>, Refusal> {
        let mut units = Units::default();
        let affinity = model.targets(allocation, "affinity")?;
        let scheduler = model.target_of(allocation, "scheduler")?.filter(|_| affinity.is_empty());
        units.extend(affinity, hardware);
        let manager = scheduler.map(|scheduler| self.manager(scheduler, model)).transpose()?.flatten();
        Ok(manager.map_or(units, |manager| self.units[&manager]))
    }

    /// Returns the scheduler itself if it has processing units, or the next one above it that has any.
    fn manager(&mut self, scheduler: Element<'a>, model: &Model<'a>) -> Result<Option<Key>, Refusal> {
        let (mut way, mut next) = (Vec::new(), Ok(Some(scheduler)));
        let manager = loop {
            let scheduler = match next {
                Ok(Some(scheduler)) => scheduler,
                Ok(None) => break Ok(None),
                Err(refusal) => break Err(refusal),
            };
            let key = scheduler.key();
            if let Some(known) = self.managers.get(&key) {
                break known.clone();
            }
            way.push(key);
            if self.units.contains_key(&key) {
                break Ok(Some(key));
            }
            // A ring of schedulers comes back to this entry.
            self.managers.insert(key, Ok(None));
            let association = scheduler.child("parentAssociation");
            next = association.map_or(Ok(None), |association| model.target_of(association, "parent"));
        };
        self.managers.extend(way.into_iter().map(|key| (key, manager.clone())));
        manager
    }
}
