//! The CPUs of tasks: their affinity, or the responsibility of their scheduler.

use std::collections::{BTreeMap, BTreeSet};

use super::element::{Element, Key, Refusal};
use super::hardware::Hardware;
use super::model::Model;
use crate::findings::Findings;

/// The allocations of a model.
pub struct Mapping<'a> {
    /// The allocations of each task.
    tasks: BTreeMap<Key, Vec<Element<'a>>>,
    /// The processing units of each scheduler.
    schedulers: BTreeMap<Key, Units<'a>>,
}

/// Processing units.
#[derive(Default)]
struct Units<'a> {
    cpus: BTreeSet<u32>,
    /// A unit that is no CPU.
    other: Option<Element<'a>>,
}

impl<'a> Units<'a> {
    fn extend(&mut self, units: Vec<Element<'a>>, hardware: &Hardware) {
        for unit in units {
            match hardware.cpu(unit) {
                Some(cpu) => drop(self.cpus.insert(cpu)),
                None => self.other = Some(unit),
            }
        }
    }
}

impl<'a> Mapping<'a> {
    /// Reads the mapping of all files.
    ///
    /// # Errors
    ///
    /// If a reference names no element.
    pub fn read(model: &Model<'a>, hardware: &Hardware, findings: &mut Findings) -> Result<Mapping<'a>, Refusal> {
        let mut mapping = Mapping { tasks: BTreeMap::new(), schedulers: BTreeMap::new() };
        for allocation in model.all("mappingModel", "taskAllocation") {
            for task in model.targets(allocation, "task")? {
                mapping.tasks.entry(task.key()).or_default().push(allocation);
            }
        }
        // Older files name the same allocation otherwise.
        for (tag, key) in [("schedulerAllocation", "responsibility"), ("coreAllocation", "core")] {
            for allocation in model.all("mappingModel", tag) {
                if let Some(scheduler) = model.target_of(allocation, "scheduler")? {
                    let units = mapping.schedulers.entry(scheduler.key()).or_default();
                    units.extend(model.targets(allocation, key)?, hardware);
                }
            }
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
    pub fn cpus(
        &self,
        task: Element<'a>,
        model: &Model<'a>,
        hardware: &Hardware,
        findings: &mut Findings,
    ) -> Result<Vec<u32>, Refusal> {
        let mut units = Units::default();
        for allocation in self.tasks.get(&task.key()).into_iter().flatten() {
            let affinity = model.targets(*allocation, "affinity")?;
            let scheduler = model.target_of(*allocation, "scheduler")?.filter(|_| affinity.is_empty());
            units.extend(affinity, hardware);
            if let Some(managed) = scheduler.map(|scheduler| self.managed(scheduler, model)).transpose()?.flatten() {
                units.cpus.extend(&managed.cpus);
                units.other = units.other.or(managed.other);
            }
        }
        if let Some(unit) = units.other.filter(|_| units.cpus.is_empty()) {
            let text = format!("the task is on `{}`, which is no CPU: name it with `--leave-out`", unit.path());
            return Err(task.refusal(text));
        }
        if units.cpus.is_empty() {
            findings.remark(task.path(), "the model gives it no CPU: the planner chooses one");
        }
        Ok(units.cpus.into_iter().collect())
    }

    /// Returns the processing units of a scheduler, or those of the next scheduler above that has any.
    fn managed(&self, scheduler: Element<'a>, model: &Model<'a>) -> Result<Option<&Units<'a>>, Refusal> {
        let (mut seen, mut next) = (BTreeSet::new(), Some(scheduler));
        while let Some(scheduler) = next.filter(|scheduler| seen.insert(scheduler.key())) {
            if let Some(units) = self.schedulers.get(&scheduler.key()) {
                return Ok(Some(units));
            }
            let association = scheduler.child("parentAssociation");
            next = association.map(|association| model.target_of(association, "parent")).transpose()?.flatten();
        }
        Ok(None)
    }
}
