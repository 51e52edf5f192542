//! Resources that only one job at a time has (`exclusive`).

use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{Duration, Plan};

use crate::jobs::Job;
use crate::Violation;

/// The time for which a job has its resources, and the name of its task.
type Span<'a> = (Duration, Duration, &'a str);

/// Checks each resource. `jobs` has the jobs of each task of the system.
pub(crate) fn check(plan: &Plan, jobs: &[Vec<Job>], violations: &mut Vec<Violation>) {
    let mut spans: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for (task, jobs) in plan.system.tasks.iter().zip(jobs) {
        for resource in &task.exclusive {
            let spans = spans.entry(resource).or_default();
            for job in jobs {
                spans.push((job.start, job.end, &task.name));
                // The job of the previous cycle continues in this one.
                if job.end > plan.cycle {
                    spans.push((job.start - plan.cycle, job.end - plan.cycle, &task.name));
                }
            }
        }
    }
    for (resource, mut spans) in spans {
        spans.sort_unstable();
        one_at_a_time(resource, &spans, violations);
    }
}

/// Walks over spans in the order of their starts, and reports the first conflict of each pair of tasks. Jobs of the same
/// task are the subject of other rules.
fn one_at_a_time(resource: &str, spans: &[Span], violations: &mut Vec<Violation>) {
    let mut reported = BTreeSet::new();
    // The two tasks that have the resource the longest so far, the longest first.
    let mut longest: [Option<(Duration, &str)>; 2] = [None, None];
    for &(start, end, task) in spans {
        let other = longest.into_iter().flatten().find(|(_, other)| *other != task);
        if let Some((until, other)) = other.filter(|&(until, _)| until > start) {
            if reported.insert((task.min(other), task.max(other))) {
                let (resource, task, other) = (resource.into(), task.into(), other.into());
                violations.push(Violation::Exclusive { resource, task, start, other, until });
            }
        }
        longest = match longest {
            [Some((until, first)), second] if first == task => [Some((until.max(end), first)), second],
            [Some((until, first)), _] if until >= end => {
                let second = longest[1].filter(|&(until, _)| until >= end);
                [Some((until, first)), second.or(Some((end, task)))]
            }
            [first, second] => [Some((end, task)), first.or(second)],
        };
    }
}
