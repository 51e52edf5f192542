//! The wanted reservation, and the ranges of its times.

use std::ffi::OsString;

use macrotick_analysis::deadline::Task;
use macrotick_host::deadline::DeadlineLimits;
use macrotick_host::sys::{DeadlineOptions, Tid};
use macrotick_model::{CpuSet, Duration};
use serde::Serialize;

use crate::error::ReserveError;

/// A reservation, and its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The program.
    pub target: Target,
    /// The times.
    pub times: Times,
    /// The CPUs; `None`: those that the program may use anyway.
    pub cpus: Option<CpuSet>,
    /// Whether all threads and children share the reservation.
    pub all_threads: bool,
    /// Options that only SCHED_DEADLINE has.
    pub options: DeadlineOptions,
    /// The mechanism; `None`: the one that fits.
    pub by: Option<Mechanism>,
}

/// The program in the reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program to start, with its arguments.
    Program(Vec<OsString>),
    /// A running process, by its id, or one of its threads.
    Process(Tid),
}

/// The mechanism of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// SCHED_DEADLINE, for one thread.
    Deadline,
    /// A control group with a budget, for a process tree.
    Group,
}

/// The shortest runtime that the kernel takes (`DL_SCALE`).
const LEAST: Duration = Duration::from_nanos(1024);

/// The times of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The CPU time in each period.
    pub runtime: Duration,
    /// The period.
    pub period: Duration,
    /// The time from the begin of a period in which the runtime is there.
    pub deadline: Duration,
}

impl Times {
    /// Returns them as a task that uses its whole runtime.
    pub(crate) fn task(self) -> Task {
        Task { wcet: self.runtime, period: self.period, deadline: self.deadline }
    }

    /// Returns the share of a CPU in percent.
    pub fn percent(self) -> f64 {
        self.runtime.as_secs_f64() * 100.0 / self.period.as_secs_f64()
    }

    /// Checks the order that every mechanism needs.
    pub(crate) fn check(self) -> Result<(), ReserveError> {
        let Times { runtime, period, deadline } = self;
        if deadline > period {
            return Err(ReserveError::Longer { part: "--deadline", length: deadline, whole: "--period", most: period });
        }
        let whole = if deadline == period { "--period" } else { "--deadline" };
        match runtime > deadline {
            true => Err(ReserveError::Longer { part: "--runtime", length: runtime, whole, most: deadline }),
            false => Ok(()),
        }
    }

    /// Checks the ranges of SCHED_DEADLINE on this host. The kernel would only answer EINVAL.
    pub(crate) fn check_range(self, limits: &DeadlineLimits) -> Result<(), ReserveError> {
        if self.runtime < LEAST {
            return Err(ReserveError::ShortRuntime { runtime: self.runtime, least: LEAST });
        }
        let (least, most, period) = (limits.least, limits.most, self.period);
        match (least..=most).contains(&period) {
            true => Ok(()),
            false => Err(ReserveError::PeriodRange { period, least, most }),
        }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{ns, us};

    use super::*;

    #[test]
    fn times_out_of_order_or_range_are_refused_by_name() {
        let limits = DeadlineLimits { each: None, servers: 0, least: us(100), most: us(4000) };
        let check = |runtime, deadline, period| {
            let times = Times { runtime, deadline, period };
            times.check().and_then(|()| times.check_range(&limits)).map_err(|error| error.to_string()).err()
        };
        assert_eq!(check(us(10), us(100), us(100)), None);
        assert_eq!(check(ns(1024), us(4000), us(4000)), None);
        for (times, said) in [
            ([us(200), us(100), us(100)], "--runtime 200us is longer than --period 100us"),
            ([us(90), us(80), us(100)], "--runtime 90us is longer than --deadline 80us"),
            ([us(10), us(101), us(100)], "--deadline 101us is longer than --period 100us"),
            ([ns(1023), us(100), us(100)], "--runtime 1023ns is shorter than 1024ns, the least of SCHED_DEADLINE"),
            (
                [us(10), us(99), us(99)],
                "--period 99us is out of the range of SCHED_DEADLINE on this host, 100us to 4ms \
                 (kernel.sched_deadline_period_min_us and kernel.sched_deadline_period_max_us)",
            ),
            (
                [us(10), us(4001), us(4001)],
                "--period 4001us is out of the range of SCHED_DEADLINE on this host, 100us to 4ms \
                 (kernel.sched_deadline_period_min_us and kernel.sched_deadline_period_max_us)",
            ),
        ] {
            let [runtime, deadline, period] = times;
            assert_eq!(check(runtime, deadline, period).as_deref(), Some(said));
        }
    }
}
