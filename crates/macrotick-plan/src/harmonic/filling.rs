//! The windows of one period in their bins: some bins are emptied and filled again, as long as this makes the rests
//! cheaper.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use macrotick_model::SplitMix64;

use super::prices::Prices;
use super::sums::Sums;

/// The price of a window without a bin, and of its length if it is as long as the longest bin.
const WITHOUT_BIN: i64 = 500;
const WITHOUT_BIN_LENGTH: i64 = 19_000;
/// The most additional bins that a turn empties.
const EMPTIED: u64 = 4;
/// The mean by which a turn may make the rests dearer at the beginning. It falls to zero.
const HEAT: i64 = 250;
/// The draws of the order of windows: a length is up to this much longer, in thousandths of the longest bin.
const DRAWS: [u64; 4] = [1, 60, 300, 900];
/// The largest drawn difference between two fillings of a bin.
const DRAWN_PRICE: u64 = 800;
/// The number of turns between two looks at the clock.
const TURNS_PER_LOOK: usize = 64;

struct Bin {
    capacity: usize,
    items: Vec<usize>,
    rest: usize,
}

/// All windows of a level in bins.
pub(super) struct Packing {
    /// The price of the rests, without noise.
    pub price: i64,
    /// The rests, from the shortest. Packings with the same ones are worth the same.
    pub rests: Vec<usize>,
    /// The bin of each window.
    pub bins: Vec<usize>,
}

/// The search for packings of one level.
pub(super) struct Filling<'a> {
    lengths: &'a [usize],
    bins: Vec<Bin>,
    /// The windows without a bin.
    pool: Vec<usize>,
    prices: Prices,
    longest: usize,
    /// Whether the rests do not matter, because no longer period follows.
    is_last: bool,
    sums: Sums,
    random: &'a mut SplitMix64,
    /// The cheapest packings, by price and rests.
    found: BTreeMap<(i64, Vec<usize>), Vec<usize>>,
    /// The number of packings to keep.
    keep: usize,
}

impl<'a> Filling<'a> {
    /// Makes a filling for windows, the longest first, and bins of these capacities.
    pub fn new(
        lengths: &'a [usize],
        capacities: &[usize],
        prices: Prices,
        (is_last, keep): (bool, usize),
        random: &'a mut SplitMix64,
    ) -> Filling<'a> {
        let bin = |&capacity| Bin { capacity, items: Vec::new(), rest: capacity };
        let longest = capacities.iter().copied().max().unwrap_or(1).max(1);
        let mut filling = Filling {
            lengths,
            bins: capacities.iter().map(bin).collect(),
            pool: (0..lengths.len()).collect(),
            prices,
            longest,
            is_last,
            sums: Sums::default(),
            random,
            found: BTreeMap::new(),
            keep,
        };
        filling.fill_with_one();
        filling
    }

    /// Fills each bin with a window that is as long as the bin. This never makes a packing impossible: in any packing,
    /// the window and the content of the bin can change places.
    fn fill_with_one(&mut self) {
        for bin in &mut self.bins {
            if let Some(at) = self.pool.iter().position(|&item| self.lengths[item] == bin.capacity) {
                bin.items.push(self.pool.remove(at));
                bin.rest = 0;
            }
        }
    }

    /// Searches for some turns, and returns the cheapest packings that it found.
    pub fn run(mut self, turns: usize, is_over: &dyn Fn() -> bool) -> Vec<Packing> {
        let open: Vec<usize> = (0..self.bins.len()).filter(|&bin| self.bins[bin].rest > 0).collect();
        self.fill(&open);
        for turn in 0..turns {
            self.note();
            let is_done = self.pool.is_empty() && (self.is_last || open.iter().all(|&bin| self.bins[bin].rest == 0));
            if is_done || open.is_empty() || turn % TURNS_PER_LOOK == 0 && is_over() {
                break;
            }
            self.turn(&open, HEAT * (turns - turn) as i64 / turns as i64);
        }
        self.note();
        let packing = |((price, rests), bins)| Packing { price, rests, bins };
        self.found.into_iter().map(packing).collect()
    }

    /// Empties some bins and fills them again, unless this makes the rests too dear.
    fn turn(&mut self, bins: &[usize], heat: i64) {
        let open: Vec<usize> = bins.iter().copied().filter(|&bin| self.bins[bin].rest > 0).collect();
        let mut chosen = Vec::new();
        if !open.is_empty() {
            chosen.push(open[self.below(open.len() as u64)]);
        }
        for _ in 0..=self.below(EMPTIED) {
            let from = if !open.is_empty() && self.below(100) < 40 { &open } else { bins };
            let bin = from[self.below(from.len() as u64)];
            if !chosen.contains(&bin) {
                chosen.push(bin);
            }
        }
        let before = self.price(&chosen);
        let pool = self.pool.clone();
        let former: Vec<(usize, Vec<usize>, usize)> =
            chosen.iter().map(|&bin| (bin, self.bins[bin].items.clone(), self.bins[bin].rest)).collect();
        chosen.iter().for_each(|&bin| self.empty(bin));
        for last in (1..chosen.len()).rev() {
            let other = self.below(last as u64 + 1);
            chosen.swap(last, other);
        }
        self.fill(&chosen);
        if self.price(&chosen) > before + self.exponential(heat) {
            chosen.iter().for_each(|&bin| self.prices.release(self.bins[bin].rest));
            for (bin, items, rest) in former {
                self.bins[bin].items = items;
                self.bins[bin].rest = rest;
                self.prices.take(rest);
            }
            self.pool = pool;
        }
    }

    /// Moves the windows of a bin into the pool. Its rest is not counted until it is filled.
    fn empty(&mut self, bin: usize) {
        let Bin { capacity, items, rest } = &mut self.bins[bin];
        self.prices.release(*rest);
        self.pool.append(items);
        *rest = *capacity;
    }

    /// Fills empty bins from the pool. The last of them takes as much as it can.
    fn fill(&mut self, bins: &[usize]) {
        for (turn, &bin) in bins.iter().enumerate() {
            self.fill_one(bin, turn + 1 == bins.len());
            self.prices.take(self.bins[bin].rest);
        }
    }

    fn fill_one(&mut self, bin: usize, is_last: bool) {
        if self.pool.is_empty() {
            return;
        }
        self.reorder();
        let mut room = self.bins[bin].capacity;
        let first = self.pool.iter().position(|&item| self.lengths[item] <= room);
        if let Some(first) = first.filter(|_| self.below(100) < 60) {
            let item = self.pool.remove(first);
            room -= self.lengths[item];
            self.bins[bin].items.push(item);
        }
        self.sums.compute(self.pool.iter().map(|&item| self.lengths[item]), room);
        let left = self.left();
        let (mut sum, mut least) = (0, i64::MAX);
        for reached in self.sums.all() {
            let addition = match is_last {
                true => self.without_bin(left - reached),
                false => (self.random.bits() % DRAWN_PRICE) as i64,
            };
            let price = self.prices.of(room - reached) + addition;
            if price < least {
                (sum, least) = (reached, price);
            }
        }
        for part in self.sums.parts(sum, |index| self.lengths[self.pool[index]]) {
            let item = self.pool.remove(part);
            self.bins[bin].items.push(item);
        }
        self.bins[bin].rest = room - sum;
    }

    /// Sorts the pool by length, with draws.
    fn reorder(&mut self) {
        let scale = DRAWS[self.below(DRAWS.len() as u64)] * self.longest as u64 / 1000;
        let Filling { pool, lengths, random, .. } = self;
        pool.sort_by_cached_key(|&item| (Reverse(lengths[item] as u64 + random.bits() % (scale + 1)), item));
    }

    /// Returns the price of the rests of bins, and of the pool.
    fn price(&mut self, bins: &[usize]) -> i64 {
        let mut price = 0;
        bins.iter().for_each(|&bin| self.prices.release(self.bins[bin].rest));
        for &bin in bins {
            price += self.prices.of(self.bins[bin].rest);
            self.prices.take(self.bins[bin].rest);
        }
        price + self.without_bin(self.left()) + WITHOUT_BIN * self.pool.len() as i64
    }

    /// Returns the length of the windows without a bin.
    fn left(&self) -> usize {
        self.pool.iter().map(|&item| self.lengths[item]).sum()
    }

    /// Returns the price of the length of windows without a bin.
    fn without_bin(&self, left: usize) -> i64 {
        WITHOUT_BIN_LENGTH * left as i64 / self.longest as i64
    }

    /// Remembers the present packing, if it has all windows.
    fn note(&mut self) {
        if !self.pool.is_empty() {
            return;
        }
        let mut rests: Vec<usize> = self.bins.iter().map(|bin| bin.rest).filter(|&rest| rest > 0).collect();
        rests.sort_unstable();
        let key = (self.prices.of_all(rests.iter().copied()), rests);
        if self.found.contains_key(&key) || self.found.len() == self.keep && self.found.keys().last() < Some(&key) {
            return;
        }
        let mut bins = vec![0; self.lengths.len()];
        for (index, bin) in self.bins.iter().enumerate() {
            bin.items.iter().for_each(|&item| bins[item] = index);
        }
        self.found.insert(key, bins);
        if self.found.len() > self.keep {
            self.found.pop_last();
        }
    }

    /// Draws a number of an exponential distribution with this mean, nearly.
    fn exponential(&mut self, mean: i64) -> i64 {
        let bits = self.random.bits();
        let thousandths = i64::from(bits.leading_zeros()) * 1000 + (bits % 1000) as i64;
        mean * thousandths * 693 / 1_000_000
    }

    fn below(&mut self, limit: u64) -> usize {
        (self.random.bits() % limit) as usize
    }
}
