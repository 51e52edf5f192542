//! The times of a run: what each one is, and its statistics.

use macrotick_report::stats::{percentile, Tenths};
use macrotick_report::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

use crate::samples::{Offset, Sample};

/// A time that a packet has.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Its name.
    pub name: &'static str,
    /// Its ends, in words.
    pub about: &'static str,
    of: fn(&Sample) -> Option<i64>,
}

fn between(from: Offset, to: Offset) -> Option<i64> {
    Some(to.ns()? - from.ns()?)
}

/// All quantities, in the order in which a packet meets them. `nominal` is the nominal instant.
pub const QUANTITIES: [Quantity; 13] = [
    Quantity { name: "send", about: "nominal to the call of send", of: |s| s.sent.ns() },
    Quantity { name: "stack-out", about: "call of send to the queueing discipline", of: |s| between(s.sent, s.queued) },
    Quantity { name: "queue", about: "queueing discipline to the driver", of: |s| between(s.queued, s.driver) },
    Quantity { name: "driver", about: "nominal to the driver", of: |s| s.driver.ns() },
    Quantity { name: "one-way-kernel", about: "nominal to the server's kernel", of: |s| s.there.ns() },
    Quantity { name: "one-way", about: "nominal to the server", of: |s| s.there_received.ns() },
    Quantity { name: "one-way-path", about: "call of send to the server", of: |s| between(s.sent, s.there_received) },
    Quantity { name: "server", about: "receive to send in the server", of: |s| s.turnaround.ns() },
    Quantity {
        name: "way-back",
        about: "send of the server to the client",
        of: |s| Some(between(s.there_received, s.received)? - s.turnaround.ns()?),
    },
    Quantity {
        name: "wake-up",
        about: "answer at the client's kernel to the client",
        of: |s| between(s.arrived, s.received),
    },
    Quantity { name: "round-trip-path", about: "call of send to the answer", of: |s| between(s.sent, s.received) },
    Quantity { name: "round-trip", about: "nominal to the answer", of: |s| s.received.ns() },
    Quantity { name: "wire", about: "device to device, both ways with the server", of: |s| s.wire.ns() },
];

/// The statistics of a time, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Times {
    /// The name.
    pub name: &'static str,
    /// Its ends, in words.
    pub about: &'static str,
    /// The number of packets with this time.
    pub count: u64,
    /// The smallest one.
    pub min_ns: i64,
    /// The mean.
    #[schemars(with = "f64")]
    pub mean_ns: Tenths,
    /// The median (nearest rank, as all percentiles).
    pub p50_ns: i64,
    /// The 90th percentile.
    pub p90_ns: i64,
    /// The 99th percentile.
    pub p99_ns: i64,
    /// The 99.9th percentile.
    #[serde(rename = "p99-9-ns")]
    pub p999_ns: i64,
    /// The largest one.
    pub max_ns: i64,
    /// The standard deviation of the population.
    #[schemars(with = "f64")]
    pub deviation_ns: Tenths,
}

impl Times {
    /// Returns the statistics of values in any order; `None` without values.
    pub fn of(name: &'static str, about: &'static str, mut values: Vec<i64>) -> Option<Times> {
        values.sort_unstable();
        let all = Statistics::of_sorted(&values)?;
        Some(Times {
            name,
            about,
            count: all.count,
            min_ns: all.min_ns,
            mean_ns: all.mean_ns,
            p50_ns: all.p50_ns,
            p90_ns: percentile(&values, 900),
            p99_ns: all.p99_ns,
            p999_ns: all.p999_ns,
            max_ns: all.max_ns,
            deviation_ns: all.deviation_ns,
        })
    }

    /// Returns the statistics of all quantities that any packet has.
    pub fn all(samples: &[Sample]) -> Vec<Times> {
        let one = |quantity: &Quantity| {
            let values = samples.iter().filter_map(quantity.of).collect();
            Times::of(quantity.name, quantity.about, values)
        };
        QUANTITIES.iter().filter_map(one).collect()
    }
}

/// The packets per microsecond of a time, as `cyclictest` counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// `bins[n]`: times from n us to less than n + 1 us.
    pub bins: Vec<u64>,
    /// Times of at least as many microseconds as there are bins.
    pub overflow: u64,
    /// Times below zero.
    pub below: u64,
}

impl Histogram {
    /// Counts values in ns, with `bins` bins.
    pub fn of(values: impl Iterator<Item = i64>, bins: usize) -> Histogram {
        let mut histogram = Histogram { bins: vec![0; bins], overflow: 0, below: 0 };
        for value in values {
            let count = match usize::try_from(value.div_euclid(1_000)) {
                Ok(bin) => histogram.bins.get_mut(bin).unwrap_or(&mut histogram.overflow),
                Err(_) => &mut histogram.below,
            };
            *count += 1;
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_these_times() {
        let o = Offset::new;
        let sample = Sample {
            nominal: 5,
            sent: o(10),
            queued: o(12),
            driver: o(15),
            there: o(30),
            there_received: o(40),
            turnaround: o(6),
            arrived: o(80),
            received: o(90),
            wire: o(70),
            copies: 1,
        };
        let all: Vec<(&str, i64)> = Times::all(&[sample]).iter().map(|times| (times.name, times.max_ns)).collect();
        let expected = [
            ("send", 10),
            ("stack-out", 2),
            ("queue", 3),
            ("driver", 15),
            ("one-way-kernel", 30),
            ("one-way", 40),
            ("one-way-path", 30),
            ("server", 6),
            ("way-back", 44),
            ("wake-up", 10),
            ("round-trip-path", 80),
            ("round-trip", 90),
            ("wire", 70),
        ];
        assert_eq!(all, expected);
        let names: Vec<&str> = Times::all(&[Sample::sent(0, 5)]).iter().map(|times| times.name).collect();
        assert_eq!(names, ["send"]);
    }

    #[test]
    fn statistics_are_exact() {
        let times = Times::of("a", "b", (1..=1000).rev().collect()).unwrap();
        assert_eq!((times.count, times.min_ns, times.p50_ns, times.p90_ns), (1000, 1, 500, 900));
        assert_eq!((times.p99_ns, times.p999_ns, times.max_ns, times.mean_ns), (990, 999, 1000, Tenths(5005)));
        assert_eq!(Times::of("a", "b", vec![]), None);
    }

    #[test]
    fn bins_are_half_open() {
        let histogram = Histogram::of([-1, 0, 999, 1_000, 1_999, 2_000, i64::MAX, i64::MIN].into_iter(), 2);
        assert_eq!(histogram, Histogram { bins: vec![2, 2], overflow: 2, below: 2 });
        assert_eq!(Histogram::of([5].into_iter(), 0).overflow, 1);
    }
}
