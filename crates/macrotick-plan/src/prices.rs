//! The price of each start of a window: what it would eject. One walk over the changes finds the cheapest start.

use macrotick_model::Duration;

/// The number of starts for each change up to which all starts are looked at.
const DENSE: usize = 16;

/// The price of a start. A blocked start costs more than any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Price {
    /// The number of things in the way that nothing ejects.
    blocks: i32,
    /// The sum of the prices of all others.
    sum: i64,
}

impl Price {
    fn change(&mut self, by: Price, sign: i8) {
        self.blocks += by.blocks * i32::from(sign);
        self.sum += by.sum * i64::from(sign);
    }
}

/// The prices of the starts in a range.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Prices {
    first: Duration,
    last: Duration,
    /// The distance of two starts.
    grid: Duration,
    /// The price of every start.
    base: Price,
    /// The changes of the price, at the instants from which on they apply: added or subtracted.
    steps: Vec<(Duration, Price, i8)>,
}

impl Prices {
    /// Makes a range of free starts: the first one, and all on the grid from there that are not later than the last.
    pub fn new((first, last): (Duration, Duration), grid: Duration) -> Prices {
        let last = last - (last - first) % grid;
        Prices { first, last, grid, base: Price::default(), steps: Vec::new() }
    }

    /// Adds the price of the starts in `[from, until)`.
    pub fn add(&mut self, price: i64, from: Duration, until: Duration) {
        self.within(Price { blocks: 0, sum: price }, from, until);
    }

    /// Adds the price of the starts strictly between two instants, and between their images every `step`.
    pub fn add_every(&mut self, price: i64, after: Duration, before: Duration, step: Duration) {
        self.every(Price { blocks: 0, sum: price }, after, before, step);
    }

    /// Blocks the starts strictly between two instants, and between their images every `step`.
    pub fn block_every(&mut self, after: Duration, before: Duration, step: Duration) {
        self.every(Price { blocks: 1, sum: 0 }, after, before, step);
    }

    fn within(&mut self, price: Price, from: Duration, until: Duration) {
        let (from, until) = (from.max(self.first), until.min(self.last + self.grid));
        if from < until {
            self.steps.extend([(from, price, 1), (until, price, -1)]);
        }
    }

    fn every(&mut self, price: Price, after: Duration, before: Duration, step: Duration) {
        if before - after > step {
            self.base.change(price, 1);
            return;
        }
        let turns = (self.first - before).as_nanos().div_euclid(step.as_nanos()) + 1;
        let mut shift = step * turns;
        // The instants may be between two starts.
        let after = after + Duration::from_nanos(1);
        while after + shift <= self.last {
            self.within(price, after + shift, before + shift);
            shift += step;
        }
    }

    /// Returns the cheapest price and the first start with it; `None` if all starts are blocked.
    pub fn cheapest(self) -> Option<(i64, Duration)> {
        let starts = ((self.last - self.first) / self.grid + 1) as usize;
        match starts <= self.steps.len() * DENSE {
            true => self.cheapest_of_all(starts),
            false => self.cheapest_of_steps(),
        }
    }

    /// Returns the number of the first start that is not before an instant.
    fn start_from(&self, instant: Duration) -> i64 {
        (instant - self.first + self.grid - Duration::from_nanos(1)) / self.grid
    }

    /// Goes through all starts. This is faster than sorting many changes.
    fn cheapest_of_all(self, starts: usize) -> Option<(i64, Duration)> {
        let mut changes = vec![Price::default(); starts + 1];
        for &(instant, change, sign) in &self.steps {
            changes[self.start_from(instant) as usize].change(change, sign);
        }
        let (mut price, mut best) = (self.base, None);
        for (start, change) in changes[..starts].iter().enumerate() {
            price.change(*change, 1);
            if best.is_none_or(|(least, _)| price < least) {
                best = Some((price, start));
            }
        }
        let best = best.filter(|(least, _)| least.blocks == 0);
        best.map(|(least, start)| (least.sum, self.first + self.grid * start as i64))
    }

    /// Goes through the starts at which the price changes.
    fn cheapest_of_steps(mut self) -> Option<(i64, Duration)> {
        self.steps.sort_unstable_by_key(|&(instant, ..)| instant);
        let mut steps = std::mem::take(&mut self.steps).into_iter().peekable();
        let (mut price, mut start) = (self.base, self.first);
        let mut best: Option<(Price, Duration)> = None;
        loop {
            while let Some((_, change, sign)) = steps.next_if(|&(instant, ..)| instant <= start) {
                price.change(change, sign);
            }
            if best.is_none_or(|(least, _)| price < least) {
                best = Some((price, start));
            }
            match steps.peek() {
                Some(&(instant, ..)) if instant <= self.last => {
                    start = self.first + self.grid * self.start_from(instant)
                }
                _ => return best.filter(|(least, _)| least.blocks == 0).map(|(least, start)| (least.sum, start)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_model::SplitMix64;

    use super::*;

    fn us(n: i64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn the_first_of_the_cheapest_starts_is_found() {
        let mut prices = Prices::new((us(0), us(20)), us(1));
        prices.add(3, us(0), us(5));
        prices.add(2, us(4), us(99));
        prices.add(5, us(5), us(8));
        assert_eq!(prices.cheapest(), Some((2, us(8))));
        let mut blocked = Prices::new((us(3), us(4)), us(1));
        (0..1000).for_each(|_| blocked.block_every(us(1), us(4), us(100)));
        blocked.add(3, us(4), us(5));
        assert_eq!(blocked.cheapest(), Some((3, us(4))));
        let mut blocked = Prices::new((us(3), us(4)), us(1));
        blocked.block_every(us(1), us(5), us(100));
        assert_eq!(blocked.cheapest(), None);
        assert_eq!(Prices::new((us(3), us(3)), us(1)).cheapest(), Some((0, us(3))));
    }

    #[test]
    fn a_window_that_is_too_long_is_in_the_way_of_every_start() {
        let mut prices = Prices::new((us(0), us(9)), us(1));
        prices.add_every(7, us(2), us(7), us(5));
        assert_eq!(prices.cheapest(), Some((0, us(2))));
        let mut prices = Prices::new((us(0), us(9)), us(1));
        prices.add_every(7, us(2), us(8), us(5));
        assert_eq!(prices.cheapest(), Some((7, us(0))));
    }

    /// Every start is compared with a sum over all windows.
    #[test]
    fn prices_are_those_of_every_start_by_itself() {
        let mut bits = SplitMix64::new(5);
        let mut draw = |limit: u64| (bits.bits() % limit) as i64;
        for _ in 0..300 {
            let (first, step, grid) = (draw(30), 1 + draw(12), 1 + draw(3));
            let last = first + draw(30);
            let windows: Vec<(i64, i64, i64)> =
                (0..4).map(|_| (1 + draw(9), draw(40), 1 + draw(step as u64))).collect();
            let mut prices = Prices::new((us(first), us(last)), us(grid));
            for &(price, after, length) in &windows {
                prices.add_every(price, us(after), us(after + length), us(step));
            }
            let within = |start: i64, after: i64, length: i64| {
                let phase = (start - after).rem_euclid(step);
                phase > 0 && phase < length
            };
            let price = |start: i64| -> i64 {
                windows.iter().filter(|&&(_, after, length)| within(start, after, length)).map(|window| window.0).sum()
            };
            let expected = (first..=last).step_by(grid as usize).map(|start| (price(start), us(start))).min();
            let all = ((last - first) / grid + 1) as usize;
            let name = format!("{windows:?} every {step} from {first} to {last} by {grid}");
            assert_eq!(prices.clone().cheapest_of_all(all), expected, "{name}");
            assert_eq!(prices.cheapest_of_steps(), expected, "{name}");
        }
    }
}
