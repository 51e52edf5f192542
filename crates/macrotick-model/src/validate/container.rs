//! Rules of a container that asks for admission. They do not depend on the host.

use super::{Problem, MIN_BUDGET};
use crate::container::Container;
use crate::keys::Found;
use crate::system::GroupTask;

/// Returns the broken rules between tasks that are declared together.
pub(crate) fn task_rules(tasks: &[GroupTask]) -> Vec<Problem> {
    let mut found = Found::default();
    tasks_of_container(&mut found, tasks);
    found.0
}

/// Returns the broken rules between the values of a container.
pub(crate) fn rules(container: &Container) -> Vec<Problem> {
    let mut found = Found::default();
    match container.budget {
        Some(budget) if budget < MIN_BUDGET => {
            found.add("budget", &[], format!("budget {budget} is shorter than {MIN_BUDGET}"));
        }
        Some(budget) => found.in_microseconds("budget", "budget", budget),
        None if container.tasks.is_empty() => {
            let text =
                format!("container `{}` has neither `budget` nor `tasks`: its budget is unknown", container.name);
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
        let text = format!("task `{}` has a `cpu`, but all tasks run on the CPU of the container", task.name);
        found.add(format!("tasks[{index}].cpu"), &[], text).hint =
            Some("leave it out, or set `cpus` of the container".into());
    }
}
