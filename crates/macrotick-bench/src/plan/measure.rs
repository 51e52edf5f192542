//! Planning and judging the systems of one row.

use std::time::{Duration as WallTime, Instant};

use macrotick_model::Plan;
use macrotick_plan::{plan_within, Answer, Options, Solver};
use macrotick_report::Figure;

use super::cells::Cell;
use super::memory;
use crate::error::BenchError;

/// The outcome of a row.
pub struct Outcome {
    pub planned: u64,
    pub impossible: u64,
    /// The time of each system, in ascending order.
    times: Vec<WallTime>,
    /// The largest resident set, in bytes.
    pub memory: u64,
}

/// Plans and judges all systems of a row.
pub fn measure(cell: &Cell) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome { planned: 0, impossible: 0, times: Vec::new(), memory: 0 };
    memory::forget();
    for seed in 0..cell.count {
        let system = (cell.system)(seed);
        let options = Options { time_limit: cell.limit, ..Options::default() };
        let begin = Instant::now();
        let planned = plan_within(&system, Solver::FoldedOccupancy, options);
        outcome.times.push(begin.elapsed());
        match planned {
            Ok(plan) => {
                accepted(&plan)?;
                outcome.planned += 1;
            }
            Err(error) => outcome.impossible += u64::from(error.answer() == Answer::Impossible),
        }
    }
    outcome.memory = memory::largest();
    outcome.times.sort_unstable();
    Ok(outcome)
}

/// Returns an error if the judge refuses a plan.
pub fn accepted(plan: &Plan) -> Result<(), BenchError> {
    let verdict = macrotick_check::check(plan);
    match verdict.is_feasible() {
        true => Ok(()),
        false => Err(BenchError::Refused { system: plan.system.name.clone(), verdict: verdict.to_string() }),
    }
}

impl Outcome {
    pub fn not_found(&self) -> u64 {
        self.times.len() as u64 - self.planned - self.impossible
    }

    pub fn median(&self) -> WallTime {
        self.times.get(self.times.len() / 2).copied().unwrap_or_default()
    }

    pub fn longest(&self) -> WallTime {
        self.times.last().copied().unwrap_or_default()
    }

    /// Returns the numbers of the row.
    pub fn figures(&self, case: &str) -> Vec<Figure> {
        let figure = |figure: &str, value: f64, unit: &str| Figure::new(figure, case, value, unit);
        vec![
            figure("planned", self.planned as f64, "systems"),
            figure("impossible", self.impossible as f64, "systems"),
            figure("not found", self.not_found() as f64, "systems"),
            figure("time.median", self.median().as_secs_f64() * 1e3, "ms"),
            figure("time.longest", self.longest().as_secs_f64() * 1e3, "ms"),
            figure("memory", self.memory as f64, "bytes"),
        ]
    }
}
