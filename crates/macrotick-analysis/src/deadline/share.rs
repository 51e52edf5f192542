//! Shares of a CPU, as parts of one whole. They are exact if the periods have a common multiple that is not too long.

use macrotick_model::Duration;

/// The greatest whole. With it, sums of a million shares, times [`LONGEST`](super::LONGEST), stay within 128 bits.
const FINEST: i128 = 1 << 60;

/// Shares with a common denominator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// The parts, each rounded up if they are not exact.
    pub parts: Vec<i128>,
    /// The denominator.
    pub whole: i128,
    /// Whether no part is rounded.
    pub exact: bool,
}

impl Shares {
    /// Makes shares of pairs: a length in each time, which is not zero.
    pub fn new(of: &[(Duration, Duration)]) -> Shares {
        let common = of.iter().try_fold(Duration::from_nanos(1), |all, (_, time)| all.lcm(*time));
        let common = common.map(|time| i128::from(time.as_nanos())).filter(|&time| time <= FINEST);
        let (whole, exact) = common.map_or((FINEST, false), |time| (time, true));
        let part = |(given, time): &(Duration, Duration)| {
            let (given, time) = (i128::from(given.as_nanos()), i128::from(time.as_nanos()));
            ceil(given * whole, time)
        };
        Shares { parts: of.iter().map(part).collect(), whole, exact }
    }

    /// Returns the sum of all parts.
    pub fn sum(&self) -> i128 {
        self.parts.iter().sum()
    }
}

/// Returns the quotient, rounded up. The divisor must be positive, and the dividend not negative.
pub(super) fn ceil(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor - 1) / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_where_they_can_be() {
        let ns = Duration::from_nanos;
        let thirds = Shares::new(&[(ns(1), ns(3)), (ns(1), ns(6))]);
        assert_eq!(thirds, Shares { parts: vec![2, 1], whole: 6, exact: true });
        let primes = [999_999_937, 999_999_929, 999_999_893].map(|period| (ns(1), ns(period)));
        let rounded = Shares::new(&primes);
        assert!(!rounded.exact && rounded.parts.iter().all(|&part| part * 999_999_937 >= FINEST));
    }
}
