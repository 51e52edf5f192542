//! Finds the values that a description leaves open: budgets of some groups, and orders of tasks.
//!
//! A group has the same budget on each of its CPUs: that of [`least_budgets`](super::least_budgets) on the CPU where it
//! needs most. The argument there also holds for such budgets. Given budgets do not change. Every other group gets its
//! smallest one, the highest group first. This is the smallest that any feasible assignment gives it.

use super::analysis::{budgets_above, names_above};
use super::budget::{no_budget, not_found, set, Place};
use super::supply::CpuTime;
use super::{sums, validate, Host, HostError, Refusal, TaskOrder};
use macrotick_model::Duration;

/// The open values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Whether its budget is open. The function then ignores the present value.
    pub budget: bool,
    /// The source of the order of its tasks.
    pub order: TaskOrder,
}

/// The reason why a value was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unassigned {
    /// The host is invalid.
    #[error(transparent)]
    Invalid(#[from] HostError),
    /// The first group, in order of priority, that misses deadlines with every budget or order.
    #[error("group `{group}`: {}", super::lines(.reasons))]
    Group {
        /// The group.
        group: String,
        /// The faults with all the time left for it, or with its budget; at least one.
        reasons: Vec<Refusal>,
    },
}

/// Returns the host with its open values filled in. `open` has the groups in the order of the host. Budgets are the
/// least with which no task misses, and orders of tasks are such orders. The function neither changes nor checks
/// anything else: [`analyse`](super::analyse) checks whether the rest is feasible, and whether all sums fit.
///
/// # Errors
///
/// An invalid host, or the first group without a solution.
pub fn complete(host: &Host, open: &[Open]) -> Result<Host, Unassigned> {
    validate::host(host)?;
    let mut host = host.clone();
    let budgets = host.groups.iter_mut().zip(open).filter(|(_, open)| open.budget);
    budgets.for_each(|(group, _)| group.servers.iter_mut().for_each(not_found));
    let times = CpuTime::of_all(&host);
    let mut groups: Vec<usize> = (0..host.groups.len()).collect();
    groups.sort_by_key(|&index| std::cmp::Reverse(host.groups[index].priority));
    for index in groups {
        let found = complete_group(&mut host, &times, index, open[index]);
        found.map_err(|reasons| Unassigned::Group { group: host.groups[index].name.clone(), reasons })?;
    }
    Ok(host)
}

fn complete_group(host: &mut Host, times: &[CpuTime], group: usize, open: Open) -> Result<(), Vec<Refusal>> {
    if open.budget {
        let servers = 0..host.groups[group].servers.len();
        let each = servers.map(|server| least(host, times, group, server, open.order));
        let most = each.collect::<Result<Vec<Duration>, _>>()?.into_iter().max();
        let servers = host.groups[group].servers.iter_mut();
        servers.for_each(|server| server.budget = most.unwrap_or(server.budget));
    }
    match open.order {
        TaskOrder::Given => Ok(()),
        TaskOrder::Best => (0..host.groups[group].servers.len()).try_for_each(|at| order(host, times, group, at)),
    }
}

/// Returns the least budget of one server.
fn least(host: &Host, times: &[CpuTime], group: usize, at: usize, order: TaskOrder) -> Result<Duration, Vec<Refusal>> {
    let (group, server) = (&host.groups[group], &host.groups[group].servers[at]);
    let time = CpuTime::find_for(times, group, server.cpu);
    let above = budgets_above(host, group.priority, server.cpu);
    let place = Place { time: &time, above: &above, order };
    let most = sums::most_budgets(host, &time) - above.iter().copied().sum();
    let least = place.least(&server.tasks, host.granule, host.least, most.min(host.server_period));
    least.ok_or_else(|| no_budget(host, &place, &group.name, group.priority, server, most))
}

/// Orders the tasks of one server, with its present budget.
fn order(host: &mut Host, times: &[CpuTime], group: usize, at: usize) -> Result<(), Vec<Refusal>> {
    let (name, priority) = (host.groups[group].name.clone(), host.groups[group].priority);
    let server = &host.groups[group].servers[at];
    let above = budgets_above(host, priority, server.cpu);
    let time = CpuTime::find_for(times, &host.groups[group], server.cpu);
    let place = Place { time: &time, above: &above, order: TaskOrder::Best };
    let Some(priorities) = place.feasible(&server.tasks, server.budget) else {
        return Err(place.reasons(&name, server, &names_above(host, priority, server.cpu)));
    };
    let budget = server.budget;
    set(&mut host.groups[group].servers[at], budget, &priorities);
    Ok(())
}
