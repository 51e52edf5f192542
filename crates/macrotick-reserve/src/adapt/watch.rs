//! From the bursts of a thread to its periods: the CPU time of each, and whether a job was late.
//!
//! A period begins with the nominal release of a job. A thread that has not blocked since before the next release is
//! late. A thread that is late blocks for a moment only, so the wake-ups tell nothing then.

use std::collections::BTreeMap;

use macrotick_measure::{Burst, Grid};
use macrotick_model::Duration;

use super::controller::Seen;

/// The part of wake-ups that may be before the nominal release.
const EARLY: f64 = 0.05;
/// A wake-up before the nominal release by at most this part of a period begins the next job.
const NEAR: f64 = 0.05;

/// A period that was not told yet.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    used: i64,
    late: bool,
    /// Whether the CPU time of a burst is unknown.
    is_unknown: bool,
}

/// Follows a thread.
#[derive(Clone, Debug)]
pub struct Follower {
    period: f64,
    /// The begin of period 0.
    begin: f64,
    /// The first period that was not told.
    next: i64,
    parts: BTreeMap<i64, Part>,
    /// The number of completed bursts that were taken.
    taken: usize,
    /// The begin of a burst of which a part was told, and the CPU time of this part.
    told: Option<(i64, i64)>,
    /// The late periods so far.
    pub late: usize,
    /// All periods with a job so far.
    pub periods: usize,
}

impl Follower {
    /// Follows a thread from a burst on.
    pub fn new(grid: &Grid, done: &[Burst], from: usize) -> Follower {
        let begin = release(grid, &done[from..]);
        let mut follower = Follower {
            period: grid.period,
            begin,
            next: 0,
            parts: BTreeMap::new(),
            taken: from,
            told: None,
            late: 0,
            periods: 0,
        };
        // The first job may be a part of one.
        follower.next = done.get(from).map_or(0, |first| follower.period_of(first.woken as f64) + 1);
        follower
    }

    /// Returns the present length of a period.
    pub fn period(&self) -> f64 {
        self.period
    }

    /// Takes a better grid, with the newest bursts.
    pub fn fit(&mut self, grid: &Grid, done: &[Burst]) {
        let (begin, next) = (release(grid, done), self.begin_of(self.next));
        let ahead = ((next - begin) / grid.period).round();
        self.period = grid.period;
        self.begin = begin + (ahead - self.next as f64) * grid.period;
    }

    /// Returns the number of the period of an instant, and the begin of a period.
    fn period_of(&self, at: f64) -> i64 {
        ((at - self.begin) / self.period).floor() as i64
    }

    fn begin_of(&self, period: i64) -> f64 {
        self.begin + period as f64 * self.period
    }

    /// Returns the period that a burst begins in.
    pub fn first_of(&self, burst: &Burst) -> i64 {
        self.period_of(burst.woken as f64 + NEAR * self.period)
    }

    /// Returns the periods that are over and were not told yet. `done` has all completed bursts, `present` the one that
    /// goes on, and `others` returns the CPU time of other threads that counts in a period.
    pub fn periods(
        &mut self,
        done: &[Burst],
        present: Option<Burst>,
        now: i64,
        others: impl Fn(&Follower, i64) -> i64,
    ) -> Vec<Seen> {
        for burst in &done[self.taken.min(done.len())..] {
            for (period, part) in self.spread(burst) {
                self.add(period, part);
            }
            self.told = None;
        }
        self.taken = done.len();
        // Events of a little before the end may begin the next job.
        let over = self.period_of(now as f64 - NEAR * self.period);
        if let Some(burst) = present {
            for (period, part) in self.spread(&burst).into_iter().filter(|(period, _)| *period < over) {
                self.add(period, part);
                let before = self.told.map_or(0, |(_, time)| time);
                self.told = Some((burst.woken, before + part.used));
            }
        }
        let mut seen = Vec::new();
        while self.next < over {
            // A period without a job tells nothing.
            if let Some(part) = self.parts.remove(&self.next).filter(|part| !part.is_unknown) {
                let used = Duration::from_nanos(part.used + others(self, self.next));
                seen.push(Seen { used, late: part.late });
            }
            self.next += 1;
        }
        self.periods += seen.len();
        self.late += seen.iter().filter(|seen| seen.late).count();
        seen
    }

    fn add(&mut self, period: i64, part: Part) {
        let sum = self.parts.entry(period).or_default();
        sum.used += part.used;
        sum.late |= part.late;
        sum.is_unknown |= part.is_unknown;
    }

    /// Spreads a burst over the periods that it lasts, without those that were told.
    fn spread(&self, burst: &Burst) -> Vec<(i64, Part)> {
        let last = self.period_of(burst.ended as f64 - 1.0);
        let first = self.first_of(burst).max(self.next);
        let told = self.told.filter(|(woken, _)| *woken == burst.woken).map_or(0, |(_, time)| time);
        let time = burst.ran.map(|ran| (ran - told).max(0));
        let last = last.max(self.first_of(burst));
        let from = if self.first_of(burst) < self.next { self.begin_of(self.next) } else { burst.woken as f64 };
        let whole = (burst.ended as f64 - from).max(1.0);
        let part = |period: i64| {
            let begin = if period == first { from } else { self.begin_of(period) };
            let end = if period == last { burst.ended as f64 } else { self.begin_of(period + 1) };
            let used = time.map_or(0, |time| (time as f64 * (end - begin) / whole).round() as i64);
            (period, Part { used, late: period < last, is_unknown: time.is_none() })
        };
        (first..=last).map(part).collect()
    }
}

/// Returns a nominal release: few jobs begin before it.
fn release(grid: &Grid, bursts: &[Burst]) -> f64 {
    let mut first: Vec<(i64, i64)> = bursts.iter().map(|burst| (grid.slot(burst.woken), burst.woken)).collect();
    first.dedup_by_key(|(slot, _)| *slot);
    let after = |&(slot, at): &(i64, i64)| at as f64 - grid.cut - slot as f64 * grid.period;
    let mut offsets: Vec<f64> = first.iter().map(after).collect();
    offsets.sort_unstable_by(f64::total_cmp);
    grid.cut + offsets.get((offsets.len() as f64 * EARLY) as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { period: 100.0, error: 0.0, cut: -50.0 };

    fn burst(woken: i64, ended: i64, ran: i64) -> Burst {
        Burst { woken, ended, ran: Some(ran) }
    }

    fn told(seen: &[Seen]) -> Vec<(i64, bool)> {
        seen.iter().map(|seen| (seen.used.as_nanos(), seen.late)).collect()
    }

    /// A follower from the second period on.
    fn follower() -> (Follower, Vec<Burst>) {
        let done = vec![burst(0, 10, 10)];
        (Follower::new(&GRID, &done, 0), done)
    }

    #[test]
    fn bursts_of_a_period_are_one_job() {
        let (mut follower, mut done) = follower();
        done.extend([burst(100, 110, 10), burst(120, 130, 5), burst(198, 230, 20)]);
        assert_eq!(told(&follower.periods(&done[..3], None, 190, |_, _| 0)), []);
        assert_eq!(told(&follower.periods(&done, None, 230, |_, _| 7)), [(22, false)]);
        assert_eq!(told(&follower.periods(&done, Some(burst(300, 310, 1)), 310, |_, _| 0)), [(20, false)]);
        // No job in the fourth period.
        done.extend([burst(300, 320, 9), burst(500, 510, 8)]);
        assert_eq!(told(&follower.periods(&done, None, 610, |_, _| 0)), [(9, false), (8, false)]);
        assert_eq!((follower.periods, follower.late), (4, 0));
    }

    #[test]
    fn a_job_that_goes_on_is_late_in_each_period() {
        let (mut follower, mut done) = follower();
        let mut at =
            |done: &[Burst], now, ran| told(&follower.periods(done, Some(burst(100, now, ran)), now, |_, _| 0));
        assert_eq!(at(&done, 190, 30), []);
        assert_eq!(at(&done, 210, 44), [(40, true)]);
        assert_eq!(at(&done, 250, 60), []);
        assert_eq!(at(&done, 410, 149), [(52, true), (52, true)]);
        done.push(burst(100, 420, 160));
        assert_eq!(told(&follower.periods(&done, None, 510, |_, _| 0)), [(16, false)]);
        assert_eq!(follower.late, 3);
    }

    /// A thread that is late blocks for a moment between its jobs.
    #[test]
    fn jobs_behind_late_ones_are_late() {
        let (mut follower, mut done) = follower();
        done.extend([burst(100, 250, 75), burst(251, 390, 70), burst(391, 410, 10), burst(410, 450, 20)]);
        let seen = follower.periods(&done, None, 510, |_, _| 0);
        assert_eq!(told(&seen), [(50, true), (50, true), (50, true), (25, false)]);
    }

    #[test]
    fn a_job_of_unknown_time_is_left_out_and_a_better_grid_is_taken() {
        let (mut follower, mut done) = follower();
        done.extend([Burst { woken: 100, ended: 110, ran: None }, burst(200, 210, 10)]);
        assert_eq!(told(&follower.periods(&done, None, 310, |_, _| 0)), [(10, false)]);
        follower.fit(&Grid { period: 101.0, error: 0.0, cut: -46.0 }, &[burst(304, 310, 1)]);
        done.extend([burst(304, 314, 10), burst(405, 415, 11)]);
        assert_eq!(told(&follower.periods(&done, None, 520, |_, _| 0)), [(10, false), (11, false)]);
    }
}
