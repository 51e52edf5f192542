//! Theory of tasks under earliest deadline first (EDF), the policy of SCHED_DEADLINE.
//!
//! * [`demand`]: whether sporadic tasks on one CPU, or in one reservation, meet all their deadlines. It is exact for a
//!   CPU of their own, and in a [`Reservation`] for the least supply of the reservation. Behind windows and groups the
//!   supply is [`Left`].
//! * [`density_test`]: a sufficient test for tasks that migrate between the CPUs (global EDF).
//! * [`response_bounds`]: bounds on response times under global EDF, from the interference of other tasks.
//! * [`tardiness_bounds`]: the longest lateness of jobs under global EDF, if the CPU time is enough in the long run.
//!
//! The tests do not include the time of preemptions, migrations, timers and interrupts: leave room in WCETs. They also
//! assume that the kernel ends budgets in time. Without the scheduler's feature `HRTICK_DL` it ends them at its tick
//! (`task_tick_dl` in `kernel/sched/deadline.c`).

mod demand;
mod global;
mod left;
mod response;
mod share;
mod supply;

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

pub use crate::servers::LONGEST;
pub use demand::demand;
pub use global::{density_test, tardiness_bounds};
pub use left::Left;
pub use response::response_bounds;
pub use supply::{Processor, Rate, Reservation, Supply};

/// A sporadic task. Its jobs arrive at least a period apart and take up to the WCET. Their deadline counts from the
/// arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The longest execution time of a job.
    pub wcet: Duration,
    /// The least time between two arrivals.
    pub period: Duration,
    /// The time from a job's arrival to its deadline. It may be shorter or longer than the period.
    pub deadline: Duration,
}

impl Task {
    /// Makes a task with its period as the deadline.
    pub fn implicit(wcet: Duration, period: Duration) -> Task {
        Task { wcet, period, deadline: period }
    }

    /// Makes the task of a reservation of SCHED_DEADLINE. The analysis assumes that it uses its whole runtime.
    pub fn promised(task: &macrotick_model::Task, reservation: &macrotick_model::Reservation) -> Task {
        Task { wcet: reservation.runtime, period: task.period, deadline: task.deadline }
    }
}

/// The reason why tasks may miss deadlines, or why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The message explains each field.
pub enum DeadlineError {
    /// A time that must be positive and at most [`LONGEST`].
    #[error("{what} of task {index} is {length}: it must be positive and at most {LONGEST}")]
    Length { index: usize, what: &'static str, length: Duration },
    /// A reservation without time, or of more than its deadline or period.
    #[error("a reservation of {budget} by {deadline} in each {period}: it needs 0 < budget <= deadline <= period <= {LONGEST}")]
    Reservation { budget: Duration, deadline: Duration, period: Duration },
    /// The tasks need more than the supply in the long run.
    #[error("the tasks need more in the long run than the available {given} per {period}")]
    Overload { given: Duration, period: Duration },
    /// In an interval of this length the tasks may need more than the supply is sure to give.
    #[error("in {interval} the tasks may need {demand}, and are sure to get {given}")]
    Exceeded { interval: Duration, demand: Duration, given: Duration },
    /// A deadline that is not the period, in a test that requires this.
    #[error("the deadline of task {index} is not its period")]
    NotImplicit { index: usize },
    /// The tasks need the whole supply, and it takes too long until the pattern repeats.
    #[error("the tasks need all available time, and do not repeat within {LONGEST}: the test has no answer")]
    Undecided,
}

/// Refuses invalid times.
fn validate(tasks: &[Task]) -> Result<(), DeadlineError> {
    for (index, task) in tasks.iter().enumerate() {
        for (what, length) in [("the WCET", task.wcet), ("the period", task.period), ("the deadline", task.deadline)] {
            if length <= Duration::ZERO || length > LONGEST {
                return Err(DeadlineError::Length { index, what, length });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_makes_no_sense_is_named() {
        let ms = Duration::from_millis;
        let tasks = [Task::implicit(ms(1), ms(4)), Task { wcet: ms(1), period: ms(4), deadline: Duration::ZERO }];
        let error = demand(&tasks, &Processor).unwrap_err();
        assert_eq!(error, DeadlineError::Length { index: 1, what: "the deadline", length: Duration::ZERO });
        assert_eq!(error.to_string(), "the deadline of task 1 is 0ns: it must be positive and at most 1000s");
        assert_eq!(density_test(&tasks, 2), Err(error));
    }
}
