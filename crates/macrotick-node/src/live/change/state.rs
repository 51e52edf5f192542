//! A change in progress: the processes that it has started, and its stage.

use macrotick_model::{Duration, Instant, LeadInForce};

use crate::backend::gates::Coming;
use crate::backend::lead::length;
use crate::deployment::Deployment;
use crate::live::changes::{changes_nothing, Changes, Switch};
use crate::live::difference::{Difference, Fate, Kind};
use crate::live::possible::clock;
use crate::process::child::Child;
use crate::run::resources::Run;

/// A change in progress.
pub struct Change {
    /// The new deployment. After the change: the former one.
    pub(super) other: Deployment,
    pub(super) lead: Option<LeadInForce>,
    pub(super) lead_before: Duration,
    pub(super) difference: Difference,
    /// The processes of new tasks, in the new order, until the change is made.
    pub(super) tasks: Vec<Child>,
    /// The new processes of groups and load, until the change is made.
    pub(super) processes: Vec<Child>,
    pub(super) stage: Stage,
    /// The new tasks with threads that are not bound yet.
    pub(super) unbound: Vec<String>,
    /// The instant of the switch on the table's clock.
    pub(super) switch: Option<Instant>,
    pub(super) remarks: Vec<String>,
    /// The gate lists that the kernel has for the new deployment, until the change is made.
    pub(super) gates: Option<Coming>,
}

/// The stage of a change. Instants are on `CLOCK_MONOTONIC`.
pub(super) enum Stage {
    /// New processes initialise.
    Starting { since: Instant },
    /// New processes are ready, and fall asleep on their CPUs.
    Settling { until: Instant },
    /// The kernel has both tables. The former one started at `former_ns` on its clock.
    Staged { since: Instant, at: Instant, former_ns: u64 },
    /// The change is made. Some new tasks may not be bound yet.
    Made { since: Instant },
}

/// The next step.
pub enum Step {
    /// Continue at this instant.
    Wait(Instant),
    /// Continue at once: the kernel has the table.
    Staged,
    /// The deployment is the new one, with this epoch on `CLOCK_MONOTONIC`. Continue at once.
    Made(Instant),
    /// No step is left.
    Done,
}

impl Change {
    /// Leaves the deployment unchanged: ends the processes that the change started.
    pub fn abandon(mut self, run: &mut Run) {
        // The former gate lists come back.
        self.gates = None;
        // First the processes, then the control groups that they run in.
        self.tasks.clear();
        self.processes.clear();
        if let Some(pools) = &mut run.pools {
            pools.keep(&run.deployment.plan.system);
        }
    }

    /// Returns the places of the running deployment's tasks that the new one does not have.
    pub fn leaving(&self, run: &Run) -> Vec<usize> {
        let tasks = run.deployment.tasks.iter().enumerate();
        let leaves = |name: &str| self.difference.fate(Kind::Task, name) == Some(Fate::Removed);
        tasks.filter(|(_, deployed)| leaves(&deployed.task.name)).map(|(place, _)| place).collect()
    }

    /// Returns the new deployment, and the instant of its table on the table's clock, once the kernel has the table.
    pub fn coming(&self) -> Option<(&Deployment, Instant)> {
        self.switch.map(|switch| (&self.other, switch))
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        changes_nothing(self.switch.is_some(), &self.difference.items) && self.difference.gates.is_empty()
    }

    /// Returns the changes after the change is done.
    pub fn into_changes(self, run: &Run) -> Changes {
        Changes {
            system: run.deployment.plan.system.name.clone(),
            items: self.difference.items,
            cycle_before: self.other.plan.cycle,
            cycle_after: run.deployment.plan.cycle,
            lead_before: self.lead_before,
            lead_after: length(run.lead),
            switch: self.switch.map(|at| Switch { clock: clock(&run.deployment.plan).into(), ns: at.as_nanos() }),
            gates: self.difference.gates,
            remarks: self.remarks,
        }
    }
}
