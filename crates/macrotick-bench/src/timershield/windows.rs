//! Jobs of SCHED_TT in their windows: no timer disturbs them.

use std::fmt::Write as _;

use macrotick_lab::{Flavor, GuestJob};
use macrotick_model::Duration;
use macrotick_report::{Figure, Statistics};

use super::aims::Aim;
use super::window_guest::{self, Load, Observed, JOBS, QUICK_JOBS};
use crate::error::BenchError;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;
use crate::kit::variant::Variant;

/// The greatest spread of the jobs' starts over all loads, in microseconds.
const AIM_LATENESS_US: f64 = 0.25;
/// The greatest spread of the jobs' ends over all loads, in microseconds.
const AIM_RESPONSE_US: f64 = 0.5;
/// The pristine kernel has no SCHED_TT.
const VARIANTS: [Variant; 2] = [Variant::Off, Variant::On];

fn jobs(scale: Scale) -> usize {
    scale.of(JOBS, QUICK_JOBS)
}

/// Returns the jobs of each run. Each case has two runs: one measures times, the other counts interrupts.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![jobs(scale) as u64; Load::ALL.len() * VARIANTS.len() * 2]
}

/// One load in one state of TimerShield.
struct Run {
    variant: Variant,
    load: Load,
    /// Times from the nominal instant to the first instruction of the job, ascending.
    lateness: Vec<i64>,
    /// Times from the nominal instant to the end of the job, ascending.
    responses: Vec<i64>,
    /// Timer interrupts in the jobs. They come from a run of their own, because the count takes time.
    interrupts: u64,
}

impl Run {
    fn measure(bench: &Bench, variant: Variant, load: Load) -> Result<Run, BenchError> {
        lab::announce(&format!("{}: windows, {}: {}", bench.name, load.name(), variant.name()));
        let jobs = jobs(bench.scale);
        let times = observe(variant, load, Observed::Times, jobs)?;
        let sorted = |column: usize| {
            let mut values: Vec<i64> = times.iter().map(|row| row[column]).collect();
            values.sort_unstable();
            values
        };
        let interrupts = observe(variant, load, Observed::Interrupts, jobs)?.iter().map(|row| row[0] as u64).sum();
        Ok(Run { variant, load, lateness: sorted(0), responses: sorted(1), interrupts })
    }
}

/// Returns the guest's two numbers for each job.
fn observe(variant: Variant, load: Load, observed: Observed, jobs: usize) -> Result<Vec<[i64; 2]>, BenchError> {
    lab::read(&job(variant, load, observed, jobs), "jobs", |output| parse(output, jobs))
}

fn job(variant: Variant, load: Load, observed: Observed, jobs: usize) -> GuestJob {
    let mut job = lab::job(Flavor::Patched, window_guest::words(variant, load, observed, jobs));
    job.wall_limit = Duration::from_secs(900);
    job
}

/// Parses a line `job A B` for each job.
fn parse(output: &str, jobs: usize) -> Option<Vec<[i64; 2]>> {
    let row = |line: &str| {
        let (a, b) = line.strip_prefix("job ")?.split_once(' ')?;
        Some([a.parse().ok()?, b.parse().ok()?])
    };
    output.lines().map(row).collect::<Option<Vec<_>>>().filter(|rows| rows.len() == jobs)
}

/// All runs.
pub struct Windows {
    runs: Vec<Run>,
}

impl Windows {
    /// Runs everything in the lab.
    pub fn measure(bench: &Bench) -> Result<Windows, BenchError> {
        let cases = Load::ALL.into_iter().flat_map(|load| VARIANTS.map(|variant| (variant, load)));
        let runs = cases.map(|(variant, load)| Run::measure(bench, variant, load)).collect::<Result<_, _>>()?;
        Ok(Windows { runs })
    }

    /// Returns the greatest value minus the least value over the runs of a variant.
    fn spread_us(&self, variant: Variant, of: impl Fn(&Run) -> &[i64]) -> Option<f64> {
        let samples = || self.runs.iter().filter(|run| run.variant == variant).flat_map(&of);
        Some((samples().max()? - samples().min()?) as f64 / 1e3)
    }

    fn interrupts(&self, variant: Variant) -> Option<f64> {
        let runs = self.runs.iter().filter(|run| run.variant == variant);
        (variant != Variant::Pristine).then(|| runs.map(|run| run.interrupts).sum::<u64>() as f64)
    }

    /// Returns the number of jobs in which interrupts are counted, in one state of TimerShield.
    fn jobs(&self) -> usize {
        self.runs.iter().filter(|run| run.variant == Variant::On).map(|run| run.lateness.len()).sum()
    }

    /// Returns the aims.
    pub fn aims(&self) -> [Aim; 3] {
        let all = "over all loads";
        let lateness = Variant::ALL.map(|variant| self.spread_us(variant, |run| &run.lateness));
        let responses = Variant::ALL.map(|variant| self.spread_us(variant, |run| &run.responses));
        [
            Aim {
                what: format!("timer interrupts in {} jobs of SCHED_TT", self.jobs()),
                unit: "interrupts",
                values: Variant::ALL.map(|variant| self.interrupts(variant)),
                limit: 0.0,
            },
            Aim {
                what: format!("lateness of a job of SCHED_TT, max - min {all}"),
                unit: "us",
                values: lateness,
                limit: AIM_LATENESS_US,
            },
            Aim {
                what: format!("response of a job of SCHED_TT, max - min {all}"),
                unit: "us",
                values: responses,
                limit: AIM_RESPONSE_US,
            },
        ]
    }

    /// Returns a table with a row for each run.
    pub fn markdown(&self) -> String {
        let mut text = "### windows: jobs of SCHED_TT\n\n\
            | load | kernel | timer interrupts | lateness min [us] | max [us] | max - min [us] | \
            response min [us] | mean [us] | max [us] | max - min [us] |\n\
            |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for run in &self.runs {
            let Some([lateness, response]) = run.statistics() else { continue };
            let us = |ns: i64| ns as f64 / 1e3;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
                run.load.title(),
                run.variant.name(),
                run.interrupts,
                us(lateness.min_ns),
                us(lateness.max_ns),
                us(lateness.max_ns - lateness.min_ns),
                us(response.min_ns),
                response.mean_ns.as_us_f64(),
                us(response.max_ns),
                us(response.max_ns - response.min_ns),
            );
        }
        text
    }

    /// Returns all measured values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        self.runs.iter().flat_map(figures_of).collect()
    }
}

impl Run {
    /// Returns the statistics of lateness and response.
    fn statistics(&self) -> Option<[Statistics; 2]> {
        Some([Statistics::of_sorted(&self.lateness)?, Statistics::of_sorted(&self.responses)?])
    }
}

fn figures_of(run: &Run) -> Vec<Figure> {
    let figure = |figure: String, value: f64, unit: &str| Figure {
        figure,
        case: format!("windows, {}, {}", run.load.name(), run.variant.name()),
        value,
        unit: unit.into(),
    };
    let times =
        run.statistics().into_iter().flat_map(|statistics| ["lateness", "response"].into_iter().zip(statistics));
    let times = times.flat_map(|(name, s)| {
        let values = [("min", s.min_ns as f64), ("mean", s.mean_ns.as_ns_f64()), ("max", s.max_ns as f64)];
        values.map(|(part, ns)| figure(format!("{name}.{part}"), ns / 1e3, "us"))
    });
    times.chain([figure("timer interrupts".into(), run.interrupts as f64, "interrupts")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(variant: Variant, load: Load, lateness: &[i64], responses: &[i64], interrupts: u64) -> Run {
        Run { variant, load, lateness: lateness.into(), responses: responses.into(), interrupts }
    }

    #[test]
    fn what_is_judged_is_the_spread_over_all_loads() {
        let runs = vec![
            run(Variant::Off, Load::None, &[90, 900], &[2_000_000, 2_009_000], 7),
            run(Variant::On, Load::None, &[90, 100], &[2_000_100, 2_000_200], 0),
            run(Variant::On, Load::Calls, &[80, 90], &[2_000_000, 2_000_100], 1),
        ];
        let values = Windows { runs }.aims().map(|aim| aim.values);
        assert_eq!(values[0], [None, Some(7.0), Some(1.0)]);
        assert_eq!(values[1], [None, Some(0.81), Some(0.02)]);
        assert_eq!(values[2], [None, Some(9.0), Some(0.2)]);
    }

    #[test]
    fn every_job_has_to_be_told() {
        let line = "job 12 34\n".repeat(JOBS);
        assert_eq!(parse(&line, JOBS).map(|rows| (rows.len(), rows[0])), Some((JOBS, [12, 34])));
        assert_eq!(parse(&line[10..], JOBS), None);
        assert_eq!(parse(&line.replacen("12", "x", 1), JOBS), None);
    }
}
