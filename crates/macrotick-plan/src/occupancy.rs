//! Folded occupancy: the busy time of one CPU, folded modulo each period.
//!
//! A task of period T overlaps with another window exactly where that window overlaps with it modulo T. So each
//! distinct period has one map of busy intervals in `[0, T)`, with all placed windows. Placing a task is one walk over
//! the free intervals of its map.

use std::collections::BTreeMap;

use macrotick_model::Duration;

/// The busy intervals of one CPU, folded modulo each period.
pub(crate) struct Occupancy {
    folds: BTreeMap<Duration, Stretches>,
}

/// Disjoint intervals from start to end, which never touch.
#[derive(Default)]
struct Stretches(BTreeMap<Duration, Duration>);

impl Occupancy {
    pub fn new(periods: impl Iterator<Item = Duration>) -> Self {
        Occupancy { folds: periods.map(|period| (period, Stretches::default())).collect() }
    }

    /// Takes `[start, start + length)` in every `every`.
    pub fn take(&mut self, start: Duration, length: Duration, every: Duration) {
        for (&period, stretches) in &mut self.folds {
            // The images of the window in [0, period) are `step` apart.
            let step = every.gcd(period);
            if length >= step {
                stretches.add(Duration::ZERO, period);
                continue;
            }
            let first = start % step;
            for image in 0..period / step {
                let from = first + step * image;
                stretches.add(from, (from + length).min(period));
                if from + length > period {
                    stretches.add(Duration::ZERO, from + length - period);
                }
            }
        }
    }

    /// Returns the length of the free time directly before `instant` in the fold of `period`, at most `most`. It
    /// continues over multiples of the period.
    pub fn free_before(&self, period: Duration, instant: Duration, most: Duration) -> Duration {
        self.folds[&period].free_before(instant % period, period).map_or(most, |free| free.min(most))
    }

    /// Returns the free interval in the fold of `period` that contains `from` or is the next one after it, cut at
    /// `from`. Instants continue beyond the period; no interval crosses a multiple of it. `None` if no time is free.
    pub fn next_free(&self, period: Duration, from: Duration) -> Option<(Duration, Duration)> {
        let stretches = &self.folds[&period];
        let turn = period * (from / period);
        let free = stretches.next_free(from - turn, period).map(|(start, end)| (start + turn, end + turn));
        free.or_else(|| {
            let turn = turn + period;
            stretches.next_free(Duration::ZERO, period).map(|(start, end)| (start + turn, end + turn))
        })
    }
}

impl Stretches {
    /// Adds `[start, end)` and merges it with the intervals that it overlaps or touches.
    fn add(&mut self, mut start: Duration, mut end: Duration) {
        if let Some((&before, &before_end)) = self.0.range(..=start).next_back() {
            if before_end >= end {
                return;
            }
            if before_end >= start {
                start = before;
            }
        }
        while let Some((&next, &next_end)) = self.0.range(start..=end).next() {
            end = end.max(next_end);
            self.0.remove(&next);
        }
        self.0.insert(start, end);
    }

    /// Returns the time from the end of the interval before `phase` to `phase`. That interval may be in the period
    /// before. `None` if there is no interval.
    fn free_before(&self, phase: Duration, limit: Duration) -> Option<Duration> {
        match self.0.range(..phase).next_back() {
            Some((_, &end)) => Some((phase - end).max(Duration::ZERO)),
            None => self.0.last_key_value().map(|(_, &end)| phase + limit - end),
        }
    }

    fn next_free(&self, from: Duration, limit: Duration) -> Option<(Duration, Duration)> {
        let mut start = from;
        if let Some((_, &end)) = self.0.range(..=from).next_back() {
            start = start.max(end);
        }
        if start >= limit {
            return None;
        }
        // Intervals never touch, so at least one free macrotick is before the next one.
        let end = self.0.range(start..).next().map_or(limit, |(&next, _)| next);
        Some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: i64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn windows_fold_into_every_period() {
        let mut occupancy = Occupancy::new([us(10), us(15), us(30)].into_iter());
        occupancy.take(us(8), us(2), us(10));
        // 8..10 of every 10, modulo 15: 8, 18 = 3, 28 = 13.
        assert_eq!(occupancy.next_free(us(15), us(0)), Some((us(0), us(3))));
        assert_eq!(occupancy.next_free(us(15), us(3)), Some((us(5), us(8))));
        assert_eq!(occupancy.next_free(us(15), us(9)), Some((us(10), us(13))));
        assert_eq!(occupancy.next_free(us(15), us(14)), Some((us(15), us(18))));
        assert_eq!(occupancy.next_free(us(30), us(29)), Some((us(30), us(38))));
        assert_eq!(occupancy.next_free(us(10), us(8)), Some((us(10), us(18))));
    }

    #[test]
    fn abutting_stretches_leave_no_free_one_between() {
        let mut occupancy = Occupancy::new([us(10)].into_iter());
        occupancy.take(us(0), us(4), us(10));
        occupancy.take(us(6), us(4), us(10));
        assert_eq!(occupancy.next_free(us(10), us(0)), Some((us(4), us(6))));
        occupancy.take(us(4), us(2), us(10));
        assert_eq!(occupancy.next_free(us(10), us(0)), None);
    }

    #[test]
    fn a_window_as_long_as_the_common_divisor_takes_all() {
        let mut occupancy = Occupancy::new([us(7)].into_iter());
        occupancy.take(us(0), us(1), us(10));
        assert_eq!(occupancy.next_free(us(7), us(0)), None);
    }

    #[test]
    fn what_is_free_before_an_instant_reaches_back_over_the_period() {
        let mut occupancy = Occupancy::new([us(10), us(5)].into_iter());
        assert_eq!(occupancy.free_before(us(10), us(0), us(4)), us(4));
        occupancy.take(us(5), us(2), us(10));
        for (instant, free) in [(5, 8), (6, 0), (7, 0), (8, 1), (10, 3), (13, 6), (15, 8), (17, 0)] {
            assert_eq!(occupancy.free_before(us(10), us(instant), us(99)), us(free), "{instant}");
        }
        assert_eq!(occupancy.free_before(us(10), us(13), us(4)), us(4));
        // Folded once more: 0..2 of every 5.
        assert_eq!(occupancy.free_before(us(5), us(0), us(4)), us(3));
        occupancy.take(us(2), us(3), us(5));
        assert_eq!(occupancy.free_before(us(5), us(0), us(4)), us(0));
    }

    #[test]
    fn a_window_across_the_end_wraps() {
        let mut occupancy = Occupancy::new([us(10)].into_iter());
        occupancy.take(us(9), us(3), us(10));
        assert_eq!(occupancy.next_free(us(10), us(0)), Some((us(2), us(9))));
    }
}
