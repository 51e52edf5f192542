//! Random numbers that a seed repeats.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
///
/// The state is one word, and every seed is good. Outcomes are recorded with their seeds, so the sequence must never
/// change. For the same reason the caller decides how a number becomes a choice.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Makes the generator with this seed. The seed determines the whole sequence.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        let mut random = SplitMix64::new(1234567);
        let bits: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(bits, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }
}
