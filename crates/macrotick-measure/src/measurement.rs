//! The result of a measurement, for people and for programs.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use macrotick_model::{nanos, Duration};
use serde::Serialize;

use crate::profile::{Execution, Period, Profile};
use crate::record::Record;

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Measurement {
    /// How long it took.
    #[serde(rename = "duration_ns", with = "nanos")]
    pub duration: Duration,
    /// The number of events of the program's threads.
    pub events: u64,
    /// The number of events for which the kernel had no room. Jobs in which events are missing are left out.
    pub lost: u64,
    /// The number of wake-ups beyond the first million of a thread. They are left out.
    pub left_out: u64,
    /// Remarks about the program.
    pub remarks: Vec<String>,
    /// The threads that ran and blocked at least once. The one with the most CPU time comes first.
    pub threads: Vec<Profile>,
}

/// The most threads in the text.
const SHOWN: usize = 20;

impl Measurement {
    pub(crate) fn new(record: &Record, duration: Duration, status: Option<ExitStatus>) -> Measurement {
        let failed = status.filter(|status| !status.success());
        let how = |status: ExitStatus| match (status.code(), status.signal()) {
            (Some(code), _) => format!("the program ended with exit code {code}"),
            (_, signal) => format!("signal {} ended the program", signal.unwrap_or(0)),
        };
        Measurement {
            duration,
            events: record.events,
            lost: record.lost,
            left_out: record.not_kept(),
            remarks: failed.map(how).into_iter().collect(),
            threads: record.profiles(duration.as_nanos()),
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, threads) = (self.duration.as_secs_f64(), self.threads.len());
        let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        writeln!(f, "measured for {seconds:.1} s: {} with jobs", plural(threads, "thread"))?;
        for profile in self.threads.iter().take(SHOWN) {
            thread(f, profile)?;
        }
        if threads > SHOWN {
            writeln!(f, "and {} with less CPU time", plural(threads - SHOWN, "thread"))?;
        }
        if self.lost > 0 {
            writeln!(f, "{} events are lost: jobs are missing", self.lost)?;
        }
        if self.left_out > 0 {
            writeln!(f, "{} later wake-ups are left out", self.left_out)?;
        }
        self.remarks.iter().try_for_each(|remark| writeln!(f, "{remark}"))
    }
}

/// Writes the block of a thread.
fn thread(f: &mut fmt::Formatter<'_>, profile: &Profile) -> fmt::Result {
    writeln!(f)?;
    writeln!(f, "thread {} ({}): {} jobs, {:.1} % of a CPU", profile.name, profile.thread, profile.jobs, profile.load)?;
    match &profile.period {
        Some(period) => periodic(f, period)?,
        None => writeln!(f, "  not periodic")?,
    }
    if let Some(execution) = &profile.execution {
        executes(f, execution)?;
    }
    if profile.untimed > 0 {
        writeln!(f, "  (without {} jobs: the kernel did not tell when they began to run)", profile.untimed)?;
    }
    let (response, suspended) = (profile.response, profile.suspended);
    write!(f, "  response time of a job: at most {}", short(response))?;
    match suspended {
        Duration::ZERO => writeln!(f),
        _ => writeln!(f, ", of which it was blocked for at most {}", short(suspended)),
    }
}

fn periodic(f: &mut fmt::Formatter<'_>, period: &Period) -> fmt::Result {
    let error = Duration::from_nanos(period.error.ceil() as i64);
    write!(f, "  period {} +- {}, release jitter {}", exact(period.length), short(error), short(period.jitter))?;
    if period.missing > 0 {
        write!(f, ", {} without a job", period.missing)?;
    }
    if period.merged > 0 {
        write!(f, ", {} filled by the job before", period.merged)?;
    }
    writeln!(f)
}

fn executes(f: &mut fmt::Formatter<'_>, execution: &Execution) -> fmt::Result {
    let Execution { min, median, p99, max, suggested, beyond_max, .. } = execution;
    let [min, median, p99, max] = [min, median, p99, max].map(|time| short(*time));
    writeln!(f, "  execution time of a job: {min} to {max}, median {median}, 99 % within {p99}")?;
    writeln!(f, "  suggested wcet {}: at most one job in 1000 needs more", short(*suggested))?;
    writeln!(f, "  (with 95 % confidence, at most {:.2} % need more than {max})", beyond_max * 100.0)
}

/// Formats a time with three digits.
fn short(time: Duration) -> String {
    let ns = time.as_nanos() as f64;
    let (value, unit) = match time.as_nanos() {
        0..=999 => return format!("{ns} ns"),
        1_000..=999_999 => (ns / 1e3, "us"),
        1_000_000..=999_999_999 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = (2 - value.log10().floor() as i32).max(0) as usize;
    format!("{value:.digits$} {unit}")
}

/// Formats a period in milliseconds.
fn exact(time: Duration) -> String {
    format!("{:.6} ms", time.as_nanos() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let of = |ns| short(Duration::from_nanos(ns));
        assert_eq!(of(0), "0 ns");
        assert_eq!(of(999), "999 ns");
        assert_eq!(of(1234), "1.23 us");
        assert_eq!(of(123_456), "123 us");
        assert_eq!(of(41_708_333), "41.7 ms");
        assert_eq!(of(2_500_000_000), "2.50 s");
    }
}
