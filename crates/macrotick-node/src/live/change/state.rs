//! A change that is under way: what it has started so far, and how far it is.

use macrotick_model::{Duration, Instant, LeadInForce};

use crate::backend::lead::length;
use crate::deployment::Deployment;
use crate::live::changes::{changes_nothing, Changes, Switch};
use crate::live::difference::{Difference, Fate, Kind};
use crate::live::possible::clock;
use crate::process::child::Child;
use crate::run::resources::Run;

/// A change that is under way.
pub struct Change {
    /// The new deployment; once the change is made, the former one.
    pub(super) other: Deployment,
    pub(super) lead: Option<LeadInForce>,
    pub(super) lead_before: Duration,
    pub(super) difference: Difference,
    /// The processes of new tasks, in the new order, until the change is made.
    pub(super) tasks: Vec<Child>,
    /// Those of new processes of groups and load, likewise.
    pub(super) processes: Vec<Child>,
    pub(super) stage: Stage,
    /// New tasks whose threads are not bound yet.
    pub(super) unbound: Vec<String>,
    /// On the table's clock.
    pub(super) switch: Option<Instant>,
    pub(super) remarks: Vec<String>,
}

/// How far it is. Instants are on `CLOCK_MONOTONIC`.
pub(super) enum Stage {
    /// New processes initialise themselves.
    Starting { since: Instant },
    /// They are ready, and fall asleep where they were placed.
    Settling { until: Instant },
    /// The kernel has both tables; the former one began at `former_ns` on its clock.
    Staged { since: Instant, at: Instant, former_ns: u64 },
    /// It is made; of new tasks some may not be bound yet.
    Made { since: Instant },
}

/// What is next.
pub enum Step {
    /// To go on at this instant.
    Wait(Instant),
    /// To go on at once: the kernel got the table.
    Staged,
    /// The deployment is another one, whose epoch on `CLOCK_MONOTONIC` this is; to go on at once.
    Made(Instant),
    /// Nothing.
    Done,
}

impl Change {
    /// The deployment stays as it was: ends what was started for the change.
    pub fn abandon(mut self, run: &mut Run) {
        // First what runs, then what it runs in.
        self.tasks.clear();
        self.processes.clear();
        if let Some(pools) = &mut run.pools {
            pools.keep(&run.deployment.plan.system);
        }
    }

    /// The places of those tasks of the running deployment that the new one does not have.
    pub fn leaving(&self, run: &Run) -> Vec<usize> {
        let tasks = run.deployment.tasks.iter().enumerate();
        let leaves = |name: &str| self.difference.fate(Kind::Task, name) == Some(Fate::Removed);
        tasks.filter(|(_, deployed)| leaves(&deployed.task.name)).map(|(place, _)| place).collect()
    }

    /// The tasks and pools of the new table, and its instant on the table's clock, once the kernel has it.
    pub fn coming(&self) -> Option<(&Deployment, Instant)> {
        self.switch.map(|switch| (&self.other, switch))
    }

    /// Whether everything stays as it is.
    pub fn is_empty(&self) -> bool {
        changes_nothing(self.switch.is_some(), &self.difference.items)
    }

    /// What the change did. It is done.
    pub fn into_changes(self, run: &Run) -> Changes {
        Changes {
            system: run.deployment.plan.system.name.clone(),
            items: self.difference.items,
            cycle_before: self.other.plan.cycle,
            cycle_after: run.deployment.plan.cycle,
            lead_before: self.lead_before,
            lead_after: length(run.lead),
            switch: self.switch.map(|at| Switch { clock: clock(&run.deployment.plan).into(), ns: at.as_nanos() }),
            remarks: self.remarks,
        }
    }
}
