//! The sets of tasks, and the checker's bounds.

use macrotick_analysis::servers::{analyse, Accuracy, Arrival, Group, GroupTask, Host, Server};
use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

/// The server period of all sets.
pub const SERVER_PERIOD_US: u32 = 2500;
/// An addition to execution times in the analysis, for switches, interrupts, and the overrun of budgets.
const MARGIN: Duration = Duration::from_micros(20);
/// The group of the measured task.
pub const GROUP: &str = "own";

/// A task inside the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The work of a job.
    pub wcet_us: u32,
    /// The time from one arrival to the next.
    pub period_us: u32,
    /// The longest time from the arrival to the release of the first job of a busy time.
    pub jitter_us: u32,
}

/// A group with tasks below other groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// The name of the set.
    pub name: String,
    /// Budgets of the groups above, the highest first.
    pub above_us: Vec<u32>,
    /// The group's own budget.
    pub budget_us: u32,
    /// The tasks from the highest to the lowest priority inside the group. The last task is measured.
    pub tasks: Vec<Task>,
    /// Whether all tasks are bound.
    pub bound: bool,
}

/// The checker's result for the measured task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The worst response time.
    pub response: Duration,
    /// Whether the response can occur.
    pub exact: bool,
}

impl Set {
    /// Returns all sets: each with unbound and with bound tasks.
    pub fn all() -> Vec<Set> {
        let task = |wcet_us, period_us, jitter_us| Task { wcet_us, period_us, jitter_us };
        let sets = [
            ("alone", vec![], 1000, vec![task(600, 10_000, 0)]),
            ("below one group", vec![900], 1000, vec![task(1500, 20_000, 0)]),
            ("below two groups", vec![600, 400], 900, vec![task(300, 5000, 0), task(1000, 20_000, 0)]),
            ("many server periods", vec![1500], 250, vec![task(900, 40_000, 0)]),
            ("release jitter", vec![900], 1000, vec![task(250, 5000, 2500), task(600, 20_000, 2500)]),
            ("three tasks", vec![1000], 800, vec![task(200, 5000, 0), task(300, 7500, 0), task(650, 40_000, 0)]),
        ];
        let both = |(name, above_us, budget_us, tasks): (&str, Vec<u32>, u32, Vec<Task>)| {
            [false, true].map(|bound| Set {
                name: name.into(),
                above_us: above_us.clone(),
                budget_us,
                tasks: tasks.clone(),
                bound,
            })
        };
        sets.into_iter().flat_map(both).collect()
    }

    /// Returns the kind of the tasks.
    pub fn arrival(&self) -> &'static str {
        if self.bound {
            "bound"
        } else {
            "unbound"
        }
    }

    /// Returns the checker's result for the measured task.
    pub fn bound(&self) -> Bound {
        let analysis = analyse(&self.host()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let task = analysis.task(GROUP, &name_of(self.tasks.len() - 1)).expect("it is in the host");
        let response = task.response.filter(|_| analysis.is_feasible());
        let response = response.unwrap_or_else(|| panic!("{}: {:?}", self.name, analysis.refusals));
        Bound { response, exact: task.accuracy == Accuracy::Exact }
    }

    fn host(&self) -> Host {
        let group = |name: String, priority: usize, budget_us: u32, tasks: Vec<GroupTask>| {
            let server = Server::fixed(0, Duration::from_micros(i64::from(budget_us)), tasks);
            Group::served(name, priority as u32, vec![server])
        };
        let above = self.above_us.iter().enumerate();
        let above = above.map(|(i, &budget)| group(above_name(i), above_priority(i), budget, Vec::new()));
        let tasks = self.tasks.iter().enumerate().map(|(index, task)| self.declared(index, task)).collect();
        let groups = above.chain([group(GROUP.into(), 1, self.budget_us, tasks)]).collect();
        Host { groups, ..Host::idle(Duration::from_micros(i64::from(SERVER_PERIOD_US))) }
    }

    fn declared(&self, index: usize, task: &Task) -> GroupTask {
        let us = |us: u32| Duration::from_micros(i64::from(us));
        GroupTask {
            // The deadline does not matter: a job waits for the previous jobs of its task.
            deadline: us(task.period_us) * 4,
            jitter: us(task.jitter_us),
            arrival: if self.bound { Arrival::Bound } else { Arrival::Unbound },
            ..GroupTask::unbound(name_of(index), us(task.wcet_us) + MARGIN, us(task.period_us), task_priority(index))
        }
    }
}

fn name_of(index: usize) -> String {
    format!("t{index}")
}

/// Returns the name of the `index`th group above.
pub fn above_name(index: usize) -> String {
    format!("above{index}")
}

/// Returns the priority of the `index`th group above. The group of the measured task has priority 1.
pub fn above_priority(index: usize) -> usize {
    50 - index
}

/// Returns the priority of the `index`th task inside the group. The thread that never sleeps has 1.
pub fn task_priority(index: usize) -> u32 {
    50 - index as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_equations() {
        let sets = Set::all();
        let bound = |name: &str, bound| {
            let set = sets.iter().find(|set| set.name == name && set.bound == bound).unwrap();
            set.bound().response.as_nanos() / 1000
        };
        // The gap of 1.5 ms, and the job.
        assert_eq!([bound("alone", false), bound("alone", true)], [2120, 620]);
        // The gap; one server period for the first 1 ms of the job; the group above, and the rest.
        assert_eq!([bound("below one group", false), bound("below one group", true)], [1500 + 2500 + 900 + 520, 3920]);
        assert!(sets.iter().all(|set| set.bound().exact), "every bound can occur");
    }
}
