//! The price of the rest that windows of one period leave of a bin.
//!
//! A rest must suit the windows of the next longer period. In a table without gaps, many bins have one window alone. So a
//! rest that is as long as some of these windows is cheap: they fill its bins. Each rest has a price of its own, because
//! few long rests are easier to fill than many short ones.

use super::forest::Forest;

/// The price of a rest that nothing fits into, and of one that needs more short windows than there are.
const WASTED: i64 = 6000;
const TOO_SHORT: i64 = 5000;
/// The price of each rest, and that of one with this number of windows of its length for its bins.
const REST: i64 = 750;
const WITH_EQUAL: [i64; 6] = [2000, 700, 200, 60, 30, 20];
/// The price of a rest of the longest period, and the price of its length if it is a whole bin.
const OPEN: i64 = 1000;
const OPEN_LENGTH: i64 = 5000;

/// The prices of all rests of one level.
pub(super) struct Prices {
    of: Vec<i64>,
    /// The number of rests of each length.
    uses: Vec<usize>,
    kind: Kind,
}

enum Kind {
    /// Rests of the longest period stay free.
    Last,
    Inner(Inner),
}

struct Inner {
    /// The number of windows of the next level with each length.
    equal: Vec<usize>,
    /// The number of windows of the next level that are at most as long as each rest.
    fitting: Vec<usize>,
    /// The number of bins that a rest becomes at the next level.
    factor: usize,
    /// The length of the shortest window of all longer periods.
    shortest: usize,
    /// The price of a wasted step.
    waste: i64,
    has_slack: bool,
    noise: Noise,
}

/// An addition to the price of each length, which differs from search to search.
#[derive(Clone, Copy)]
pub(super) struct Noise {
    pub seed: u64,
    /// The largest addition.
    pub most: i64,
}

impl Noise {
    pub const NONE: Noise = Noise { seed: 0, most: 0 };

    fn of(self, rest: usize) -> i64 {
        let hash = (rest as u64 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (hash as i64 * self.most) >> 24
    }
}

impl Prices {
    /// Makes the prices of a level for bins up to `longest`.
    pub fn new(forest: &Forest, level: usize, longest: usize, noise: Noise) -> Prices {
        let kind = match forest.levels.get(level + 1) {
            None => Kind::Last,
            Some(next) => {
                let mut equal = vec![0; longest + 1];
                next.lengths.iter().filter(|&&length| length <= longest).for_each(|&length| equal[length] += 1);
                let mut fitting = equal.clone();
                (1..=longest).for_each(|rest| fitting[rest] += fitting[rest - 1]);
                let shortest = forest.shortest_behind(level);
                let slack = forest.slack();
                let waste = if slack > 0 { (WASTED * forest.leaves()[level] / slack).clamp(1, WASTED) } else { WASTED };
                Kind::Inner(Inner { equal, fitting, factor: next.factor, shortest, waste, has_slack: slack > 0, noise })
            }
        };
        let mut prices = Prices { of: vec![0; longest + 1], uses: vec![0; longest + 1], kind };
        (1..=longest).for_each(|rest| prices.of[rest] = prices.compute(rest));
        prices
    }

    /// Returns the price of one more rest of this length.
    pub fn of(&self, rest: usize) -> i64 {
        self.of[rest]
    }

    /// Counts a rest of this length.
    pub fn take(&mut self, rest: usize) {
        self.change(rest, 1);
    }

    /// Counts a rest of this length no more.
    pub fn release(&mut self, rest: usize) {
        self.change(rest, -1);
    }

    fn change(&mut self, rest: usize, by: isize) {
        if rest > 0 && matches!(self.kind, Kind::Inner(_)) {
            self.uses[rest] = self.uses[rest].wrapping_add_signed(by);
            self.of[rest] = self.compute(rest);
        }
    }

    /// Returns the price of these rests together, without noise.
    pub fn of_all(&self, rests: impl Iterator<Item = usize>) -> i64 {
        let mut rests: Vec<usize> = rests.filter(|&rest| rest > 0).collect();
        rests.sort_unstable();
        let same = rests.chunk_by(|one, other| one == other);
        same.flat_map(|same| (0..same.len()).map(|uses| self.price(same[0], uses, Noise::NONE))).sum()
    }

    fn compute(&self, rest: usize) -> i64 {
        match &self.kind {
            Kind::Last => self.price(rest, 0, Noise::NONE),
            Kind::Inner(inner) => self.price(rest, self.uses[rest], inner.noise),
        }
    }

    fn price(&self, rest: usize, uses: usize, noise: Noise) -> i64 {
        let inner = match &self.kind {
            Kind::Last => return OPEN + OPEN_LENGTH * rest as i64 / (self.of.len() as i64 - 1),
            Kind::Inner(inner) => inner,
        };
        let equal = (inner.equal[rest] / (uses + 1)).min(inner.factor);
        let used = REST + WITH_EQUAL[equal.min(WITH_EQUAL.len() - 1)] + noise.of(rest);
        let wasted = (inner.waste * rest as i64).min(WASTED);
        match () {
            () if inner.fitting[rest] < inner.factor * (uses + 1) => wasted,
            () if inner.has_slack => wasted.min(used),
            () if rest < 2 * inner.shortest && equal < inner.factor => TOO_SHORT,
            () => used,
        }
    }
}
