//! The instructions at a window's boundary, for tables of different sizes.

use std::collections::HashSet;
use std::fmt::Write as _;

use macrotick_lab::{Flavor, Kernel, PathRequest, Symbols};
use macrotick_model::Duration;
use macrotick_report::{stacked_bars, Figure, StackedBar};

use super::paths::{Effect, Split, Splitter, ENTRY, HANDLER, PHASES};
use super::{table_guest, Population, IN_A_ROW};
use crate::error::BenchError;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;

const ENTITIES: [u32; 4] = [1, 10, 100, 1000];
const QUICK_ENTITIES: [u32; 2] = [1, 100];
fn sizes(scale: Scale) -> &'static [u32] {
    scale.of(&ENTITIES, &QUICK_ENTITIES)
}

/// Returns the entities of each run.
pub fn extent(scale: Scale) -> Vec<u64> {
    Population::ALL.iter().flat_map(|_| sizes(scale).iter().map(|&entities| entities.into())).collect()
}

/// The number of interrupts that are recorded.
const PATHS: u64 = 64;
/// The number of cycles after which all processes have touched their memory.
const WARM_CYCLES: u64 = 2;
/// The least number of interrupts that are skipped, where cycles are short.
const WARM_PATHS: u64 = 16;
/// The number of instructions by which a constant part may grow in the larger table. An addition may wrap, or a branch
/// may go the other way.
const TOLERANCE: u64 = 16;
/// The nanoseconds by which a path may be longer on the clock. QEMU starts an instruction twice when it reaches a
/// device, such as the local timer.
const DEVICES: u64 = 3;
const UNIT: &str = "instructions";

/// Name, threads, and the effect by which a path belongs to the case.
const CASES: [(&str, Population, Effect); 7] = [
    ("a job is released", Population::Jobs, Effect::Begin),
    ("a window begins", Population::Overrun, Effect::Begin),
    ("a window follows another", Population::Overrun, Effect::Change),
    ("a window ends", Population::Overrun, Effect::End),
    ("a miss, and the next release", Population::Misses, Effect::Change),
    ("the only job is released", Population::Sparse, Effect::Begin),
    ("nothing changes", Population::Sparse, Effect::Nothing),
];

/// The paths of a case with one number of entities.
struct Row {
    case: &'static str,
    entities: u32,
    splits: Vec<Split>,
}

/// All paths.
pub struct Windows {
    rows: Vec<Row>,
    /// The number of paths that returned to the process that they interrupted. `confirmed` is the number of them that
    /// the process saw with the same length on its clock.
    checked: usize,
    confirmed: usize,
}

/// The least value, the mean and the greatest value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    min: u64,
    mean: f64,
    max: u64,
}

impl Range {
    /// Returns the range of at least one value.
    fn of(values: impl Iterator<Item = u64> + Clone) -> Range {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<u64>() as f64 / count;
        Range { min: values.clone().min().unwrap_or(0), mean, max: values.max().unwrap_or(0) }
    }

    fn text(&self) -> String {
        match self.min == self.max {
            true => format!("{}", self.min),
            false => format!("{:.0} ({} to {})", self.mean, self.min, self.max),
        }
    }
}

impl Row {
    /// Returns the range of a phase.
    fn phase(&self, name: &str) -> Range {
        let index = PHASES.iter().position(|phase| *phase == name).expect("a phase has that name");
        Range::of(self.splits.iter().map(move |split| split.phases[index]))
    }

    fn total(&self) -> Range {
        Range::of(self.splits.iter().map(Split::total))
    }

    fn own(&self) -> Range {
        Range::of(self.splits.iter().map(|split| split.own))
    }

    fn label(&self) -> String {
        format!("{}, {}", self.case, entities(self.entities))
    }
}

fn entities(count: u32) -> String {
    format!("{count} {}", if count == 1 { "entity" } else { "entities" })
}

impl Windows {
    /// Runs all populations in all sizes.
    pub fn measure(bench: &Bench, kernel: &Kernel) -> Result<Windows, BenchError> {
        let symbols = Symbols::read(&kernel.system_map)?;
        let splitter = Splitter::new(&symbols).map_err(BenchError::NoFunction)?;
        let mut windows = Windows { rows: Vec::new(), checked: 0, confirmed: 0 };
        for population in Population::ALL {
            for &count in sizes(bench.scale) {
                lab::announce(&format!("{}: {}, {}", bench.name, population.name(), entities(count)));
                windows.add(population, count, observe(&symbols, &splitter, population, count)?);
            }
        }
        windows.rows.sort_by_key(|row| CASES.iter().position(|(case, ..)| *case == row.case));
        Ok(windows)
    }

    fn add(&mut self, population: Population, entities: u32, observed: Observed) {
        for (case, _, effect) in CASES.into_iter().filter(|(_, whose, _)| *whose == population) {
            let splits: Vec<Split> = observed.splits.iter().copied().filter(|split| split.effect == effect).collect();
            if !splits.is_empty() {
                self.rows.push(Row { case, entities, splits });
            }
        }
        let returned: Vec<u64> =
            observed.splits.iter().filter(|split| split.effect == Effect::Nothing).map(Split::total).collect();
        self.checked += returned.len();
        let is_seen = |total: &&u64| (0..=DEVICES).any(|more| observed.seen.contains(&(*total + more)));
        self.confirmed += returned.iter().filter(is_seen).count();
    }

    /// Returns the instructions per case and size, and whether they grow.
    pub fn markdown(&self, scale: Scale) -> String {
        let mut text =
            "### instructions\n\n| what happens | entities | interrupts | handler | pick | of it the class's own \
             | switch | whole path |\n\
            |---|---:|---:|---:|---:|---:|---:|---:|\n"
                .to_owned();
        for row in &self.rows {
            let Row { case, entities, splits } = row;
            let (handler, total) = (row.phase("handler").text(), row.total().text());
            let [pick, own, switch] = match row.splits[0].effect {
                Effect::Nothing => Default::default(),
                _ => [row.phase("pick"), row.own(), row.phase("to user space")].map(|range| range.text()),
            };
            let _ = writeln!(
                text,
                "| {case} | {entities} | {} | {handler} | {pick} | {own} | {switch} | {total} |",
                splits.len()
            );
        }
        format!("{text}\nMean (least to most).\n\n{}\n{}\n", self.growth(scale), self.check())
    }

    /// Returns the longest handler, and the class's own part of the longest pick.
    pub fn most(&self) -> (u64, u64) {
        let most = |range: fn(&Row) -> Range| self.rows.iter().map(|row| range(row).max).max().unwrap_or(0);
        (most(|row| row.phase("handler")), most(Row::own))
    }

    /// Returns the two largest sizes of each case.
    fn pairs(&self) -> Vec<(&Row, &Row)> {
        let pair_of = |case| {
            let mut rows = self.rows.iter().rev().filter(|row| row.case == case);
            let larger = rows.next()?;
            Some((rows.next()?, larger))
        };
        CASES.iter().filter_map(|(case, ..)| pair_of(*case)).collect()
    }

    fn growth(&self, scale: Scale) -> String {
        let mut text = format!(
            "| what happens | entities | handler, most | the class's own pick, most \
             | aim: at most {TOLERANCE} more |\n\
             |---|---|---|---|---|\n"
        );
        for (smaller, larger) in self.pairs() {
            let handler = [smaller, larger].map(|row| row.phase("handler").max);
            let pick = [smaller, larger].map(|row| row.own().max);
            let met = [handler, pick].iter().all(|[before, after]| *after <= before + TOLERANCE);
            let counts = format!("{} -> {}", smaller.entities, larger.entities);
            let _ = writeln!(
                text,
                "| {} | {counts} | {} -> {} | {} -> {} | {} |",
                larger.case,
                handler[0],
                handler[1],
                pick[0],
                pick[1],
                if met { scale.of("met: O(1)", scale.verdict(met)) } else { scale.verdict(met) }
            );
        }
        text
    }

    fn check(&self) -> String {
        format!(
            "Check: the process that never sleeps reads its own clock without a pause. Of the {} recorded paths that \
             returned to it, it saw {} as gaps of that length, to {DEVICES} ns.",
            self.checked, self.confirmed
        )
    }

    /// Returns every phase of every case and size as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        for row in &self.rows {
            let ranges = PHASES
                .map(|phase| (phase, row.phase(phase)))
                .into_iter()
                .chain([("own pick", row.own()), ("whole path", row.total())]);
            for (name, Range { min, mean, max }) in ranges {
                for (statistic, value) in [("min", min as f64), ("mean", mean), ("max", max as f64)] {
                    all.push(Figure::new(format!("{name}.{statistic}"), row.label(), value, UNIT));
                }
            }
        }
        all.push(Figure::new("paths checked", "all", self.checked as f64, "paths"));
        all.push(Figure::new("paths confirmed", "all", self.confirmed as f64, "paths"));
        all
    }

    /// Returns a plot with a bar per case and size.
    pub fn plot(&self) -> String {
        let bar =
            |row: &Row| StackedBar { label: row.label(), parts: PHASES.map(|phase| row.phase(phase).mean).to_vec() };
        let bars: Vec<StackedBar> = self.rows.iter().map(bar).collect();
        let mut names = PHASES;
        names[PHASES.len() - 1] = "switch, to user space";
        stacked_bars("From the interrupt to user space", UNIT, &names, &bars)
    }
}

/// One run.
struct Observed {
    splits: Vec<Split>,
    /// Lengths of gaps that the process that never sleeps saw, without its own round.
    seen: HashSet<u64>,
}

/// Returns the approximate number of handler interrupts in a cycle.
fn interrupts(population: Population, entities: u32) -> u64 {
    let entities = u64::from(entities);
    match population {
        Population::Jobs => entities,
        Population::Overrun | Population::Misses => entities + entities.div_ceil(u64::from(IN_A_ROW)),
        Population::Sparse => 1 + entities / 17, // the handler looks 16 windows ahead
    }
}

fn observe(
    symbols: &Symbols,
    splitter: &Splitter,
    population: Population,
    entities: u32,
) -> Result<Observed, BenchError> {
    let address = |name| symbols.address(name).ok_or(BenchError::NoFunction(name));
    let per_cycle = interrupts(population, entities);
    // The recorded interrupts include the end of a cycle.
    let skip = ((WARM_CYCLES + 1) * per_cycle).saturating_sub(PATHS / 2).max(WARM_CYCLES * per_cycle).max(WARM_PATHS);
    let cycles = (skip + PATHS).div_ceil(per_cycle) + 2;
    let words = [table_guest::CROSS, population.name(), &entities.to_string(), &cycles.to_string()];
    let mut job = lab::job(Flavor::Patched, words);
    job.wall_limit = Duration::from_secs(600);
    job.paths = Some(PathRequest { entry: address(ENTRY)?, through: address(HANDLER)?, skip, count: PATHS });
    let outcome = lab::run(&job)?;
    let splits: Vec<Split> = outcome.paths.iter().filter_map(|path| splitter.split(path)).collect();
    let output = outcome.stdout_text();
    match (splits.len() as u64 == PATHS, parse_gaps(&output)) {
        (true, Some(seen)) => Ok(Observed { splits, seen }),
        _ => Err(lab::no_output(&job, "paths and gaps", output)),
    }
}

/// Parses `round N`, then lines `gap N`.
fn parse_gaps(output: &str) -> Option<HashSet<u64>> {
    let mut lines = output.lines();
    let round: u64 = lines.next()?.strip_prefix("round ")?.parse().ok()?;
    lines.map(|line| line.strip_prefix("gap ")?.parse::<u64>().ok()?.checked_sub(round)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_without_the_round() {
        assert_eq!(parse_gaps("round 10\ngap 1010\ngap 2010\n"), Some(HashSet::from([1000, 2000])));
        assert_eq!(parse_gaps("round 10\nnonsense\n"), None);
        assert_eq!(parse_gaps(""), None);
    }

    fn split(handler: u64, effect: Effect) -> Split {
        Split { phases: [100, handler, 20, 30, 50], own: 25, effect }
    }

    fn windows(handlers: [u64; 2]) -> Windows {
        let mut windows = Windows { rows: Vec::new(), checked: 0, confirmed: 0 };
        for (entities, handler) in [100, 1000].into_iter().zip(handlers) {
            let splits = vec![split(200, Effect::Begin), split(handler, Effect::Begin), split(7, Effect::Elsewhere)];
            windows.add(Population::Jobs, entities, Observed { splits, seen: HashSet::new() });
        }
        windows
    }

    #[test]
    fn a_handler_that_grows_does_not_meet_the_aim() {
        let constant = windows([300, 300 + TOLERANCE]).markdown(Scale::Full);
        assert!(
            constant.contains("| a job is released | 100 | 2 | 250 (200 to 300) | 30 | 25 | 50 | 450 (400 to 500) |"),
            "{constant}"
        );
        assert!(constant.contains("| 100 -> 1000 | 300 -> 316 | 25 -> 25 | met: O(1) |"), "{constant}");
        let growing = windows([300, 301 + TOLERANCE]).markdown(Scale::Full);
        assert!(growing.contains("| 300 -> 317 | 25 -> 25 | **not met** |"), "{growing}");
    }

    #[test]
    fn only_a_path_of_the_length_of_a_gap_is_confirmed() {
        let mut windows = Windows { rows: Vec::new(), checked: 0, confirmed: 0 };
        let splits = vec![
            split(200, Effect::Nothing),
            split(199, Effect::Nothing),
            split(204, Effect::Nothing),
            split(199, Effect::Begin),
        ];
        windows.add(Population::Sparse, 100, Observed { splits, seen: HashSet::from([400 + DEVICES]) });
        assert_eq!((windows.checked, windows.confirmed), (3, 1));
    }

    #[test]
    fn every_phase_is_a_figure() {
        let figures = windows([300, 300]).figures();
        let value = |name: &str, case: &str| {
            figures.iter().find(|figure| figure.figure == name && figure.case == case).unwrap().value
        };
        assert_eq!(value("handler.max", "a job is released, 1000 entities"), 300.0);
        assert_eq!(value("whole path.mean", "a job is released, 100 entities"), 450.0);
    }
}
