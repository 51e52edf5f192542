//! Rules of a container that asks to be admitted. What the host has to do with them is not known here.

use super::{Found, Problem, MIN_BUDGET};
use crate::container::Container;
use crate::system::GroupTask;

/// All broken rules of tasks that are declared together.
pub(crate) fn task_problems(tasks: &[GroupTask]) -> Vec<Problem> {
    let mut found = Found::default();
    found.tasks("tasks", tasks, "the container");
    found.0
}

/// All broken rules of a container.
pub(crate) fn problems(container: &Container) -> Vec<Problem> {
    let mut found = Found::default();
    found.name("container", &container.name);
    match container.budget {
        Some(budget) if budget < MIN_BUDGET => {
            found.add("budget", &[], format!("budget {budget} is shorter than {MIN_BUDGET}"));
        }
        Some(budget) => found.in_microseconds("budget", "budget", budget),
        None if container.tasks.is_empty() => {
            let text = format!(
                "container `{}` has neither `budget` nor `tasks`: nothing says how much it needs",
                container.name
            );
            found.add("container", &["budget", "tasks"], text);
        }
        None => {}
    }
    if let Some(lead) = container.lead {
        found.group_lead("lead", lead);
    }
    found.tasks("tasks", &container.tasks, "the container");
    found.0
}
