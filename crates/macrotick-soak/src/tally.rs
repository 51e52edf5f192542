//! Adds the readings of a deployment to the counts.

use macrotick_model::{Duration, EntityCounters, GroupObservation, Job};
use macrotick_node::{Reading, TaskReading};

use crate::counts::{Counts, GroupCounts, TaskCounts, Worst};
use crate::histogram::Histogram;

/// The counts, and the counters of the reading before.
pub(crate) struct Tally {
    pub counts: Counts,
    settled: Duration,
    tasks: Vec<EntityCounters>,
    groups: Vec<GroupObservation>,
}

impl Tally {
    /// Goes on with counts, at the start of a deployment.
    pub fn new(counts: Counts) -> Tally {
        Tally { counts, settled: Duration::ZERO, tasks: Vec::new(), groups: Vec::new() }
    }

    /// Adds a reading. The cost depends on its jobs alone.
    pub fn add(&mut self, reading: &Reading) {
        let counts = &mut self.counts;
        counts.soaked_ns += (reading.settled - self.settled).as_nanos().max(0).unsigned_abs();
        self.settled = self.settled.max(reading.settled);
        self.tasks.resize_with(reading.tasks.len(), EntityCounters::default);
        for (index, (task, before)) in reading.tasks.iter().zip(&mut self.tasks).enumerate() {
            let counted = named(&mut counts.tasks, index, &task.name, |counted| &mut counted.name);
            add_task(counted, task, reading.epoch_unix_ns);
            if let Some(now) = task.counters {
                add_counters(counted, &now, before);
                *before = now;
            }
        }
        for (index, group) in reading.groups.iter().enumerate() {
            let counted: &mut GroupCounts = named(&mut counts.groups, index, &group.name, |counted| &mut counted.name);
            let before = self.groups.iter().find(|before| before.name == group.name);
            let new = |value: fn(&GroupObservation) -> u64| value(group).saturating_sub(before.map_or(0, value));
            counted.exhaustions += new(|group| group.exhaustions);
            counted.usage_ns += new(|group| group.usage_ns);
            counted.throttled_ns += new(|group| group.throttled_ns);
        }
        // A reading without the groups failed: the next one has the difference.
        if !reading.groups.is_empty() {
            self.groups.clone_from(&reading.groups);
        }
    }
}

/// Returns the entry at a place, and adds it with its name at the first reading. The plan of a soak never changes.
fn named<'c, T: Default>(all: &'c mut Vec<T>, index: usize, name: &str, of: fn(&mut T) -> &mut String) -> &'c mut T {
    if index == all.len() {
        all.push(T::default());
        name.clone_into(of(&mut all[index]));
    }
    &mut all[index]
}

fn add_task(counted: &mut TaskCounts, task: &TaskReading, epoch_unix_ns: i64) {
    counted.unrecorded += task.unrecorded;
    counted.activations += task.jobs.len() as u64 + task.unrecorded;
    counted.strange += task.strange;
    for (job, deadline) in &task.jobs {
        let at_unix_ns = epoch_unix_ns + job.nominal.as_nanos();
        if let Some(start) = job.start {
            note(&mut counted.lateness, &mut counted.worst_lateness, start - job.nominal, at_unix_ns);
        }
        if let Some(end) = job.end {
            counted.completed += 1;
            note(&mut counted.response, &mut counted.worst_response, end - job.nominal, at_unix_ns);
        }
        if is_missed(job, *deadline) {
            counted.missed += 1;
            counted.never_ran += u64::from(job.start.is_none());
            counted.missed_unix_ns = Some(at_unix_ns);
        }
    }
}

fn is_missed(job: &Job, deadline: Duration) -> bool {
    job.end.is_none_or(|end| end > deadline)
}

fn note(histogram: &mut Histogram, worst: &mut Option<Worst>, value: Duration, at_unix_ns: i64) {
    let ns = value.as_nanos();
    histogram.record(ns);
    if worst.is_none_or(|worst| ns > worst.ns) {
        *worst = Some(Worst { ns, at_unix_ns });
    }
}

fn add_counters(counted: &mut TaskCounts, now: &EntityCounters, before: &EntityCounters) {
    counted.kernel_released += now.released.saturating_sub(before.released);
    counted.kernel_missed += now.missed.saturating_sub(before.missed);
    counted.kernel_lost += now.lost.saturating_sub(before.lost);
    counted.kernel_late += now.late.saturating_sub(before.late);
    counted.restarted += u64::from(now.restarted.saturating_sub(before.restarted));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64, start: Option<i64>, end: Option<i64>) -> (Job, Duration) {
        let ns = Duration::from_nanos;
        let nominal = ns(number as i64 * 1000);
        let at = |offset| nominal + ns(offset);
        (Job { job: number, nominal, start: start.map(at), end: end.map(at) }, nominal + ns(500))
    }

    fn reading(settled: i64, jobs: Vec<(Job, Duration)>, missed: u64, exhaustions: u64) -> Reading {
        let counters = EntityCounters { missed, released: missed * 10, ..EntityCounters::default() };
        let task = TaskReading { name: "a".into(), jobs, counters: Some(counters), ..TaskReading::default() };
        let group = GroupObservation { exhaustions, ..macrotick_fixtures::group_record("g", 1) };
        let (epoch_unix_ns, settled, failure) = (1_000_000, Duration::from_nanos(settled), None);
        Reading { epoch_unix_ns, settled, tasks: vec![task], groups: vec![group], failure }
    }

    #[test]
    fn readings_add_up_over_stretches() {
        let mut tally = Tally::new(Counts::new("s".into(), String::new(), 0));
        tally.add(&reading(2000, vec![job(0, Some(3), Some(100)), job(1, Some(9), Some(501))], 1, 4));
        tally.add(&reading(3000, vec![job(2, None, None)], 2, 5));
        // A reading that failed has no groups, and the next one no double counts.
        tally.add(&Reading { groups: Vec::new(), ..reading(3000, Vec::new(), 2, 0) });
        tally.add(&reading(3000, Vec::new(), 2, 6));
        let [task] = &tally.counts.tasks[..] else { panic!() };
        assert_eq!((task.activations, task.completed, task.missed, task.never_ran), (3, 2, 2, 1));
        assert_eq!((task.kernel_missed, task.kernel_released), (2, 20));
        assert_eq!((task.lateness.count(), task.response.count()), (2, 2));
        assert_eq!(task.worst_lateness, Some(Worst { ns: 9, at_unix_ns: 1_001_000 }));
        assert_eq!(task.worst_response, Some(Worst { ns: 501, at_unix_ns: 1_001_000 }));
        assert_eq!(task.missed_unix_ns, Some(1_002_000));
        assert_eq!((tally.counts.groups[0].exhaustions, tally.counts.soaked_ns), (6, 3000));

        // The counters of the next deployment begin at zero again, and the counts go on.
        let mut next = Tally::new(tally.counts);
        next.add(&reading(1000, vec![job(0, Some(4), Some(100))], 1, 1));
        let [task] = &next.counts.tasks[..] else { panic!() };
        assert_eq!((task.activations, task.missed, task.kernel_missed, task.kernel_released), (4, 2, 3, 30));
        assert_eq!((next.counts.groups[0].exhaustions, next.counts.soaked_ns), (7, 4000));
    }

    #[test]
    fn unrecorded_jobs_are_activations_but_no_misses() {
        let mut tally = Tally::new(Counts::new("s".into(), String::new(), 0));
        let mut reading = reading(2000, vec![job(0, Some(3), Some(100))], 0, 0);
        reading.tasks[0].unrecorded = 5;
        tally.add(&reading);
        let task = &tally.counts.tasks[0];
        assert_eq!((task.activations, task.completed, task.missed, task.unrecorded), (6, 1, 0, 5));
    }
}
