//! Simulation of earliest deadline first (EDF), which fills preemptible jobs into the gaps of one CPU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use macrotick_model::Duration;

use crate::cut::{Cut, Missing};
use crate::demand::Demand;
use crate::place::behind_guard;
use crate::table::Piece;

/// The limit of simulated cycles. Jobs that reach over the end of the cycle make the second cycle differ from the
/// first. With a feasible load, the state at the end of the cycle repeats after one more cycle (Leung and Merrill
/// 1980). The rest is a margin for the idle time of guards and leads.
const MAX_CYCLES: i64 = 4;

/// A free interval `[start, end)` within the cycle. It starts at the end of a window or at the start of the cycle. It
/// ends at a window, at the lead before one, or at the end of the cycle.
pub(crate) type Gap = (Duration, Duration);

/// The tasks and gaps of one simulation.
pub(crate) struct Filling<'a> {
    pub demands: &'a [Demand],
    /// The indices of the tasks to fill in.
    pub tasks: &'a [usize],
    /// The order among equal deadlines: the lower rank goes first, so a chain runs in its order.
    pub ranks: &'a [usize],
    pub gaps: &'a [Gap],
    /// The longest time without windows that a job needs before its start.
    pub lead: Duration,
    pub cycle: Duration,
    pub macrotick: Duration,
    pub quantum: Duration,
    pub cut: Cut,
}

/// Deadline, rank and task: the order of the ready queue.
type Key = Reverse<(Duration, usize, usize)>;

/// The incomplete job of a task. Deadlines are at most periods, so there is at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    deadline: Duration,
    missing: Duration,
    started: bool,
}

/// The state that the next cycle depends on, relative to its start.
#[derive(PartialEq, Eq)]
struct State {
    /// The idle time so far, at most the lead.
    idle: Duration,
    /// Task, deadline, missing time, and whether the job has started.
    open: Vec<(usize, Duration, Duration, bool)>,
}

struct Simulation<'a> {
    filling: &'a Filling<'a>,
    guarded: bool,
    now: Duration,
    /// The end of the last window.
    busy_until: Duration,
    releases: BinaryHeap<Reverse<(Duration, usize)>>,
    ready: BinaryHeap<Key>,
    open: Vec<Option<Open>>,
    /// The start of the simulated cycle.
    origin: Duration,
    pieces: Vec<Piece>,
    missed: Vec<usize>,
}

impl Filling<'_> {
    /// Returns the pieces of one cycle, or the tasks that miss a deadline.
    ///
    /// It first keeps starts off the common grid. Only if this costs a deadline, starts may be anywhere.
    pub fn run(&self) -> Result<Vec<Piece>, Vec<usize>> {
        self.simulate(true).or_else(|_| self.simulate(false))
    }

    fn simulate(&self, guarded: bool) -> Result<Vec<Piece>, Vec<usize>> {
        let mut simulation = Simulation {
            filling: self,
            guarded,
            now: Duration::ZERO,
            busy_until: if self.idle_at_end() { -self.lead } else { Duration::ZERO },
            releases: self.tasks.iter().map(|&task| Reverse((self.demands[task].release(), task))).collect(),
            ready: BinaryHeap::new(),
            open: vec![None; self.demands.len()],
            origin: Duration::ZERO,
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
        // The jobs that keep the cycles from repeating. If there are none, the idle time before the cycle does, and all
        // tasks count.
        let open: Vec<usize> = before.open.into_iter().map(|(task, ..)| task).collect();
        Err(if open.is_empty() { self.tasks.to_vec() } else { open })
    }

    /// Whether idle time may continue over the end of the cycle.
    fn idle_at_end(&self) -> bool {
        self.gaps.last().is_some_and(|&(_, end)| end == self.cycle)
    }
}

impl Simulation<'_> {
    fn state(&self, origin: Duration) -> State {
        let open = self.open.iter().enumerate().filter_map(|(task, open)| open.map(|open| (task, open)));
        State {
            idle: (origin - self.busy_until).min(self.filling.lead),
            open: open.map(|(task, open)| (task, open.deadline - origin, open.missing, open.started)).collect(),
        }
    }

    fn run_cycle(&mut self, origin: Duration) {
        self.pieces.clear();
        self.origin = origin;
        for &(start, end) in self.filling.gaps {
            self.now = origin + start;
            if start > Duration::ZERO {
                self.busy_until = self.now;
            }
            self.run_gap(origin + end);
            if !self.missed.is_empty() {
                return;
            }
        }
        // Jobs that are released after the last gap are open at the end of the cycle.
        self.now = origin + self.filling.cycle;
        if !self.filling.idle_at_end() {
            self.busy_until = self.now;
        }
        self.release(self.now - Duration::from_nanos(1));
    }

    fn run_gap(&mut self, end: Duration) {
        while end - self.now >= self.filling.quantum {
            self.release(self.now);
            let next = self.releases.peek().map_or(end, |Reverse((release, _))| *release).min(end);
            match self.choose(end) {
                Choice::Run(task, until) => self.dispatch(task, until.map_or(next, |until| until.min(next)), end),
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
                // The task is still in the ready queue: the new job replaces the one that missed.
                self.missed.push(task);
            } else {
                self.ready.push(Reverse((release + demand.deadline, self.filling.ranks[task], task)));
            }
            self.open[task] =
                Some(Open { deadline: release + demand.deadline, missing: demand.needed, started: false });
            self.releases.push(Reverse((release + demand.period, task)));
        }
    }

    /// Returns the ready job with the earliest deadline that may run now. Such a job has started, or its lead is over
    /// and no guard keeps it from starting.
    fn choose(&mut self, gap_end: Duration) -> Choice {
        let mut passed = Vec::new();
        let mut waiting = Waiting::default();
        let mut choice = None;
        while choice.is_none() {
            let Some(key) = self.ready.pop() else {
                break;
            };
            let Reverse((_, _, task)) = key;
            passed.push(key);
            choice = self.consider(task, gap_end, &mut waiting);
        }
        self.ready.extend(passed);
        choice.unwrap_or(waiting.start.map_or(Choice::Idle, Choice::WaitUntil))
    }

    /// Decides whether to run the job, or to keep its lead free. `None` lets less urgent jobs run.
    fn consider(&self, task: usize, gap_end: Duration, waiting: &mut Waiting) -> Option<Choice> {
        let lead = self.filling.demands[task].lead;
        let start = self.start(task);
        if start == self.now {
            let until = waiting.lead.map_or(gap_end, |urgent| urgent.min(gap_end));
            return self.is_worth_it(task, start, until).then_some(Choice::Run(task, waiting.lead));
        }
        // A lead is useless if no window fits after it, or if the lead of a more urgent job cuts it off.
        let in_vain = lead > Duration::ZERO && !self.is_worth_it(task, start, gap_end);
        if in_vain || waiting.lead.is_some_and(|urgent| start >= urgent) {
            return None;
        }
        waiting.add(start, start - lead);
        // If another job ran now, this job could never start.
        (start - lead <= self.now).then_some(Choice::WaitUntil(start))
    }

    /// Returns the instant at which the job may run. A job that has started may run at once, another one after its lead
    /// and the guard.
    fn start(&self, task: usize) -> Duration {
        if self.open[task].is_some_and(|open| open.started) {
            return self.now;
        }
        let demand = &self.filling.demands[task];
        let start = self.now.max(self.busy_until + demand.lead);
        let guarded = || behind_guard(start, demand, self.filling.macrotick);
        self.guarded.then(guarded).flatten().unwrap_or(start)
    }

    /// Whether the piece that ends at this instant belongs to the job. The job then continues it.
    fn goes_on(&self, task: usize) -> bool {
        self.pieces.last().is_some_and(|last| {
            last.task == task && !last.deadline && self.origin + last.end() == self.now && self.now > self.origin
        })
    }

    /// Whether a piece of the job fits there that is long enough for its cost.
    fn is_worth_it(&self, task: usize, from: Duration, until: Duration) -> bool {
        let open = self.open[task].expect("a ready task has an open job");
        let missing = Missing::of(&self.filling.demands[task], open.missing, open.started);
        until - from >= self.filling.cut.least(missing) || from == self.now && self.goes_on(task)
    }

    /// Runs a job until it is complete, until the next release, or until the end of the gap.
    fn dispatch(&mut self, task: usize, next: Duration, end: Duration) {
        let cut = self.filling.cut;
        let mut open = self.open[task].expect("a ready task has an open job");
        let fresh = !self.goes_on(task);
        // A piece that continues has no new cost.
        let missing = Missing::of(&self.filling.demands[task], open.missing, fresh && open.started);
        let needed = cut.completing(missing);
        let until = if fresh { next.max(self.now + cut.least(missing)).min(end) } else { next };
        let length = needed.min(until - self.now);
        let start = self.now - self.origin;
        let piece = Piece { start, length, task, activate: !open.started, deadline: length == needed };
        self.now += length;
        self.busy_until = self.now;
        open.started = true;
        open.missing = missing.behind(length);
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
    /// Run this task, at most until the lead of a more urgent job starts.
    Run(usize, Option<Duration>),
    WaitUntil(Duration),
    Idle,
}

/// The earliest instants among the jobs that wait for their lead or for the end of a guard.
#[derive(Default)]
struct Waiting {
    start: Option<Duration>,
    /// The start of the earliest lead, in which no job may run.
    lead: Option<Duration>,
}

impl Waiting {
    fn add(&mut self, start: Duration, lead: Duration) {
        self.start = Some(self.start.map_or(start, |earlier| earlier.min(start)));
        self.lead = Some(self.lead.map_or(lead, |earlier| earlier.min(lead)));
    }
}
