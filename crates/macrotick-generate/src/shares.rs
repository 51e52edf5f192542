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
