//! Draws.

use macrotick_model::SplitMix64;

/// Seeded choices.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Makes the choices of a seed.
    pub fn new(seed: u64) -> Random {
        let mut bits = SplitMix64::new(seed);
        // Seeds that follow each other would share most of their draws otherwise.
        Random(SplitMix64::new(bits.bits()))
    }

    /// Returns a number from 0 to less than the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.bits() % limit
    }

    /// Returns a number from `low` to `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    /// Returns true in this many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a number from 0 to less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns one of some values.
    pub fn one<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// Shuffles values.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for index in (1..values.len()).rev() {
            values.swap(index, self.below(index as u64 + 1) as usize);
        }
    }
}
