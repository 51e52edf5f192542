//! The result, for people and as a description.

use std::fmt;

use macrotick_measure::{describe, Measurement};
use macrotick_model::{Duration, System};

use crate::error::ReserveError;

/// The knowledge about a program at its end.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The thread that was followed.
    pub thread: i32,
    /// Its name.
    pub name: String,
    /// The period.
    pub period: Duration,
    /// The last runtime.
    pub runtime: Duration,
    /// Whether the periods since the last step of the load were enough.
    pub is_settled: bool,
    /// The periods with a job since the reservation had this period.
    pub periods: usize,
    /// Those of them with a late job.
    pub late: usize,
    /// The number of changes.
    pub changes: usize,
    /// The number of refused changes.
    pub refused: usize,
    /// The exit code of a program that was started and has ended by itself; after a signal 128 and its number.
    pub exit_code: Option<u8>,
    /// All events.
    pub measurement: Measurement,
}

/// The shortest WCET of a task in a description.
const SHORTEST: i64 = 10_000;
const GRID: i64 = 1000;

impl Learned {
    /// Makes a description: the followed thread is a task of a group with this period and runtime.
    ///
    /// # Errors
    ///
    /// The thread had too few jobs.
    pub fn describe(&self, name: &str, cpu: u32) -> Result<System, ReserveError> {
        let mut measurement = self.measurement.clone();
        measurement.threads.retain(|profile| profile.thread == self.thread);
        let mut system = describe(&measurement, name, cpu)?;
        let ns = self.runtime.as_nanos().max(SHORTEST);
        for task in system.groups.iter_mut().flat_map(|group| &mut group.tasks) {
            (task.period, task.deadline) = (self.period, self.period);
            task.wcet = Duration::from_nanos((ns + GRID - 1) / GRID * GRID);
            task.release_jitter = Duration::ZERO;
        }
        Ok(system)
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.runtime.as_secs_f64() * 100.0 / self.period.as_secs_f64();
        let Learned { name, thread, runtime, period, .. } = self;
        writeln!(f, "learned: {runtime} in each {period} ({share:.1} % of a CPU), for thread {name} ({thread})")?;
        if !self.is_settled {
            writeln!(f, "  the runtime has not settled: too few periods since the last step of the load")?;
        }
        write!(f, "  {} of {} periods with a late job, {} changes", self.late, self.periods, self.changes)?;
        if self.refused > 0 {
            write!(f, ", {} refused", self.refused)?;
        }
        if self.measurement.lost > 0 {
            write!(f, "\n  {} events are lost: periods are missing", self.measurement.lost)?;
        }
        self.measurement.remarks.iter().try_for_each(|remark| write!(f, "\n  {remark}"))
    }
}
