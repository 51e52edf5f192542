//! Tasks that share no CPU (`apart`).

use std::collections::BTreeSet;

use macrotick_model::{Plan, Task};

use crate::Violation;

/// Checks each pair of tasks that are apart, once.
pub(crate) fn check(plan: &Plan, violations: &mut Vec<Violation>) {
    for task in plan.system.tasks.iter().filter(|task| !task.apart.is_empty()) {
        let own = cpus(plan, task);
        for name in &task.apart {
            let Some(other) = plan.system.task(name).filter(|other| other.name != task.name) else { continue };
            // The pair counts at the task of which the name comes first, if both name each other.
            if other.apart.contains(&task.name) && other.name < task.name {
                continue;
            }
            if let Some(&cpu) = own.intersection(&cpus(plan, other)).next() {
                violations.push(Violation::Together { task: task.name.clone(), other: name.clone(), cpu });
            }
        }
    }
}

fn cpus(plan: &Plan, task: &Task) -> BTreeSet<u32> {
    let tables = plan.tables.iter().filter(|table| table.windows.iter().any(|window| window.task == task.name));
    tables.map(|table| table.cpu).collect()
}
