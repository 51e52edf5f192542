//! The check that runs may stand side by side.

use crate::report::Report;
use crate::words;

/// The reason why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Two runs are of different systems.
    #[error("{} ran the system `{}`, but {} ran `{}`", first.0, first.1, other.0, other.1)]
    System {
        /// Label and system of the first run.
        first: (String, String),
        /// Label and system of the run that differs.
        other: (String, String),
    },
    /// Two runs of a system differ in its tasks.
    #[error("{first} and {other} have different tasks: {}", differences.join("; "))]
    Tasks {
        /// Label of the first run.
        first: String,
        /// Label of the run that differs.
        other: String,
        /// The differences, a clause each.
        differences: Vec<String>,
    },
}

/// Refuses runs of different systems, and runs between which the tasks of the system changed.
///
/// Runs with different tables of one system may be compared; [`compare_labelled`](super::compare_labelled) adds a
/// remark.
pub fn check_comparable(runs: &[(&str, &Report)]) -> Result<(), Mismatch> {
    let Some(((first_label, first), rest)) = runs.split_first() else { return Ok(()) };
    for (label, report) in rest {
        if report.system != first.system {
            return Err(Mismatch::System {
                first: (first_label.to_string(), first.system.clone()),
                other: (label.to_string(), report.system.clone()),
            });
        }
        let differences = task_differences((first_label, first), (label, report));
        if !differences.is_empty() {
            return Err(Mismatch::Tasks { first: first_label.to_string(), other: label.to_string(), differences });
        }
    }
    Ok(())
}

fn task_differences(one: (&str, &Report), two: (&str, &Report)) -> Vec<String> {
    let mut differences = missing(one, two);
    differences.extend(missing(two, one));
    for task in &one.1.tasks {
        let other = two.1.task(&task.name).filter(|other| other.period_ns != task.period_ns);
        differences.extend(other.map(|other| {
            let (one, two) = (words::short_time(task.period_ns), words::short_time(other.period_ns));
            format!("the period of `{}` is {one} and {two}", task.name)
        }));
    }
    differences
}

/// Returns the tasks that only the first of two runs has.
fn missing((label, report): (&str, &Report), other: (&str, &Report)) -> Vec<String> {
    let lacks = report.tasks.iter().filter(|task| other.1.task(&task.name).is_none());
    lacks.map(|task| format!("only {label} has `{}`", task.name)).collect()
}
