//! The system of an instance.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use macrotick_model::{Chain, Duration, System, Task};

use super::entries;
use super::instance::{Instance, LAST_CPU};
use crate::findings::Findings;
use crate::names::cleaned;
use crate::{ImportError, MAX_BYTES};

/// The longest name of a system.
const MAX_LONG_NAME: usize = 230;

/// The choices of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The number of CPUs, from 0 on; by default that of the instance, or 1 if it has none. The planner maps the tasks.
    pub cpus: Option<u32>,
    /// The load of the CPUs in percent: all processing times get the factor with which the tasks need this share of all
    /// CPUs. By default they are those of the instance.
    pub load: Option<u32>,
    /// The bound on the reaction time of each chain, in its longest periods.
    pub latency: Factor,
}

/// A factor of a latency bound, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(u32);

/// The reason why a text is no factor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no factor: write a number from 0.001 to 1000 with at most three decimals, such as 2 or 1.5")]
pub struct ParseFactorError(String);

impl Default for Factor {
    /// Two periods: an input that the first task just missed waits one period, and its effect is complete within the
    /// next one.
    fn default() -> Self {
        Factor(2000)
    }
}

impl Factor {
    const RANGE: std::ops::RangeInclusive<u32> = 1..=1_000_000;

    fn of(self, period: i64) -> Duration {
        // A period has at most 3600 s, so the product is within the range.
        Duration::from_nanos(period * i64::from(self.0))
    }
}

impl FromStr for Factor {
    type Err = ParseFactorError;

    fn from_str(text: &str) -> Result<Factor, ParseFactorError> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let are_digits = |text: &str| !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
        let is_number = are_digits(whole) && are_digits(decimals) && decimals.len() <= 3;
        let thousandths = format!("{whole}{decimals:0<3}").parse().ok().filter(|_| is_number);
        let factor = thousandths.filter(|factor| Self::RANGE.contains(factor));
        factor.map(Factor).ok_or_else(|| ParseFactorError(text.into()))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1000, self.0 % 1000);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Reads an instance, and returns its system with remarks. `file` names the file in errors, and its stem names the
/// system.
///
/// Runnable n becomes the task `rn`, with windows. A chain becomes a chain with a bound on its reaction time. A jitter
/// bound that is shorter than the period becomes one of the task. Messages have no counterpart on one host.
///
/// # Errors
///
/// If the text is too long or has another grammar, or if an entry is missing or wrong. Also if a time does not fit into
/// its period at this load, or if the system breaks rules.
pub fn import(text: &str, file: &str, options: &Options) -> Result<(System, Vec<String>), ImportError> {
    if text.len() > MAX_BYTES {
        return Err(ImportError::Long { file: file.into(), most: MAX_BYTES });
    }
    let entries = entries::read(text).map_err(|fault| fault.within(file))?;
    let mut findings = Findings::default();
    let instance = Instance::read(&entries, &mut findings);
    let system = match findings.has_refusals() {
        true => None,
        false => system(&instance, file, options, &mut findings),
    };
    let remarks = findings.finish().map_err(|refusals| ImportError::Refused { file: file.into(), refusals })?;
    let system = system.expect("without a refusal there is a system");
    let problems = system.problems();
    if !problems.is_empty() {
        return Err(ImportError::Invalid { file: file.into(), problems });
    }
    Ok((system, remarks))
}

/// Returns `None` if something is refused.
fn system(instance: &Instance, file: &str, options: &Options, findings: &mut Findings) -> Option<System> {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let mut system = System::named(cleaned(&stem, MAX_LONG_NAME));
    let cpus = options.cpus.map(i64::from).or(instance.cpus).unwrap_or_else(|| {
        findings.remark("the file", "has no number of CPUs: all tasks are on one");
        1
    });
    if !(1..=LAST_CPU + 1).contains(&cpus) {
        findings.refuse("the number of CPUs", format!("{cpus} is out of range: 1 to {}", LAST_CPU + 1));
        return None;
    }
    system.cpus = (0..cpus as u32).collect();
    let times = times(instance, cpus, options.load, findings)?;
    for (index, (time, period)) in times.iter().zip(&instance.periods).enumerate() {
        let us = Duration::from_micros;
        let mut task = Task::named(name(index), us(*period), us(*time));
        let jitter = instance.jitters.get(index).filter(|jitter| *jitter < period);
        task.jitter = jitter.map(|jitter| us(*jitter));
        system.tasks.push(task);
    }
    for (index, path) in instance.chains.iter().enumerate() {
        let longest = path.iter().map(|runnable| instance.periods[*runnable]).max().unwrap_or_default();
        let chain = Chain::named(format!("chain-{}", index + 1), path.iter().map(|index| name(*index)).collect());
        system.chains.push(Chain { reaction: Some(options.latency.of(longest)), ..chain });
    }
    Some(system)
}

fn name(runnable: usize) -> String {
    format!("r{}", runnable + 1)
}

/// Returns the processing times in microseconds for a load, rounded down to at least 1. Returns `None` if one is
/// refused.
fn times(instance: &Instance, cpus: i64, load: Option<u32>, findings: &mut Findings) -> Option<Vec<i64>> {
    let Instance { times, periods, .. } = instance;
    let pairs = || times.iter().zip(periods);
    let needed: f64 = pairs().map(|(time, period)| *time as f64 / *period as f64).sum();
    let factor = load.map_or(1.0, |load| f64::from(load) / 100.0 * cpus as f64 / needed);
    let scaled = |time: &i64| if load.is_none() { *time } else { ((*time as f64 * factor) as i64).max(1) };
    let all: Vec<i64> = times.iter().map(scaled).collect();
    let mut fits = true;
    for (index, (time, period)) in all.iter().zip(periods).enumerate() {
        if time > period {
            let text = format!("a processing time of {time}us does not fit into the period of {period}us");
            findings.refuse(&format!("processingTimesRunnables[{index}]"), text);
            fits = false;
        }
    }
    fits.then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_at_most_three_decimals() {
        for (text, thousandths) in [("2", 2000), ("1.5", 1500), ("0.001", 1), ("1000", 1_000_000), ("01.250", 1250)] {
            assert_eq!(text.parse(), Ok(Factor(thousandths)), "{text}");
        }
        for text in ["", "0", "-1", "1.", ".5", "1.0001", "1001", "99999999999", "x", "1e3", "+1"] {
            assert_eq!(text.parse::<Factor>(), Err(ParseFactorError(text.into())));
        }
        assert_eq!([Factor(2000), Factor(1500), Factor(1)].map(|f| f.to_string()), ["2", "1.5", "0.001"]);
    }
}
