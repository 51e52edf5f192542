//! A running deployment becomes another one.
//!
//! ```text
//! supervisor   decide, start new parts  ── … ── stage the table, bind ── … ── commit, end old parts   ── bind ── answer
//! new          initialise, ready ──────────────────┘ first wait             │ jobs
//! kept                                                                      │ continues in its new windows
//! kernel                                            both tables staged ─────┘ all CPUs change at a cycle's end
//! ```
//!
//! A failure before the staging leaves the deployment unchanged. After it only a failure is possible that any running
//! deployment may have: a process ends. All steps return at once. Therefore tasks restart during a change, and the
//! deployment can be stopped.

mod exchange;
mod state;
mod steps;

use macrotick_host::sys;
use macrotick_model::{Duration, Instant, Plan};

use crate::backend::lead::{self, length};
use crate::backend::pools::Pools;
use crate::deployment::Deployment;
use crate::error::NodeError;
use crate::live::difference::{Difference, Fate, Kind};
use crate::live::leaving::Leaving;
use crate::live::possible::Condition;
use crate::process::child::Child;
use crate::run::resources::Run;
use crate::run::spawn::{spawn_process, spawn_task};

use self::state::Stage;
pub use self::state::{Change, Step};

/// Determines the changes, and starts new processes. A failure leaves the deployment unchanged. `measured` is the lead
/// that this host needs, if it was measured.
pub fn begin(run: &mut Run, plan: &Plan, measured: Option<Duration>) -> Result<Change, NodeError> {
    let online = sys::online_cpus()?;
    let other = Deployment::decode(plan, run.options, &online)?;
    let condition = |kind: Kind, name: &str| match kind {
        Kind::Process => condition_of_process(run, name),
        Kind::Task | Kind::Pool => condition(run, name),
    };
    let difference = Difference::between(&run.deployment.plan, plan, &condition).map_err(NodeError::Change)?;
    // No measurement is possible beside a running table.
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
        gates: None,
    };
    match start(&mut change, run) {
        Ok(()) => Ok(change),
        Err(error) => {
            change.abandon(run);
            Err(error)
        }
    }
}

fn start(change: &mut Change, run: &mut Run) -> Result<(), NodeError> {
    make_groups(change, run)?;
    for deployed in &change.other.tasks {
        if change.difference.is_fresh(Kind::Task, &deployed.task.name) {
            change.tasks.push(spawn_task(run, &change.other, deployed, deployed.capacity)?);
        }
    }
    for deployed in &change.other.processes {
        if change.difference.is_fresh(Kind::Process, &deployed.process.name) {
            change.processes.extend(spawn_process(run, deployed)?);
        }
    }
    Ok(())
}

/// Makes the control groups of new pools. Groups, tables and threads may appear in any order.
fn make_groups(change: &Change, run: &mut Run) -> Result<(), NodeError> {
    let system = &change.other.plan.system;
    let is_new = |name: &str| change.difference.fate(Kind::Pool, name) == Some(Fate::Added);
    match &mut run.pools {
        Some(pools) => {
            let new = system.pools().filter(|pool| is_new(&pool.name));
            pools.extend(&change.other.plan, new, run.domains.as_ref())?
        }
        none => *none = Pools::prepare(&change.other.plan, run.domains.as_ref())?,
    }
    Ok(())
}

/// Does the pending work. It fails only while the former deployment is in force; the caller then abandons the change.
/// `epoch` is the epoch of the running table.
pub fn advance(change: &mut Change, run: &mut Run, epoch: Instant, leaving: &mut Leaving) -> Result<Step, NodeError> {
    let now = sys::now();
    match change.stage {
        Stage::Starting { since } => steps::await_ready(change, run, epoch, since),
        Stage::Settling { until } if now < until => Ok(Step::Wait(until)),
        Stage::Settling { .. } => steps::stage_table(change, run, epoch, leaving),
        Stage::Staged { since, at, former_ns } => steps::await_switch(change, run, since, at, former_ns, leaving),
        Stage::Made { since } => Ok(steps::bind_the_rest(change, run, epoch, since)),
    }
}

/// Returns the condition of a task of the running deployment.
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

/// Returns the condition of a process of the running deployment. A process with a count is replaced as a whole.
fn condition_of_process(run: &Run, name: &str) -> Condition {
    let all = run.deployment.processes.iter().filter(|deployed| deployed.process.name == name);
    let names: Vec<String> = all.flat_map(|deployed| deployed.process.process_names()).collect();
    let is_dead = |child: &Child| names.contains(&child.name) && child.exited().is_some();
    match run.processes.iter().any(is_dead) {
        true => Condition::Dead,
        false => Condition::Sound,
    }
}
