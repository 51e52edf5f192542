//! Converts the promises on this host to the input of the analysis.

use std::collections::BTreeMap;

use macrotick_analysis::servers::{Domain, Group, GroupTask, Host, HostError, Phase, Refill, Reserved, Server};
use macrotick_model::Duration;

use super::{Present, PresentGroup};

/// The error of a host that cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot analyse the groups of this host: {0}{hint}", hint = priority_hint(.0))]
pub struct Unanalysable(pub HostError);

fn priority_hint(error: &HostError) -> &'static str {
    match error {
        HostError::SamePriority { .. } => {
            ", so their order is undefined: write another priority to cpu.ds.priority of one"
        }
        _ => "",
    }
}

/// Returns the groups. Those of equal priority are together if only their budgets are known, because all groups have
/// the same default priority. They take turns, which makes no difference to groups above or below them.
pub fn together(groups: &[PresentGroup]) -> Vec<Vec<&PresentGroup>> {
    let mut all: Vec<Vec<&PresentGroup>> = Vec::new();
    for group in groups {
        let like = |other: &PresentGroup| {
            group.declared.is_none() && other.declared.is_none() && other.priority == group.priority
        };
        match all.iter_mut().find(|others| like(others[0])) {
            Some(others) => others.push(group),
            None => all.push(vec![group]),
        }
    }
    all
}

/// Returns their common name.
pub fn name(groups: &[&PresentGroup]) -> String {
    groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(" + ")
}

/// Returns the host with these groups.
pub fn analysed(present: &Present, groups: &[Vec<&PresentGroup>]) -> Result<Host, Unanalysable> {
    let table = present.table.as_ref();
    let phase = match table {
        Some(table) => table.refill.map_or(Phase::Any, Phase::At),
        None => Phase::At(Duration::ZERO),
    };
    let domains = present.domains.iter();
    let host = Host {
        refill: Refill::Lockstep(phase),
        cpus: present.cpus.clone(),
        domains: domains.map(|domain| Domain::new(domain.cpus.clone(), domain.promised.into())).collect(),
        cycle: table.map_or(Duration::ZERO, |table| table.cycle),
        lead: table.map_or(Duration::ZERO, |table| table.lead),
        tables: table.map_or(Vec::new(), |table| table.tables.clone()),
        groups: groups.iter().map(|groups| group(groups)).collect(),
        reserved: Reserved::of(&present.reserved),
        ..Host::idle(present.server_period)
    };
    host.validate().map_err(Unanalysable)?;
    Ok(host)
}

/// Returns the group of the analysis. Its budgets are the present ones; all other parameters come from the declaration.
fn group(groups: &[&PresentGroup]) -> Group {
    let declared = groups[0].declared.as_ref();
    let lead = declared.and_then(|group| group.lead);
    let tasks = |cpu: u32| declared.iter().flat_map(|group| &group.tasks).filter(move |task| task.cpu == cpu);
    let mut budgets: BTreeMap<u32, Duration> = BTreeMap::new();
    for &(cpu, budget) in groups.iter().flat_map(|group| &group.budgets) {
        let sum = budgets.entry(cpu).or_default();
        *sum += budget;
    }
    let server = |(cpu, budget)| Server {
        cpu,
        budget,
        may_grow: declared.is_some_and(|group| group.may_grow),
        tasks: tasks(cpu).map(|task| GroupTask::of(task, lead)).collect(),
    };
    Group {
        name: name(groups),
        criticality: declared.and_then(|group| group.criticality).unwrap_or(0),
        priority: groups[0].priority,
        servers: budgets.into_iter().map(server).collect(),
        windows: declared.and_then(|group| group.pool_name()),
    }
}
