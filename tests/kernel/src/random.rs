//! The generator of the seeded scenarios: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

/// A generator; the seed says everything about what it yields.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        let mut random = Random::new(1234567);
        let numbers: Vec<u64> = (0..3).map(|_| random.number()).collect();
        assert_eq!(numbers, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }
}
