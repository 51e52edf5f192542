//! A running deployment becomes another one.
//!
//! ```text
//! supervisor   decide, start what is new ── … ── stage the table, bind ── … ── commit, end what leaves ── bind ── answer
//! new          initialise, ready ──────────────────┘ first wait             │ jobs
//! kept                                                                      │ goes on in its new windows
//! kernel                                            both tables staged ─────┘ all CPUs change at a cycle's end
//! ```
//!
//! Up to the staging whatever fails leaves the deployment as it was. From then on nothing can fail but what can fail in
//! any running deployment: that a process ends. All of it is done in steps that wait for nothing, so that tasks are begun
//! anew meanwhile, and the deployment can be stopped.

mod exchange;
mod steps;

use macrotick_host::sys;
use macrotick_model::{Duration, Instant, LeadInForce, Plan};

use crate::backend::lead::{self, length};
use crate::backend::pools::Pools;
use crate::deployment::Deployment;
use crate::error::NodeError;
use crate::live::changes::{changes_nothing, Changes, Switch};
use crate::live::difference::{Difference, Fate, Kind};
use crate::live::leaving::Leaving;
use crate::live::possible::{clock, Condition};
use crate::process::child::Child;
use crate::run::Run;

/// A change that is under way.
pub struct Change {
    /// The new deployment; once the change is made, the former one.
    other: Deployment,
    lead: Option<LeadInForce>,
    lead_before: Duration,
    difference: Difference,
    /// The processes of new tasks, in the new order, until the change is made.
    tasks: Vec<Child>,
    /// Those of new processes of groups and load, likewise.
    processes: Vec<Child>,
    stage: Stage,
    /// New tasks whose threads are not bound yet.
    unbound: Vec<String>,
    /// On the table's clock.
    switch: Option<Instant>,
    remarks: Vec<String>,
}

/// How far it is. Instants are on `CLOCK_MONOTONIC`.
enum Stage {
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
    /// Decides what changes, and starts what is new. A failure leaves everything as it was. `measured` is the lead that
    /// this host was found to need, if it was measured.
    pub fn begin(run: &mut Run, plan: &Plan, measured: Option<Duration>) -> Result<Change, NodeError> {
        let online = sys::online_cpus()?;
        let other = Deployment::decode(plan, run.options, &online)?;
        let condition = |kind: Kind, name: &str| match kind {
            Kind::Process => condition_of_process(run, name),
            Kind::Task | Kind::Pool => condition(run, name),
        };
        let difference = Difference::between(&run.deployment.plan, plan, &condition).map_err(NodeError::Change)?;
        // Beside a running table nothing can be measured.
        let lead = lead::in_force(plan, measured);
        let mut change = Change {
            other,
            lead,
            lead_before: length(run.lead),
            difference,
            tasks: Vec::new(),
            processes: Vec::new(),
            stage: Stage::Starting { since: sys::now() },
            unbound: Vec::new(),
            switch: None,
            remarks: Vec::new(),
        };
        match change.start(run) {
            Ok(()) => Ok(change),
            Err(error) => {
                change.abandon(run);
                Err(error)
            }
        }
    }

    fn start(&mut self, run: &mut Run) -> Result<(), NodeError> {
        self.make_groups(run)?;
        for deployed in &self.other.tasks {
            if self.difference.is_fresh(Kind::Task, &deployed.task.name) {
                self.tasks.push(run.spawn_task(&self.other, deployed, deployed.capacity)?);
            }
        }
        for deployed in &self.other.processes {
            if self.difference.is_fresh(Kind::Process, &deployed.process.name) {
                self.processes.extend(run.spawn_process(deployed)?);
            }
        }
        Ok(())
    }

    /// Groups, tables and threads may come in any order.
    fn make_groups(&self, run: &mut Run) -> Result<(), NodeError> {
        let system = &self.other.plan.system;
        let is_new = |name: &str| self.difference.fate(Kind::Pool, name) == Some(Fate::Added);
        match &mut run.pools {
            Some(pools) => {
                let new = system.pools().filter(|pool| is_new(&pool.name));
                pools.extend(&self.other.plan, new, run.domains.as_ref())?
            }
            none => *none = Pools::prepare(&self.other.plan, run.domains.as_ref())?,
        }
        Ok(())
    }

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

    /// Does what there is to do. An error comes only as long as the deployment is the former one, and the change is to
    /// be abandoned. `epoch` is that of the table that runs.
    pub fn advance(&mut self, run: &mut Run, epoch: Instant, leaving: &mut Leaving) -> Result<Step, NodeError> {
        let now = sys::now();
        match self.stage {
            Stage::Starting { since } => self.await_ready(run, since),
            Stage::Settling { until } if now < until => Ok(Step::Wait(until)),
            Stage::Settling { .. } => self.stage_table(run, epoch, leaving),
            Stage::Staged { since, at, former_ns } => self.await_switch(run, since, at, former_ns, leaving),
            Stage::Made { since } => Ok(self.bind_the_rest(run, epoch, since)),
        }
    }
}

/// How a task of the running deployment is.
fn condition(run: &Run, name: &str) -> Condition {
    let Some(task) = run.tasks.iter().position(|child| child.name == name) else { return Condition::Sound };
    if run.supervisor.as_ref().is_some_and(|supervisor| supervisor.cares_for(task)) {
        return Condition::Sound;
    }
    if run.tasks[task].exited().is_some() {
        return Condition::Dead;
    }
    let counters = run.table.as_ref().and_then(|table| table.counters(name, task).ok());
    match counters.is_some_and(|counters| counters.stopped) {
        true => Condition::Stopped,
        false => Condition::Sound,
    }
}

/// How a process of the running deployment is. What is there several times is replaced as a whole.
fn condition_of_process(run: &Run, name: &str) -> Condition {
    let all = run.deployment.processes.iter().filter(|deployed| deployed.process.name == name);
    let names: Vec<String> = all.flat_map(|deployed| deployed.process.process_names()).collect();
    let is_dead = |child: &Child| names.contains(&child.name) && child.exited().is_some();
    match run.processes.iter().any(is_dead) {
        true => Condition::Dead,
        false => Condition::Sound,
    }
}
