//! The limits of a search.

use std::time::{Duration as WallTime, Instant};

/// How long the solver searches, and how it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest time of the search on the wall clock. The search ends earlier with a plan or a proof.
    pub time_limit: WallTime,
    /// The seed of all draws. The same seed gives the same plan, if the search finds it in time.
    pub seed: u64,
}

impl Options {
    /// The time limit of the command line.
    pub const TIME_LIMIT: WallTime = WallTime::from_secs(60);
    /// The seed of the command line.
    pub const SEED: u64 = 1;

    /// Returns the options of the command line.
    pub fn command_line() -> Options {
        Options { time_limit: Options::TIME_LIMIT, seed: Options::SEED }
    }
}

impl Default for Options {
    /// Returns the options for callers that need an answer soon: two seconds.
    fn default() -> Options {
        Options { time_limit: WallTime::from_secs(2), seed: Options::SEED }
    }
}

/// The clock of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    end: Instant,
    pub options: Options,
}

impl Clock {
    pub fn start(options: Options) -> Clock {
        // A limit beyond the range of the clock is the same as a day.
        let day = WallTime::from_secs(24 * 3600);
        Clock { end: Instant::now() + options.time_limit.min(day), options }
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}
