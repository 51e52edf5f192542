//! One CPU of a simulation: its gaps, its ready jobs, and the piece that runs.

use std::collections::BTreeSet;

use macrotick_model::Duration;

use super::jobs::NEVER;
use super::Gap;
use crate::table::Piece;

/// Deadline or latest start, rank and source: the order of the ready jobs.
pub(crate) type Key = (Duration, usize, usize);

/// A piece that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub source: usize,
    pub since: Duration,
    /// The end of the shortest piece: nothing preempts it before.
    pub hold: Duration,
    /// The instant at which its job is complete.
    pub done: Duration,
    /// Whether it is the first piece of its job.
    pub activate: bool,
    /// Whether it costs to resume the job here.
    pub resumed: bool,
}

pub(crate) struct Cpu {
    /// The index of the present or next gap.
    pub gap: usize,
    pub running: Option<Running>,
    /// The end of the last window.
    pub busy_until: Duration,
    pub ready: BTreeSet<Key>,
    /// For the next job of each source: the instant by which the window before it must end. Only with tasks that are
    /// not preemptible.
    pub upcoming: BTreeSet<(Duration, usize)>,
    /// The next instant at which it must decide.
    pub wake: Duration,
    /// The pieces of the present cycle, counted from its start.
    pub pieces: Vec<Piece>,
}

impl Cpu {
    pub fn new(busy_until: Duration) -> Cpu {
        let (ready, upcoming) = (BTreeSet::new(), BTreeSet::new());
        Cpu { gap: 0, running: None, busy_until, ready, upcoming, wake: NEVER, pieces: Vec::new() }
    }

    /// Starts a cycle.
    pub fn begin(&mut self, origin: Duration) {
        self.gap = 0;
        self.pieces.clear();
        self.wake = origin;
    }

    /// Returns the end of the last window, which is now if a piece runs.
    pub fn busy_until(&self, now: Duration) -> Duration {
        if self.running.is_some() {
            now
        } else {
            self.busy_until
        }
    }

    /// Whether idle time may continue over the end of the cycle.
    pub fn idle_at_end(gaps: &[Gap], cycle: Duration) -> bool {
        gaps.last().is_some_and(|gap| gap.end == cycle)
    }
}

/// The next step of a CPU.
pub(crate) enum Choice {
    /// Run this source, and decide again at this instant.
    Run(usize, Duration),
    WaitUntil(Duration),
    Idle,
}

/// The earliest instants among the jobs that wait for their lead or for the end of a guard.
#[derive(Default)]
pub(crate) struct Waiting {
    pub start: Option<Duration>,
    /// The start of the earliest lead, in which no job may run.
    pub lead: Option<Duration>,
    /// The earliest instant at which a resource is free again. Other jobs may run until then.
    pub retry: Option<Duration>,
}

impl Waiting {
    pub fn retry(&mut self, at: Duration) {
        self.retry = Some(self.retry.map_or(at, |earlier| earlier.min(at)));
    }

    pub fn add(&mut self, start: Duration, lead: Duration) {
        self.start = Some(self.start.map_or(start, |earlier| earlier.min(start)));
        self.lead = Some(self.lead.map_or(lead, |earlier| earlier.min(lead)));
    }
}
