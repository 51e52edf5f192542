//! Under which policy, and how, what is deployed runs.

use std::collections::BTreeSet;

use macrotick_host::sys::Standing;
use macrotick_model::{Backend, Duration, Policy, Reservation, Task};

/// The runner's priority under SCHED_FIFO: no program has a higher one.
pub const RUNNER_PRIORITY: u8 = 99;

/// The runner: before all that it starts.
pub const RUNNER: Standing = Standing::Fifo(RUNNER_PRIORITY);

/// A process that the runner starts, until it has executed its program.
pub const NEW_PROCESS: Standing = Standing::Fifo(98);

/// The user-space dispatcher's priority: above all it serves, below the runner.
pub const DISPATCHER: Standing = Standing::Fifo(98);

/// The task that the dispatcher serves.
pub const SERVED: Standing = Standing::Fifo(97);

/// A task that did not finish in its window: it delays no served task and nothing that runs in real time, and takes
/// from ordinary threads the little that `SCHED_IDLE` gets.
pub const NOT_SERVED: Standing = Standing::Idle;

/// How a task runs; `priority` is its own under the backend `fifo`.
pub fn standing(backend: Backend, task: &Task, priority: u8) -> Standing {
    match (backend, task.reservation()) {
        (Backend::Kernel | Backend::Deadline, Some(reservation)) => reserved(reservation.runtime, task),
        (backend, _) => without_reservation(backend, task, priority),
    }
}

fn without_reservation(backend: Backend, task: &Task, priority: u8) -> Standing {
    match backend {
        // It enters the class with its first wait.
        Backend::Kernel | Backend::Other => Standing::Other(0),
        Backend::User => SERVED,
        Backend::Fifo => Standing::Fifo(priority),
        Backend::Deadline => reserved(Reservation::default_runtime(task.wcet, task.deadline), task),
    }
}

fn reserved(runtime: Duration, task: &Task) -> Standing {
    Standing::Deadline { runtime, deadline: task.deadline, period: task.period }
}

/// `SCHED_FIFO` priorities, one per task: the given ones, and for the rest rate-monotonic order (shorter period,
/// higher priority; the description's order among equals) downwards from 90, each its own as long as there are any.
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

/// How a process runs.
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
