//! The exchange: the new deployment replaces the former one.

use macrotick_host::sys;
use macrotick_model::{Instant, Placed, Workload};

use super::state::{Change, Stage};
use crate::live::difference::{Fate, Kind};
use crate::live::leaving::Leaving;
use crate::process::child::Child;
use crate::run::resources::Run;
use crate::run::supervisor::{Origin, Supervisor};

/// Replaces the former deployment with the new one.
pub fn commit(change: &mut Change, run: &mut Run, epoch: Instant, leaving: &mut Leaving) {
    std::mem::swap(&mut run.deployment, &mut change.other);
    run.lead = change.lead;
    if let (Some(gates), Some(coming)) = (&mut run.gates, change.gates.take()) {
        gates.commit(coming);
    }
    let origins = exchange_tasks(change, run, leaving);
    exchange_processes(change, run, epoch);
    if let Some(pools) = &mut run.pools {
        pools.keep(&run.deployment.plan.system);
    }
    run.supervisor = match Supervisor::renew(run.supervisor.take(), run, &origins) {
        Ok(supervisor) => supervisor,
        Err(error) => {
            change.remarks.push(format!("no task is restarted any more: {}", error.with_reason()));
            None
        }
    };
    change.unbound.extend(change.difference.names(Kind::Task, Fate::Replaced).map(str::to_string));
    change.stage = Stage::Made { since: sys::now() };
}

/// Exchanges the tasks. Returns the origin of each task's process.
fn exchange_tasks(change: &mut Change, run: &mut Run, leaving: &mut Leaving) -> Vec<Origin> {
    let mut former: Vec<Option<Child>> = std::mem::take(&mut run.tasks).into_iter().map(Some).collect();
    let mut fresh = std::mem::take(&mut change.tasks).into_iter();
    let mut origins = Vec::new();
    for deployed in &run.deployment.tasks {
        let name = &deployed.task.name;
        let is_kept = change.difference.fate(Kind::Task, name) == Some(Fate::Kept);
        let origin = match change.other.tasks.iter().position(|other| other.task.name == *name) {
            Some(place) if is_kept => Origin::Same(place),
            Some(_) => Origin::Other,
            None => Origin::New,
        };
        run.tasks.extend(match origin {
            Origin::Same(place) => former[place].take(),
            Origin::Other | Origin::New => fresh.next(),
        });
        origins.push(origin);
    }
    for (child, deployed) in former.into_iter().zip(&change.other.tasks) {
        let Some(child) = child else { continue };
        // The entity of a replaced task still exists, and would serve both threads.
        if let Some(table) = &run.table {
            let _ = table.unbind(&child);
        }
        leaving.add(child, matches!(deployed.task.run, Workload::Program(_)));
    }
    origins
}

fn exchange_processes(change: &mut Change, run: &mut Run, epoch: Instant) {
    let mut former = std::mem::take(&mut run.processes);
    let mut fresh = std::mem::take(&mut change.processes);
    fresh.iter().for_each(|child| child.block.publish(epoch));
    for load in run.deployment.processes.iter().map(|deployed| &deployed.process) {
        let is_fresh = change.difference.is_fresh(Kind::Process, &load.name);
        let from = if is_fresh { &mut fresh } else { &mut former };
        run.processes.extend(take(from, load));
    }
    Child::kill_all(&mut former);
}

/// Takes the processes of a load out of a list.
fn take(children: &mut Vec<Child>, load: &Placed) -> Vec<Child> {
    let names: Vec<String> = load.process_names().collect();
    let (taken, rest) = std::mem::take(children).into_iter().partition(|child| names.contains(&child.name));
    *children = rest;
    taken
}
