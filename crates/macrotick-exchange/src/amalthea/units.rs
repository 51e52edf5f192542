//! Numbers, times and frequencies.

use super::element::{Element, Refusal};
use crate::findings::cut;

/// A positive or negative decimal number, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The numerator.
    pub above: i128,
    /// The denominator, above zero.
    pub below: i128,
}

/// The most digits of a number, and the largest exponent.
const MOST_DIGITS: usize = 18;

impl Ratio {
    /// Reads a decimal number such as `1.5` or `2.0E8`.
    pub fn parse(text: &str) -> Option<Ratio> {
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let exponent: i32 = exponent.parse().ok()?;
        let all = format!("{whole}{fraction}");
        let count = all.trim_start_matches(['-', '+', '0']).len();
        let is_number = fraction.bytes().all(|byte| byte.is_ascii_digit()) && !all.ends_with(['-', '+']);
        let most = MOST_DIGITS as u32;
        if !is_number || count > MOST_DIGITS || fraction.len() > MOST_DIGITS || exponent.unsigned_abs() > most {
            return None;
        }
        let scale = exponent - fraction.len() as i32;
        // At most 36 digits, and those of the number: the product can be out of range.
        let power = 10i128.checked_pow(scale.unsigned_abs())?;
        let number: i128 = all.parse().ok()?;
        match scale >= 0 {
            true => Some(Ratio { above: number.checked_mul(power)?, below: 1 }),
            false => Some(Ratio { above: number, below: power }.reduced()),
        }
    }

    fn reduced(self) -> Ratio {
        let (mut a, mut b) = (self.above.abs(), self.below);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Ratio { above: self.above / a, below: self.below / a }
    }

    /// Returns the product with a whole number.
    pub fn times(self, factor: i128) -> Option<Ratio> {
        Some(Ratio { above: self.above.checked_mul(factor)?, ..self }.reduced())
    }

    /// Divides a number by this one, which is above zero. The result is rounded up.
    pub fn divide(self, number: i128) -> Option<i128> {
        let above = number.checked_mul(self.below)?;
        Some(above.div_euclid(self.above) + i128::from(above.rem_euclid(self.above) != 0))
    }

    /// Whether this number is less than another one. It compares whole parts, and then the reciprocals of the rests:
    /// a product of numerator and denominator could be out of range.
    pub fn is_less_than(self, other: Ratio) -> bool {
        let (mut one, mut other) = (self, other);
        loop {
            let wholes = (one.above.div_euclid(one.below), other.above.div_euclid(other.below));
            let rests = (one.above.rem_euclid(one.below), other.above.rem_euclid(other.below));
            if wholes.0 != wholes.1 || rests.0 == 0 || rests.1 == 0 {
                return (wholes.0, rests.0 != 0) < (wholes.1, rests.1 != 0);
            }
            // The greater one of two rests below one has the lesser reciprocal.
            (one, other) = (Ratio { above: other.below, below: rests.1 }, Ratio { above: one.below, below: rests.0 });
        }
    }

    /// Returns the number, rounded up.
    pub fn ceil(self) -> i128 {
        self.above.div_euclid(self.below) + i128::from(self.above.rem_euclid(self.below) != 0)
    }
}

/// A time in picoseconds, the shortest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Picoseconds(pub i128);

impl Picoseconds {
    /// Returns whole nanoseconds, or `None` if a rest remains or the time is too long.
    pub fn exact(self) -> Option<i64> {
        let is_whole = self.0 % 1000 == 0;
        i64::try_from(self.0 / 1000).ok().filter(|_| is_whole)
    }

    /// Returns nanoseconds, rounded down, or `None` if the time is too long.
    pub fn down(self) -> Option<i64> {
        i64::try_from(self.0.div_euclid(1000)).ok()
    }
}

/// Returns the time of an element with `value` and `unit`.
pub fn time(element: Element) -> Result<Picoseconds, Refusal> {
    let value = whole(element, "value")?.unwrap_or(0);
    let unit = match element.attribute("unit").unwrap_or_default() {
        "ps" => 1,
        "ns" => 1_000,
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        "" | "_undefined_" if value == 0 => 1,
        "" | "_undefined_" => return Err(element.refusal("the time has no unit")),
        other => return Err(element.refusal(format!("`{}` is no unit of time", cut(other)))),
    };
    Ok(Picoseconds(i128::from(value) * unit))
}

/// Returns a whole number of an attribute, if the element has it.
pub fn whole(element: Element, key: &str) -> Result<Option<i64>, Refusal> {
    let Some(text) = element.attribute(key) else { return Ok(None) };
    let wrong = || element.refusal(format!("`{key}`: `{}` is no whole number, or is too large", cut(text)));
    text.parse().map(Some).map_err(|_| wrong())
}

/// Returns the frequency in Hz of an element with `value` and `unit`.
pub fn frequency(element: Element) -> Result<Ratio, Refusal> {
    let text = element.attribute("value").unwrap_or("0");
    let unit = match element.attribute("unit").unwrap_or_default() {
        "Hz" => 1,
        "kHz" | "KHz" => 1_000,
        "MHz" => 1_000_000,
        "GHz" => 1_000_000_000,
        "" | "_undefined_" => return Err(element.refusal("the frequency has no unit")),
        other => return Err(element.refusal(format!("`{}` is no unit of frequency", cut(other)))),
    };
    let hertz = Ratio::parse(text).and_then(|number| number.times(unit));
    match hertz.filter(|hertz| hertz.above > 0) {
        Some(hertz) => Ok(hertz),
        None => Err(element.refusal(format!("`{}` is no frequency above zero", cut(text)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        let ratio = |above, below| Some(Ratio { above, below });
        assert_eq!(Ratio::parse("200.0"), ratio(200, 1));
        assert_eq!(Ratio::parse("0.8"), ratio(4, 5));
        assert_eq!(Ratio::parse("8.0E-1"), ratio(4, 5));
        assert_eq!(Ratio::parse("2.5E2"), ratio(250, 1));
        assert_eq!(Ratio::parse("-1"), ratio(-1, 1));
        for text in ["", "x", "1.x", "1e99", "NaN", "1..2", "-", "1.-2", "9999999999999999999", "Infinity"] {
            assert_eq!(Ratio::parse(text), None, "{text}");
        }
        for text in ["1e-2147483648", "1e2147483647", "1e-19", "1e19"] {
            assert_eq!(Ratio::parse(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let texts = ["-2", "-1.5", "0", "1e-18", "0.8", "0.81", "1", "1.99999999999999999", "2", "2.5", "1e18", "9e35"];
        let numbers = texts.map(|text| match text {
            "9e35" => Ratio::parse("9e17").and_then(|number| number.times(1_000_000_000_000_000_000)).unwrap(),
            _ => Ratio::parse(text).unwrap(),
        });
        for (at, one) in numbers.iter().enumerate() {
            for (other_at, other) in numbers.iter().enumerate() {
                assert_eq!(one.is_less_than(*other), at < other_at, "{} {}", texts[at], texts[other_at]);
            }
        }
    }

    #[test]
    fn division_rounds_up() {
        let ratio = Ratio::parse("1.5").unwrap();
        assert_eq!((ratio.divide(3), ratio.divide(4), ratio.divide(i128::MAX)), (Some(2), Some(3), None));
        assert_eq!((ratio.ceil(), Ratio::parse("2").unwrap().ceil()), (2, 2));
    }
}
