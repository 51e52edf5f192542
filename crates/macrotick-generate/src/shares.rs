//! Utilisations with a given sum.

use crate::Random;

/// Draws `count` utilisations with this sum, each at most `most`, evenly distributed (UUniFast-discard: Davis and Burns,
/// RTSS 2009). With many tasks, `most` must be well above their mean, or most draws are discarded.
pub(crate) fn shares(random: &mut Random, count: usize, sum: f64, most: f64) -> Vec<f64> {
    loop {
        let (mut left, mut shares) = (sum, Vec::with_capacity(count));
        for index in 1..count {
            let rest = left * random.unit().powf(1.0 / (count - index) as f64);
            shares.push(left - rest);
            left = rest;
        }
        shares.push(left);
        if shares.iter().all(|&share| share <= most) {
            return shares;
        }
    }
}

/// Draws `count` utilisations with this sum, each from 0 to `most`. All such points have the same chance (RandFixedSum:
/// Emberson, Stafford and Davis, WATERS 2010). It takes the same time for every sum from 0 to `count * most`.
pub(crate) fn fixed_sum(random: &mut Random, count: usize, sum: f64, most: f64) -> Vec<f64> {
    if count == 1 {
        return vec![sum];
    }
    // In units of `most`: the point lies in the layer of the unit cube between the sums `whole` and `whole + 1`.
    let sum = (sum / most).clamp(0.0, count as f64);
    let whole = (sum.floor() as usize).min(count - 1);
    let above: Vec<f64> = (0..count).map(|index| sum - (whole as f64 - index as f64)).collect();
    let below: Vec<f64> = (0..count).map(|index| (whole + count - index) as f64 - sum).collect();
    // The volumes of the simplices of one row, and the share of each that belongs to the first of its two parts.
    let mut volumes = vec![0.0; count + 1];
    volumes[1] = f64::MAX;
    let mut parts: Vec<Vec<f64>> = (2..=count).map(|row| vec![0.0; row]).collect();
    for row in 2..=count {
        let former = volumes.clone();
        for at in 0..row {
            let first = former[at + 1] * above[at] / row as f64;
            let second = former[at] * below[count - row + at] / row as f64;
            let both = first + second + f64::MIN_POSITIVE;
            volumes[at + 1] = first + second;
            let is_second = below[count - row + at] > above[at];
            parts[row - 2][at] = if is_second { second / both } else { 1.0 - first / both };
        }
    }
    let mut shares = Vec::with_capacity(count);
    let (mut rest, mut layer, mut done, mut product) = (sum, whole, 0.0, 1.0);
    for row in (1..count).rev() {
        let is_first = random.unit() <= parts[row - 1][layer];
        let scale = random.unit().powf(1.0 / row as f64);
        done += (1.0 - scale) * product * rest / (row + 1) as f64;
        product *= scale;
        let unit = f64::from(u8::from(is_first));
        shares.push(most * (done + product * unit));
        rest -= unit;
        layer -= usize::from(is_first && layer > 0);
    }
    shares.push(most * (done + product * rest));
    random.shuffle(&mut shares);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_sum_is_kept_within_the_bounds() {
        for (count, sum, most) in
            [(1, 0.4, 1.0), (2, 1.9, 1.0), (8, 7.6, 1.0), (10, 0.3, 0.6), (100, 3.8, 0.5), (50, 24.0, 0.5)]
        {
            for seed in 0..200 {
                let shares = fixed_sum(&mut Random::new(seed), count, sum, most);
                assert_eq!(shares.len(), count);
                assert!((shares.iter().sum::<f64>() - sum).abs() < 1e-6, "{count} {sum}: {shares:?}");
                assert!(
                    shares.iter().all(|&share| (-1e-9..=most + 1e-9).contains(&share)),
                    "{count} {sum}: {shares:?}"
                );
            }
        }
    }

    /// Of two values with the sum 1, each is evenly distributed from 0 to 1. Three with the sum 1.5 are a point of the
    /// hexagon in the middle of the unit cube.
    #[test]
    fn values_are_evenly_distributed() {
        let mut random = Random::new(1);
        let first: Vec<f64> = (0..20_000).map(|_| fixed_sum(&mut random, 2, 1.0, 1.0)[0]).collect();
        for part in 1..10 {
            let below = first.iter().filter(|&&value| value < f64::from(part) / 10.0).count();
            assert!((below as f64 / 20_000.0 - f64::from(part) / 10.0).abs() < 0.02, "{part}: {below}");
        }
        let of_three: Vec<f64> = (0..20_000).flat_map(|_| fixed_sum(&mut random, 3, 1.5, 1.0)).collect();
        let variance = of_three.iter().map(|value| (value - 0.5).powi(2)).sum::<f64>() / of_three.len() as f64;
        // A regular hexagon with the side s = 1 / sqrt 2 has the variance 5 s^2 / 24 along each direction of its plane.
        // Each value has the part 2 / 3 of it.
        let wanted = 5.0 / 48.0 * 2.0 / 3.0;
        assert!((variance - wanted).abs() < 0.002, "{variance} {wanted}");
    }
}
