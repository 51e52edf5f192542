//! The order of jobs (`after`): the job of one task starts when the job of another one with the same number has ended.

use macrotick_model::{Duration, Plan, Task};

use crate::jobs::Job;
use crate::Violation;

/// Checks the order of all tasks. `jobs` has the jobs of each task of the system.
pub(crate) fn check(plan: &Plan, jobs: &[Vec<Job>], violations: &mut Vec<Violation>) {
    let tasks = || plan.system.tasks.iter().zip(jobs);
    for (task, own) in tasks().filter(|(task, _)| !task.after.is_empty()) {
        for (before, theirs) in task.after.iter().filter_map(|name| tasks().find(|(other, _)| other.name == *name)) {
            // Another rule reports a task without all of its jobs.
            let count = (plan.cycle / task.period) as usize;
            if before.period == task.period && own.len() == count && theirs.len() == count {
                order(plan, (task, own), (before, theirs), violations);
            }
        }
    }
}

/// Compares the jobs with the same number.
fn order(plan: &Plan, then: (&Task, &[Job]), before: (&Task, &[Job]), violations: &mut Vec<Violation>) {
    let (starts, ends) = (numbered(plan, then.0, then.1), numbered(plan, before.0, before.1));
    for (number, (start, end)) in starts.iter().zip(&ends).enumerate() {
        let (Some((start, _)), Some((_, end))) = (start, end) else { continue };
        if start < end {
            let (task, other) = (then.0.name.clone(), before.0.name.clone());
            violations.push(Violation::TooEarly { task, job: number, start: *start, other, end: *end });
        }
    }
}

/// Returns start and end of each job by its number. Without an offset and with a jitter bound, jobs have the order of
/// their starts. Otherwise the number is that of the period, counted from the offset, in which the job starts.
fn numbered(plan: &Plan, task: &Task, jobs: &[Job]) -> Vec<Option<(Duration, Duration)>> {
    let count = (plan.cycle / task.period) as usize;
    let mut numbered = vec![None; count];
    for (index, job) in jobs.iter().enumerate() {
        let number = match (task.offset, task.jitter) {
            (None, Some(_)) => index as i64,
            (offset, _) => {
                let from = job.start - offset.unwrap_or(Duration::ZERO);
                from.as_nanos().div_euclid(task.period.as_nanos())
            }
        };
        // A job of the previous cycle that starts in this one repeats with the cycle.
        let shift = plan.cycle * number.div_euclid(count as i64);
        numbered[number.rem_euclid(count as i64) as usize] = Some((job.start - shift, job.end - shift));
    }
    numbered
}
