//! The policies and parameters under which the tasks and processes run.

use std::collections::BTreeSet;

use macrotick_host::sys::Standing;
use macrotick_model::{Backend, Duration, Policy, Reservation, Task};

/// The runner's priority under SCHED_FIFO: no program has a higher one.
pub const RUNNER_PRIORITY: u8 = 99;

/// The policy of the runner: it comes before all processes that it starts.
pub const RUNNER: Standing = Standing::Fifo(RUNNER_PRIORITY);

/// The policy of a process that the runner starts, until it has executed its program.
pub const NEW_PROCESS: Standing = Standing::Fifo(98);

/// The policy of the user-space dispatcher: above all tasks that it serves, below the runner.
pub const DISPATCHER: Standing = Standing::Fifo(98);

/// The policy of a task that the dispatcher serves.
pub const SERVED: Standing = Standing::Fifo(97);

/// The policy of a task that did not finish in its window. It delays no served task and no real-time thread. It takes
/// only the small share of `SCHED_IDLE` from ordinary threads.
pub const NOT_SERVED: Standing = Standing::Idle;

/// Returns the policy of a task. `priority` is its own one under the backend `fifo`.
pub fn standing(backend: Backend, task: &Task, priority: u8) -> Standing {
    match (backend, task.reservation()) {
        (Backend::Kernel | Backend::Deadline, Some(reservation)) => reserved(reservation.runtime, task),
        (backend, _) => without_reservation(backend, task, priority),
    }
}

fn without_reservation(backend: Backend, task: &Task, priority: u8) -> Standing {
    match backend {
        // The thread enters the class with its first wait.
        Backend::Kernel | Backend::Other => Standing::Other(0),
        Backend::User => SERVED,
        Backend::Fifo => Standing::Fifo(priority),
        Backend::Deadline => reserved(Reservation::default_runtime(task.wcet, task.deadline), task),
    }
}

fn reserved(runtime: Duration, task: &Task) -> Standing {
    Standing::Deadline { runtime, deadline: task.deadline, period: task.period }
}

/// Returns `SCHED_FIFO` priorities, one per task. Tasks with a given priority keep it. The others get priorities from
/// 90 downwards in rate-monotonic order: a shorter period gets a higher priority, equal periods keep the description's
/// order. Each gets a priority of its own as long as there are free ones.
pub fn fifo_priorities(tasks: &[Task]) -> Vec<u8> {
    let taken: BTreeSet<u8> = tasks.iter().filter_map(|task| task.priority).collect();
    let mut free = (1..=90).rev().filter(|priority| !taken.contains(priority));
    let mut order: Vec<usize> = (0..tasks.len()).filter(|&index| tasks[index].priority.is_none()).collect();
    order.sort_by_key(|&index| tasks[index].period);
    let mut priorities: Vec<u8> = tasks.iter().map(|task| task.priority.unwrap_or(1)).collect();
    for index in order {
        priorities[index] = free.next().unwrap_or(1);
    }
    priorities
}

/// Returns the policy of a process.
pub fn process_standing(policy: Policy) -> Standing {
    match policy {
        Policy::Other(nice) => Standing::Other(nice),
        Policy::Fifo(priority) => Standing::Fifo(priority),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use macrotick_fixtures::us;

    use crate::deployment::samples::task;

    #[test]
    fn priorities_are_rate_monotonic_and_unique() {
        let ms = Duration::from_millis;
        let tasks = [
            task("slow", ms(100), None),
            task("given", ms(50), Some(89)),
            task("fast", ms(1), None),
            task("fast too", ms(1), None),
        ];
        assert_eq!(fifo_priorities(&tasks), [87, 89, 90, 88]);
    }

    #[test]
    fn reservations_have_a_margin_within_the_deadline() {
        let standing = |task: &Task| standing(Backend::Deadline, task, 1);
        let mut tight = task("a", Duration::from_millis(1), None);
        let (deadline, period) = (Duration::from_millis(1), Duration::from_millis(1));
        assert_eq!(standing(&tight), Standing::Deadline { runtime: us(112), deadline, period });
        tight.deadline = us(105);
        assert_eq!(standing(&tight), Standing::Deadline { runtime: us(105), deadline: us(105), period });
    }
}
