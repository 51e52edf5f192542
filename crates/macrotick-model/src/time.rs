//! Time as integer nanoseconds, in types that cannot be confused.
//!
//! A [`Duration`] is a length or a signed difference, such as a lateness. An [`Instant`] is a point on a clock. A time
//! in a text has a unit (`10ms`, `10.001009ms`, `250us`); a number without a unit is an error.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Rem, Sub, SubAssign};
use std::str::FromStr;

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

/// A signed length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// A point in time: nanoseconds on the clock of the table (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

/// The reason why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// A number without a unit: `10` instead of `10ms`.
    #[error("a time needs a unit: write `{0}ns`, `{0}us`, `{0}ms` or `{0}s`")]
    NoUnit(String),
    /// A unit other than ns, us, ms, s and min.
    #[error("unknown unit `{0}`: use ns, us, ms, s or min")]
    UnknownUnit(String),
    /// A text without a number before the unit.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// Digits below one nanosecond.
    #[error("`{0}` is finer than a nanosecond")]
    TooFine(String),
    /// A time longer than about 292 years.
    #[error("`{0}` is too long")]
    TooLong(String),
}

/// The units in descending order of length: name and nanoseconds.
const UNITS: [(&str, i64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl Duration {
    /// The length zero.
    pub const ZERO: Duration = Duration(0);

    /// Makes a length of `ns` nanoseconds.
    pub const fn from_nanos(ns: i64) -> Self {
        Duration(ns)
    }
    /// Makes a length of `us` microseconds.
    pub const fn from_micros(us: i64) -> Self {
        Duration(us * 1_000)
    }
    /// Makes a length of `ms` milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Duration(ms * 1_000_000)
    }
    /// Makes a length of `s` seconds.
    pub const fn from_secs(s: i64) -> Self {
        Duration(s * 1_000_000_000)
    }
    /// Returns the length in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Returns the length in seconds, for plots and statistics only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Whether the length is a multiple of `grid`, which must not be zero.
    pub fn is_multiple_of(self, grid: Duration) -> bool {
        self.0 % grid.0 == 0
    }
    /// Returns the greatest common divisor. That of zero and x is x.
    pub fn gcd(self, other: Duration) -> Duration {
        let (mut a, mut b) = (self.0.abs(), other.0.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Duration(a)
    }
    /// Returns the least common multiple, or `None` if it exceeds the range.
    pub fn lcm(self, other: Duration) -> Option<Duration> {
        let gcd = self.gcd(other).0;
        if gcd == 0 {
            return Some(Duration::ZERO);
        }
        (self.0 / gcd).checked_mul(other.0).map(Duration)
    }
    /// Returns the sum, or `None` if it exceeds the range.
    pub fn checked_add(self, other: Duration) -> Option<Duration> {
        self.0.checked_add(other.0).map(Duration)
    }
    /// Returns the difference, or `None` if it exceeds the range.
    pub fn checked_sub(self, other: Duration) -> Option<Duration> {
        self.0.checked_sub(other.0).map(Duration)
    }
    /// Returns `n` times the length, or `None` if it exceeds the range.
    pub fn checked_mul(self, n: i64) -> Option<Duration> {
        self.0.checked_mul(n).map(Duration)
    }
}

impl Instant {
    /// Makes the instant `ns` nanoseconds after the zero of the clock.
    pub const fn from_nanos(ns: i64) -> Self {
        Instant(ns)
    }
    /// Returns the nanoseconds since the zero of the clock.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let split = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
        let (number, unit) = (text[..split].trim(), &text[split..]);
        let scale: i64 = match unit {
            "" => return Err(ParseDurationError::NoUnit(number.into())),
            "ns" => 1,
            // The micro sign, and the Greek letter that keyboards and normalisation (NFKC) use instead.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            _ => return Err(ParseDurationError::UnknownUnit(unit.into())),
        };
        let not_a_number = || ParseDurationError::NotANumber(number.into());
        let (negative, digits) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || digits.ends_with('.') {
            return Err(not_a_number());
        }
        let too_long = || ParseDurationError::TooLong(text.into());
        let mut ns = whole.parse::<i64>().map_err(|_| too_long())?.checked_mul(scale).ok_or_else(too_long)?;
        let mut place = scale;
        for digit in fraction.bytes().map(|b| i64::from(b - b'0')) {
            if place % 10 != 0 {
                if digit != 0 {
                    return Err(ParseDurationError::TooFine(text.into()));
                }
                continue;
            }
            place /= 10;
            ns = ns.checked_add(digit * place).ok_or_else(too_long)?;
        }
        Ok(Duration(if negative { -ns } else { ns }))
    }
}

impl fmt::Display for Duration {
    /// Writes the shortest exact form: the longest unit in which the length is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, scale) = UNITS.into_iter().find(|(_, scale)| self.0 % scale == 0).unwrap_or(("ns", 1));
        if self.0 == 0 {
            return f.pad("0ns");
        }
        f.pad(&format!("{}{}", self.0 / scale, name))
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The form of lengths in documents with measured values, for serde's `with`. It is a whole number of nanoseconds, and
/// the key ends in `_ns` (`docs/reference/documents.md`).
pub mod nanos {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Duration;

    /// Writes a length.
    pub fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(length.as_nanos())
    }

    /// Reads a length.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        i64::deserialize(deserializer).map(Duration::from_nanos)
    }

    /// The same for optional lengths; `None` is null.
    pub mod maybe {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use crate::time::Duration;

        /// Writes a length or null.
        pub fn serialize<S: Serializer>(length: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
            length.map(Duration::as_nanos).serialize(serializer)
        }

        /// Reads a length or null.
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<i64>::deserialize(deserializer)?.map(Duration::from_nanos))
        }
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}
impl Neg for Duration {
    type Output = Duration;
    fn neg(self) -> Duration {
        Duration(-self.0)
    }
}
impl Mul<i64> for Duration {
    type Output = Duration;
    fn mul(self, n: i64) -> Duration {
        Duration(self.0 * n)
    }
}
/// Returns how many times the other length fits as a whole.
impl Div for Duration {
    type Output = i64;
    fn div(self, other: Duration) -> i64 {
        self.0 / other.0
    }
}
impl Rem for Duration {
    type Output = Duration;
    fn rem(self, other: Duration) -> Duration {
        Duration(self.0 % other.0)
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(iter: I) -> Duration {
        iter.fold(Duration::ZERO, Add::add)
    }
}
impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, length: Duration) -> Instant {
        Instant(self.0 + length.0)
    }
}
impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, length: Duration) -> Instant {
        Instant(self.0 - length.0)
    }
}
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, other: Instant) -> Duration {
        Duration(self.0 - other.0)
    }
}

/// Formats nanoseconds as microseconds with three decimals (exact).
pub fn us(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_units_and_fractions_exactly() {
        for (text, ns) in [
            ("10ms", 10_000_000),
            ("10.001009ms", 10_001_009),
            ("250us", 250_000),
            ("0.5us", 500),
            ("3\u{b5}s", 3_000),
            ("3\u{3bc}s", 3_000),
            ("1 s", 1_000_000_000),
            ("2min", 120_000_000_000),
            ("7ns", 7),
            ("-3us", -3_000),
            ("1.50000000000s", 1_500_000_000),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::as_nanos), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_what_has_no_unit_or_is_no_number() {
        use ParseDurationError::*;
        assert_eq!("10".parse::<Duration>(), Err(NoUnit("10".into())));
        assert_eq!("10parsec".parse::<Duration>(), Err(UnknownUnit("parsec".into())));
        assert_eq!("ms".parse::<Duration>(), Err(NotANumber("".into())));
        assert_eq!("1.2.3ms".parse::<Duration>(), Err(NotANumber("1.2.3".into())));
        assert_eq!("1.ms".parse::<Duration>(), Err(NotANumber("1.".into())));
        assert_eq!("0.1ns".parse::<Duration>(), Err(TooFine("0.1ns".into())));
        assert_eq!("99999999999s".parse::<Duration>(), Err(TooLong("99999999999s".into())));
    }

    #[test]
    fn display_is_exact_and_parses_back() {
        for ns in [0, 1, 999, 1_000, 10_001_009, 10_000_000, 3_000_000_000, -250_000] {
            let length = Duration::from_nanos(ns);
            assert_eq!(length.to_string().parse(), Ok(length));
        }
        assert_eq!(Duration::from_millis(10).to_string(), "10ms");
    }

    #[test]
    fn gcd_and_lcm() {
        let ms = Duration::from_millis;
        assert_eq!(ms(10).gcd(ms(4)), ms(2));
        assert_eq!(ms(10).lcm(ms(4)), Some(ms(20)));
        assert_eq!(Duration::from_nanos(i64::MAX).lcm(Duration::from_nanos(i64::MAX - 1)), None);
    }
}
