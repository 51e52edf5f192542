//! The instructions of picks and refills (figure 5 of the paper).

use std::fmt::Write as _;

use macrotick_lab::{Flavor, GuestJob, Kernel, PathRequest, Symbols};
use macrotick_model::Duration;
use macrotick_report::stats::percentile;
use macrotick_report::{cumulative_curves, Curve, Figure};

use super::paths::{Handled, Pick, Reader, CALL, INTERRUPT, PICK};
use super::population::Population;
use super::thread_guest;
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;

/// Server periods of a full run, and of a quick run.
const PERIODS: u64 = 1200;
const QUICK_PERIODS: u64 = 120;
/// Populations of a quick run: one of each kind, and the largest is among them.
const QUICK: [&str; 3] = ["2 x 3", "6 x 9", "mixed 1"];
/// The numbers of paths of each kind that are skipped and recorded.
const SKIP: u64 = 50;
const COUNT: u64 = 1000;
/// The paper's limits in nanoseconds, taken as instructions.
const PICK_P99: f64 = 450.0;
const PICK_MAX: f64 = 1300.0;
const REFILL_MAX: f64 = 630.0;
/// The number of groups of the largest population.
const MOST_GROUPS: usize = 6;
const UNIT: &str = "instructions";

fn populations(scale: Scale) -> Vec<Population> {
    let is_in = |one: &Population| scale == Scale::Full || QUICK.contains(&one.title.as_str());
    Population::all().into_iter().filter(is_in).collect()
}

fn periods(scale: Scale) -> u64 {
    scale.of(PERIODS, QUICK_PERIODS)
}

/// Returns the server periods of each run. Each population has two runs: one records interrupts, the other records
/// system calls.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![periods(scale); populations(scale).len() * 2]
}

/// The lengths of one population, in instructions.
struct Row {
    title: String,
    /// Whole picks, in ascending order like all lists here.
    picks: Vec<i64>,
    own: Vec<i64>,
    refills: Vec<i64>,
    /// Interrupts at the end of a budget.
    ends: Vec<i64>,
    /// Refills of all groups of the largest population.
    full: Vec<i64>,
}

/// The lengths of all populations.
pub struct Picks {
    rows: Vec<Row>,
}

impl Picks {
    /// Records paths of each population.
    pub fn measure(bench: &Bench, kernel: &Kernel) -> Result<Picks, BenchError> {
        let symbols = Symbols::read(&kernel.system_map)?;
        let reader = Reader::new(&symbols).map_err(BenchError::NoFunction)?;
        let periods = periods(bench.scale);
        let mut rows = Vec::new();
        for population in populations(bench.scale) {
            lab::announce(&format!("{}: picks and refills, {}", bench.name, population.title));
            // A path starts with an interrupt or with a system call.
            let interrupts = observe(job(&population, periods), &symbols, INTERRUPT)?;
            let calls = observe(job(&population, periods), &symbols, CALL)?;
            let picks = interrupts.iter().chain(&calls).flat_map(|path| reader.picks(path)).collect();
            rows.push(Row::new(population.title, picks, reader.handled(&interrupts)));
        }
        match rows.iter().all(|row| row.full.is_empty()) {
            true => Err(BenchError::NoPath("a refill of six groups")),
            false => Ok(Picks { rows }),
        }
    }

    fn all(&self, of: impl Fn(&Row) -> &[i64]) -> Vec<i64> {
        let mut all: Vec<i64> = self.rows.iter().flat_map(|row| of(row).iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// Returns the values that the aims limit. The first four are the 99th percentile and the maximum of SCHED_DS's
    /// part of a pick, then of whole picks. The last one is the maximum of full refills.
    pub fn judged(&self) -> [i64; 5] {
        let [own, all] = [self.all(|row| &row.own), self.all(|row| &row.picks)];
        let [own, all] = [own, all].map(|picks| [percentile(&picks, 990), percentile(&picks, 1000)]);
        [own[0], own[1], all[0], all[1], percentile(&self.all(|row| &row.full), 1000)]
    }

    /// Returns the aims. The paper's pick ends where Linux may run: it does not contain the choice of SCHED_OTHER among
    /// its threads.
    pub fn aims(&self) -> Vec<Aim> {
        let aims = [
            ("a pick, what SCHED_DS has of it, 99th percentile", PICK_P99),
            ("a pick, what SCHED_DS has of it, most", PICK_MAX),
            ("a pick, all classes together, 99th percentile", PICK_P99),
            ("a pick, all classes together, most", PICK_MAX),
            ("a refill of six groups, most", REFILL_MAX),
        ];
        let aim = |((what, limit), value): ((&str, f64), i64)| Aim {
            what: what.into(),
            unit: UNIT,
            value: value as f64,
            limit,
        };
        aims.into_iter().zip(self.judged()).map(aim).collect()
    }

    /// Returns a table with a row for each population and part.
    pub fn markdown(&self) -> String {
        let mut text = "### picks and refills\n\n| threads | | times | min | median | p95 | p99 | max |\n\
            |---|---|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for (row, part, values) in self.parts() {
            let [p50, p95, p99] = [500, 950, 990].map(|permille| percentile(values, permille));
            let (times, min, max) = (values.len(), values[0], values[values.len() - 1]);
            let _ = writeln!(text, "| {} | {part} | {times} | {min} | {p50} | {p95} | {p99} | {max} |", row.title);
        }
        text
    }

    fn parts(&self) -> impl Iterator<Item = (&Row, &'static str, &[i64])> {
        self.rows.iter().flat_map(|row| {
            let parts = [
                ("pick", &row.picks),
                ("of it SCHED_DS", &row.own),
                ("refill", &row.refills),
                ("end of a budget", &row.ends),
            ];
            parts
                .into_iter()
                .filter(|(_, values)| !values.is_empty())
                .map(move |(part, values)| (row, part, &values[..]))
        })
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let percentiles = [("min", 1), ("p50", 500), ("p95", 950), ("p99", 990), ("max", 1000)];
        self.parts()
            .flat_map(|(row, part, values)| {
                percentiles.map(|(name, permille)| Figure {
                    figure: format!("{part}.{name}"),
                    case: row.title.clone(),
                    value: percentile(values, permille) as f64,
                    unit: UNIT.into(),
                })
            })
            .collect()
    }

    /// Returns cumulative curves of the three even populations and of all mixed ones.
    pub fn plot(&self) -> String {
        let curves: Vec<Curve> = self
            .parts()
            .filter(|(_, part, _)| ["pick", "refill"].contains(part))
            .map(|(row, part, samples)| Curve { group: &row.title, kind: part, samples })
            .collect();
        cumulative_curves("Picks and refills of SCHED_DS (1 ns is one instruction)", "picks, refills", &curves)
    }
}

impl Row {
    fn new(title: String, picks: Vec<Pick>, handled: Handled) -> Row {
        let Handled { refills, ends } = handled;
        let sorted = |values: &mut dyn Iterator<Item = i64>| {
            let mut values: Vec<i64> = values.collect();
            values.sort_unstable();
            values
        };
        Row {
            title,
            picks: sorted(&mut picks.iter().map(|pick| pick.all)),
            own: sorted(&mut picks.iter().map(|pick| pick.own)),
            refills: sorted(&mut refills.iter().map(|refill| refill.length)),
            ends: sorted(&mut ends.into_iter()),
            full: sorted(&mut refills.iter().filter(|refill| refill.groups == MOST_GROUPS).map(|refill| refill.length)),
        }
    }
}

fn observe(mut job: GuestJob, symbols: &Symbols, entry: &'static str) -> Result<Vec<Vec<u64>>, BenchError> {
    let address = |name| symbols.address(name).ok_or(BenchError::NoFunction(name));
    job.paths = Some(PathRequest { entry: address(entry)?, through: address(PICK)?, skip: SKIP, count: COUNT });
    let outcome = lab::run(&job)?;
    match outcome.paths.is_empty() {
        false => Ok(outcome.paths),
        true => Err(lab::no_output(&job, "paths", outcome.stdout_text())),
    }
}

fn job(population: &Population, periods: u64) -> GuestJob {
    let mut job = lab::job(Flavor::Patched, [thread_guest::LOAD, &population.word(), &periods.to_string()]);
    job.wall_limit = Duration::from_secs(600);
    job
}

#[cfg(test)]
mod tests {
    use super::super::paths::Refill;
    use super::*;

    fn picks(pick: i64, refill: i64) -> Picks {
        let refills = vec![Refill { length: refill, groups: 6 }, Refill { length: 9999, groups: 5 }];
        let picks = vec![Pick { all: pick, own: 20 }, Pick { all: 10, own: 5 }];
        Picks { rows: vec![Row::new("6 x 9".into(), picks, Handled { refills, ends: vec![50] })] }
    }

    #[test]
    fn only_refills_of_all_groups_are_judged() {
        let met = |picks: &Picks| picks.aims().iter().map(Aim::is_met).collect::<Vec<_>>();
        assert_eq!(met(&picks(450, 630)), [true; 5]);
        assert_eq!(met(&picks(451, 631)), [true, true, false, true, false]);
        assert_eq!(met(&picks(1301, 1)), [true, true, false, false, true]);
    }

    #[test]
    fn each_part_has_a_row() {
        let text = picks(30, 40).markdown();
        assert!(text.contains("| 6 x 9 | pick | 2 | 10 | 10 | 30 | 30 | 30 |\n"), "{text}");
        assert!(text.contains("| 6 x 9 | of it SCHED_DS | 2 | 5 | 5 | 20 | 20 | 20 |\n"), "{text}");
        assert!(text.contains("| 6 x 9 | refill | 2 | 40 |"), "{text}");
        assert!(text.contains("| 6 x 9 | end of a budget | 1 | 50 |"), "{text}");
    }
}
