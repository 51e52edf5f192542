//! Finds the values that a description leaves open in its groups, for the windows of a solver.
//!
//! This step is between the solver and the judge. The least budget is the least with which the analysis finds no miss.
//! The judge sees only values, and does not consider their origin.

use macrotick_model::{Finding, Plan, System};

use crate::description::order_of;
use crate::servers::{self, Host, Open, Refusal, ServersError, Unassigned};

/// The reason why a value was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// The criticalities of groups give no priorities.
    #[error(transparent)]
    Priorities(#[from] ServersError),
    /// A group misses deadlines with every budget, or with every order of its tasks.
    #[error(transparent)]
    Group(#[from] Unassigned),
}

/// Returns the plan with its open values filled in: first group priorities by criticality
/// ([`by_criticality`](servers::by_criticality)), then the least budgets and the orders of tasks
/// ([`complete`](servers::complete)). A plan without open values stays as it is, feasible or not.
///
/// # Errors
///
/// The value that was not found, with the reason.
pub fn assign(mut plan: Plan) -> Result<Plan, AssignError> {
    if plan.system.left_open().is_empty() {
        return Ok(plan);
    }
    let mut host = Host::with_placeholders(&plan);
    if plan.system.servers().any(|group| group.priority.is_none()) {
        host.groups = servers::by_criticality(&host.groups)?;
    }
    let open: Vec<Open> = plan.system.servers().map(open).collect();
    let found = servers::complete(&host, &open)?;
    plan.system.servers_mut().zip(&found.groups).for_each(|(group, found)| fill(group, found));
    Ok(plan)
}

fn open(group: &macrotick_model::Group) -> Open {
    Open { budget: group.budget.is_none(), order: order_of(&group.tasks) }
}

/// Fills in the found values where the description leaves them open.
fn fill(group: &mut macrotick_model::Group, found: &servers::Group) {
    group.priority.get_or_insert(found.priority);
    group.budget = group.budget.or(found.servers.first().map(|server| server.budget));
    for task in group.tasks.iter_mut() {
        let tasks = found.on(task.cpu).map_or(&[][..], |server| &server.tasks);
        let found = tasks.iter().find(|other| other.name == task.name);
        task.priority = task.priority.or(found.map(|found| found.priority));
    }
}

impl AssignError {
    /// Returns the reasons with their places in the description.
    pub fn findings(&self, system: &System) -> Vec<Finding> {
        match self {
            AssignError::Group(Unassigned::Group { group, reasons }) => {
                reasons.iter().map(|reason| finding(system, group, reason)).collect()
            }
            other => vec![Finding { at: "groups".into(), message: other.to_string(), hint: None }],
        }
    }
}

/// Returns a finding at the task that misses, or at the group.
fn finding(system: &System, group: &str, reason: &Refusal) -> Finding {
    let index = system.groups.iter().position(|other| other.name == group).unwrap_or(0);
    let task = match reason {
        Refusal::Misses { task, .. } => system.groups[index].tasks.iter().position(|other| other.name == *task),
        _ => None,
    };
    let task = task.map_or(String::new(), |task| format!(".tasks[{task}]"));
    let lacking = match system.groups[index].budget {
        None => format!("no budget is enough for group `{group}`"),
        Some(_) => format!("the tasks of group `{group}` cannot be ordered"),
    };
    Finding { at: format!("groups[{index}]{task}.name"), message: format!("{lacking}: {reason}"), hint: None }
}
