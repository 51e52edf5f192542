//! Tasks without preemption: each of their jobs has exactly one window.

use macrotick_model::{Duration, Plan, Task, Window};

use crate::Violation;

/// Checks the windows of a task. Only a window with both flags is a whole job.
pub(crate) fn check(plan: &Plan, task: &Task, served: &[(u32, &Window)], violations: &mut Vec<Violation>) {
    if plan.system.is_preemptible(task) {
        return;
    }
    let mut windows = served.to_vec();
    windows.sort_by_key(|(_, window)| window.offset);
    for (index, &(cpu, window)) in windows.iter().enumerate() {
        // Other rules report a job without an end, or an end without a job.
        let (other, next) = windows[(index + 1) % windows.len()];
        if window.deadline || next.activate {
            continue;
        }
        let turn = if index + 1 == windows.len() { plan.cycle } else { Duration::ZERO };
        violations.push(Violation::Preempted {
            task: task.name.clone(),
            cpu,
            end: window.offset + window.length,
            other,
            next: next.offset + turn,
        });
    }
}
