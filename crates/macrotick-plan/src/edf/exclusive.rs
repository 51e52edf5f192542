//! Resources in a simulation: whether a job can have them now.

use std::cmp::Reverse;

use macrotick_model::Duration;

use super::jobs::NEVER;
use super::simulation::{Open, Simulation};
use crate::cut::RESUMING;
use crate::exclusive::{around, behind};

/// Whether a job can start with its resources.
pub(super) enum Taken {
    No,
    /// Not now. The instant is that from which on the answer can differ; without one, the end of another job is.
    Until(Option<Duration>),
}

impl Simulation<'_> {
    fn task(&self, index: usize) -> usize {
        self.filling.jobs.sources[index].task
    }

    /// Returns the resources of a source, if they count.
    fn resources_of(&self, index: usize) -> &[usize] {
        if self.filling.held.is_empty() {
            return &[];
        }
        self.filling.resources.of(self.task(index))
    }

    /// Returns the other sources with a resource.
    fn others(&self, index: usize, resource: usize) -> impl Iterator<Item = usize> + '_ {
        let tasks = self.filling.resources.tasks(resource).iter();
        tasks.filter_map(|&task| self.source_of[task]).filter(move |&other| other != index)
    }

    /// Returns an instant, or the end of the jobs that have the resources then and are laid out already.
    pub fn behind_held(&self, index: usize, at: Duration) -> Duration {
        let held = self.resources_of(index).iter().map(|&resource| self.filling.held[resource].as_slice());
        behind(held, self.task(index), at, self.filling.cycle)
    }

    fn around(&self, index: usize, resource: usize, at: Duration) -> (Option<Duration>, Option<Duration>) {
        around(&self.filling.held[resource], self.task(index), at, self.filling.cycle)
    }

    /// Returns whether a job can start now: its resources are free, and it can end before others need them.
    pub fn resources(&self, cpu: usize, index: usize) -> Taken {
        let resources = self.resources_of(index);
        let open = self.open[index].filter(|open| !open.started);
        let Some(open) = open.filter(|_| !resources.is_empty()) else { return Taken::No };
        let end = self.expected_end(cpu, index);
        for &resource in resources {
            if self.others(index, resource).any(|other| self.open[other].is_some_and(|open| open.started)) {
                return Taken::Until(None);
            }
            if let Some(next) = self.around(index, resource, self.now).1.filter(|&next| end > next) {
                return Taken::Until(Some(self.behind_held(index, next)));
            }
            if end > self.wanted(index, resource) || self.manner.polite && self.gives_way(cpu, index, resource, &open) {
                return Taken::Until(None);
            }
        }
        Taken::No
    }

    /// Whether a more urgent job of another CPU can start with the resource.
    fn gives_way(&self, cpu: usize, index: usize, resource: usize, open: &Open) -> bool {
        self.others(index, resource).any(|other| {
            let on = self.filling.jobs.sources[other].cpu;
            let is_next = || self.cpus[on].ready.first().is_some_and(|&(.., first)| first == other);
            let is_idle = || self.cpus[on].running.is_none_or(|running| running.done <= self.now);
            let waits = self.open[other].filter(|other| other.ready && !other.started);
            on != cpu && waits.is_some_and(|other| other.urgency() < open.urgency()) && is_next() && is_idle()
        })
    }

    /// Returns the instant before which the next jobs of the other tasks need the resource. All of them can then
    /// be in time, one after the other.
    fn wanted(&self, index: usize, resource: usize) -> Duration {
        let jobs = self.filling.jobs;
        let mut next: Vec<(Duration, Duration)> = Vec::new();
        for other in self.others(index, resource) {
            let source = &jobs.sources[other];
            let (start_by, deadline, needed) = match self.open[other] {
                Some(open) => (open.start_by, open.deadline, open.missing),
                None => {
                    let turn = self.filling.cycle * (self.released[other] / source.count) as i64;
                    let job = &jobs.all[source.first + self.released[other] % source.count];
                    // A job with its first piece laid out is among those that have the resource.
                    if source.begun {
                        continue;
                    }
                    (job.start_by + turn, job.deadline + turn, source.needed)
                }
            };
            next.push((deadline.min(start_by + needed), needed));
        }
        next.sort_unstable_by_key(|&next| Reverse(next));
        next.into_iter().fold(NEVER, |wanted, (deadline, needed)| wanted.min(deadline) - needed)
    }

    /// Returns the end of a job that starts now, if nothing but the gaps of its CPU interrupts it.
    fn expected_end(&self, cpu: usize, index: usize) -> Duration {
        let gaps = &self.filling.gaps[cpu];
        let demand = &self.filling.demands[self.task(index)];
        let mut left = self.filling.cut.completing(self.missing(index, false));
        let turns = [self.origin, self.origin + self.filling.cycle];
        let all = turns.into_iter().flat_map(|turn| gaps.iter().map(move |gap| (turn + gap.start, turn + gap.end)));
        for (start, end) in all.filter(|(_, end)| *end > self.now) {
            let start = start.max(self.now);
            if end - start >= left {
                return start + left;
            }
            if demand.preemptible && end - start >= self.filling.cut.shortest() {
                left = left - (end - start) + RESUMING;
            }
        }
        NEVER
    }

    /// Gives a job that starts now its resources. It must end before the jobs that are laid out already, and is as urgent
    /// as the others that need them.
    pub fn take_resources(&mut self, index: usize, open: &mut Open) {
        let resources = self.resources_of(index).to_vec();
        for resource in resources {
            if let Some(next) = self.around(index, resource, self.now).1 {
                open.deadline = open.deadline.min(next);
            }
            open.wanted = open.wanted.min(self.wanted(index, resource));
        }
    }

    /// Lets all CPUs decide again, because a job gives its resources back.
    pub fn give_back(&mut self, index: usize) {
        if !self.resources_of(index).is_empty() {
            self.cpus.iter_mut().for_each(|cpu| cpu.wake = cpu.wake.min(self.now));
        }
    }
}
