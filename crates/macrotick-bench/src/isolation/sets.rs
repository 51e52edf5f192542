//! Random task sets of two containers, with budgets from the checker (section 5.3 of the paper).

use macrotick_analysis::servers::{analyse, least_budgets, Group, GroupTask, Host, Server, ServersError, TaskOrder};
use macrotick_model::{Duration, SplitMix64};
use serde::{Deserialize, Serialize};

use crate::kit::draw::{fraction, shares};

/// The server period of all sets.
pub const SERVER_PERIOD_US: u32 = 2500;
/// What execution times are analysed with in addition: switches, and the kernel's own time.
const MARGIN: Duration = Duration::from_micros(30);
/// In thousandths, how much longer they are than alone: interrupts, of the tick above all, are charged to whoever runs. What
/// they do take is in the results.
const WITH_INTERRUPTS: i64 = 1100;
/// No execution time is shorter.
const LEAST_WCET_US: u64 = 30;
/// A container has at least so much of the CPU.
const LEAST_SHARE: f64 = 0.001;
/// Sets whose budgets are more of the CPU together are drawn anew.
const MOST_BUDGETS: f64 = 0.9;
/// What a group does not have of its budget, in each period: a switch to it, and the interrupt that ends its turn.
const COST_US: u32 = 12;
/// By so much budgets are greater than the least, for the cost of scheduling.
const EXTRA: f64 = 1.01;
/// Shortest and longest period.
const PERIODS_MS: (f64, f64) = (1.0, 2000.0);
/// Fewest and most tasks of a container.
const TASKS: (u64, u64) = (2, 5);

/// Two containers on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSet {
    /// What the tasks were drawn to have together, in per cent of the CPU.
    pub total: u32,
    /// Which one of that total.
    pub index: u32,
    /// The one with the low priority, then that with the high one.
    pub containers: [Container; 2],
}

/// One of the containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Of the group.
    pub name: String,
    /// Of the group.
    pub priority: u32,
    /// Per server period.
    pub budget_us: u32,
    /// In ascending order of their periods, which is that of their priorities.
    pub tasks: Vec<Task>,
}

/// A task: released at each multiple of its period, which is its deadline, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its period.
    pub period_ms: u32,
    /// What it says that a job takes.
    pub wcet_us: u32,
    /// Inside its container.
    pub priority: u32,
    /// The worst response time, as the checker has it.
    pub bound_ns: u64,
}

impl TaskSet {
    /// The first set that the checker calls feasible of those drawn for a total and an index.
    pub fn draw(total: u32, index: u32) -> TaskSet {
        let mut random = SplitMix64::new(u64::from(total) << 32 | u64::from(index));
        loop {
            let shares = shares(&mut random, f64::from(total) / 100.0, 2);
            if shares.iter().any(|&share| share < LEAST_SHARE) {
                continue;
            }
            let mut container = |name: &str, priority, share| {
                let tasks = draw_tasks(&mut random, share);
                Container { name: name.into(), priority, budget_us: 1, tasks }
            };
            let containers = [container("low", 1, shares[0]), container("high", 2, shares[1])];
            let mut set = TaskSet { total, index, containers };
            if set.give_budgets() {
                return set;
            }
        }
    }

    /// The least budgets with which the checker finds no miss, and a little more. False: there are none, or they are too large.
    fn give_budgets(&mut self) -> bool {
        let mut host = match least_budgets(&self.host(), TaskOrder::Given) {
            Ok(host) => host,
            Err(ServersError::Refused(_)) => return false,
            Err(ServersError::Invalid(error)) => panic!("a host that was made here: {error}"),
        };
        let mut sum = 0;
        for (container, group) in self.containers.iter_mut().zip(&mut host.groups) {
            let least = group.servers[0].budget.as_nanos() as f64 / 1e3;
            container.budget_us = (least * EXTRA).ceil() as u32 + COST_US;
            group.servers[0].budget = Duration::from_micros(i64::from(container.budget_us));
            sum += container.budget_us;
        }
        f64::from(sum) <= MOST_BUDGETS * f64::from(SERVER_PERIOD_US) && self.take_bounds(&host)
    }

    /// For each container with what it has of its budget, beside all of the others'.
    fn take_bounds(&mut self, host: &Host) -> bool {
        self.containers.iter_mut().enumerate().all(|(own, container)| {
            let mut host = host.clone();
            host.groups[own].servers[0].budget -= Duration::from_micros(i64::from(COST_US));
            let Ok(analysis) = analyse(&host) else { return false };
            container.tasks.iter_mut().enumerate().all(|(index, task)| {
                let worst = analysis.task(&container.name, &task_name(index));
                let bound = worst.filter(|worst| worst.meets()).and_then(|worst| worst.response);
                task.bound_ns = bound.map_or(0, |bound| bound.as_nanos() as u64);
                bound.is_some()
            })
        })
    }

    fn host(&self) -> Host {
        let group = |container: &Container| {
            let tasks = container.tasks.iter().enumerate().map(declared).collect();
            let server = Server::fixed(0, Duration::from_micros(i64::from(container.budget_us)), tasks);
            Group::served(&container.name, container.priority, vec![server])
        };
        let groups = self.containers.iter().map(group).collect();
        Host { groups, ..Host::idle(Duration::from_micros(i64::from(SERVER_PERIOD_US))) }
    }
}

fn task_name(index: usize) -> String {
    format!("t{index}")
}

fn declared((index, task): (usize, &Task)) -> GroupTask {
    let wcet = Duration::from_nanos(i64::from(task.wcet_us) * WITH_INTERRUPTS) + MARGIN;
    GroupTask::unbound(task_name(index), wcet, Duration::from_millis(i64::from(task.period_ms)), task.priority)
}

/// Log-uniform periods; the shortest has the highest priority.
fn draw_tasks(random: &mut SplitMix64, share: f64) -> Vec<Task> {
    let n = TASKS.0 + random.bits() % (TASKS.1 - TASKS.0 + 1);
    let shares = shares(random, share, n as usize);
    let (least, most) = (PERIODS_MS.0.ln(), (PERIODS_MS.1 + 1.0).ln());
    let mut tasks: Vec<Task> = shares
        .iter()
        .map(|share| {
            let period_ms = (least + (most - least) * fraction(random)).exp().floor().min(PERIODS_MS.1) as u32;
            let wcet_us = (share * f64::from(period_ms) * 1e3) as u64;
            Task { period_ms, wcet_us: wcet_us.max(LEAST_WCET_US) as u32, priority: 0, bound_ns: 0 }
        })
        .collect();
    tasks.sort_by_key(|task| task.period_ms);
    for (task, priority) in tasks.iter_mut().zip((1..=90).rev()) {
        task.priority = priority;
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_was_asked_for() {
        for (total, index) in [(50, 0), (60, 3), (70, 1)] {
            let set = TaskSet::draw(total, index);
            assert_eq!(set, TaskSet::draw(total, index), "drawn twice");
            let used: f64 = set
                .containers
                .iter()
                .flat_map(|container| &container.tasks)
                .map(|task| f64::from(task.wcet_us) / f64::from(task.period_ms) / 1e3)
                .sum();
            assert!((used - f64::from(total) / 100.0).abs() < 0.05, "{used} of {total} %");
            for container in &set.containers {
                assert!((2..=5).contains(&container.tasks.len()));
                assert!(container.tasks.is_sorted_by_key(|task| task.period_ms));
                assert!(container.tasks.iter().all(|task| task.bound_ns <= u64::from(task.period_ms) * 1_000_000));
            }
            let budgets: u32 = set.containers.iter().map(|container| container.budget_us).sum();
            assert!(f64::from(budgets) / f64::from(SERVER_PERIOD_US) <= MOST_BUDGETS);
        }
    }
}
