//! Exact order statistics over integer nanoseconds.
//!
//! Percentiles are *nearest rank*: the p-th percentile of n sorted samples is the sample of rank ⌈p·n⌉ (from 1). Every
//! percentile is therefore a measured value. The standard deviation is that of the population (divided by n), because
//! all jobs of a run are known. Mean and deviation are computed in integers and rounded half away from zero to a tenth
//! of a nanosecond. The same samples give the same text on every machine.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// A number of tenths of a nanosecond; in JSON a number of nanoseconds with at most one decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenths(pub i64);

impl Tenths {
    /// Returns the value in nanoseconds, for plots and tables only.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 10.0
    }
    /// Returns the value in microseconds, for plots and tables only.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 10_000.0
    }
}

impl Serialize for Tenths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_ns_f64())
    }
}

/// The statistics of a set of times. An empty set has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Statistics {
    /// The number of samples.
    pub count: u64,
    /// The smallest sample, in nanoseconds.
    pub min_ns: i64,
    /// The mean, in nanoseconds.
    #[schemars(with = "f64")]
    pub mean_ns: Tenths,
    /// The median (nearest rank), in nanoseconds.
    pub p50_ns: i64,
    /// The 99th percentile (nearest rank), in nanoseconds.
    pub p99_ns: i64,
    /// The 99.9th percentile (nearest rank), in nanoseconds.
    #[serde(rename = "p99_9_ns")]
    pub p999_ns: i64,
    /// The largest sample, in nanoseconds.
    pub max_ns: i64,
    /// The standard deviation of the population, in nanoseconds.
    #[schemars(with = "f64")]
    pub deviation_ns: Tenths,
}

impl Statistics {
    /// Returns the statistics of samples in ascending order; `None` without samples.
    pub fn of_sorted(sorted: &[i64]) -> Option<Statistics> {
        debug_assert!(sorted.is_sorted());
        let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
        Some(Statistics {
            count: sorted.len() as u64,
            min_ns,
            mean_ns: mean(sorted),
            p50_ns: percentile(sorted, 500),
            p99_ns: percentile(sorted, 990),
            p999_ns: percentile(sorted, 999),
            max_ns,
            deviation_ns: deviation(sorted),
        })
    }
}

/// Returns the nearest-rank percentile of samples in ascending order (at least one), `permille` in 1..=1000.
pub fn percentile(sorted: &[i64], permille: usize) -> i64 {
    let rank = (sorted.len() * permille).div_ceil(1000);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn mean(samples: &[i64]) -> Tenths {
    let count = samples.len() as i128;
    let twenty_sums = samples.iter().map(|&x| i128::from(x)).sum::<i128>() * 20;
    // round(10·Σ/n) half away from zero = trunc((20·Σ ± n) / 2n)
    let half = if twenty_sums < 0 { -count } else { count };
    Tenths(((twenty_sums + half) / (2 * count)) as i64)
}

/// Computes σ = √(n·Σd² − (Σd)²) / n with d the distance from the smallest sample: integers until the root.
fn deviation(sorted: &[i64]) -> Tenths {
    let count = sorted.len() as u128;
    let distance = |x: i64| u128::from(x.abs_diff(sorted[0]));
    let sum: u128 = sorted.iter().map(|&x| distance(x)).sum();
    let squares = sorted.iter().try_fold(0u128, |sum, &x| sum.checked_add(distance(x).checked_mul(distance(x))?));
    let scaled = squares
        .and_then(|squares| squares.checked_mul(count))
        .and_then(|squares| squares.checked_sub(sum.checked_mul(sum)?)?.checked_mul(400));
    match scaled {
        // round(10·√V/n) = ⌊(√(400·V) + n) / 2n⌋
        Some(scaled) => Tenths(((scaled.isqrt() + count) / (2 * count)) as i64),
        // Distances of hours times millions of samples exceed 128 bits; floating point is exact enough for them.
        None => deviation_of_huge(sorted),
    }
}

fn deviation_of_huge(samples: &[i64]) -> Tenths {
    let count = samples.len() as f64;
    let mean = samples.iter().map(|&x| x as f64).sum::<f64>() / count;
    let variance = samples.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / count;
    Tenths((variance.sqrt() * 10.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use macrotick_model::SplitMix64;

    use super::*;

    #[test]
    fn empty_has_no_statistics() {
        assert_eq!(Statistics::of_sorted(&[]), None);
    }

    #[test]
    fn one_sample_is_everything() {
        let one = Statistics::of_sorted(&[-7]).unwrap();
        assert_eq!((one.count, one.min_ns, one.p50_ns, one.p99_ns, one.p999_ns, one.max_ns), (1, -7, -7, -7, -7, -7));
        assert_eq!((one.mean_ns, one.deviation_ns), (Tenths(-70), Tenths(0)));
    }

    #[test]
    fn matches_values_computed_by_hand() {
        // Σ = 40, mean 5; Σ(x - 5)² = 9+1+1+1+0+0+4+16 = 32, σ = √(32/8) = 2.
        let stats = Statistics::of_sorted(&[2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
        assert_eq!((stats.mean_ns, stats.deviation_ns), (Tenths(50), Tenths(20)));
        assert_eq!((stats.p50_ns, stats.p99_ns, stats.max_ns), (4, 9, 9));
        // mean 4/3 = 1.33, σ = √(2/9) = 0.471
        let stats = Statistics::of_sorted(&[1, 1, 2]).unwrap();
        assert_eq!((stats.mean_ns, stats.deviation_ns, stats.p50_ns), (Tenths(13), Tenths(5), 1));
    }

    #[test]
    fn the_mean_rounds_half_away_from_zero() {
        let twenty_zeros_and = |x: i64| {
            let mut samples = vec![0; 19];
            samples.push(x);
            samples.sort_unstable();
            Statistics::of_sorted(&samples).unwrap().mean_ns
        };
        assert_eq!(twenty_zeros_and(1), Tenths(1)); // 0.05
        assert_eq!(twenty_zeros_and(-1), Tenths(-1));
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let samples: Vec<i64> = (1..=2000).collect();
        assert_eq!(percentile(&samples, 500), 1000);
        assert_eq!(percentile(&samples, 990), 1980);
        assert_eq!(percentile(&samples, 999), 1998);
        assert_eq!(percentile(&samples[..1999], 999), 1998); // ⌈1997.001⌉
        assert_eq!(percentile(&samples[..10], 999), 10);
        assert_eq!(percentile(&samples[..10], 1000), 10);
    }

    #[test]
    fn agrees_with_a_naive_implementation() {
        let mut random = SplitMix64::new(42);
        for round in 0..200 {
            let count = 1 + random.bits() as usize % 500;
            let range = 10u64.pow(1 + round % 10);
            let mut samples: Vec<i64> =
                (0..count).map(|_| (random.bits() % range) as i64 - (range / 3) as i64).collect();
            samples.sort_unstable();
            let stats = Statistics::of_sorted(&samples).unwrap();
            let n = count as f64;
            let mean = samples.iter().map(|&x| x as f64).sum::<f64>() / n;
            let sigma = (samples.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
            assert!((stats.mean_ns.as_ns_f64() - mean).abs() <= 0.05 + 1e-6, "{round}: {mean} {stats:?}");
            assert!((stats.deviation_ns.as_ns_f64() - sigma).abs() <= 0.05 + 1e-4, "{round}: {sigma} {stats:?}");
            for (permille, value) in [(500, stats.p50_ns), (990, stats.p99_ns), (999, stats.p999_ns)] {
                // The smallest sample that at least p of all samples do not exceed.
                let naive =
                    samples.iter().find(|&&x| samples.iter().filter(|&&y| y <= x).count() * 1000 >= permille * count);
                assert_eq!(Some(&value), naive, "{round}: p{permille}");
            }
        }
    }

    #[test]
    fn huge_distances_do_not_overflow() {
        let stats = Statistics::of_sorted(&[i64::MIN / 4, i64::MAX / 4]).unwrap();
        assert!((stats.deviation_ns.as_ns_f64() / (i64::MAX as f64 / 4.0) - 1.0).abs() < 0.7, "{stats:?}");
    }

    #[test]
    fn tenths_are_short_numbers_in_json() {
        assert_eq!(serde_json::to_string(&[Tenths(31634), Tenths(-10), Tenths(0)]).unwrap(), "[3163.4,-1.0,0.0]");
    }
}
