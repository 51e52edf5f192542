//! Draws random task sets from seeds.

use macrotick_model::SplitMix64;

/// Draws `n` shares of a sum: the spacings of random points. Each division has the same probability. For sums below 1,
/// RandFixedSum has the same result (Emberson, Stafford, Davis: Techniques for the synthesis of multiprocessor
/// tasksets, WATERS 2010).
pub fn shares(random: &mut SplitMix64, sum: f64, n: usize) -> Vec<f64> {
    let mut points: Vec<f64> = (1..n).map(|_| fraction(random) * sum).chain([0.0, sum]).collect();
    points.sort_by(f64::total_cmp);
    points.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Draws shares of any sum until none is greater than `most`.
pub fn bounded_shares(random: &mut SplitMix64, sum: f64, n: usize, most: f64) -> Vec<f64> {
    assert!(sum < most * n as f64, "{n} shares of at most {most} do not make up {sum}");
    loop {
        let shares = shares(random, sum, n);
        if shares.iter().all(|&share| share <= most) {
            return shares;
        }
    }
}

/// Draws a number that is at least 0 and below 1.
pub fn fraction(random: &mut SplitMix64) -> f64 {
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws a number between two positive ones; each order of magnitude has the same probability.
pub fn log_uniform(random: &mut SplitMix64, least: f64, most: f64) -> f64 {
    (least.ln() + (most.ln() - least.ln()) * fraction(random)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_up_the_sum() {
        let shares = shares(&mut SplitMix64::new(1), 0.7, 4);
        assert!(shares.len() == 4 && shares.iter().all(|&share| share >= 0.0));
        assert!((shares.iter().sum::<f64>() - 0.7).abs() < 1e-12);
    }

    #[test]
    fn no_share_is_greater_than_it_may_be() {
        for seed in 0..20 {
            let shares = bounded_shares(&mut SplitMix64::new(seed), 3.9, 10, 0.95);
            assert!(shares.iter().all(|&share| (0.0..=0.95).contains(&share)), "{shares:?}");
            assert!((shares.iter().sum::<f64>() - 3.9).abs() < 1e-12);
        }
    }

    #[test]
    fn half_of_what_is_log_uniform_is_below_the_geometric_mean() {
        let random = &mut SplitMix64::new(1);
        let drawn: Vec<f64> = (0..1000).map(|_| log_uniform(random, 10.0, 1000.0)).collect();
        assert!(drawn.iter().all(|value| (10.0..1000.0).contains(value)));
        let below = drawn.iter().filter(|&&value| value < 100.0).count();
        assert!((450..550).contains(&below), "{below}");
    }
}
