//! One run in the lab: a workload of one size on one kernel.

use macrotick_lab::GuestJob;
use macrotick_model::Duration;
use macrotick_report::Statistics;

use super::task_guest;
use super::workload::Workload;
use crate::error::BenchError;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::variant::Variant;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The kernel.
    pub variant: Variant,
    /// The workload.
    pub workload: Workload,
    /// The number of other tasks or timers.
    pub size: u32,
    /// The samples in ascending order.
    pub samples: Vec<i64>,
    /// The number of timer reads of the hostile process.
    pub reads: u64,
    /// The number of expirations that these reads returned.
    pub expirations: u64,
}

impl Run {
    /// Runs in the lab.
    pub fn measure(bench: &Bench, variant: Variant, workload: Workload, size: u32) -> Result<Run, BenchError> {
        lab::announce(&format!("{}: {}, {size}: {}", bench.name, workload.name(), variant.name()));
        let samples = workload.samples(bench.scale);
        let job = job(variant, workload, size, samples);
        let is_whole = |printed: &Printed| printed.samples.len() == samples as usize;
        let Printed { reads, expirations, samples } =
            lab::read(&job, "samples", |output| parse(output).filter(is_whole))?;
        Ok(Run { variant, workload, size, samples, reads, expirations })
    }

    /// Returns the statistics of the samples.
    pub fn statistics(&self) -> Statistics {
        Statistics::of_sorted(&self.samples).expect("a run without samples is refused")
    }

    /// Returns the timer reads of the hostile process per millisecond.
    pub fn reads_per_ms(&self) -> f64 {
        let ms = self.workload.measured().period_ns as f64 / 1e6;
        self.reads as f64 / (self.samples.len() as f64 * ms)
    }

    /// Returns the name in figures.
    pub fn label(&self) -> String {
        format!("{} {}, {}", self.workload.name(), self.size, self.variant.name())
    }
}

/// Returns the guest's job.
pub fn job(variant: Variant, workload: Workload, size: u32, samples: u32) -> GuestJob {
    let mut job = lab::job(variant.flavor(), task_guest::words(variant, workload, size, samples));
    job.wall_limit = Duration::from_secs(900);
    job
}

/// The parsed output of the guest.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    reads: u64,
    expirations: u64,
    samples: Vec<i64>,
}

/// Parses `reads N`, `expirations N`, and a line `sample N` for each sample.
fn parse(output: &str) -> Option<Printed> {
    let mut lines = output.lines();
    let mut number = |key: &str| lines.next()?.strip_prefix(key)?.parse::<u64>().ok();
    let (reads, expirations) = (number("reads ")?, number("expirations ")?);
    let samples = lines.map(|line| line.strip_prefix("sample ")?.parse().ok());
    let mut samples = samples.collect::<Option<Vec<i64>>>().filter(|samples| !samples.is_empty())?;
    samples.sort_unstable();
    Some(Printed { reads, expirations, samples })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_prints_is_read() {
        let printed = parse("reads 7\nexpirations 9\nsample 30\nsample 10\n").unwrap();
        assert_eq!(printed, Printed { reads: 7, expirations: 9, samples: vec![10, 30] });
        for odd in ["", "reads 7\nexpirations 9\n", "reads 7\nexpirations 9\nsample x\n", "sample 1\nreads 7\n"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
