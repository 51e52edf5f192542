//! Random choices of the scenarios with a seed.

use macrotick_model::SplitMix64;

/// Returns `MACROTICK_SEED`, or 0. Another number changes all random choices of the fuzzers.
pub fn variation() -> u64 {
    std::env::var("MACROTICK_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A random generator. The seed determines all its numbers.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// Makes a generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a number below `bound`, which must not be zero. The bias of the remainder does not matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Returns an element of a slice, which must not be empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
