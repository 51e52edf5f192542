//! Random task sets of two containers, with budgets from the checker (section 5.3 of the paper).

use macrotick_analysis::servers::{analyse, least_budgets, Group, GroupTask, Host, Server, ServersError, TaskOrder};
use macrotick_model::{Duration, SplitMix64};
use serde::{Deserialize, Serialize};

use crate::kit::draw::{fraction, shares};

/// The server period of all sets.
pub const SERVER_PERIOD_US: u32 = 2500;
/// An addition to execution times in the analysis, for switches and the kernel's own time.
const MARGIN: Duration = Duration::from_micros(30);
/// A factor of execution times in the analysis, in thousandths. The kernel charges interrupts, mostly of the tick, to
/// the running thread. The results have the true factor.
const WITH_INTERRUPTS: i64 = 1100;
/// The shortest execution time.
const LEAST_WCET_US: u64 = 30;
/// The least share of the CPU for a container.
const LEAST_SHARE: f64 = 0.001;
/// The greatest share of the CPU for both budgets. The bench draws another set when it is exceeded.
const MOST_BUDGETS: f64 = 0.9;
/// The part of its budget that a group loses in each period: a switch to it, and the interrupt that ends its turn.
const COST_US: u32 = 12;
/// The factor by which budgets exceed the least ones, for the cost of scheduling.
const EXTRA: f64 = 1.01;
/// Shortest and longest period.
const PERIODS_MS: (f64, f64) = (1.0, 2000.0);
/// Least and greatest number of tasks of a container.
const TASKS: (u64, u64) = (2, 5);

/// Two containers on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSet {
    /// The load of all tasks, in percent of the CPU.
    pub total: u32,
    /// The number of the set within its total.
    pub index: u32,
    /// The container with the low priority, then the container with the high one.
    pub containers: [Container; 2],
}

/// One of the containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The name of its group.
    pub name: String,
    /// The priority of its group.
    pub priority: u32,
    /// The budget per server period.
    pub budget_us: u32,
    /// The tasks in ascending order of their periods, which is the order of their priorities.
    pub tasks: Vec<Task>,
}

/// A task, released at each multiple of its period. The period is also its deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The period.
    pub period_ms: u32,
    /// The declared execution time of a job.
    pub wcet_us: u32,
    /// The priority inside the container.
    pub priority: u32,
    /// The worst response time that the checker computes.
    pub bound_ns: u64,
}

impl TaskSet {
    /// Draws sets for a total and an index until the checker finds one feasible, and returns it.
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

    /// Sets the least budgets with which the checker finds no miss, and adds the margin. Returns false if there are
    /// none, or if they are too large.
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

    /// Computes the bounds of each container. It loses the cost of switches from its budget; the other containers have
    /// their whole budgets.
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

/// Draws log-uniform periods; the shortest has the highest priority.
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
