//! Priorities: of tasks inside a group, and of groups.
//!
//! Whether a task meets its deadline depends on which tasks are above it, not on their order, and a task that meets it
//! below a set of tasks meets it below any part of them. So Audsley's assignment is optimal (N. C. Audsley: On priority
//! assignment in fixed priority scheduling, 2001): fill the levels from the lowest up with any task that is feasible
//! there; if none is, there is no order. The same holds for groups *with given budgets* (Davis and Burns 2008), as a
//! group depends on the sum of the budgets above it. It does not hold for groups whose budgets are still to be found:
//! how much a low one needs depends on how much those above it got. There criticality decides, as in the paper.

use macrotick_model::Duration;

use super::analysis::{budgets_above, names_above};
use super::budget::{set, Place};
use super::response::{Effort, Level};
use super::supply::{CpuTime, Supply};
use super::{unless_refused, validate, Group, GroupTask, Host, Refusal, Server, ServersError, TaskOrder, PRIORITIES};

/// Priorities with which no task misses, in the order of `tasks`: from 1 up, and each has its own where there are enough.
///
/// Among those that can be lowest, that with the longest deadline is, and of equals the last: without jitter and with
/// deadlines up to the periods this is the order by deadlines. Where there are more tasks than priorities, several
/// share the lowest ones: a task that meets its deadline below others meets it as their equal, too.
///
/// # Errors
///
/// The tasks that remain when none of them can be lowest, or when there is no priority left.
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

/// Why the tasks of a server, with its budget and below the groups named, have no order: each of those that are left
/// when none can be lowest, and by how much it is late there. A single one misses whatever the order.
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

/// The host with priorities of tasks, inside each group, with which none misses. Budgets and groups' priorities stay.
///
/// # Errors
///
/// A host that makes no sense; or each server whose tasks have no such order, and which tasks are the matter.
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

/// The host with priorities of groups with which no task misses, for the budgets and the priorities of tasks that
/// it has. The priorities that groups have do not matter.
///
/// Among the groups that can be lowest, the least critical is, and of equals the last: a group is above one of higher
/// criticality only where nothing else is feasible.
///
/// # Errors
///
/// A host that makes no sense; or the groups of which none can be lowest.
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

/// The groups with priorities by criticality: higher criticality goes first, and of equals the one listed first. The
/// priorities are unique and spread over the range, so that others find room between them.
///
/// # Errors
///
/// More groups than priorities.
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

/// The priority for one more group: above all that are less critical, and below all others as far as those are not
/// themselves below less critical ones. `None` if there is none left between its neighbours.
pub(super) fn between(groups: &[Group], criticality: u32) -> Option<u32> {
    let below = groups.iter().filter(|group| group.criticality < criticality).map(|group| group.priority).max();
    let below = below.unwrap_or(0);
    let next = groups.iter().filter(|group| group.priority > below).min_by_key(|group| group.priority);
    let above = next.map_or(PRIORITIES + 1, |group| group.priority);
    let is_equal = next.is_some_and(|group| group.criticality == criticality);
    // Below an equal one the next of their kind finds room again and again, which halves would soon use up.
    let between = if is_equal { above - 1 } else { below + (above - below) / 2 };
    (above - below > 1).then_some(between)
}
