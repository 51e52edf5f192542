//! The limits of a search, and the one that watches it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration as WallTime, Instant};

use crate::error::PlanError;

/// How long the solver searches, and how it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest time of the search on the wall clock. The search ends earlier with a plan or a proof.
    pub time_limit: WallTime,
    /// The seed of all draws. The same seed gives the same plan, if the search finds it in time.
    pub seed: u64,
    /// The number of trials at the same time, each on a thread. The plan does not depend on it.
    pub jobs: usize,
}

impl Options {
    /// The time limit of the command line.
    pub const TIME_LIMIT: WallTime = WallTime::from_secs(60);
    /// The seed of the command line.
    pub const SEED: u64 = 1;

    /// Returns the options of the command line.
    pub fn command_line() -> Options {
        let jobs = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
        Options { time_limit: Options::TIME_LIMIT, seed: Options::SEED, jobs }
    }
}

impl Default for Options {
    /// Returns the options for callers that need an answer soon: two seconds, on one thread.
    fn default() -> Options {
        Options { time_limit: WallTime::from_secs(2), seed: Options::SEED, jobs: 1 }
    }
}

/// How far a search is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The time since its start.
    pub elapsed: WallTime,
    /// The number of trials that have failed.
    pub trials: u64,
    /// The reason of the closest trial.
    pub bottleneck: Option<&'a PlanError>,
}

/// Follows a search, and can end it. The search calls it from all its threads.
pub trait Watch: Sync {
    /// Whether the search must end now. It then returns the plan that it has, or else [`PlanError::NotFound`].
    fn is_over(&self) -> bool {
        false
    }

    /// Takes note of a failed trial.
    fn tell(&self, _progress: &Progress) {}
}

/// Watches nothing.
pub struct Unwatched;

impl Watch for Unwatched {}

/// The clock of a search, or of one trial of it.
#[derive(Clone, Copy)]
pub(crate) struct Clock<'a> {
    start: Instant,
    end: Instant,
    pub options: Options,
    pub watch: &'a dyn Watch,
    /// The number of this trial, and the least number of a trial that has succeeded.
    race: Option<(u64, &'a AtomicU64)>,
    /// The most trials. A larger number finds nothing more.
    pub trials: u64,
}

/// The most trials of a whole search.
const TRIALS: u64 = 4000;

impl<'a> Clock<'a> {
    pub fn start(options: Options, watch: &'a dyn Watch) -> Clock<'a> {
        // A limit beyond the range of the clock is the same as a day.
        let day = WallTime::from_secs(24 * 3600);
        let start = Instant::now();
        Clock { start, end: start + options.time_limit.min(day), options, watch, race: None, trials: TRIALS }
    }

    /// Returns the clock of a trial, which is also over when a trial with a lower number has succeeded.
    pub fn of_trial<'b>(&'b self, number: u64, winner: &'b AtomicU64) -> Clock<'b> {
        Clock { race: Some((number, winner)), ..*self }
    }

    /// Returns a clock for fewer trials.
    pub fn with_trials(&self, trials: u64) -> Clock<'a> {
        Clock { trials, ..*self }
    }

    /// Returns a clock with a part of the rest of the time.
    pub fn part(&self, of: u32) -> Clock<'a> {
        let now = Instant::now();
        Clock { end: now + self.end.saturating_duration_since(now) / of, ..*self }
    }

    /// Returns a clock that leaves a part of the rest of the time.
    pub fn without_part(&self, of: u32) -> Clock<'a> {
        let now = Instant::now();
        Clock { end: self.end - self.end.saturating_duration_since(now) / of, ..*self }
    }

    pub fn is_over(&self) -> bool {
        self.race.is_some_and(|(number, winner)| winner.load(Ordering::Relaxed) < number)
            || Instant::now() >= self.end
            || self.watch.is_over()
    }

    pub fn elapsed(&self) -> WallTime {
        self.start.elapsed()
    }
}
