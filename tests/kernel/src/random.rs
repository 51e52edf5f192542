//! The choices of the seeded scenarios.

use macrotick_model::SplitMix64;

/// `MACROTICK_SEED`: another number has the fuzzers draw other ones than they always do.
pub fn variation() -> u64 {
    std::env::var("MACROTICK_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A generator; the seed says everything about what it yields.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`, which must not be zero. The bias of the remainder does not matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// One of a slice, which must not be empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
