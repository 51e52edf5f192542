//! What theory says of tasks under earliest deadline first (EDF), as SCHED_DEADLINE schedules them.
//!
//! * [`demand`]: whether sporadic tasks that stay on one CPU, or in one reservation, meet all their deadlines. Exact for a
//!   CPU of their own; for a [`Reservation`] exact for the least that it may give. Behind windows and groups they have what these
//!   have [`Left`].
//! * [`density_test`]: a sufficient test for tasks that migrate between the CPUs (global EDF).
//! * [`tardiness_bounds`]: how late jobs can be under global EDF where no CPU time is lacking in the long run.
//!
//! Nothing is charged for preemptions, migrations, timers and interrupts: leave room in WCETs. Nor does anything say how
//! finely the kernel cuts budgets off: without the scheduler's feature `HRTICK_DL` that is at its tick (`task_tick_dl` in
//! `kernel/sched/deadline.c`).

mod demand;
mod global;
mod left;
mod share;
mod supply;

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

pub use crate::servers::LONGEST;
pub use demand::demand;
pub use global::{density_test, tardiness_bounds};
pub use left::Left;
pub use supply::{Processor, Rate, Reservation, Supply};

/// A sporadic task: its jobs arrive at least a period apart, take up to the WCET, and have the deadline from their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The most that a job takes.
    pub wcet: Duration,
    /// The least time between two arrivals.
    pub period: Duration,
    /// From the arrival; may be shorter or longer than the period.
    pub deadline: Duration,
}

impl Task {
    /// Whose deadline is its period.
    pub fn implicit(wcet: Duration, period: Duration) -> Task {
        Task { wcet, period, deadline: period }
    }

    /// What a task of SCHED_DEADLINE is promised: it is taken to use all of its runtime.
    pub fn promised(task: &macrotick_model::Task, reservation: &macrotick_model::Reservation) -> Task {
        Task { wcet: reservation.runtime, period: task.period, deadline: task.deadline }
    }
}

/// Why the tasks are not known to meet their deadlines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // Each field is what the message says.
pub enum DeadlineError {
    /// A time that must be positive and at most [`LONGEST`].
    #[error("{what} of task {index} is {length}: it must be positive and at most {LONGEST}")]
    Length { index: usize, what: &'static str, length: Duration },
    /// A reservation that gives nothing, or more than there is.
    #[error("a reservation of {budget} by {deadline} in each {period}: it needs 0 < budget <= deadline <= period <= {LONGEST}")]
    Reservation { budget: Duration, deadline: Duration, period: Duration },
    /// The tasks ask for more than they are given, however long one waits.
    #[error("the tasks need more in the long run than the {given} of each {period} that they are given")]
    Overload { given: Duration, period: Duration },
    /// In an interval of some length the tasks may ask for more than they are sure to get.
    #[error("in {interval} the tasks may need {demand}, and are sure to get {given}")]
    Exceeded { interval: Duration, demand: Duration, given: Duration },
    /// A deadline where only those at the ends of periods are answered for.
    #[error("the deadline of task {index} is not its period")]
    NotImplicit { index: usize },
    /// Tasks ask for what is given, to the last part, and it takes too long until all of it repeats.
    #[error("the tasks need all of what they are given, and do not repeat for longer than {LONGEST}: no answer")]
    Undecided,
}

/// Refuses times that make no sense.
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
