//! A random stream for every task, and the execution times from it.

use macrotick_model::{Duration, ExecutionTime, Gumbel, SplitMix64, Uniform};

/// The random stream of one task.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

/// Hashes a name (FNV-1a) to give every task its own stream.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Random {
    /// Returns the stream of `name` in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        Random(SplitMix64::new(seed ^ hash(name)))
    }

    fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a number below `bound`. The bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniform number in the open interval (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns the execution time of a job. A Gumbel sample (inverse transform) is drawn again when it is negative or
    /// beyond `max`.
    pub fn execution_time(&mut self, time: &ExecutionTime) -> Duration {
        match *time {
            ExecutionTime::Fixed(time) => time,
            ExecutionTime::Uniform(Uniform { min, max }) => {
                let span = (max - min).as_nanos().max(0) as u64;
                min + Duration::from_nanos(self.below(span + 1) as i64)
            }
            ExecutionTime::Gumbel(Gumbel { mode, scale, max }) => self.gumbel(mode, scale, max),
        }
    }

    /// Draws a Gumbel sample. After 1000 rejected draws (a mode far beyond `max`) it returns `max`.
    fn gumbel(&mut self, mode: Duration, scale: Duration, max: Duration) -> Duration {
        for _ in 0..1000 {
            let sample = mode.as_nanos() as f64 - scale.as_nanos() as f64 * (-self.unit().ln()).ln();
            let sample = Duration::from_nanos(sample.round() as i64);
            if sample >= Duration::ZERO && sample <= max {
                return sample;
            }
        }
        max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_streams_of_their_own() {
        assert_ne!(Random::new(1, "a").bits(), Random::new(1, "b").bits());
        assert_eq!(Random::new(1, "a").bits(), Random::new(1, "a").bits());
    }

    #[test]
    fn distributions_keep_their_bounds_and_means() {
        let us = Duration::from_micros;
        let micros = |length: Duration| length.as_nanos() as f64 / 1000.0;
        let mut random = Random::new(7, "x");
        let uniform = ExecutionTime::Uniform(Uniform { min: us(10), max: us(20) });
        let gumbel = ExecutionTime::Gumbel(Gumbel { mode: us(100), scale: us(10), max: us(150) });
        let (mut sum_uniform, mut sum_gumbel) = (0.0, 0.0);
        for _ in 0..20_000 {
            let (u, g) = (random.execution_time(&uniform), random.execution_time(&gumbel));
            assert!(u >= us(10) && u <= us(20) && g >= Duration::ZERO && g <= us(150));
            sum_uniform += micros(u);
            sum_gumbel += micros(g);
        }
        assert!((sum_uniform / 20_000.0 - 15.0).abs() < 0.1);
        // Without truncation the mean is mode + 0.5772 scale = 105.8. The cut at 5 scales reduces it by 0.4.
        assert!((sum_gumbel / 20_000.0 - 105.4).abs() < 0.4, "{}", sum_gumbel / 20_000.0);
    }
}
