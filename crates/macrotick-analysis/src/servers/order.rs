//! Priorities: of tasks inside a group, and of groups.
//!
//! Whether a task meets its deadline depends on the set of tasks above it, not on their order. A task that meets it
//! below a set of tasks also meets it below any subset. Therefore Audsley's assignment is optimal (N. C. Audsley: On
//! priority assignment in fixed priority scheduling, 2001). It fills the levels from the lowest up with any task that
//! is feasible there. If no task is, there is no order.
//!
//! The same holds for groups *with given budgets* (Davis and Burns 2008), because a group depends on the sum of the
//! budgets above it. It does not hold for groups with budgets that must be found: the need of a low one depends on the
//! budgets above it. There criticality decides, as in the paper.

use macrotick_model::Duration;

use super::analysis::{budgets_above, names_above};
use super::budget::{set, Place};
use super::response::{Effort, Level};
use super::supply::{CpuTime, Supply};
use super::{unless_refused, validate, Group, GroupTask, Host, Refusal, Server, ServersError, TaskOrder, PRIORITIES};

/// Returns priorities with which no task misses, in the order of `tasks`. They begin at 1, and each task has its own if
/// there are enough.
///
/// Of the tasks that can be lowest, the one with the longest deadline becomes the lowest; of equals, the last one.
/// Without jitter and with deadlines up to the periods, this is the order by deadlines. With more tasks than
/// priorities, several tasks share the lowest ones: a task that meets its deadline below others also meets it as their
/// equal.
///
/// # Errors
///
/// The remaining tasks, if none of them can be lowest, or if no priority is left.
pub(super) fn task_order(supply: &Supply, tasks: &[GroupTask]) -> Result<Vec<u32>, Vec<usize>> {
    let mut priorities = vec![0; tasks.len()];
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    left.sort_by_key(|&index| tasks[index].deadline);
    for priority in 1..=PRIORITIES {
        let above = (PRIORITIES - priority) as usize;
        let wanted = left.len().saturating_sub(above).max(1);
        let level = Level::new(supply, tasks, left.clone());
        let can_be_lowest = |&place: &usize| level.worst(place, Effort::FirstMiss).meets(tasks[left[place]].deadline);
        let can = (0..left.len()).rev().filter(can_be_lowest);
        let lowest: Vec<usize> = can.take(wanted).collect();
        if lowest.is_empty() {
            break;
        }
        for place in lowest {
            priorities[left.remove(place)] = priority;
        }
    }
    if left.is_empty() {
        Ok(priorities)
    } else {
        Err(left)
    }
}

/// Returns the reason why the tasks of a server, with its budget and below the named groups, have no order. It has the
/// tasks that remain when none can be lowest, and their lateness there. A single task misses in any order.
pub(super) fn no_order(supply: &Supply, group: &str, server: &Server, left: &[usize], above: &[String]) -> Refusal {
    let tasks = &server.tasks;
    let level = Level::new(supply, tasks, left.to_vec());
    let responses = (0..left.len()).map(|place| level.worst(place, Effort::Full).response);
    let late = left.iter().zip(responses).map(|(&index, response)| (&tasks[index], response));
    let late: Vec<(&GroupTask, Option<Duration>)> = late.collect();
    if late.iter().any(|(task, response)| response.is_some_and(|response| response <= task.deadline)) {
        let what = format!("tasks of group `{group}`");
        return Refusal::NoPriority { what, count: tasks.len(), priorities: PRIORITIES };
    }
    if let [(task, response)] = late[..] {
        return Refusal::misses(group, server, &task.name, response, task.deadline, above.to_vec());
    }
    let tasks = late.iter().map(|(task, response)| (task.name.clone(), response.map(|time| time - task.deadline)));
    Refusal::NoTaskOrder { cpu: server.cpu, group: group.into(), budget: server.budget, tasks: tasks.collect() }
}

/// Returns the host with task priorities inside each group with which no task misses. Budgets and group priorities
/// stay.
///
/// # Errors
///
/// An invalid host, or the servers without such an order, with the tasks that cause it.
pub fn assign_tasks(host: &Host) -> Result<Host, ServersError> {
    validate::host(host)?;
    let times = CpuTime::of_all(host);
    let mut assigned = host.clone();
    let mut refusals = Vec::new();
    for (group, given) in assigned.groups.iter_mut().zip(&host.groups) {
        for server in &mut group.servers {
            let above = budgets_above(host, group.priority, server.cpu);
            let time = CpuTime::find_for(&times, given, server.cpu);
            let supply = time.supply(server.budget, &above);
            match task_order(&supply, &server.tasks) {
                Ok(priorities) => set(server, server.budget, &priorities),
                Err(left) => {
                    let above = names_above(host, group.priority, server.cpu);
                    refusals.push(no_order(&supply, &group.name, server, &left, &above));
                }
            }
        }
    }
    unless_refused(assigned, refusals)
}

/// Returns the host with group priorities with which no task misses, for the present budgets and priorities of tasks.
/// The present group priorities do not matter.
///
/// Of the groups that can be lowest, the least critical one becomes the lowest; of equals, the last one. A group is
/// above one of higher criticality only if nothing else is feasible.
///
/// # Errors
///
/// An invalid host, or the groups of which none can be lowest.
pub fn assign_groups(host: &Host) -> Result<Host, ServersError> {
    validate::host(host)?;
    let times = CpuTime::of_all(host);
    let mut left: Vec<&Group> = host.groups.iter().collect();
    left.sort_by_key(|group| std::cmp::Reverse(group.criticality));
    let mut upwards = Vec::new();
    while let Some(lowest) = (0..left.len()).rev().find(|&place| group_can_be_lowest(&times, &left, place)) {
        upwards.push(left.remove(lowest).name.clone());
    }
    if !left.is_empty() {
        let groups = left.iter().map(|group| group.name.clone()).collect();
        return Err(ServersError::Refused(vec![Refusal::NoGroupOrder { groups }]));
    }
    upwards.reverse();
    let mut assigned = host.clone();
    spread(&mut assigned.groups, &upwards)?;
    Ok(assigned)
}

fn group_can_be_lowest(times: &[CpuTime], left: &[&Group], place: usize) -> bool {
    left[place].servers.iter().all(|server| {
        let others = left.iter().enumerate().filter(|&(other, _)| other != place);
        let above: Vec<_> = others.filter_map(|(_, group)| group.on(server.cpu)).map(|other| other.budget).collect();
        let time = CpuTime::find_for(times, left[place], server.cpu);
        let place = Place { time: &time, above: &above, order: TaskOrder::Given };
        place.feasible(&server.tasks, server.budget).is_some()
    })
}

/// Returns the groups with priorities by criticality. Higher criticality goes first, and of equals the first one in the
/// list. The priorities are unique and spread over the range, which leaves room between them.
///
/// # Errors
///
/// There are more groups than priorities.
pub fn by_criticality(groups: &[Group]) -> Result<Vec<Group>, ServersError> {
    let mut order: Vec<&Group> = groups.iter().collect();
    order.sort_by_key(|group| std::cmp::Reverse(group.criticality));
    let order: Vec<String> = order.iter().map(|group| group.name.clone()).collect();
    let mut groups = groups.to_vec();
    spread(&mut groups, &order)?;
    Ok(groups)
}

/// Gives the groups priorities in this order, the highest first.
pub(super) fn spread(groups: &mut [Group], order: &[String]) -> Result<(), ServersError> {
    let count = order.len();
    if count > PRIORITIES as usize {
        let what = "groups".into();
        return Err(ServersError::Refused(vec![Refusal::NoPriority { what, count, priorities: PRIORITIES }]));
    }
    for group in groups {
        let rank = order.iter().position(|name| *name == group.name).expect("every group has a place in the order");
        group.priority = ((count - rank) * (PRIORITIES as usize + 1) / (count + 1)) as u32;
    }
    Ok(())
}

/// Returns the priority for one more group, above all less critical groups. It is below all other groups, except those
/// that are themselves below a less critical one. `None`: no number is left between its neighbours.
pub(super) fn between(groups: &[Group], criticality: u32) -> Option<u32> {
    let below = groups.iter().filter(|group| group.criticality < criticality).map(|group| group.priority).max();
    let below = below.unwrap_or(0);
    let next = groups.iter().filter(|group| group.priority > below).min_by_key(|group| group.priority);
    let above = next.map_or(PRIORITIES + 1, |group| group.priority);
    let is_equal = next.is_some_and(|group| group.criticality == criticality);
    // Just below an equal one, the next of the same kind finds room again and again. Halves would soon use it up.
    let between = if is_equal { above - 1 } else { below + (above - below) / 2 };
    (above - below > 1).then_some(between)
}
