//! Admits one more container to a host with running groups.
//!
//! The computation covers only the parts that can change: the container's own group and those below it, on one CPU
//! after the other. The container cannot affect groups above it: their priority and its budget ensure that.

use std::fmt;

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::analysis::{analyse_server, budgets_above, names_above};
use super::budget::{no_budget, set, Place};
use super::supply::CpuTime;
use super::{
    order, reserved, sums, validate, Group, GroupTask, Host, HostError, Refusal, Server, ServersError, TaskAnalysis,
    TaskOrder,
};

/// A container that asks for admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The name of the container and of its group.
    pub name: String,
    /// How bad its failure would be.
    pub criticality: u32,
    /// Its group priority; `None`: by criticality.
    pub priority: Option<u32>,
    /// The CPUs that it may use; empty: all. It gets the one that needs the least additional budget.
    pub cpus: Vec<u32>,
    /// Its budget; `None`: the least with which its tasks meet their deadlines.
    pub budget: Option<Duration>,
    /// Whether it may get more budget when others are admitted above it.
    pub may_grow: bool,
    /// Its tasks.
    pub tasks: Vec<GroupTask>,
    /// The source of the order of its tasks.
    pub order: TaskOrder,
}

/// The admission of a container, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// Its CPU.
    pub cpu: u32,
    /// Its group priority.
    pub priority: u32,
    /// Its budget.
    pub budget: Duration,
    /// The worst case of each of its tasks.
    pub tasks: Vec<TaskAnalysis>,
    /// The changes of other groups that must come before it starts; usually there are none.
    pub changes: Vec<Change>,
    /// The host with the container, as input of the next admission.
    pub host: Host,
}

/// A change of another group that an admission needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
#[allow(missing_docs)] // The fields are the old and the new values.
pub enum Change {
    /// A group below it gets more budget.
    Budget { group: String, cpu: u32, from: Duration, to: Duration },
    /// A group gets another priority, because no number is free between two neighbours. The order of groups stays.
    Priority { group: String, from: u32, to: u32 },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Budget { group, cpu, from, to } => {
                write!(f, "group {group}: budget on CPU {cpu} from {from} to {to}")
            }
            Change::Priority { group, from, to } => write!(f, "group {group}: priority from {from} to {to}"),
        }
    }
}

/// Checks whether one more container fits on a host, and returns its parameters.
///
/// The groups of the host keep their parameters, with one exception. Groups below the container that may grow get more
/// budget if they would miss otherwise. The parts that the container cannot affect are not analysed:
/// [`analyse`](super::analyse) tells whether the host is feasible without it.
///
/// # Errors
///
/// An invalid host or container, or the reasons of the refusal. For each CPU that was tried, these are the tasks that
/// would miss, or the sum that would be exceeded. The tasks are its own, those of groups below, or those of
/// SCHED_DEADLINE.
pub fn admit(host: &Host, container: &Container) -> Result<Admission, ServersError> {
    validate::host(host)?;
    validate_container(host, container)?;
    let mut host = host.clone();
    let renumbered = insert(&mut host, container)?;
    let cpus: Vec<u32> = host.cpus.iter().copied().filter(|&cpu| may_use(container, cpu)).collect();
    let mut refusals = Vec::new();
    let mut best: Option<(Duration, Admission)> = None;
    for cpu in cpus {
        match on_cpu(host.clone(), container, cpu) {
            Ok(mut admission) => {
                let cost = cost(&admission);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    admission.changes.splice(0..0, renumbered.iter().cloned());
                    best = Some((cost, admission));
                }
            }
            Err(reasons) => refusals.extend(reasons),
        }
    }
    best.map(|(_, admission)| admission).ok_or(ServersError::Refused(refusals))
}

fn validate_container(host: &Host, container: &Container) -> Result<(), HostError> {
    let name = &container.name;
    if host.groups.iter().any(|group| group.name == *name) {
        return Err(HostError::Twice { what: format!("groups `{name}`") });
    }
    if container.tasks.is_empty() && container.budget.is_none() {
        return Err(HostError::NothingAsked { container: name.clone() });
    }
    for &cpu in &container.cpus {
        validate::known(host, &format!("container `{name}`"), cpu)?;
    }
    if let Some(budget) = container.budget {
        validate::budget(host, name, budget)?;
    }
    if let Some(priority) = container.priority {
        validate::priority(&format!("the priority of container `{name}`"), priority)?;
        if let Some(other) = host.groups.iter().find(|group| group.priority == priority) {
            return Err(HostError::SamePriority { group: name.clone(), other: other.name.clone(), priority });
        }
    }
    validate::tasks(host, name, &container.tasks)
}

fn may_use(container: &Container, cpu: u32) -> bool {
    container.cpus.is_empty() || container.cpus.contains(&cpu)
}

/// Adds the container's group, without a server, and returns the changes of priorities for it.
fn insert(host: &mut Host, container: &Container) -> Result<Vec<Change>, ServersError> {
    let priority = container.priority.or_else(|| order::between(&host.groups, container.criticality));
    let (name, criticality) = (container.name.clone(), container.criticality);
    host.groups.push(Group { name, criticality, priority: priority.unwrap_or(0), servers: Vec::new(), windows: None });
    if priority.is_some() {
        return Ok(Vec::new());
    }
    let before: Vec<u32> = host.groups.iter().map(|group| group.priority).collect();
    let order = order_with(&host.groups, criticality);
    order::spread(&mut host.groups, &order)?;
    let changed = host.groups.iter().zip(before).filter(|(group, from)| *from > 0 && group.priority != *from);
    Ok(changed.map(|(group, from)| Change::Priority { group: group.name.clone(), from, to: group.priority }).collect())
}

/// Returns the present order, with the last group just above the highest one that is less critical.
fn order_with(groups: &[Group], criticality: u32) -> Vec<String> {
    let (new, present) = groups.split_last().expect("the new group is there");
    let mut present: Vec<&Group> = present.iter().collect();
    present.sort_by_key(|group| std::cmp::Reverse(group.priority));
    let place = present.iter().position(|group| group.criticality < criticality).unwrap_or(present.len());
    present.insert(place, new);
    present.iter().map(|group| group.name.clone()).collect()
}

fn on_cpu(mut host: Host, container: &Container, cpu: u32) -> Result<Admission, Vec<Refusal>> {
    let time = &CpuTime::new(&host, cpu);
    let group = host.groups.len() - 1;
    let priority = host.groups[group].priority;
    let above = budgets_above(&host, priority, cpu);
    let server = own_server(&host, container, time, priority, &above)?;
    let budget = server.budget;
    let tasks = analyse_server(&host, time, &server, &above).tasks;
    host.groups[group].servers.push(server);
    let changes = make_room_below(&mut host, time, priority)?;
    let mut refusals = Vec::new();
    sums::cpu(&host, time, &mut refusals);
    reserved::check(&host, cpu, &mut refusals);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    Ok(Admission { cpu, priority, budget, tasks, changes, host })
}

/// Returns the container's own server on a CPU.
fn own_server(
    host: &Host,
    container: &Container,
    time: &CpuTime,
    priority: u32,
    above: &[Duration],
) -> Result<Server, Vec<Refusal>> {
    let place = Place { time, above, order: container.order };
    let (cpu, may_grow, tasks) = (time.cpu, container.may_grow, container.tasks.clone());
    let mut server = Server { cpu, budget: Duration::ZERO, may_grow, tasks };
    let refused = |server: &Server, most| match most < host.least {
        true => Err(vec![sums::full(host, time, with(sums::budgets(host, cpu), &container.name, host.least))]),
        false => Err(no_budget(host, &place, &container.name, priority, server, most)),
    };
    let budget = match container.budget {
        Some(budget) => budget,
        None => {
            let most = left(host, time);
            match place.least(&server.tasks, host.granule, host.least, most) {
                Some(budget) => budget,
                None => return refused(&server, most),
            }
        }
    };
    server.budget = budget;
    match place.feasible(&server.tasks, budget) {
        Some(priorities) => {
            set(&mut server, budget, &priorities);
            Ok(server)
        }
        None => Err(place.reasons(&container.name, &server, &names_above(host, priority, cpu))),
    }
}

fn with(mut budgets: Vec<(String, Duration)>, name: &str, budget: Duration) -> Vec<(String, Duration)> {
    budgets.push((name.into(), budget));
    budgets
}

/// Returns the time that is left for budgets on a CPU.
fn left(host: &Host, time: &CpuTime) -> Duration {
    sums::most_budgets(host, time) - sums::budgets(host, time.cpu).into_iter().map(|(_, budget)| budget).sum()
}

/// Gives groups below `priority` the budget that they need then, the highest group first.
fn make_room_below(host: &mut Host, time: &CpuTime, priority: u32) -> Result<Vec<Change>, Vec<Refusal>> {
    let mut below: Vec<usize> = (0..host.groups.len()).filter(|&at| host.groups[at].priority < priority).collect();
    below.sort_by_key(|&at| std::cmp::Reverse(host.groups[at].priority));
    let mut changes = Vec::new();
    for at in below {
        changes.extend(grow(host, time, at)?);
    }
    Ok(changes)
}

/// Gives a group the additional budget that it needs on a CPU. Returns `None` if it does not miss.
fn grow(host: &mut Host, time: &CpuTime, at: usize) -> Result<Option<Change>, Vec<Refusal>> {
    let group = &host.groups[at];
    let Some(index) = group.servers.iter().position(|server| server.cpu == time.cpu) else {
        return Ok(None);
    };
    let server = &group.servers[index];
    let (time, above) = (&*time.for_group(group), budgets_above(host, group.priority, time.cpu));
    let place = Place { time, above: &above, order: TaskOrder::Given };
    if place.feasible(&server.tasks, server.budget).is_some() {
        return Ok(None);
    }
    let most = server.budget + left(host, time).max(Duration::ZERO);
    let more = server.may_grow.then(|| place.least(&server.tasks, host.granule, server.budget, most)).flatten();
    let Some(to) = more else {
        let names = names_above(host, group.priority, time.cpu);
        return Err(place.reasons(&group.name, server, &names));
    };
    let (name, from) = (group.name.clone(), server.budget);
    host.groups[at].servers[index].budget = to;
    Ok(Some(Change::Budget { group: name, cpu: time.cpu, from, to }))
}

/// Returns the sum of the budgets that an admission adds.
fn cost(admission: &Admission) -> Duration {
    let grown = admission.changes.iter().map(|change| match change {
        Change::Budget { from, to, .. } => *to - *from,
        Change::Priority { .. } => Duration::ZERO,
    });
    admission.budget + grown.sum()
}
