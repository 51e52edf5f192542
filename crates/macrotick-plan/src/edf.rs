//! Filling preemptible jobs into the gaps of one CPU by simulating earliest deadline first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use macrotick_model::Duration;

use crate::demand::Demand;
use crate::place::behind_guard;
use crate::table::Piece;

/// Jobs that reach over the cycle's end make the second cycle differ from the first. With a feasible load the state
/// at the cycle's end repeats after one cycle more (Leung and Merrill 1980); the margin is for the guard's idling.
const MAX_CYCLES: i64 = 4;

/// A free stretch `[start, end)` within the cycle.
pub(crate) type Gap = (Duration, Duration);

/// What to fill in, and how.
pub(crate) struct Filling<'a> {
    pub demands: &'a [Demand],
    /// Indices of the tasks to fill in.
    pub tasks: &'a [usize],
    /// Among equal deadlines the lower rank goes first, so that a chain runs in its order.
    pub ranks: &'a [usize],
    pub gaps: &'a [Gap],
    pub cycle: Duration,
    pub macrotick: Duration,
    pub quantum: Duration,
}

/// Deadline, rank and task: the order of the ready queue.
type Key = Reverse<(Duration, usize, usize)>;

/// The job of a task that is not yet complete. Deadlines are at most periods, so there is at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    deadline: Duration,
    missing: Duration,
    started: bool,
}

struct Simulation<'a> {
    filling: &'a Filling<'a>,
    guarded: bool,
    now: Duration,
    releases: BinaryHeap<Reverse<(Duration, usize)>>,
    ready: BinaryHeap<Key>,
    open: Vec<Option<Open>>,
    pieces: Vec<Piece>,
    missed: Vec<usize>,
}

impl Filling<'_> {
    /// The pieces of one cycle, or the tasks that miss a deadline.
    ///
    /// First with starts kept off the common grid; only where that costs a deadline, anywhere.
    pub fn run(&self) -> Result<Vec<Piece>, Vec<usize>> {
        self.simulate(true).or_else(|_| self.simulate(false))
    }

    fn simulate(&self, guarded: bool) -> Result<Vec<Piece>, Vec<usize>> {
        let mut simulation = Simulation {
            filling: self,
            guarded,
            now: Duration::ZERO,
            releases: self.tasks.iter().map(|&task| Reverse((self.demands[task].release(), task))).collect(),
            ready: BinaryHeap::new(),
            open: vec![None; self.demands.len()],
            pieces: Vec::new(),
            missed: Vec::new(),
        };
        let mut before = simulation.state(Duration::ZERO);
        for cycle in 0..MAX_CYCLES {
            let origin = self.cycle * cycle;
            simulation.run_cycle(origin);
            if !simulation.missed.is_empty() {
                simulation.missed.sort_unstable();
                simulation.missed.dedup();
                return Err(simulation.missed);
            }
            let after = simulation.state(origin + self.cycle);
            if after == before {
                return Ok(simulation.pieces);
            }
            before = after;
        }
        Err(before.into_iter().map(|(task, ..)| task).collect())
    }
}

impl Simulation<'_> {
    /// The open jobs, with deadlines relative to `origin`.
    fn state(&self, origin: Duration) -> Vec<(usize, Duration, Duration, bool)> {
        let open = self.open.iter().enumerate().filter_map(|(task, open)| open.map(|open| (task, open)));
        open.map(|(task, open)| (task, open.deadline - origin, open.missing, open.started)).collect()
    }

    fn run_cycle(&mut self, origin: Duration) {
        self.pieces.clear();
        for &(start, end) in self.filling.gaps {
            self.now = origin + start;
            self.run_gap(origin, origin + end);
            if !self.missed.is_empty() {
                return;
            }
        }
        // Jobs released after the last gap are open at the cycle's end.
        self.now = origin + self.filling.cycle;
        self.release(self.now - Duration::from_nanos(1));
    }

    fn run_gap(&mut self, origin: Duration, end: Duration) {
        while end - self.now >= self.filling.quantum {
            self.release(self.now);
            let next = self.releases.peek().map_or(end, |Reverse((release, _))| *release).min(end);
            match self.choose() {
                Choice::Run(task, until) => {
                    self.dispatch(task, origin, until.map_or(next, |until| until.min(next)), end)
                }
                Choice::WaitUntil(instant) => self.now = next.min(instant),
                Choice::Idle => self.now = next,
            }
        }
    }

    fn release(&mut self, until: Duration) {
        while let Some(&Reverse((release, task))) = self.releases.peek().filter(|Reverse((at, _))| *at <= until) {
            self.releases.pop();
            let demand = &self.filling.demands[task];
            if self.open[task].is_some() {
                // Still in the ready queue: the fresh job takes the place of the one that missed.
                self.missed.push(task);
            } else {
                self.ready.push(Reverse((release + demand.deadline, self.filling.ranks[task], task)));
            }
            self.open[task] = Some(Open { deadline: release + demand.deadline, missing: demand.wcet, started: false });
            self.releases.push(Reverse((release + demand.period, task)));
        }
    }

    /// The ready job with the earliest deadline that may run now: in a guard only one that has started.
    fn choose(&mut self) -> Choice {
        let mut passed = Vec::new();
        let mut choice = Choice::Idle;
        while let Some(key) = self.ready.pop() {
            let Reverse((_, _, task)) = key;
            passed.push(key);
            match self.guard_end(task) {
                None => {
                    choice = Choice::Run(task, choice.waiting());
                    break;
                }
                Some(end) => choice = Choice::WaitUntil(choice.waiting().map_or(end, |earlier| earlier.min(end))),
            }
        }
        self.ready.extend(passed);
        choice
    }

    /// The end of the guard that keeps a job from starting now.
    fn guard_end(&self, task: usize) -> Option<Duration> {
        let started = self.open[task].is_some_and(|open| open.started);
        if started || !self.guarded {
            return None;
        }
        behind_guard(self.now, self.filling.demands[task].period, self.filling.macrotick).filter(|&end| end > self.now)
    }

    /// Runs a job until it is complete, the next release, or the gap's end.
    fn dispatch(&mut self, task: usize, origin: Duration, next: Duration, end: Duration) {
        let quantum = self.filling.quantum;
        let mut open = self.open[task].expect("a ready task has an open job");
        let fresh = !self.pieces.last().is_some_and(|last| {
            last.task == task && !last.deadline && origin + last.end() == self.now && self.now > origin
        });
        let mut until = next;
        if fresh {
            // A piece of its own is never shorter than the shortest window.
            open.missing = open.missing.max(quantum);
            until = until.max(self.now + quantum).min(end);
        }
        let length = open.missing.min(until - self.now);
        let piece =
            Piece { start: self.now - origin, length, task, activate: !open.started, deadline: length == open.missing };
        self.now += length;
        open.started = true;
        open.missing -= length;
        if fresh {
            self.pieces.push(piece);
        } else if let Some(last) = self.pieces.last_mut() {
            last.length += length;
            last.deadline = piece.deadline;
        }
        if self.now > open.deadline {
            self.missed.push(task);
        }
        self.open[task] = Some(open).filter(|_| !piece.deadline);
        if !piece.deadline {
            return;
        }
        let first = self.ready.peek().is_some_and(|Reverse((_, _, first))| *first == task);
        if first {
            self.ready.pop();
        } else {
            self.ready.retain(|Reverse((_, _, other))| *other != task);
        }
    }
}

enum Choice {
    /// Runs this task, at most until a job passed over for its guard may start.
    Run(usize, Option<Duration>),
    WaitUntil(Duration),
    Idle,
}

impl Choice {
    /// The end of the guard that a job waits for.
    fn waiting(&self) -> Option<Duration> {
        match *self {
            Choice::WaitUntil(instant) => Some(instant),
            _ => None,
        }
    }
}
