//! The highest load at which control units are planned.

use std::time::{Duration as WallTime, Instant};

use macrotick_generate::{ecu, Jitter, Unit};
use macrotick_plan::{plan_within, Answer, Options, Solver};
use macrotick_report::Figure;

use super::measure::accepted;
use crate::error::BenchError;
use crate::kit::scale::Scale;

/// The loads that are tried, in percent.
const LOADS: (u32, u32) = (50, 95);
const LIMIT: WallTime = WallTime::from_secs(2);

/// Control units of one set.
pub struct Cell {
    pub name: String,
    pub count: u64,
    set: usize,
    jitter: Jitter,
    /// The mean of the published planner, in percent.
    published: f64,
}

/// The outcome of a row.
pub struct Outcome {
    /// The highest load of each system, in percent.
    loads: Vec<u32>,
    /// The longest time of a plan at such a load.
    longest: WallTime,
    /// The systems for which a load of one percent more is impossible, by proof or because the kernel keeps the rest.
    proved: u64,
}

/// Returns all rows. Published: Minaeva and others (2018), the mean over all sets.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let kinds = [(Jitter::Zero, "zero jitter", 82.6), (Jitter::Part(5), "jitter p/5", 89.1)];
    let of = |set: usize| {
        kinds.map(|(jitter, word, published)| Cell {
            name: format!("set {set}, {word}"),
            count: scale.of(10, 1),
            set,
            jitter,
            published,
        })
    };
    scale.of(&[1, 2, 3, 4, 5][..], &[1][..]).iter().copied().flat_map(of).collect()
}

impl Cell {
    /// Finds the highest load of each system, by bisection.
    pub fn measure(&self) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome { loads: Vec::new(), longest: WallTime::ZERO, proved: 0 };
        for seed in 0..self.count {
            let (mut planned, mut not) = (LOADS.0 - 1, LOADS.1 + 1);
            let (mut last, mut proved) = (WallTime::ZERO, true);
            while not - planned > 1 {
                let load = (planned + not) / 2;
                let system = ecu(seed, Unit::set(self.set), load * 10, self.jitter);
                let begin = Instant::now();
                let plan =
                    plan_within(&system, Solver::FoldedOccupancy, Options { time_limit: LIMIT, ..Options::default() });
                let time = begin.elapsed();
                match plan {
                    Ok(plan) => {
                        accepted(&plan)?;
                        (planned, last) = (load, time);
                    }
                    Err(error) => (not, proved) = (load, error.answer() == Answer::Impossible),
                }
            }
            outcome.loads.push(planned);
            outcome.proved += u64::from(proved);
            outcome.longest = outcome.longest.max(last);
        }
        Ok(outcome)
    }
}

/// The head of the table.
pub const HEAD: &str = "| control units | number | mean highest load [%] | least | greatest | more is impossible | \
                        published mean | longest time [ms] |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";

impl Outcome {
    fn mean(&self) -> f64 {
        f64::from(self.loads.iter().sum::<u32>()) / self.loads.len().max(1) as f64
    }

    fn ends(&self) -> (u32, u32) {
        let (least, greatest) = (self.loads.iter().min(), self.loads.iter().max());
        (least.copied().unwrap_or(0), greatest.copied().unwrap_or(0))
    }

    /// Returns the row of the table.
    pub fn row(&self, cell: &Cell) -> String {
        let (least, greatest) = self.ends();
        format!(
            "| {} | {} | {:.1} | {least} | {greatest} | {} | {} | {:.0} |\n",
            cell.name,
            self.loads.len(),
            self.mean(),
            self.proved,
            cell.published,
            self.longest.as_secs_f64() * 1e3
        )
    }

    /// Returns the numbers of the row.
    pub fn figures(&self, cell: &Cell) -> Vec<Figure> {
        let (least, greatest) = self.ends();
        let figure = |name: &str, value: f64, unit: &str| {
            Figure::new(name, format!("control units, {}", cell.name), value, unit)
        };
        vec![
            figure("highest load.mean", self.mean(), "%"),
            figure("highest load.least", f64::from(least), "%"),
            figure("highest load.greatest", f64::from(greatest), "%"),
            figure("more is impossible", self.proved as f64, "systems"),
            figure("time.longest", self.longest.as_secs_f64() * 1e3, "ms"),
        ]
    }
}
