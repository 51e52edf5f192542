//! Limits for the windows of senders and receivers, with which a plan is made again.

use std::collections::BTreeMap;

use macrotick_model::{Duration, Flow, Plan, System, Task};

use super::error::Later;
use crate::demand::round_up;

/// The limits, by the names of tasks.
#[derive(Default)]
pub(super) struct Limits {
    /// The earliest start of a job of a receiver, from its release.
    earliest: BTreeMap<String, Duration>,
    /// The time in which the jobs of a sender run.
    senders: BTreeMap<String, Within>,
}

/// The time in which all jobs of a task run, from the releases that the description states.
#[derive(Clone, Copy)]
struct Within {
    start: Duration,
    end: Duration,
}

impl Limits {
    /// Adds the time in which the jobs of a sender run, from the releases that the description states.
    pub fn spread(&mut self, task: &Task, start: Duration, end: Duration) {
        if task.offset.is_some() || task.jitter.is_none() {
            self.earliest.insert(task.name.clone(), start);
        }
        self.senders.insert(task.name.clone(), Within { start, end });
    }

    /// Starts the receiver later, and returns whether its deadline leaves time for that. The sender keeps to the windows
    /// that it has now, so that it does not follow the receiver.
    pub fn put_off(&mut self, plan: &Plan, later: &Later) -> bool {
        let Some(task) = windowed(&plan.system, &later.receiver) else { return false };
        let start = round_up(phase(task, later.at), plan.system.macrotick);
        if start > latest_start(task) || self.earliest.get(&task.name).is_some_and(|former| *former >= start) {
            return false;
        }
        self.earliest.insert(task.name.clone(), start);
        // A task that receives as well may need to leave the windows that it kept as a sender.
        self.senders.remove(&task.name);
        if let Some(sender) = windowed(&plan.system, &later.sender) {
            self.keep(plan, sender);
        }
        true
    }

    /// Keeps a sender to the windows that it has now. Returns the latest end of its windows, from the start of a period.
    pub fn keep(&mut self, plan: &Plan, sender: &Task) -> Duration {
        let within = self.senders.entry(sender.name.clone()).or_insert_with(|| within(plan, sender));
        sender.offset.unwrap_or(Duration::ZERO) + within.end
    }

    /// Returns the system with these limits. Every window that fits there also fits the description.
    pub fn apply(&self, system: &System) -> System {
        let mut limited = system.clone();
        for task in &mut limited.tasks {
            let earliest = self.earliest.get(&task.name);
            let within = self.senders.get(&task.name);
            let offset = task.offset.unwrap_or(Duration::ZERO);
            match (task.offset, task.jitter, within) {
                (None, Some(_), Some(within)) => {
                    let start = within.start.max(*earliest.unwrap_or(&Duration::ZERO));
                    task.deadline = task.deadline.min(within.end - start);
                    task.offset = Some(start);
                }
                (None, Some(_), None) => {
                    let Some(&start) = earliest else { continue };
                    task.deadline = task.deadline.min(task.period - start);
                    task.offset = Some(start);
                }
                (_, jitter, within) => {
                    if let Some(within) = within {
                        task.deadline = task.deadline.min(within.end);
                    }
                    let Some(&start) = earliest else { continue };
                    task.deadline -= start;
                    task.jitter = jitter.map(|jitter| jitter - start);
                    task.offset = Some(offset + start);
                }
            }
        }
        limited
    }
}

/// Takes the limits back.
pub(super) fn restore(planned: &mut System, system: &System) {
    for (task, original) in planned.tasks.iter_mut().zip(&system.tasks) {
        task.offset = original.offset;
        (task.cpu, task.cpus) = (original.cpu, original.cpus.clone());
        task.after.clone_from(&original.after);
        task.deadline = original.deadline;
        task.jitter = original.jitter;
    }
}

/// Returns the task that sends the frames of a flow at the end of its windows.
pub(super) fn sender<'a>(system: &'a System, flow: &Flow) -> Option<&'a Task> {
    let task = windowed(system, &flow.from)?;
    (flow.after.is_none() && !flow.express).then_some(task)
}

/// Returns the latest start of a job, after the release that the description states, or after the start of a period.
pub(super) fn latest_start(task: &Task) -> Duration {
    let before_deadline = task.deadline - task.wcet;
    match (task.offset, task.jitter) {
        // The solver chooses the release, and the deadline counts from there.
        (None, Some(_)) => task.period - task.wcet,
        (_, jitter) => jitter.map_or(before_deadline, |jitter| jitter.min(before_deadline)),
    }
}

fn windowed<'a>(system: &'a System, name: &str) -> Option<&'a Task> {
    system.task(name).filter(|task| task.supply.is_windows())
}

/// Returns the time from the release of a job of a task to an instant.
fn phase(task: &Task, at: Duration) -> Duration {
    let release = task.offset.unwrap_or(Duration::ZERO);
    Duration::from_nanos((at - release).as_nanos().rem_euclid(task.period.as_nanos()))
}

fn within(plan: &Plan, task: &Task) -> Within {
    let jobs = plan.jobs(&task.name);
    let spans = jobs.iter().map(|job| (phase(task, job.nominal), job.deadline - job.nominal));
    let none = Within { start: task.period, end: Duration::ZERO };
    spans.fold(none, |all, (start, length)| Within { start: all.start.min(start), end: all.end.max(start + length) })
}
