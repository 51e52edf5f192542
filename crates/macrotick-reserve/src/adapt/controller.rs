//! The feedback: from the CPU time that each period used, and from late jobs, to the next runtime.
//!
//! The runtime follows a high quantile of the CPU times since the last step of the load. A row of late periods shows a
//! step up. The runtime then grows fast, because the CPU time of a job that waits for its runtime is unknown. A step
//! down shows as many periods that all need far less. If a step down was none, the next one needs twice as many
//! periods. So a program with a rare long job does not make the runtime swing.

use std::collections::VecDeque;

use macrotick_model::Duration;

/// A period of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The CPU time that the program had in it.
    pub used: Duration,
    /// Whether a job was unfinished at its end: at the next release.
    pub late: bool,
}

/// The bounds of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least runtime.
    pub least: Duration,
    /// The greatest runtime.
    pub most: Duration,
}

/// The share of periods in which the jobs are on time, at least.
pub const ON_TIME: f64 = 0.99;
/// The quantile that the runtime follows. The margin is there as well.
const FOLLOWED: f64 = 0.988;
/// The periods from which the quantile is not the greatest time.
const MANY: usize = 84;
/// The periods that are kept.
const KEPT: usize = 600;
/// The periods that are enough for a runtime. Films have groups of 12 frames.
pub const ENOUGH: usize = 12;
/// The periods that are enough after a climb of many periods: near the greatest runtime, late jobs are done late.
const FEW: usize = 6;
const SLOW: usize = 19;
/// The runtime is longer than the quantile by this share, or by [`PATHS`].
const MARGIN: f64 = 0.02;
/// The time of the kernel's paths in a job, which the kernel charges and no event shows.
const PATHS: f64 = 10e3;
/// The late periods in a row that one long job can cause.
const ROW: usize = 2;
/// The periods after a row that show whether it was one long job.
const AFTER: usize = 2;
/// A time beyond the runtime by this share is no jitter. Two of them within [`RECENT`] periods are a step up.
const BEYOND: f64 = 0.05;
const RECENT: usize = 24;
/// The first and the last number of periods that show a step down. A step down is to less than a share.
const DOWN: usize = 15;
const SLOWEST: usize = 480;
const FAR: f64 = 0.9;
/// The runtime grows by this share with the first late period of a climb, and twice as much with each further one.
const GROWTH: f64 = 0.15;
const STEEPEST: f64 = 1.2;
/// The runtime changes by at least these shares.
const UP: f64 = 0.005;
const LESS: f64 = 0.015;

/// The state of the feedback.
#[derive(Clone, Debug)]
pub struct Controller {
    bounds: Bounds,
    /// In nanoseconds, within the bounds.
    runtime: f64,
    /// The runtime by the quantile.
    base: f64,
    /// The CPU times since the last step of the load.
    times: VecDeque<f64>,
    /// The late periods in a row, and their CPU time.
    row: usize,
    row_time: f64,
    /// A row that may be the first one after a step up.
    doubt: Option<Doubt>,
    /// The periods since the first late one of a climb, if the times since then are too few for a runtime.
    climb: Option<usize>,
    /// The periods that show a step down.
    patience: usize,
    /// The runtime before the last step down, and the periods since then.
    before: Option<(f64, usize)>,
}

/// A short row of late periods, of one long job or after a step up. The next periods tell.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The CPU time of the row with the period after it, and the number of late periods.
    total: f64,
    row: f64,
    /// The CPU time of another job, and the number of periods that still have to come.
    other: f64,
    left: usize,
}

impl Controller {
    /// Begins with a runtime.
    pub fn new(runtime: Duration, bounds: Bounds) -> Controller {
        let runtime = runtime.clamp(bounds.least, bounds.most).as_nanos() as f64;
        Controller {
            bounds,
            runtime,
            base: runtime,
            times: VecDeque::with_capacity(KEPT),
            row: 0,
            row_time: 0.0,
            doubt: None,
            climb: Some(0),
            patience: DOWN,
            before: None,
        }
    }

    /// Returns the runtime, in whole microseconds.
    pub fn runtime(&self) -> Duration {
        Duration::from_micros((self.runtime / 1e3).ceil() as i64)
    }

    /// Whether the times since the last step of the load are enough for the runtime.
    pub fn is_settled(&self) -> bool {
        self.climb.is_none()
    }

    /// Whether the runtime is longer for a while, because a job is late.
    pub fn is_raised(&self) -> bool {
        self.runtime != self.base || self.row > 0
    }

    /// Takes the next period. Returns the runtime from now on.
    pub fn next(&mut self, seen: Seen) -> Duration {
        let used = seen.used.as_nanos() as f64;
        if let Some((_, periods)) = &mut self.before {
            *periods += 1;
        }
        if let Some(periods) = &mut self.climb {
            *periods += 1;
        }
        match (seen.late, self.row) {
            (true, _) => self.late(used),
            (false, 0) => self.on_time(used),
            (false, _) => self.end_row(used),
        }
        self.runtime()
    }

    /// Tells that this runtime is the present one: the wanted one was refused.
    pub fn refused(&mut self, present: Duration) {
        self.runtime = present.as_nanos() as f64;
    }

    /// A late period: the jobs need more, and it is unknown how much.
    fn late(&mut self, used: f64) {
        self.row += 1;
        self.row_time += used;
        if self.climb.is_some() || self.row > ROW {
            self.step_up();
        } else if self.row == ROW {
            // The rest of one long job is done with this for a while.
            self.set(2.0 * self.base);
        }
    }

    /// The runtime climbs until the jobs are on time.
    fn step_up(&mut self) {
        if self.climb.is_none() {
            self.climb = Some(self.row);
        }
        if self.row > ROW {
            self.times.clear();
        }
        self.doubt = None;
        // A step down that was none: the runtime was right before.
        if let Some((before, periods)) = self.before.take() {
            if periods < 4 * self.patience {
                self.patience = (2 * self.patience).min(SLOWEST);
                return self.set(self.runtime.max(before));
            }
        }
        let growth = (GROWTH * f64::powi(2.0, self.row as i32 - 1)).min(STEEPEST);
        self.set(self.runtime * (1.0 + growth));
    }

    /// The last period of a row. It has the rest of a late job, so only the sum of the row is known.
    fn end_row(&mut self, used: f64) {
        let total = self.row_time + used;
        match self.climb {
            Some(_) if self.row <= ROW && self.times.len() >= FEW => {
                self.keep(total - self.row as f64 * self.quantile(0.5));
            }
            Some(_) => self.keep(total / (self.row + 1) as f64),
            None => self.doubt = Some(Doubt { total, row: self.row as f64, other: self.quantile(0.5), left: AFTER }),
        }
        (self.row, self.row_time) = (0, 0.0);
        self.follow();
    }

    fn on_time(&mut self, used: f64) {
        self.keep(used);
        if let Some(mut doubt) = self.doubt.take() {
            let is_first = doubt.left == AFTER;
            doubt.other = if is_first { doubt.other.max(used) } else { doubt.other };
            doubt.left -= 1;
            if used > self.base * (1.0 + BEYOND) {
                self.times.clear();
                self.keep(used);
                self.climb = Some(AFTER);
            } else if doubt.left > 0 {
                self.doubt = Some(doubt);
            } else {
                self.keep((doubt.total - doubt.row * doubt.other).max(self.base));
            }
        }
        self.follow();
    }

    fn keep(&mut self, time: f64) {
        if self.times.len() == KEPT {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    /// Follows the quantile.
    fn follow(&mut self) {
        let count = self.times.len();
        if let Some(periods) = self.climb {
            if count < ENOUGH && (periods < SLOW || count < FEW) {
                return;
            }
            self.climb = None;
        } else if self.doubt.is_some() {
            return;
        }
        let beyond = self.times.iter().rev().take(RECENT).filter(|time| **time > self.base * (1.0 + BEYOND));
        if count > RECENT && beyond.count() > 1 {
            self.times.drain(..count - RECENT);
        }
        let mut wanted = with_margin(self.quantile(FOLLOWED));
        let recent = self.times.iter().rev().take(self.patience).copied().fold(0.0, f64::max);
        if self.times.len() > self.patience && with_margin(recent) < FAR * wanted {
            self.before = Some((self.base, 0));
            self.times.drain(..self.times.len() - self.patience);
            wanted = with_margin(recent);
        }
        if wanted > self.base * (1.0 + UP) || wanted < self.base * (1.0 - LESS) {
            self.base = wanted;
        }
        self.set(self.base);
        self.base = self.runtime;
    }

    /// Returns a quantile of the times, the upper one of two.
    fn quantile(&self, part: f64) -> f64 {
        let mut times: Vec<f64> = self.times.iter().copied().collect();
        let few = times.len() < MANY && part == FOLLOWED;
        let rank = if few { times.len() } else { (times.len() as f64 * part).ceil() as usize };
        match times.is_empty() {
            true => 0.0,
            false => *times.select_nth_unstable_by(rank.max(1) - 1, f64::total_cmp).1,
        }
    }

    fn set(&mut self, runtime: f64) {
        let Bounds { least, most } = self.bounds;
        self.runtime = runtime.clamp(least.as_nanos() as f64, most.as_nanos() as f64);
    }
}

fn with_margin(time: f64) -> f64 {
    time + (time * MARGIN).max(PATHS)
}
