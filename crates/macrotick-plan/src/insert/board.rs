//! The windows of one CPU in a cycle, each with the unit that it belongs to.

use std::collections::BTreeMap;

use macrotick_model::Duration;

/// Intervals without overlap, by their starts within the cycle. One can extend over the end of the cycle.
pub(super) struct Board {
    cycle: Duration,
    taken: BTreeMap<Duration, (Duration, usize)>,
}

/// An interval that is taken, near the instant of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub start: Duration,
    pub end: Duration,
    pub unit: usize,
}

impl Board {
    pub fn new(cycle: Duration) -> Board {
        Board { cycle, taken: BTreeMap::new() }
    }

    fn turn(&self, instant: Duration) -> Duration {
        self.cycle * instant.as_nanos().div_euclid(self.cycle.as_nanos())
    }

    pub fn put(&mut self, start: Duration, length: Duration, unit: usize) {
        self.taken.insert(start - self.turn(start), (length, unit));
    }

    pub fn remove(&mut self, start: Duration) {
        self.taken.remove(&(start - self.turn(start)));
    }

    /// Returns the intervals that overlap with one of at most a cycle.
    pub fn meeting(&self, start: Duration, length: Duration) -> impl Iterator<Item = Taken> + '_ {
        let turn = self.turn(start);
        let (from, to) = (start - turn, start - turn + length);
        let shifted = |by: Duration| {
            move |(&start, &(length, unit)): (&Duration, &(Duration, usize))| Taken {
                start: start + by,
                end: start + length + by,
                unit,
            }
        };
        let before = self.taken.range(..from).next_back().map(shifted(turn));
        let before = before.or_else(|| self.taken.range(from..).next_back().map(shifted(turn - self.cycle)));
        let here = self.taken.range(from..to.min(self.cycle).max(from)).map(shifted(turn));
        let behind = (to - self.cycle).max(Duration::ZERO).min(from);
        let next = self.taken.range(Duration::ZERO..behind).map(shifted(turn + self.cycle));
        before.filter(move |before| before.end > start).into_iter().chain(here).chain(next)
    }

    /// Returns the first free interval from an instant on, cut there. `None` if the CPU has none in a cycle.
    pub fn free(&self, from: Duration) -> Option<(Duration, Duration)> {
        let mut start = from;
        while let Some(taken) = self.meeting(start, Duration::from_nanos(1)).next() {
            start = taken.end;
            if start - from >= self.cycle {
                return None;
            }
        }
        let turn = self.turn(start);
        let next = self.taken.range(start - turn..).next().map(|(&next, _)| next + turn);
        let next = next.or_else(|| self.taken.keys().next().map(|&first| first + turn + self.cycle));
        Some((start, next.unwrap_or(start + self.cycle)))
    }
}

#[cfg(test)]
mod tests {
    use macrotick_model::SplitMix64;

    use super::*;

    fn us(n: i64) -> Duration {
        Duration::from_micros(n)
    }

    /// Compares with an array of microseconds.
    #[test]
    fn what_meets_and_what_is_free_is_that_of_an_array() {
        let mut bits = SplitMix64::new(7);
        let mut draw = |limit: u64| (bits.bits() % limit) as i64;
        for _ in 0..200 {
            let cycle = 12 + draw(20);
            let mut board = Board::new(us(cycle));
            let mut array: Vec<Option<usize>> = vec![None; cycle as usize];
            for unit in 0..6 {
                let (start, length) = (draw(40) - 5, 1 + draw(5));
                let cells: Vec<usize> = (start..start + length).map(|at| at.rem_euclid(cycle) as usize).collect();
                if cells.iter().all(|&cell| array[cell].is_none()) {
                    cells.iter().for_each(|&cell| array[cell] = Some(unit));
                    board.put(us(start), us(length), unit);
                }
            }
            let at = |instant: i64| array[instant.rem_euclid(cycle) as usize];
            for start in -cycle..2 * cycle {
                for length in 1..=cycle {
                    let mut met: Vec<usize> = board.meeting(us(start), us(length)).map(|taken| taken.unit).collect();
                    met.sort_unstable();
                    met.dedup();
                    let mut expected: Vec<usize> = (start..start + length).filter_map(at).collect();
                    expected.sort_unstable();
                    expected.dedup();
                    assert_eq!(met, expected, "{start} {length} of {cycle}: {array:?}");
                }
                let free = (start..start + cycle).find(|&instant| at(instant).is_none());
                let end = free
                    .map(|free| (free..free + cycle).find(|&instant| at(instant).is_some()).unwrap_or(free + cycle));
                assert_eq!(
                    board.free(us(start)),
                    free.zip(end).map(|(free, end)| (us(free), us(end))),
                    "{start} {array:?}"
                );
            }
        }
    }
}
