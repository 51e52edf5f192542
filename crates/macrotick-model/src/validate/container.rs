//! Rules of a container that asks to be admitted. What the host has to do with them is not known here.

use super::{Problem, MIN_BUDGET};
use crate::container::Container;
use crate::keys::Found;
use crate::system::GroupTask;

/// The broken rules between tasks that are declared together.
pub(crate) fn task_rules(tasks: &[GroupTask]) -> Vec<Problem> {
    let mut found = Found::default();
    tasks_of_container(&mut found, tasks);
    found.0
}

/// The broken rules between the values of a container.
pub(crate) fn rules(container: &Container) -> Vec<Problem> {
    let mut found = Found::default();
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
    for (index, cpu) in container.cpus.iter().enumerate() {
        if container.cpus[..index].contains(cpu) {
            found.add("cpus", &[], format!("CPU {cpu} is listed twice"));
        }
    }
    if let Some(lead) = container.lead {
        found.in_microseconds("lead", "lead", lead);
    }
    tasks_of_container(&mut found, &container.tasks);
    found.0
}

fn tasks_of_container(found: &mut Found, tasks: &[GroupTask]) {
    found.tasks("tasks", tasks, "the container");
    for (index, task) in tasks.iter().enumerate().filter(|(_, task)| task.cpu != GroupTask::FIRST_CPU) {
        let text = format!("task `{}` has a `cpu`, which is the container's business", task.name);
        found.add(format!("tasks[{index}].cpu"), &[], text).hint =
            Some("leave it out, or give the container `cpus`".into());
    }
}
