//! How often each value occurred. The memory is fixed, however many values are counted.

use std::borrow::Cow;

use hdrhistogram::Histogram as Hdr;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Larger values count as this one: 100 s, in nanoseconds.
const MOST: u64 = 100_000_000_000;
/// The significant decimal digits of a value.
const DIGITS: u8 = 3;

/// Counts of values in nanoseconds, with three significant digits. Values below zero count as zero, and values above
/// 100 s as 100 s. In a document it is a list of pairs: a value, and how often it occurred.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(Hdr<u64>);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(Hdr::new_with_bounds(1, MOST, DIGITS).expect("constant bounds are valid"))
    }
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, ns: i64) {
        self.0.saturating_record(ns.max(0).unsigned_abs());
    }

    /// Returns the number of counted values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the value that this share of the values does not exceed, for example 0.99. `None`: no value is counted.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.0.value_at_quantile(share))
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let mut histogram = Histogram::default();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            let recorded = histogram.0.record_n(value, count);
            recorded.map_err(|_| {
                D::Error::custom(format_args!("a value of {value} ns, but at most {MOST} are possible"))
            })?;
        }
        Ok(histogram)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Vec::<(u64, u64)>::json_schema(generator);
        schema.insert("description".into(), "Pairs of a value in nanoseconds and how often it occurred.".into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_the_document() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for value in [-5, 0, 1, 234, 234, 12_345, 7_654_321, i64::MAX] {
            histogram.record(value);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        let again: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!((again.count(), serde_json::to_string(&again).unwrap()), (8, text));
        assert_eq!(again, histogram);
        assert_eq!(histogram.quantile(0.5), Some(234));
        let largest = histogram.quantile(1.0).unwrap();
        assert!((MOST..MOST + MOST / 1000).contains(&largest), "{largest}");
    }

    #[test]
    fn impossible_values_are_refused() {
        let refused = serde_json::from_str::<Histogram>("[[999999999999999, 1]]").unwrap_err().to_string();
        assert!(refused.starts_with("a value of 999999999999999 ns, but at most 100000000000"), "{refused}");
    }
}
