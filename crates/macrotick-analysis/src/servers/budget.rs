//! The smallest budgets: optimal server capacity allocation (Davis and Burns 2008).
//!
//! Group priorities and the server period are given. A group's response times depend on its own budget and on the sum
//! of the higher ones.
//!
//! More budget of its own never makes them longer. In each case of `supply` the server then gets at least as much in
//! every interval, and the gap is not longer. Therefore bisection finds the smallest budget.
//!
//! More budget above never makes them shorter. Therefore each group gets its smallest budget, the highest group first.
//! This is the smallest that any feasible assignment gives it. If the sum does not fit then, it never does.

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::analysis::{budgets_above, names_above, Levels};
use super::order::{no_order, task_order};
use super::response::Effort;
use super::supply::CpuTime;
use super::{sums, unless_refused, validate, GroupTask, Host, Refusal, Server, ServersError};

/// The source of the order of tasks inside a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskOrder {
    /// The description: priorities stay as they are.
    Given,
    /// The analysis: it finds an order with which no task misses, if there is one.
    Best,
}

/// One place for a server: a CPU, and the groups above it there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The CPU.
    pub time: &'a CpuTime,
    /// The budgets of the groups above.
    pub above: &'a [Duration],
    /// The source of the order of tasks.
    pub order: TaskOrder,
}

impl Place<'_> {
    /// Returns priorities with which no task misses with this budget, in the order of `tasks`. `None`: there are none.
    pub fn feasible(&self, tasks: &[GroupTask], budget: Duration) -> Option<Vec<u32>> {
        let supply = self.time.supply(budget, self.above);
        if self.order == TaskOrder::Best {
            return task_order(&supply, tasks).ok();
        }
        let levels = Levels::new(&supply, tasks);
        let meets = |index| levels.worst(index, Effort::FirstMiss).meets(tasks[index].deadline);
        (0..tasks.len()).all(meets).then(|| tasks.iter().map(|task| task.priority).collect())
    }

    /// Returns the smallest multiple of `granule` from `from` to `most` with which no task misses. `None`: there is
    /// none.
    pub fn least(&self, tasks: &[GroupTask], granule: Duration, from: Duration, most: Duration) -> Option<Duration> {
        // Budgets in granules: `not` is too little, `enough` suffices.
        let mut not = ceil(from, granule) - 1;
        let mut enough = most / granule;
        if enough <= not || self.feasible(tasks, granule * enough).is_none() {
            return None;
        }
        while enough - not > 1 {
            let middle = not + (enough - not) / 2;
            match self.feasible(tasks, granule * middle) {
                Some(_) => enough = middle,
                None => not = middle,
            }
        }
        Some(granule * enough)
    }

    /// Returns the reasons why `server` of `group` is not feasible with its budget, below the named groups.
    pub fn reasons(&self, group: &str, server: &Server, above: &[String]) -> Vec<Refusal> {
        let supply = self.time.supply(server.budget, self.above);
        if self.order == TaskOrder::Best {
            let left = task_order(&supply, &server.tasks).err();
            return left.map(|left| no_order(&supply, group, server, &left, above)).into_iter().collect();
        }
        let levels = Levels::new(&supply, &server.tasks);
        let tasks = server.tasks.iter().enumerate();
        let missed = tasks.map(|(index, task)| (task, levels.worst(index, Effort::Full)));
        let missed = missed.filter(|(task, worst)| !worst.meets(task.deadline));
        missed
            .map(|(task, worst)| {
                Refusal::misses(group, server, &task.name, worst.response, task.deadline, above.to_vec())
            })
            .collect()
    }
}

/// Returns the number of granules for a length, rounded up, and at least one.
pub(super) fn ceil(length: Duration, granule: Duration) -> i64 {
    super::supply::ceil_div(length, granule).max(1)
}

/// Returns the host with the smallest budgets, in granules, with which no task misses its deadline. Group priorities
/// stay.
///
/// Servers without tasks keep their budgets. With [`TaskOrder::Best`] the function also assigns the priorities of
/// tasks.
///
/// # Errors
///
/// An invalid host, or the reasons for the first group, in order of priority, that cannot have a budget. A reason is a
/// task that misses with all the time left on its CPU, or the sum that is exceeded.
pub fn least_budgets(host: &Host, order: TaskOrder) -> Result<Host, ServersError> {
    validate::host(host)?;
    let mut host = host.clone();
    let open = host.groups.iter_mut().flat_map(|group| &mut group.servers).filter(|server| !server.tasks.is_empty());
    open.for_each(not_found);
    let times = CpuTime::of_all(&host);
    let mut groups: Vec<usize> = (0..host.groups.len()).collect();
    groups.sort_by_key(|&index| std::cmp::Reverse(host.groups[index].priority));
    for group in groups {
        for index in 0..host.groups[group].servers.len() {
            let cpu = host.groups[group].servers[index].cpu;
            let time = CpuTime::find_for(&times, &host.groups[group], cpu);
            set_least(&mut host, &time, group, index, order).map_err(ServersError::Refused)?;
        }
    }
    let mut refusals = Vec::new();
    for time in &times {
        sums::cpu(&host, time, &mut refusals);
    }
    unless_refused(host, refusals)
}

fn set_least(
    host: &mut Host,
    time: &CpuTime,
    group: usize,
    index: usize,
    order: TaskOrder,
) -> Result<(), Vec<Refusal>> {
    let (name, priority) = (host.groups[group].name.clone(), host.groups[group].priority);
    let server = &host.groups[group].servers[index];
    if server.tasks.is_empty() {
        return Ok(());
    }
    let above = budgets_above(host, priority, time.cpu);
    let place = Place { time, above: &above, order };
    let most = sums::most_budgets(host, time) - above.iter().copied().sum();
    match place.least(&server.tasks, host.granule, host.least, most) {
        Some(budget) => {
            let priorities = place.feasible(&server.tasks, budget).expect("the least budget is feasible");
            set(&mut host.groups[group].servers[index], budget, &priorities);
            Ok(())
        }
        None => Err(no_budget(host, &place, &name, priority, server, most)),
    }
}

/// Clears a budget that must be found. Until then it takes nothing of the CPUs between which deadline tasks migrate.
pub(super) fn not_found(server: &mut Server) {
    server.budget = Duration::ZERO;
}

/// Gives a server its budget, and its tasks their priorities.
pub(super) fn set(server: &mut Server, budget: Duration, priorities: &[u32]) {
    server.budget = budget;
    for (task, &priority) in server.tasks.iter_mut().zip(priorities) {
        task.priority = priority;
    }
}

/// Returns the reasons why there is no budget up to `most` for a server.
pub(super) fn no_budget(
    host: &Host,
    place: &Place,
    group: &str,
    priority: u32,
    server: &Server,
    most: Duration,
) -> Vec<Refusal> {
    let above = names_above(host, priority, server.cpu);
    if most >= host.least {
        let tried = Server { budget: host.granule * (most / host.granule), ..server.clone() };
        return place.reasons(group, &tried, &above);
    }
    // The time left is less than the least budget.
    let budgets = above.into_iter().zip(place.above.iter().copied());
    let budgets = budgets.chain([(group.into(), host.least)]).collect();
    vec![sums::full(host, place.time, budgets)]
}
