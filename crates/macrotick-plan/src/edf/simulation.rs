//! The state of a simulation, and its events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use macrotick_model::Duration;

use super::cpu::{Choice, Cpu, Key, Running, Waiting};
use super::exclusive::Taken;
use super::jobs::NEVER;
use super::Filling;
use crate::cut::Missing;
use crate::place::behind_guard;
use crate::table::Piece;

/// The incomplete job of a source. Deadlines are at most periods, so there is at most one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The index of the job, and its cycle.
    pub job: usize,
    cycle: i64,
    pub deadline: Duration,
    pub start_by: Duration,
    pub missing: Duration,
    pub started: bool,
    /// Whether it is in the ready jobs of its CPU. Otherwise it waits for another job.
    pub ready: bool,
    /// The instant before which others need its resources.
    pub wanted: Duration,
}

impl Open {
    /// Returns the instant that decides how urgent it is. Until it starts, its latest start does.
    pub fn urgency(&self) -> Duration {
        let deadline = self.deadline.min(self.wanted);
        if self.started {
            deadline
        } else {
            deadline.min(self.start_by)
        }
    }
}

/// The state that the next cycle depends on, relative to its start.
#[derive(PartialEq, Eq)]
pub(super) struct State {
    /// The idle time of each CPU so far, at most the lead.
    idle: Vec<Duration>,
    /// The jobs of each source that are released before or after the cycle that they belong to.
    released: Vec<i64>,
    /// Source, deadline, missing time, and whether the job has started.
    pub open: Vec<(usize, Duration, Duration, bool)>,
}

/// The rules of a simulation beside EDF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Whether starts keep off the common grid.
    pub guarded: bool,
    /// Whether a job runs to its end before more urgent ones that have time to wait.
    pub patient: bool,
    /// Whether a job leaves its resources to a more urgent one on another CPU.
    pub polite: bool,
}

pub(super) struct Simulation<'a> {
    pub filling: &'a Filling<'a>,
    pub manner: Manner,
    pub now: Duration,
    /// The start of the simulated cycle.
    pub origin: Duration,
    pub cpus: Vec<Cpu>,
    releases: BinaryHeap<Reverse<(Duration, usize)>>,
    /// The number of jobs of each source that were released.
    pub released: Vec<usize>,
    pub open: Vec<Option<Open>>,
    /// The source of each task.
    pub source_of: Vec<Option<usize>>,
    /// The number of cycles in which each job is complete.
    done: Vec<i64>,
    /// Whether a task is not preemptible, so that [`Cpu::upcoming`] is necessary.
    whole: bool,
    /// The instants in [`Cpu::upcoming`], by source.
    expected: Vec<Duration>,
    pub missed: Vec<usize>,
}

impl<'a> Simulation<'a> {
    pub fn new(filling: &'a Filling<'a>, manner: Manner) -> Self {
        let jobs = filling.jobs;
        let busy_until = |idle| if idle { -filling.lead } else { Duration::ZERO };
        let cpu = |gaps: &Vec<_>| Cpu::new(busy_until(Cpu::idle_at_end(gaps, filling.cycle)));
        let first = |(index, source): (usize, &super::jobs::Source)| Reverse((jobs.all[source.first].earliest, index));
        let waits = if jobs.before.is_empty() { 0 } else { jobs.all.len() };
        let whole = jobs.sources.iter().any(|source| !filling.demands[source.task].preemptible);
        let mut source_of = vec![None; filling.demands.len()];
        jobs.sources.iter().enumerate().for_each(|(index, source)| source_of[source.task] = Some(index));
        let mut simulation = Simulation {
            filling,
            manner,
            now: Duration::ZERO,
            origin: Duration::ZERO,
            cpus: filling.gaps.iter().map(cpu).collect(),
            releases: jobs.sources.iter().enumerate().map(first).collect(),
            released: vec![0; jobs.sources.len()],
            open: vec![None; jobs.sources.len()],
            source_of,
            done: vec![0; waits],
            whole,
            expected: vec![Duration::ZERO; jobs.sources.len()],
            missed: Vec::new(),
        };
        for (index, source) in jobs.sources.iter().enumerate() {
            simulation.expect(index, source.first, 0);
        }
        simulation
    }

    pub fn pieces(self) -> Vec<Vec<Piece>> {
        self.cpus.into_iter().map(|cpu| cpu.pieces).collect()
    }

    pub fn state(&self, origin: Duration) -> State {
        let open = self.open.iter().enumerate().filter_map(|(source, open)| open.map(|open| (source, open)));
        let cycles = origin / self.filling.cycle;
        let sources = self.filling.jobs.sources.iter().zip(&self.released);
        State {
            released: sources.map(|(source, &released)| released as i64 - source.count as i64 * cycles).collect(),
            idle: self.cpus.iter().map(|cpu| (origin - cpu.busy_until).min(self.filling.lead)).collect(),
            open: open.map(|(source, open)| (source, open.deadline - origin, open.missing, open.started)).collect(),
        }
    }

    pub fn run_cycle(&mut self, origin: Duration) {
        let end = origin + self.filling.cycle;
        (self.now, self.origin) = (origin, origin);
        self.cpus.iter_mut().for_each(|cpu| cpu.begin(origin));
        loop {
            self.release();
            for cpu in 0..self.cpus.len() {
                if self.cpus[cpu].wake <= self.now {
                    self.step(cpu);
                }
            }
            if !self.missed.is_empty() {
                return;
            }
            let release = self.releases.peek().map_or(NEVER, |Reverse((release, _))| *release);
            let next = self.cpus.iter().map(|cpu| cpu.wake).fold(release, Duration::min);
            if next >= end {
                break;
            }
            self.now = next;
        }
        self.now = end;
        for cpu in 0..self.cpus.len() {
            self.stop(cpu);
            if !Cpu::idle_at_end(&self.filling.gaps[cpu], self.filling.cycle) {
                self.cpus[cpu].busy_until = end;
            }
        }
    }

    /// Releases the jobs that may start now.
    fn release(&mut self) {
        while let Some(&Reverse((at, index))) = self.releases.peek().filter(|Reverse((at, _))| *at <= self.now) {
            self.releases.pop();
            let (jobs, cycle) = (self.filling.jobs, self.filling.cycle);
            let source = &jobs.sources[index];
            let turn = (self.released[index] / source.count) as i64;
            let job = source.first + self.released[index] % source.count;
            // A job can end at the instant of the next release. For a pool, another manner leaves longer windows.
            let is_done = |running: Running| running.source == index && running.done <= at;
            let has_jobs = !self.filling.demands[source.task].is_pool();
            if has_jobs && self.cpus[source.cpu].running.is_some_and(is_done) {
                self.stop(source.cpu);
                self.cpus[source.cpu].wake = self.now;
            }
            if let Some(open) = self.open[index] {
                // The new job replaces the one that missed.
                self.missed.push(source.task);
                let key = self.key(index, &open);
                self.cpus[source.cpu].ready.remove(&key);
            }
            let shift = cycle * turn;
            let mut open = Open {
                job,
                cycle: turn,
                deadline: jobs.all[job].deadline + shift,
                start_by: jobs.all[job].start_by + shift,
                missing: source.needed,
                started: source.begun,
                ready: true,
                wanted: NEVER,
            };
            if source.begun {
                self.take_resources(index, &mut open);
            }
            let early = |&other: &usize| self.done[other] <= turn;
            open.ready = jobs.before.get(job).is_none_or(|before| !before.iter().any(early));
            self.open[index] = Some(open);
            if open.ready {
                self.make_ready(index);
            }
            self.released[index] += 1;
            let next = source.first + self.released[index] % source.count;
            let turn = (self.released[index] / source.count) as i64;
            self.expect(index, next, turn);
            self.releases.push(Reverse(((jobs.all[next].earliest + cycle * turn).max(at), index)));
        }
    }

    /// Notes the next job of a source as the one that is still to come.
    fn expect(&mut self, index: usize, next: usize, turn: i64) {
        if !self.whole {
            return;
        }
        let latest = self.latest_before(index, next, turn);
        let former = std::mem::replace(&mut self.expected[index], latest);
        let upcoming = &mut self.cpus[self.filling.jobs.sources[index].cpu].upcoming;
        upcoming.remove(&(former, index));
        upcoming.insert((latest, index));
    }

    fn make_ready(&mut self, index: usize) {
        let open = self.open[index].as_mut().expect("the job is open");
        open.ready = true;
        let key = self.key(index, &self.open[index].expect("the job is open"));
        let cpu = &mut self.cpus[self.filling.jobs.sources[index].cpu];
        cpu.ready.insert(key);
        cpu.wake = self.now;
    }

    /// Returns the place among the ready jobs. A job that has not started is as urgent as its latest start.
    fn key(&self, index: usize, open: &Open) -> Key {
        let task = self.filling.jobs.sources[index].task;
        (open.urgency(), self.filling.ranks[task], index)
    }

    /// Decides what a CPU does from now on.
    fn step(&mut self, cpu: usize) {
        if self.cpus[cpu].running.is_some_and(|running| running.done <= self.now) {
            self.stop(cpu);
        }
        let gaps = &self.filling.gaps[cpu];
        while gaps.get(self.cpus[cpu].gap).is_some_and(|gap| self.origin + gap.end <= self.now) {
            self.stop(cpu);
            self.cpus[cpu].gap += 1;
        }
        let Some(gap) = gaps.get(self.cpus[cpu].gap) else {
            self.cpus[cpu].wake = NEVER;
            return;
        };
        let (start, end) = (self.origin + gap.start, self.origin + gap.end);
        if self.now < start {
            self.cpus[cpu].wake = start;
            return;
        }
        if self.now == start && start > self.origin {
            self.cpus[cpu].busy_until = start;
        }
        if let Some(running) = self.cpus[cpu].running.filter(|running| self.now < running.hold) {
            self.cpus[cpu].wake = running.hold.min(running.done).min(end);
            return;
        }
        if self.cpus[cpu].running.is_none() && end - self.now < self.filling.quantum {
            self.cpus[cpu].wake = end;
            return;
        }
        self.cpus[cpu].wake = match self.choose(cpu, end) {
            Choice::Run(source, until) => {
                if self.cpus[cpu].running.is_none_or(|running| running.source != source) {
                    self.stop(cpu);
                    self.start(cpu, source);
                }
                let done = self.cpus[cpu].running.map_or(end, |running| running.done);
                until.min(end).min(done)
            }
            Choice::WaitUntil(instant) => {
                self.stop(cpu);
                instant.min(end)
            }
            Choice::Idle => {
                self.stop(cpu);
                end
            }
        };
    }

    /// Returns the ready job with the earliest deadline that may run now. Such a job has started, or its lead is over
    /// and no guard keeps it from starting. Nothing preempts a job with the same deadline.
    fn choose(&self, cpu: usize, gap_end: Duration) -> Choice {
        let mut waiting = Waiting::default();
        let state = &self.cpus[cpu];
        let running = state.running.and_then(|running| Some((running.source, self.open[running.source]?.urgency())));
        let ends_first = self.manner.patient && self.ends_first(cpu, gap_end);
        for &(deadline, _, index) in &state.ready {
            if let Some((source, _)) = running.filter(|&(_, other)| other <= deadline || ends_first) {
                if let Some(choice) = self.consider(cpu, source, gap_end, &mut waiting) {
                    return choice;
                }
                continue;
            }
            if let Some(choice) = self.consider(cpu, index, gap_end, &mut waiting) {
                return choice;
            }
        }
        let next = waiting.start.into_iter().chain(waiting.retry).min();
        next.map_or(Choice::Idle, Choice::WaitUntil)
    }

    /// Whether the job that runs can end before the more urgent ones, and all of these still keep their limits.
    fn ends_first(&self, cpu: usize, gap_end: Duration) -> bool {
        let state = &self.cpus[cpu];
        let Some(running) = state.running.filter(|running| running.done <= gap_end) else { return false };
        let Some(own) = self.open[running.source] else { return false };
        let mut until = running.done;
        for &(deadline, _, index) in state.ready.iter().filter(|&&(.., index)| index != running.source) {
            if deadline >= own.urgency() {
                break;
            }
            let Some(open) = self.open[index] else { continue };
            let demand = &self.filling.demands[self.filling.jobs.sources[index].task];
            until += demand.lead;
            if !open.started && until > open.start_by {
                return false;
            }
            until += self.filling.cut.completing(self.missing(index, false));
            if until > open.deadline {
                return false;
            }
        }
        true
    }

    /// Decides whether to run the job, or to keep its lead free. `None` lets less urgent jobs run.
    fn consider(&self, cpu: usize, index: usize, gap_end: Duration, waiting: &mut Waiting) -> Option<Choice> {
        let lead = self.filling.demands[self.filling.jobs.sources[index].task].lead;
        let start = self.earliest_start(cpu, index);
        if start == self.now {
            let until = waiting.lead.map_or(gap_end, |urgent| urgent.min(gap_end));
            let runs = self.is_worth_it(cpu, index, start, until) && !self.blocks(cpu, index);
            if runs {
                if let Taken::Until(retry) = self.resources(cpu, index) {
                    retry.into_iter().for_each(|at| waiting.retry(at));
                    return None;
                }
            }
            let next = waiting.lead.into_iter().chain(waiting.retry).min();
            return runs.then_some(Choice::Run(index, next.unwrap_or(gap_end)));
        }
        // A lead is useless if no window fits after it, or if the lead of a more urgent job cuts it off.
        let in_vain = lead > Duration::ZERO && !self.is_worth_it(cpu, index, start, gap_end);
        if in_vain || waiting.lead.is_some_and(|urgent| start >= urgent) {
            return None;
        }
        waiting.add(start, start - lead);
        // If another job ran now, this job could never start.
        (start - lead <= self.now).then_some(Choice::WaitUntil(start))
    }

    /// Returns the instant at which the job may run. A job that has started may run at once, another one after its lead
    /// and the guard.
    fn earliest_start(&self, cpu: usize, index: usize) -> Duration {
        let open = self.open[index].expect("a ready source has an open job");
        if open.started {
            return self.now;
        }
        let demand = &self.filling.demands[self.filling.jobs.sources[index].task];
        let start = self.now.max(self.cpus[cpu].busy_until(self.now) + demand.lead);
        let start = self.behind_held(index, start);
        let guarded = || {
            behind_guard(start, demand, self.filling.macrotick)
                .filter(|&start| start <= open.start_by && self.behind_held(index, start) == start)
        };
        self.manner.guarded.then(guarded).flatten().unwrap_or(start)
    }

    /// Whether the job would run beyond the latest start of a job that is still to come, and cannot be interrupted.
    fn blocks(&self, cpu: usize, index: usize) -> bool {
        if self.filling.demands[self.filling.jobs.sources[index].task].preemptible {
            return false;
        }
        // The next job of the same task is never in the way of this one.
        let urgent = self.cpus[cpu].upcoming.iter().find(|&&(_, other)| other != index);
        let end = self.now + self.filling.cut.completing(self.missing(index, false));
        urgent.is_some_and(|&(latest, _)| latest < end)
    }

    /// Returns the latest end of the window before a job that is still to come, so that the job can be in time.
    fn latest_before(&self, index: usize, job: usize, turn: i64) -> Duration {
        let (source, job) = (&self.filling.jobs.sources[index], &self.filling.jobs.all[job]);
        let latest = job.start_by.min(job.deadline - source.needed);
        latest + self.filling.cycle * turn - self.filling.demands[source.task].lead
    }

    /// Whether the piece that ends now belongs to the job. The job then continues it.
    fn goes_on(&self, cpu: usize, index: usize) -> bool {
        let state = &self.cpus[cpu];
        let runs = state.running.is_some_and(|running| running.source == index);
        let gap = self.filling.gaps[cpu].get(state.gap);
        let behind = gap.filter(|gap| self.origin + gap.start == self.now).and_then(|gap| gap.behind);
        let source = &self.filling.jobs.sources[index];
        runs || source.begun && behind == Some(source.task)
    }

    /// Returns the missing time of a job, for a piece that starts now.
    pub fn missing(&self, index: usize, goes_on: bool) -> Missing {
        let open = self.open[index].expect("a ready source has an open job");
        let demand = &self.filling.demands[self.filling.jobs.sources[index].task];
        Missing::of(demand, open.missing, open.started && !goes_on)
    }

    /// Whether a piece of the job fits there that is long enough for its cost.
    fn is_worth_it(&self, cpu: usize, index: usize, from: Duration, until: Duration) -> bool {
        if from == self.now && self.goes_on(cpu, index) {
            return true;
        }
        let demand = &self.filling.demands[self.filling.jobs.sources[index].task];
        until - from >= self.filling.cut.least(demand, self.missing(index, false))
    }

    fn start(&mut self, cpu: usize, index: usize) {
        let goes_on = self.goes_on(cpu, index);
        let missing = self.missing(index, goes_on);
        let open = self.open[index].expect("a ready source has an open job");
        let (activate, resumed) = (!open.started, missing.cost > Duration::ZERO);
        if activate {
            if self.now > open.start_by {
                self.missed.push(self.filling.jobs.sources[index].task);
            }
            let mut begun = Open { started: true, ..open };
            self.take_resources(index, &mut begun);
            let (former, key) = (self.key(index, &open), self.key(index, &begun));
            self.cpus[cpu].ready.remove(&former);
            self.cpus[cpu].ready.insert(key);
            self.open[index] = Some(begun);
        }
        let demand = &self.filling.demands[self.filling.jobs.sources[index].task];
        let least = if goes_on { Duration::ZERO } else { self.filling.cut.least(demand, missing) };
        let done = self.now + self.filling.cut.completing(missing);
        self.cpus[cpu].running =
            Some(Running { source: index, since: self.now, hold: self.now + least, done, activate, resumed });
    }

    /// Ends the piece that runs, if there is one. It is the end of its job if the job is complete.
    fn stop(&mut self, cpu: usize) {
        let Some(running) = self.cpus[cpu].running.take() else {
            return;
        };
        self.cpus[cpu].busy_until = self.now;
        let index = running.source;
        let Some(mut open) = self.open[index] else {
            return;
        };
        let source = &self.filling.jobs.sources[index];
        let (start, length) = (running.since - self.origin, self.now - running.since);
        let deadline = running.done <= self.now;
        // A piece that continues another one can be preempted at once, and then there is none.
        if length > Duration::ZERO {
            let piece = Piece { start, length, task: source.task, activate: running.activate, deadline };
            self.cpus[cpu].pieces.push(piece);
        }
        let demand = &self.filling.demands[source.task];
        open.missing = Missing::of(demand, open.missing, running.resumed).behind(length);
        if self.now > open.deadline {
            self.missed.push(source.task);
        }
        if !deadline {
            self.open[index] = Some(open);
            return;
        }
        let key = self.key(index, &open);
        self.cpus[cpu].ready.remove(&key);
        self.open[index] = None;
        self.give_back(index);
        self.complete(&open);
    }

    /// Makes the jobs ready that waited only for this one.
    fn complete(&mut self, open: &Open) {
        let jobs = self.filling.jobs;
        let Some(after) = jobs.after.get(open.job) else {
            return;
        };
        self.done[open.job] = open.cycle + 1;
        for &next in after {
            let index = jobs.sources.partition_point(|source| source.first <= next) - 1;
            let waits =
                self.open[index].is_some_and(|other| !other.ready && other.job == next && other.cycle == open.cycle);
            if waits && jobs.before[next].iter().all(|&other| self.done[other] > open.cycle) {
                self.make_ready(index);
            }
        }
    }
}
