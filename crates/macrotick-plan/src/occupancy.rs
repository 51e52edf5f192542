//! Folded occupancy: the busy time of one CPU or link, folded modulo each period.
//!
//! A task of period T overlaps with another window exactly where that window overlaps with it modulo T. So each
//! distinct period has one map of busy intervals in `[0, T)`, with all placed windows. Placing a task is one walk over
//! the free intervals of its map.
//!
//! Windows of longer periods can lie on each other in a fold. So the map counts the windows at each instant, and a
//! window can be released again.

use std::collections::BTreeMap;

use macrotick_model::Duration;

/// The busy intervals of one CPU or link, folded modulo each period.
#[derive(Default)]
pub(crate) struct Occupancy {
    folds: BTreeMap<Duration, Cover>,
}

/// The number of windows at each instant: that of the key before it. Neighbouring numbers differ.
struct Cover(BTreeMap<Duration, u32>);

impl Occupancy {
    pub fn new(periods: impl Iterator<Item = Duration>) -> Self {
        Occupancy { folds: periods.map(|period| (period, Cover::empty())).collect() }
    }

    /// Takes `[start, start + length)` in every `every`.
    pub fn take(&mut self, start: Duration, length: Duration, every: Duration) {
        self.change(start, length, every, 1);
    }

    /// Releases what was taken with the same numbers.
    pub fn release(&mut self, start: Duration, length: Duration, every: Duration) {
        self.change(start, length, every, -1);
    }

    /// Makes the fold of one more period. `taken` has all windows that were taken and not released: their starts, their
    /// lengths, and the periods after which they repeat.
    pub fn fold(&mut self, period: Duration, taken: impl Iterator<Item = (Duration, Duration, Duration)>) {
        if self.folds.contains_key(&period) {
            return;
        }
        let mut cover = Cover::empty();
        taken.for_each(|(start, length, every)| cover.fold(period, (start, length, every), 1));
        self.folds.insert(period, cover);
    }

    fn change(&mut self, start: Duration, length: Duration, every: Duration, by: i32) {
        self.folds.iter_mut().for_each(|(&period, cover)| cover.fold(period, (start, length, every), by));
    }

    /// Returns the length of the free time directly before `instant` in the fold of `period`, at most `most`. It
    /// continues over multiples of the period.
    pub fn free_before(&self, period: Duration, instant: Duration, most: Duration) -> Duration {
        self.folds[&period].free_before(instant % period, period).map_or(most, |free| free.min(most))
    }

    /// Returns the free interval in the fold of `period` that contains `from` or is the next one after it, cut at
    /// `from`. Instants continue beyond the period; no interval crosses a multiple of it. `None` if no time is free.
    pub fn next_free(&self, period: Duration, from: Duration) -> Option<(Duration, Duration)> {
        let cover = &self.folds[&period];
        let turn = period * (from / period);
        let free = cover.next_free(from - turn, period).map(|(start, end)| (start + turn, end + turn));
        free.or_else(|| {
            let turn = turn + period;
            cover.next_free(Duration::ZERO, period).map(|(start, end)| (start + turn, end + turn))
        })
    }
}

impl Cover {
    fn empty() -> Cover {
        Cover(BTreeMap::from([(Duration::ZERO, 0)]))
    }

    /// Changes the number of windows in the images of `[start, start + length)` of every `every` in `[0, period)`.
    fn fold(&mut self, period: Duration, (start, length, every): (Duration, Duration, Duration), by: i32) {
        // The images are `step` apart.
        let step = every.gcd(period);
        if length >= step {
            return self.change(Duration::ZERO, period, by);
        }
        let first = start % step;
        for image in 0..period / step {
            let from = first + step * image;
            self.change(from, (from + length).min(period), by);
            if from + length > period {
                self.change(Duration::ZERO, from + length - period, by);
            }
        }
    }

    /// Returns the number of windows at an instant.
    fn at(&self, instant: Duration) -> u32 {
        self.0.range(..=instant).next_back().map_or(0, |(_, &count)| count)
    }

    /// Changes the number of windows in `[start, end)`, which is not empty.
    fn change(&mut self, start: Duration, end: Duration, by: i32) {
        for edge in [start, end] {
            let count = self.at(edge);
            self.0.entry(edge).or_insert(count);
        }
        for (_, count) in self.0.range_mut(start..end) {
            *count = count.checked_add_signed(by).expect("only what was taken is released");
        }
        for edge in [start, end] {
            let before = self.0.range(..edge).next_back().map(|(_, &count)| count);
            if before.is_some() && before == self.0.get(&edge).copied() {
                self.0.remove(&edge);
            }
        }
    }

    /// Returns the time from the end of the busy time before `phase` to `phase`. That end may be in the period before.
    /// `None` if nothing is busy.
    fn free_before(&self, phase: Duration, limit: Duration) -> Option<Duration> {
        match self.0.range(..phase).next_back() {
            Some((_, &count)) if count > 0 => return Some(Duration::ZERO),
            Some((&from, _)) if from > Duration::ZERO => return Some(phase - from),
            _ => {}
        }
        match self.0.range(..limit).next_back() {
            Some((_, &count)) if count > 0 => Some(phase),
            Some((&from, _)) if from > Duration::ZERO => Some(phase + limit - from),
            _ => None,
        }
    }

    fn next_free(&self, from: Duration, limit: Duration) -> Option<(Duration, Duration)> {
        let mut start = from;
        if self.at(from) > 0 {
            start = self.0.range(from..limit).find(|(_, &count)| count == 0).map(|(&start, _)| start)?;
        }
        if start >= limit {
            return None;
        }
        // The number changes at the next key, so the free interval ends there.
        let next = self.0.range(start..limit).map(|(&next, _)| next).find(|&next| next > start);
        Some((start, next.unwrap_or(limit)))
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

    /// After any order of taking and releasing, free time is that of the windows that are left.
    #[test]
    fn what_is_released_is_free_again() {
        let mut bits = macrotick_model::SplitMix64::new(3);
        let mut draw = |limit: u64| (bits.bits() % limit) as i64;
        let periods = [us(10), us(15), us(20), us(60)];
        let mut occupancy = Occupancy::new(periods.into_iter());
        let mut taken: Vec<(Duration, Duration, Duration)> = Vec::new();
        for _ in 0..400 {
            if taken.len() > 6 || (!taken.is_empty() && draw(3) == 0) {
                let (start, length, every) = taken.swap_remove(draw(taken.len() as u64) as usize);
                occupancy.release(start, length, every);
            } else {
                let every = periods[draw(4) as usize];
                let window = (us(draw(60)), us(1 + draw(4)), every);
                occupancy.take(window.0, window.1, window.2);
                taken.push(window);
            }
            let mut again = Occupancy::new(periods.into_iter());
            taken.iter().for_each(|&(start, length, every)| again.take(start, length, every));
            for (period, instant) in periods.into_iter().flat_map(|period| (0..70).map(move |at| (period, us(at)))) {
                assert_eq!(occupancy.next_free(period, instant), again.next_free(period, instant));
                assert_eq!(occupancy.free_before(period, instant, us(9)), again.free_before(period, instant, us(9)));
            }
        }
    }
}
