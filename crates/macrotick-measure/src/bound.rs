//! Bounds that a number of samples supports.

/// The share of jobs that a suggested bound may leave out.
pub const BEYOND: f64 = 0.001;
/// The quantile of the normal distribution for a confidence of 95 %.
const CONFIDENT: f64 = 1.645;

/// Returns the least sample that a share `part` of the samples does not exceed. The samples are in order.
pub fn quantile(samples: &[i64], part: f64) -> Option<i64> {
    let rank = (samples.len() as f64 * part).ceil() as usize;
    samples.get(rank.max(1) - 1).copied()
}

/// Returns a bound that a thousandth of the jobs exceeds at most. The samples are in order.
///
/// With thousands of samples the bound is one of them. So few samples are above it that the share above is at most a
/// thousandth, with a confidence of 95 %. With fewer samples the bound is beyond the greatest one. The excesses of the
/// greatest samples over a threshold then stand for the tail (peaks over threshold, with an exponential tail).
pub fn suggest(samples: &[i64]) -> Option<i64> {
    let (count, most) = (samples.len() as f64, *samples.last()?);
    let expected = count * BEYOND;
    let above = expected - CONFIDENT * expected.sqrt();
    if above >= 1.0 {
        return Some(samples[samples.len() - 1 - above as usize]);
    }
    let tail = (samples.len() / 20).clamp(4, 400).min(samples.len() - 1);
    if tail == 0 {
        return Some(most);
    }
    let threshold = samples[samples.len() - 1 - tail];
    let excess = samples[samples.len() - tail..].iter().map(|sample| (sample - threshold) as f64).sum::<f64>();
    let scale = excess / tail as f64 * (1.0 + CONFIDENT / (tail as f64).sqrt());
    let beyond = threshold as f64 + scale * (tail as f64 / expected).ln().max(0.0);
    Some(most.max(beyond.ceil() as i64))
}

/// Returns the share of jobs that the greatest of this many samples leaves out at most, with a confidence of 95 %.
pub fn beyond_the_greatest(count: usize) -> f64 {
    match count {
        0 => 1.0,
        _ => 1.0 - 0.05f64.powf(1.0 / count as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<i64> = (1..=1000).collect();
        let at = |part| quantile(&samples, part);
        assert_eq!([at(0.0), at(0.5), at(0.999), at(1.0)], [1, 500, 999, 1000].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn few_samples_give_a_bound_beyond_them() {
        assert_eq!(suggest(&[]), None);
        assert_eq!(suggest(&[7]), Some(7));
        assert_eq!(suggest(&[7; 100]), Some(7));
        assert!(suggest(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) > Some(10));
        let many: Vec<i64> = (0..100_000).collect();
        let share = (99_999 - suggest(&many).unwrap()) as f64 / 1e5;
        assert!((0.0007..0.001).contains(&share), "{share}");
    }

    #[test]
    fn the_confidence_grows_with_the_samples() {
        assert_eq!(beyond_the_greatest(0), 1.0);
        assert!((beyond_the_greatest(2995) - 0.001).abs() < 1e-5);
    }
}
