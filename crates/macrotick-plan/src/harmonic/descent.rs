//! The way from the shortest period to the longest: some packings of each period are kept, and the best are continued.

use std::collections::BTreeSet;

use macrotick_model::{Duration, SplitMix64};

use super::filling::{Filling, Packing};
use super::forest::{Forest, Root};
use super::prices::{Noise, Prices};
use crate::options::Clock;

/// The descents. The first ones keep one packing of each period. Then each keeps twice as many as the one before, and
/// takes twice as many turns, up to a limit.
const DESCENTS: u32 = 13;
const NARROW: u32 = 3;
const MOST_KEPT: usize = 64;
const TURNS: usize = 50_000;
const MOST_DOUBLINGS: u32 = 6;
/// The most packings of one search that are kept.
const KEPT: usize = 16;
/// The turns of one search: some, and more for each bin. In the longest period, nothing but a whole packing counts.
const TURNS_OF_LEVEL: (usize, usize) = (200, 100);
const TURNS_OF_LAST: (usize, usize) = (4000, 200);
/// The largest draw of a price in a narrow descent, and in another one.
const NOISE: (u64, u64) = (1000, 3000);
/// The searches without a new packing after which a level ends, for each packing of the level before.
const SAME: usize = 20;

/// Free time of one bin.
#[derive(Clone, Copy)]
struct Rest {
    root: usize,
    /// The number of the bin: in which of its shortest periods it is, modulo its own period.
    slot: usize,
    /// The time before it in its shortest period, and its length, in steps.
    used: usize,
    capacity: usize,
}

/// A packing of all windows up to some period.
struct State {
    price: i64,
    rests: Vec<Rest>,
    /// The place of each window, in the order of the levels.
    spots: Vec<Rest>,
}

/// One way from the shortest period to the longest.
struct Descent<'a> {
    forest: &'a Forest,
    clock: &'a Clock<'a>,
    random: &'a mut SplitMix64,
    /// The number of packings of each period to keep.
    kept: usize,
    /// The number of turns for all periods together.
    turns: usize,
}

/// Returns each task with its CPU, and the start of its lead.
pub(super) fn pack(forest: &Forest, clock: &Clock) -> Option<Vec<(usize, usize, Duration)>> {
    let mut random = SplitMix64::new(clock.options.seed);
    let mut numbers = (0..DESCENTS).take_while(|_| !clock.is_over());
    let spots = numbers.find_map(|number| Descent::new(forest, clock, &mut random, number).run())?;
    let tasks = forest.levels.iter().flat_map(|level| &level.tasks);
    let start = |spot: Rest| {
        let root = &forest.roots[spot.root];
        root.start + forest.base * spot.slot as i64 + forest.step * spot.used as i64
    };
    Some(tasks.zip(spots).map(|(&task, spot)| (task, forest.roots[spot.root].cpu, start(spot))).collect())
}

impl<'a> Descent<'a> {
    fn new(forest: &'a Forest, clock: &'a Clock<'a>, random: &'a mut SplitMix64, number: u32) -> Descent<'a> {
        let (kept, turns) = match number.checked_sub(NARROW) {
            None => (1, 0),
            Some(doublings) => ((2 << doublings).min(MOST_KEPT), TURNS << doublings.min(MOST_DOUBLINGS)),
        };
        Descent { forest, clock, random, kept, turns }
    }

    /// Returns the place of each window, in the order of the levels.
    fn run(&mut self) -> Option<Vec<Rest>> {
        let root = |(root, free): (usize, &Root)| Rest { root, slot: 0, used: 0, capacity: free.capacity };
        let rests = self.forest.roots.iter().enumerate().map(root).collect();
        let mut states = vec![State { price: 0, rests, spots: Vec::new() }];
        // The number of shortest periods in the period of the level.
        let mut slots = 1;
        for level in 0..self.forest.levels.len() {
            let factor = self.forest.levels[level].factor;
            states.iter_mut().for_each(|state| state.repeat(factor, slots));
            slots *= factor;
            states = self.next(level, states);
        }
        states.into_iter().next().map(|state| state.spots)
    }

    /// Returns the best packings of one more level.
    fn next(&mut self, level: usize, states: Vec<State>) -> Vec<State> {
        let lengths = &self.forest.levels[level].lengths;
        let shortest = self.forest.shortest_behind(level);
        let share = self.turns / self.forest.levels.len();
        let one_round = self.is_last(level) || self.kept == 1;
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let (mut turns, mut same) = (0, 0);
        loop {
            for (index, state) in states.iter().enumerate() {
                if self.clock.is_over() || index > 1 && turns > 2 * share {
                    break;
                }
                turns += self.turns_of(level, state);
                let mut is_new = false;
                for packing in self.fill(level, state) {
                    if self.is_last(level) {
                        return vec![state.with(&packing, lengths, shortest)];
                    }
                    if !seen.contains(&packing.rests) {
                        found.push(state.with(&packing, lengths, shortest));
                        seen.insert(packing.rests);
                        is_new = true;
                    }
                }
                same = if is_new { 0 } else { same + 1 };
            }
            if one_round || self.clock.is_over() || turns > share || same >= SAME * states.len() {
                break;
            }
        }
        found.sort_by_key(|state| state.price);
        found.truncate(self.kept);
        found
    }

    /// Returns some packings of a level, with drawn prices.
    fn fill(&mut self, level: usize, state: &State) -> Vec<Packing> {
        let capacities: Vec<usize> = state.rests.iter().map(|rest| rest.capacity).collect();
        let Some(&longest) = capacities.iter().max() else { return Vec::new() };
        let is_narrow = self.kept == 1;
        let most = if is_narrow { NOISE.0 } else { NOISE.1 } * (self.random.bits() % 1000) / 1000;
        let noise = Noise { seed: self.random.bits(), most: most as i64 };
        let prices = Prices::new(self.forest, level, longest, noise);
        let keep = if is_narrow || self.is_last(level) { 1 } else { KEPT };
        let lengths = &self.forest.levels[level].lengths;
        let (is_last, turns, clock) = (self.is_last(level), self.turns_of(level, state), self.clock);
        Filling::new(lengths, &capacities, prices, (is_last, keep), self.random).run(turns, &|| clock.is_over())
    }

    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.forest.levels.len()
    }

    fn turns_of(&self, level: usize, state: &State) -> usize {
        let (some, each) = if self.is_last(level) { TURNS_OF_LAST } else { TURNS_OF_LEVEL };
        some + each * state.rests.len()
    }
}

impl State {
    /// Makes the bins of a longer period from those of a shorter one, which has `slots` numbers.
    fn repeat(&mut self, factor: usize, slots: usize) {
        let turned = |turn: usize| move |rest: &Rest| Rest { slot: rest.slot + turn * slots, ..*rest };
        self.rests = (0..factor).flat_map(|turn| self.rests.iter().map(turned(turn))).collect();
    }

    /// Returns the state with the windows of one more level. Rests that are shorter than `shortest` are lost.
    fn with(&self, packing: &Packing, lengths: &[usize], shortest: usize) -> State {
        let mut rests = self.rests.clone();
        let mut spots = self.spots.clone();
        for (&bin, &length) in packing.bins.iter().zip(lengths) {
            spots.push(rests[bin]);
            rests[bin].used += length;
            rests[bin].capacity -= length;
        }
        rests.retain(|rest| rest.capacity >= shortest);
        State { price: self.price + packing.price, rests, spots }
    }
}
