//! The analysis of a whole host: every task of every group, and every sum.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::response::{Effort, Level, Worst};
use super::supply::{CpuTime, Supply};
use super::{sums, validate, CpuSum, Group, GroupTask, Host, HostError, Refusal, Server};

/// The result of the analysis of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// One entry per group, from the highest to the lowest priority.
    pub groups: Vec<GroupAnalysis>,
    /// One entry per CPU, in the order of the host.
    pub cpus: Vec<CpuSum>,
    /// All faults; empty for a feasible host.
    pub refusals: Vec<Refusal>,
}

/// The result for a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAnalysis {
    /// The group.
    pub name: String,
    /// The group priority.
    pub priority: u32,
    /// One entry per CPU of the group, in its order.
    pub servers: Vec<ServerAnalysis>,
}

/// The result for a group on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAnalysis {
    /// The CPU.
    pub cpu: u32,
    /// The budget.
    pub budget: Duration,
    /// The least time that it is sure to get in each server period in which it always has work. It is less than the
    /// budget if windows and higher groups leave less of some period.
    pub sure: Duration,
    /// One entry per task, in the order of the server.
    pub tasks: Vec<TaskAnalysis>,
}

/// The worst case of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnalysis {
    /// The task.
    pub name: String,
    /// Its priority inside the group.
    pub priority: u32,
    /// The worst response time, from a job's arrival. For a task that misses, it is that of one job that misses.
    /// `None`: response times grow without a bound, or no end was found.
    pub response: Option<Duration>,
    /// The deadline.
    pub deadline: Duration,
    /// The accuracy of the response time.
    pub accuracy: Accuracy,
    /// The refill that the worst job waits for, in the cycle of the table. `None`: no refill is worse than others.
    pub refill: Option<Duration>,
}

impl fmt::Display for TaskAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskAnalysis { priority, response, deadline, accuracy, .. } = self;
        let response = response.map_or("without end".to_string(), |response| response.to_string());
        let accuracy = match accuracy {
            Accuracy::Exact => "exact",
            Accuracy::UpperBound(_) => "upper bound",
        };
        write!(f, "priority {priority}, response {response} ({accuracy}), deadline {deadline}")
    }
}

/// The accuracy of a response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accuracy {
    /// The model allows a behaviour in which it occurs.
    Exact,
    /// No response time exceeds it, but it may be too long.
    UpperBound(Why),
}

/// The reason why a response time is only an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The position of refills in the table is not known.
    AnyPhase,
    /// Higher groups with refills of their own count with their budget twice in a row in more than one period.
    OwnRefills,
    /// Table and refills meet in too many ways to replay all of them.
    ManyAlignments,
    /// Windows, higher budgets and the budget do not fit into one of the server periods.
    ShortPeriod,
    /// A bound task is released between refills.
    BoundJitter,
    /// The time that the group's own windows give it before a refill does not count.
    OwnWindows,
    /// A task of the same priority may have come later, but counts as if it came first.
    EqualPriority,
}

impl Analysis {
    /// Whether every sum fits and no task can miss.
    pub fn is_feasible(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Returns the worst case of a task.
    pub fn task(&self, group: &str, task: &str) -> Option<&TaskAnalysis> {
        let group = self.groups.iter().find(|other| other.name == group)?;
        group.servers.iter().flat_map(|server| &server.tasks).find(|other| other.name == task)
    }
}

impl TaskAnalysis {
    /// Whether no job is late.
    pub fn meets(&self) -> bool {
        self.response.is_some_and(|response| response <= self.deadline)
    }
}

/// Analyses a host: response times by equations 1 and 2 (2 in the form of 3 for refills in lockstep), and the sums.
///
/// A host that is not feasible is not an error: its faults are in [`Analysis::refusals`].
///
/// # Errors
///
/// The first invalid value, such as a window outside the cycle.
pub fn analyse(host: &Host) -> Result<Analysis, HostError> {
    validate::host(host)?;
    let times = CpuTime::of_all(host);
    let mut refusals = Vec::new();
    let cpus = times.iter().map(|time| sums::cpu(host, time, &mut refusals)).collect();
    let groups = host.by_priority();
    let groups = groups.iter().map(|group| analyse_group(host, &times, group, &mut refusals)).collect();
    Ok(Analysis { groups, cpus, refusals })
}

fn analyse_group(host: &Host, times: &[CpuTime], group: &Group, refusals: &mut Vec<Refusal>) -> GroupAnalysis {
    let servers = group.servers.iter().map(|server| {
        let time = CpuTime::find_for(times, group, server.cpu);
        let above = budgets_above(host, group.priority, server.cpu);
        let analysis = analyse_server(host, &time, server, &above);
        let missed = analysis.tasks.iter().filter(|task| !task.meets());
        refusals.extend(missed.map(|task| {
            let above = names_above(host, group.priority, server.cpu);
            Refusal::misses(&group.name, server, &task.name, task.response, task.deadline, above)
        }));
        analysis
    });
    GroupAnalysis { name: group.name.clone(), priority: group.priority, servers: servers.collect() }
}

pub(super) fn analyse_server(host: &Host, time: &CpuTime, server: &Server, above: &[Duration]) -> ServerAnalysis {
    let supply = time.supply(server.budget, above);
    let levels = Levels::new(&supply, &server.tasks);
    let tasks = (0..server.tasks.len()).map(|index| {
        let (task, worst) = (&server.tasks[index], levels.worst(index, Effort::Full));
        TaskAnalysis {
            name: task.name.clone(),
            priority: task.priority,
            response: worst.response,
            deadline: task.deadline,
            accuracy: accuracy(&supply, &server.tasks, index),
            refill: time.refill(worst.refill, host.cycle),
        }
    });
    ServerAnalysis { cpu: server.cpu, budget: server.budget, sure: supply.least(), tasks: tasks.collect() }
}

/// The tasks of a server with their priorities. Beside each task are those that may run before it.
pub(super) struct Levels<'a> {
    tasks: &'a [GroupTask],
    /// For each priority, the tasks with at least this priority, by their indices in ascending order.
    of: BTreeMap<u32, (Vec<usize>, Level<'a>)>,
}

impl<'a> Levels<'a> {
    pub fn new(supply: &'a Supply<'a>, tasks: &'a [GroupTask]) -> Levels<'a> {
        let priorities: BTreeSet<u32> = tasks.iter().map(|task| task.priority).collect();
        let level = |priority| {
            let of: Vec<usize> = (0..tasks.len()).filter(|&index| tasks[index].priority >= priority).collect();
            (priority, (of.clone(), Level::new(supply, tasks, of)))
        };
        Levels { tasks, of: priorities.into_iter().map(level).collect() }
    }

    /// Returns the worst case of task `index`.
    pub fn worst(&self, index: usize, effort: Effort) -> Worst {
        let (of, level) = &self.of[&self.tasks[index].priority];
        level.worst(of.binary_search(&index).expect("a task is among those of its priority"), effort)
    }
}

/// Returns the other tasks that may run before task `index`. Those of equal priority do so if they came earlier.
fn beside(tasks: &[GroupTask], index: usize) -> impl Iterator<Item = &GroupTask> {
    let others = tasks.iter().enumerate().filter(move |&(other, _)| other != index);
    others.map(|(_, task)| task).filter(move |task| task.priority >= tasks[index].priority)
}

fn accuracy(supply: &Supply, tasks: &[GroupTask], index: usize) -> Accuracy {
    let own = &tasks[index];
    let late =
        |task: &GroupTask| task.arrival == super::Arrival::Bound && task.jitter % supply.period() > Duration::ZERO;
    let equal = beside(tasks, index).any(|task| task.priority == own.priority);
    let between = late(own) || beside(tasks, index).any(late);
    let why = supply.why().or(between.then_some(Why::BoundJitter)).or(equal.then_some(Why::EqualPriority));
    why.map_or(Accuracy::Exact, Accuracy::UpperBound)
}

/// Returns the budgets of the groups above this priority on a CPU.
pub(super) fn budgets_above(host: &Host, priority: u32, cpu: u32) -> Vec<Duration> {
    let above = host.groups.iter().filter(|group| group.priority > priority);
    above.filter_map(|group| group.on(cpu)).map(|server| server.budget).collect()
}

/// Returns the names of these groups, the highest first.
pub(super) fn names_above(host: &Host, priority: u32, cpu: u32) -> Vec<String> {
    let groups = host.by_priority();
    let above = groups.iter().filter(|group| group.priority > priority && group.on(cpu).is_some());
    above.map(|group| group.name.clone()).collect()
}
