//! The instructions of timer operations and of a switch, on the three kernels.

use std::fmt::Write as _;

use macrotick_lab::{Kernel, PathRequest, Symbols};
use macrotick_report::stats::percentile;
use macrotick_report::Figure;

use super::aims::Aim;
use super::paths::{Parts, Splitter, ENTRY, SLEEP};
use super::run::job;
use super::workload::Workload;
use crate::error::BenchError;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;
use crate::kit::variant::Variant;

const WORKLOAD: Workload = Workload::Unsynchronised;
/// Lower tasks, jobs of the high task, and paths that are skipped and recorded.
const LOADS: [Load; 2] =
    [Load { size: 0, jobs: 400, skip: 100, count: 200 }, Load { size: 50, jobs: 400, skip: 600, count: 1000 }];
const QUICK_LOADS: [Load; 2] =
    [Load { size: 0, jobs: 100, skip: 20, count: 50 }, Load { size: 50, jobs: 100, skip: 100, count: 200 }];
/// The limits in instructions, without load, of the medians.
const AIM_TIMER: f64 = 120.0;
const AIM_SWITCH: f64 = 40.0;
const UNIT: &str = "instructions";

struct Load {
    size: u32,
    jobs: u32,
    skip: u64,
    count: u64,
}

fn loads(scale: Scale) -> &'static [Load] {
    scale.of(&LOADS, &QUICK_LOADS)
}

/// Returns the jobs of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    loads(scale).iter().flat_map(|load| [u64::from(load.jobs); Variant::ALL.len()]).collect()
}

/// The measured parts of a path.
const PARTS: [(&str, PartOf); 4] = [
    (ENQUEUE, |parts| parts.enqueue),
    (EXPIRY, |parts| parts.expiry),
    (SWITCH, |parts| parts.switch),
    ("of it TimerShield's", |parts| parts.own),
];
/// The names of the parts.
pub const ENQUEUE: &str = "enqueue";
/// See [`ENQUEUE`].
pub const EXPIRY: &str = "expiry";
/// See [`ENQUEUE`].
pub const SWITCH: &str = "switch";

type PartOf = fn(&Parts) -> Option<i64>;

/// One part under one load on one kernel.
struct Row {
    part: &'static str,
    size: u32,
    variant: Variant,
    /// The lengths in ascending order, at least one.
    lengths: Vec<i64>,
}

/// The lengths of all parts.
pub struct Operations {
    rows: Vec<Row>,
}

impl Operations {
    /// Records paths on all kernels, which have different symbols.
    pub fn measure(
        bench: &Bench,
        kernel_of: impl Fn(Variant) -> Result<Kernel, BenchError>,
    ) -> Result<Operations, BenchError> {
        let mut rows = Vec::new();
        for load in loads(bench.scale) {
            for variant in Variant::ALL {
                lab::announce(&format!("{}: operations beside {}: {}", bench.name, load.size, variant.name()));
                rows.extend(rows_of(load, variant, &observe(load, variant, &kernel_of(variant)?)?));
            }
        }
        rows.sort_by_key(|row| PARTS.iter().position(|(part, _)| *part == row.part));
        Ok(Operations { rows })
    }

    fn median(&self, part: &str, size: u32, variant: Variant) -> Option<f64> {
        self.percentile(part, size, variant, 500)
    }

    /// Returns a percentile of the lengths of a part.
    pub fn percentile(&self, part: &str, size: u32, variant: Variant, permille: usize) -> Option<f64> {
        let row = self.rows.iter().find(|row| (row.part, row.size, row.variant) == (part, size, variant))?;
        Some(percentile(&row.lengths, permille) as f64)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let more = |parts: &[&str], variant| -> Option<f64> {
            let one = |part: &&str| Some(self.median(part, 0, variant)? - self.median(part, 0, Variant::Pristine)?);
            parts.iter().map(one).sum()
        };
        let aim = |what: &str, parts: &[&str], limit| Aim {
            what: format!("{what}: more than on the pristine kernel"),
            unit: UNIT,
            values: [None, more(parts, Variant::Off), more(parts, Variant::On)],
            limit,
        };
        vec![
            aim("a sleep's timer, enqueue and expiry", &[ENQUEUE, EXPIRY], AIM_TIMER),
            aim("a switch that leaves the event device alone", &[SWITCH], AIM_SWITCH),
        ]
    }

    /// Returns a table with a row for each part, load and kernel.
    pub fn markdown(&self) -> String {
        let mut text = "### instructions\n\n| | lower tasks | kernel | times | min | p5 | median | p95 | max |\n\
            |---|---:|---|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for Row { part, size, variant, lengths } in &self.rows {
            let [p5, p50, p95] = [50, 500, 950].map(|permille| percentile(lengths, permille));
            let (min, max) = (lengths[0], lengths[lengths.len() - 1]);
            let (times, variant) = (lengths.len(), variant.name());
            let _ = writeln!(text, "| {part} | {size} | {variant} | {times} | {min} | {p5} | {p50} | {p95} | {max} |");
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let of = |Row { part, size, variant, lengths }: &Row| {
            let case = format!("{size} lower tasks, {}", variant.name());
            [("min", 1), ("p5", 50), ("p50", 500), ("p95", 950), ("max", 1000)].map(|(name, permille)| Figure {
                figure: format!("{part}.{name}"),
                case: case.clone(),
                value: percentile(lengths, permille) as f64,
                unit: UNIT.into(),
            })
        };
        self.rows.iter().flat_map(of).collect()
    }
}

fn rows_of(load: &Load, variant: Variant, parts: &[Parts]) -> Vec<Row> {
    let row = |(part, of): (&'static str, PartOf)| {
        let mut lengths: Vec<i64> = parts.iter().filter_map(of).collect();
        lengths.sort_unstable();
        Row { part, size: load.size, variant, lengths }
    };
    PARTS.into_iter().map(row).filter(|row| !row.lengths.is_empty()).collect()
}

fn observe(load: &Load, variant: Variant, kernel: &Kernel) -> Result<Vec<Parts>, BenchError> {
    let symbols = Symbols::read(&kernel.system_map)?;
    let splitter = Splitter::new(&symbols).map_err(BenchError::NoFunction)?;
    let address = |name| symbols.address(name).ok_or(BenchError::NoFunction(name));
    let mut job = job(variant, WORKLOAD, load.size, load.jobs);
    let Load { skip, count, .. } = *load;
    job.paths = Some(PathRequest { entry: address(ENTRY)?, through: address(SLEEP)?, skip, count });
    let outcome = lab::run(&job)?;
    let parts: Vec<Parts> = outcome.paths.iter().map(|path| splitter.split(path)).collect();
    match parts.len() as u64 == count {
        true => Ok(parts),
        false => Err(lab::no_output(&job, "paths", format!("{} of {count}", parts.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(of: impl Fn(Variant) -> [i64; 3]) -> Operations {
        let rows = Variant::ALL.iter().flat_map(|&variant| {
            let [enqueue, expiry, switch] = of(variant).map(Some);
            rows_of(&LOADS[0], variant, &[Parts { enqueue, expiry, switch, own: None }, Parts::default()])
        });
        Operations { rows: rows.collect() }
    }

    #[test]
    fn medians_are_compared_with_the_pristine_kernel() {
        let operations = operations(|variant| match variant {
            Variant::Pristine => [100, 90, 800],
            Variant::Off => [102, 91, 801],
            Variant::On => [180, 110, 850],
        });
        let values: Vec<_> = operations.aims().into_iter().map(|aim| aim.values).collect();
        assert_eq!(values, [[None, Some(3.0), Some(100.0)], [None, Some(1.0), Some(50.0)]]);
        assert!(operations.markdown().contains("| expiry | 0 | on | 1 | 110 | 110 | 110 | 110 | 110 |\n"));
        assert_eq!(operations.percentile(ENQUEUE, 0, Variant::On, 950), Some(180.0));
    }

    #[test]
    fn what_no_path_has_is_left_out() {
        let rows = rows_of(&LOADS[0], Variant::On, &[Parts { enqueue: Some(1), ..Default::default() }]);
        assert_eq!(rows.len(), 1);
    }
}
