//! Quantities of networks: the size of a frame and the speed of a link. Like a time, each has a unit in a text.

use std::fmt;
use std::str::FromStr;

use crate::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u32);

/// The speed of a link in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed(u64);

/// The reason why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSizeError {
    /// A number without a unit.
    #[error("a size needs a unit: write `{0}B` or `{0}KiB`")]
    NoUnit(String),
    /// A unit other than B and KiB.
    #[error("unknown unit `{0}`: use B or KiB")]
    UnknownUnit(String),
    /// A text that does not start with a whole number.
    #[error("`{0}` is not a whole number")]
    NotANumber(String),
    /// A size beyond the range of the type.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// The reason why a text is not the speed of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSpeedError {
    /// A number without a unit.
    #[error("a speed needs a unit: write `{0}Mb/s` or `{0}Gb/s`")]
    NoUnit(String),
    /// A unit other than Mb/s and Gb/s.
    #[error("unknown unit `{0}`: use Mb/s or Gb/s")]
    UnknownUnit(String),
    /// A text that does not start with a number.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// A speed beyond the range of the type, or with a fraction of a bit per second.
    #[error("`{0}` is not a speed of a link")]
    NoSpeed(String),
}

/// Splits a text into the number and the unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let split = text.find(char::is_alphabetic).unwrap_or(text.len());
    (text[..split].trim(), &text[split..])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Size {
    /// The largest size in a description: 64 KiB.
    pub const MAX: Size = Size(64 << 10);

    /// Makes a size of this many bytes.
    pub const fn from_bytes(bytes: u32) -> Size {
        Size(bytes)
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl FromStr for Size {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split(text);
        let scale = match unit {
            "" if is_number(number) => return Err(ParseSizeError::NoUnit(number.into())),
            "B" => 1,
            "KiB" => 1024,
            "" => return Err(ParseSizeError::NotANumber(text.into())),
            _ => return Err(ParseSizeError::UnknownUnit(unit.into())),
        };
        if !is_number(number) {
            return Err(ParseSizeError::NotANumber(number.into()));
        }
        let bytes = number.parse::<u32>().ok().and_then(|number| number.checked_mul(scale));
        bytes.map(Size).ok_or_else(|| ParseSizeError::TooLarge(text.trim().into()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}B", self.0))
    }
}

const MEGA: u64 = 1_000_000;
const GIGA: u64 = 1_000_000_000;

impl Speed {
    /// The lowest speed in a description: 1 Mb/s.
    pub const MIN: Speed = Speed(MEGA);
    /// The highest speed in a description: 400 Gb/s. The kernel counts whole picoseconds for a byte, at least 17.
    pub const MAX: Speed = Speed(400 * GIGA);
    /// The speed that the kernel's virtual Ethernet (veth) reports: 10 Gb/s.
    pub const VIRTUAL: Speed = Speed(10 * GIGA);

    /// Makes a speed of this many bits per second. Zero is no speed.
    pub const fn from_bits(bits: u64) -> Speed {
        Speed(bits)
    }

    /// Returns the bits per second.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the time that this many bytes take on the link, rounded up to nanoseconds.
    pub fn time(self, bytes: u32) -> Duration {
        let bits = u128::from(bytes) * 8;
        let nanos = (bits * u128::from(GIGA)).div_ceil(u128::from(self.0.max(1)));
        Duration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

impl FromStr for Speed {
    type Err = ParseSpeedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split(text);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let scale = match unit {
            "" if is_number(whole) => return Err(ParseSpeedError::NoUnit(number.into())),
            "Mb/s" => MEGA,
            "Gb/s" => GIGA,
            "" => return Err(ParseSpeedError::NotANumber(text.into())),
            _ => return Err(ParseSpeedError::UnknownUnit(unit.into())),
        };
        if !is_number(whole) || !is_number(fraction) {
            return Err(ParseSpeedError::NotANumber(number.into()));
        }
        let no_speed = || ParseSpeedError::NoSpeed(text.trim().into());
        let digits = u32::try_from(fraction.len()).ok().and_then(|digits| 10u64.checked_pow(digits));
        let place = digits.filter(|place| scale % place == 0).ok_or_else(no_speed)?;
        let part = fraction.parse::<u64>().map_err(|_| no_speed())? * (scale / place);
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(scale));
        whole.and_then(|whole| whole.checked_add(part)).filter(|bits| *bits > 0).map(Speed).ok_or_else(no_speed)
    }
}

impl fmt::Display for Speed {
    /// Writes whole gigabits, else megabits with as many decimals as necessary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 % GIGA == 0 {
            return f.pad(&format!("{}Gb/s", self.0 / GIGA));
        }
        let (whole, part) = (self.0 / MEGA, self.0 % MEGA);
        let part = if part == 0 { String::new() } else { format!(".{part:06}") };
        f.pad(&format!("{whole}{}Mb/s", part.trim_end_matches('0')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        let of = |text: &str| text.parse::<Size>().map(Size::bytes).map_err(|error| error.to_string());
        assert_eq!((of("64B"), of("1500 B"), of("64KiB")), (Ok(64), Ok(1500), Ok(65536)));
        assert_eq!(of("64"), Err("a size needs a unit: write `64B` or `64KiB`".into()));
        assert_eq!(of("64kb"), Err("unknown unit `kb`: use B or KiB".into()));
        assert_eq!(of("1.5KiB"), Err("`1.5` is not a whole number".into()));
        assert_eq!(of(""), Err("`` is not a whole number".into()));
        assert_eq!(of("99999999999B"), Err("`99999999999B` is too large".into()));
        assert_eq!(of("4194304KiB"), Err("`4194304KiB` is too large".into()));
    }

    #[test]
    fn speeds_have_a_unit() {
        let of = |text: &str| text.parse::<Speed>().map(Speed::bits).map_err(|error| error.to_string());
        assert_eq!((of("10Mb/s"), of("2.5Gb/s"), of("10 Gb/s")), (Ok(10 * MEGA), Ok(2500 * MEGA), Ok(10 * GIGA)));
        assert_eq!(of("100"), Err("a speed needs a unit: write `100Mb/s` or `100Gb/s`".into()));
        assert_eq!(of("1000Mbit"), Err("unknown unit `Mbit`: use Mb/s or Gb/s".into()));
        assert_eq!(of("1.Gb/s"), Err("`1.` is not a number".into()));
        assert_eq!(of("0Mb/s"), Err("`0Mb/s` is not a speed of a link".into()));
        assert_eq!(of("0.0000000001Gb/s"), Err("`0.0000000001Gb/s` is not a speed of a link".into()));
        assert_eq!(of("99999999999999Gb/s"), Err("`99999999999999Gb/s` is not a speed of a link".into()));
    }

    #[test]
    fn display_parses_back() {
        for bits in [10 * MEGA, 100 * MEGA, GIGA, 2_500 * MEGA, 10 * GIGA, MEGA + 1, 1_234_560_000] {
            let speed = Speed::from_bits(bits);
            assert_eq!(speed.to_string().parse(), Ok(speed), "{speed}");
        }
        assert_eq!(Speed::from_bits(2_500 * MEGA).to_string(), "2500Mb/s");
        assert_eq!(Size::from_bytes(1500).to_string().parse(), Ok(Size::from_bytes(1500)));
    }

    #[test]
    fn times_on_a_link_are_rounded_up() {
        let ns = Duration::from_nanos;
        assert_eq!(Speed::from_bits(GIGA).time(84), ns(672));
        assert_eq!(Speed::VIRTUAL.time(84), ns(68));
        assert_eq!(Speed::from_bits(10 * MEGA).time(1542), ns(1_233_600));
        assert_eq!(Speed::from_bits(1).time(u32::MAX), ns(i64::MAX));
    }
}
