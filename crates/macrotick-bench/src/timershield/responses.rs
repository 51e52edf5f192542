//! Responses and throughput on the three kernels: tables, aims, plots.

use std::fmt::Write as _;

use macrotick_report::{cumulative_curves, Curve, Figure, Statistics};

use super::aims::Aim;
use super::run::Run;
use super::workload::Workload;
use crate::error::BenchError;
use crate::kit::bench::Bench;
use crate::kit::scale::Scale;
use crate::kit::variant::Variant;

/// The time by which the longest response beside many tasks may exceed the one beside one task, in microseconds.
const AIM_LONGER_US: f64 = 1.0;
/// The percentage by which the mean response of the lowest task may be longer.
const AIM_LOWEST_PERCENT: f64 = 2.0;

/// All runs.
pub struct Responses {
    scale: Scale,
    runs: Vec<Run>,
}

/// Returns the samples of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    let of =
        |workload: Workload| vec![workload.samples(scale).into(); workload.sizes(scale).len() * Variant::ALL.len()];
    Workload::ALL.into_iter().flat_map(of).collect()
}

impl Responses {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Responses, BenchError> {
        let mut runs = Vec::new();
        for workload in Workload::ALL {
            for &size in workload.sizes(bench.scale) {
                for variant in Variant::ALL {
                    runs.push(Run::measure(bench, variant, workload, size)?);
                }
            }
        }
        Ok(Responses { scale: bench.scale, runs })
    }

    /// Returns the sizes that a workload was measured with.
    pub fn sizes(&self, workload: Workload) -> &'static [u32] {
        workload.sizes(self.scale)
    }

    fn statistics(&self, variant: Variant, workload: Workload, size: u32) -> Option<Statistics> {
        let is_it = |run: &&Run| (run.variant, run.workload, run.size) == (variant, workload, size);
        self.runs.iter().find(is_it).map(Run::statistics)
    }

    /// Returns the mean of the samples, in the guest's unit.
    pub fn mean(&self, variant: Variant, workload: Workload, size: u32) -> Option<f64> {
        self.statistics(variant, workload, size).map(|statistics| statistics.mean_ns.as_ns_f64())
    }

    fn runs_of(&self, workload: Workload) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.workload == workload)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let mut aims: Vec<Aim> = [Workload::Unsynchronised, Workload::Synchronised].map(|w| self.longer(w)).into();
        aims.extend(self.sizes(Workload::Lowest).iter().map(|&size| self.lowest(size)));
        aims
    }

    /// Compares the longest response beside 100 tasks with the longest beside one.
    fn longer(&self, workload: Workload) -> Aim {
        let max = |variant, size| self.statistics(variant, workload, size).map(|statistics| us(statistics.max_ns));
        Aim {
            what: format!("longest response, {}: more beside 100 than beside 1", workload.name()),
            unit: "us",
            values: Variant::ALL.map(|variant| Some(max(variant, 100)? - max(variant, 1)?)),
            limit: AIM_LONGER_US,
        }
    }

    /// Compares the mean response of the lowest task with the pristine kernel.
    fn lowest(&self, size: u32) -> Aim {
        let mean = |variant| self.mean(variant, Workload::Lowest, size);
        let longer = |variant| Some((mean(variant)? / mean(Variant::Pristine)? - 1.0) * 100.0);
        Aim {
            what: format!("mean response of the lowest task, {size} in between: more than on the pristine kernel"),
            unit: "%",
            values: [None, longer(Variant::Off), longer(Variant::On)],
            limit: AIM_LOWEST_PERCENT,
        }
    }

    /// Returns a table for each workload.
    pub fn markdown(&self) -> String {
        let tables = Workload::ALL.map(|workload| match workload {
            Workload::Throughput => self.throughput(),
            _ => self.responses(workload),
        });
        tables.join("\n")
    }

    fn responses(&self, workload: Workload) -> String {
        let hostile = workload == Workload::Hostile;
        let mut text = format!(
            "### {}: response [us]\n\n| {} | kernel | min | mean | p50 | p99 | p99.9 | max | std dev |{}\n\
             |---:|---|---:|---:|---:|---:|---:|---:|---:|{}\n",
            workload.name(),
            workload.head(),
            if hostile { " timers read per ms |" } else { "" },
            if hostile { "---:|" } else { "" },
        );
        for run in self.runs_of(workload) {
            let s = run.statistics();
            let (mean, deviation) = (s.mean_ns.as_us_f64(), s.deviation_ns.as_us_f64());
            let [min, p50, p99, p999, max] = [s.min_ns, s.p50_ns, s.p99_ns, s.p999_ns, s.max_ns].map(us);
            let _ = writeln!(
                text,
                "| {} | {} | {min:.3} | {mean:.3} | {p50:.3} | {p99:.3} | {p999:.3} | {max:.3} | {deviation:.3} |{}",
                run.size,
                run.variant.name(),
                if hostile { format!(" {:.0} |", run.reads_per_ms()) } else { String::new() }
            );
        }
        text
    }

    fn throughput(&self) -> String {
        let workload = Workload::Throughput;
        let mut text = "### throughput: rounds per ms\n\n\
            | kernel | idle | beside 1000 timers | more | timers read per ms |\n\
            |---|---:|---:|---:|---:|\n"
            .to_owned();
        for variant in Variant::ALL {
            let of = |size| self.runs_of(workload).find(|run| run.variant == variant && run.size == size);
            let (Some(idle), Some(hostile)) = (of(0), of(1000)) else { continue };
            let [before, after] = [idle, hostile].map(|run| run.statistics().mean_ns.as_ns_f64());
            let _ = writeln!(
                text,
                "| {} | {before:.1} | {after:.1} | {:+.2} % | {:.0} |",
                variant.name(),
                (after / before - 1.0) * 100.0,
                hostile.reads_per_ms()
            );
        }
        text
    }

    /// Returns all measured values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        self.runs.iter().flat_map(figures_of).collect()
    }

    /// Returns file, caption and content of a plot for each workload that has responses.
    pub fn plots(&self) -> Vec<(String, String, String)> {
        let plot = |workload: Workload| Some(self.plot(workload, workload.plotted()?));
        Workload::ALL.into_iter().filter_map(plot).collect()
    }

    fn plot(&self, workload: Workload, of: &str) -> (String, String, String) {
        // The variant with a solid line comes first.
        let kinds = [Variant::On, Variant::Off, Variant::Pristine];
        let of_kind = |variant| self.runs_of(workload).filter(move |run| run.variant == variant && run.size > 0);
        let runs: Vec<&Run> = kinds.into_iter().flat_map(of_kind).collect();
        let groups: Vec<String> = runs.iter().map(|run| workload.counted(run.size)).collect();
        let each = runs.iter().zip(&groups);
        let curves: Vec<Curve> =
            each.map(|(run, group)| Curve { group, kind: run.variant.name(), samples: &run.samples }).collect();
        let title = format!("Response of {of}");
        let svg = cumulative_curves(&title, "jobs", &curves);
        let caption = format!("{title}: with TimerShield on and off, and on the pristine kernel");
        (format!("{}.svg", workload.name()), caption, svg)
    }
}

fn figures_of(run: &Run) -> Vec<Figure> {
    let figure = |name: &str, value: f64, unit: &str| Figure {
        figure: name.into(),
        case: run.label(),
        value,
        unit: unit.into(),
    };
    let s = run.statistics();
    let mut all = match run.workload {
        Workload::Throughput => vec![figure("throughput.mean", s.mean_ns.as_ns_f64(), "rounds per ms")],
        _ => {
            let times =
                [("min", s.min_ns), ("p50", s.p50_ns), ("p99", s.p99_ns), ("p99.9", s.p999_ns), ("max", s.max_ns)];
            let means = [("mean", s.mean_ns), ("std", s.deviation_ns)];
            let means = means.map(|(name, time)| figure(&format!("response.{name}"), time.as_us_f64(), "us"));
            let times = times.map(|(name, ns)| figure(&format!("response.{name}"), us(ns), "us"));
            times.into_iter().chain(means).collect()
        }
    };
    if !run.workload.timers(run.size).is_empty() {
        all.push(figure("timers read", run.reads as f64, "readings"));
        all.push(figure("timers expired", run.expirations as f64, "expirations"));
    }
    all
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(variant: Variant, workload: Workload, size: u32, samples: &[i64]) -> Run {
        Run { variant, workload, size, samples: samples.to_vec(), reads: 500, expirations: 1000 }
    }

    #[test]
    fn the_longest_beside_many_is_compared_with_that_beside_one() {
        let workload = Workload::Synchronised;
        let runs = Variant::ALL.iter().flat_map(|&variant| {
            let more = if variant == Variant::On { 900 } else { 60_000 };
            [run(variant, workload, 1, &[200_000, 201_000]), run(variant, workload, 100, &[200_000, 201_000 + more])]
        });
        let aim = Responses { scale: Scale::Full, runs: runs.collect() }.longer(workload);
        let rounded = aim.values.map(|value| (value.unwrap() * 10.0).round());
        assert_eq!(rounded, [600.0, 600.0, 9.0]);
    }

    #[test]
    fn the_lowest_is_compared_with_the_pristine_kernel() {
        let samples = [(Variant::Pristine, 40_000), (Variant::Off, 40_000), (Variant::On, 41_000)];
        let runs = samples.map(|(variant, ns)| run(variant, Workload::Lowest, 30, &[ns]));
        let [pristine, off, on] = Responses { scale: Scale::Full, runs: runs.into() }.lowest(30).values;
        assert_eq!((pristine, off, on.map(|percent| (percent * 10.0).round())), (None, Some(0.0), Some(25.0)));
    }

    #[test]
    fn throughput_is_told_per_millisecond() {
        let workload = Workload::Throughput;
        let runs = vec![run(Variant::On, workload, 0, &[4000]), run(Variant::On, workload, 1000, &[3990])];
        let text = Responses { scale: Scale::Full, runs }.throughput();
        assert!(text.ends_with("| on | 4000.0 | 3990.0 | -0.25 % | 250 |\n"), "{text}");
    }

    #[test]
    fn a_plot_has_a_curve_for_each_run() {
        let workload = Workload::Unsynchronised;
        let each = Variant::ALL.map(|variant| run(variant, workload, 1, &[200_000, 201_000]));
        let plots = Responses { scale: Scale::Full, runs: each.into() }.plots();
        let (file, _, svg) = &plots[0];
        assert_eq!(file, "unsynchronised.svg");
        assert_eq!(
            ["s3", "s3 broken", "s3 dotted"].map(|c| svg.matches(&format!("<path class=\"curve {c}\"")).count()),
            [1; 3]
        );
    }
}
