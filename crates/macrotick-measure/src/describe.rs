//! A description of a measured program: a group with a budget, and its periodic threads as tasks.

use std::collections::BTreeSet;

use macrotick_model::{Duration, Group, GroupTask, System};

use crate::error::MeasureError;
use crate::measurement::Measurement;
use crate::profile::{Period, Profile};

/// The grid of times in a description.
const GRID: i64 = 1000;
/// The shortest WCET of a task, as the description has it.
const SHORTEST: Duration = Duration::from_micros(10);

/// Makes a description of a program on one CPU. The group gets the least budget with which its tasks meet their
/// deadlines, and the planner finds it.
///
/// # Errors
///
/// No thread is periodic.
pub fn describe(measurement: &Measurement, name: &str, cpu: u32) -> Result<System, MeasureError> {
    let name = plain(name);
    let mut names = BTreeSet::new();
    let periodic = measurement.threads.iter().filter_map(|profile| Some((profile, profile.period.as_ref()?)));
    let tasks: Vec<GroupTask> =
        periodic.filter_map(|(profile, period)| task(profile, period, cpu, &mut names)).collect();
    if tasks.is_empty() {
        return Err(MeasureError::NoPeriod);
    }
    let mut group = Group::named(name.clone(), vec![cpu]);
    group.priority = Some(10);
    group.tasks = tasks;
    Ok(System { cpus: vec![cpu], groups: vec![group], ..System::named(name) })
}

fn task(profile: &Profile, period: &Period, cpu: u32, names: &mut BTreeSet<String>) -> Option<GroupTask> {
    let length = rounded(period.length.as_nanos() as f64, period.error);
    let wcet = up(profile.execution.as_ref()?.suggested).max(SHORTEST);
    let name = plain(&profile.name);
    let name = if names.insert(name.clone()) { name } else { format!("{name}-{}", profile.thread) };
    names.insert(name.clone());
    let mut task = GroupTask::named(name, length, wcet, cpu);
    task.release_jitter = up(period.jitter);
    Some(task)
}

/// Returns the roundest period within the error of a measured one, in whole microseconds.
pub fn rounded(length: f64, error: f64) -> Duration {
    round(length, 3.0 * error)
}

/// Returns the roundest whole number of microseconds within an error of a length, at least one.
fn round(length: f64, error: f64) -> Duration {
    let mut unit = 1e9;
    while unit > 1e3 {
        let rounded = (length / unit).round() * unit;
        if rounded > 0.0 && (rounded - length).abs() <= error {
            return Duration::from_nanos(rounded as i64);
        }
        unit /= 10.0;
    }
    // No task may come more often than it is declared to.
    Duration::from_nanos(((length / 1e3).floor() as i64).max(1) * GRID)
}

/// Rounds up to whole microseconds.
fn up(length: Duration) -> Duration {
    Duration::from_nanos((length.as_nanos() + GRID - 1) / GRID * GRID)
}

/// Makes a name of letters, digits and hyphens, of at most 20 characters.
fn plain(name: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().take(20).map(safe).collect();
    match name.trim_matches('-') {
        "" => "program".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_as_round_as_the_error_allows() {
        let of = |length, error| round(length, error).to_string();
        assert_eq!(of(9_999_930.0, 300.0), "10ms");
        assert_eq!(of(41_708_333.0, 40.0), "41708us");
        assert_eq!(of(41_708_333.0, 10_000.0), "41700us");
        assert_eq!(of(1_000_000_001.0, 5.0), "1s");
        assert_eq!(of(400.0, 1.0), "1us");
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(plain("kworker/u8:3"), "kworker-u8-3");
        assert_eq!(plain("///"), "program");
    }
}
