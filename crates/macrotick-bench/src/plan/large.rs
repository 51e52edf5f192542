//! Large systems: the time of the planner and of the judge over the number of windows.

use std::time::{Duration as WallTime, Instant};

use macrotick_generate::{independent, Jitter, Size};
use macrotick_plan::{plan_within, Options, Solver};
use macrotick_report::{lines, Figure, Line};

use super::measure::accepted;
use crate::error::BenchError;
use crate::kit::scale::Scale;

/// The name of the plot.
pub const PLOT: &str = "large.svg";
/// Its caption.
pub const CAPTION: &str = "The time of the planner and of the judge over the number of windows in a cycle";

/// Systems of one size.
pub struct Cell {
    size: Size,
    pub count: u64,
}

/// The outcome of a row: medians over its systems.
pub struct Outcome {
    tasks: usize,
    jobs: usize,
    windows: usize,
    plan: WallTime,
    judge: WallTime,
}

/// Returns all rows.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let sizes = scale.of(&[250, 500, 1000, 2000, 4000][..], &[250, 500][..]);
    let cell = |&tasks: &usize| Cell { size: Size { tasks, cpus: 8, load: 60 }, count: scale.of(5, 1) };
    sizes.iter().map(cell).collect()
}

impl Cell {
    /// Returns the name of the row.
    pub fn name(&self) -> String {
        format!("large, {} tasks", self.size.tasks)
    }

    /// Plans and judges all systems.
    pub fn measure(&self) -> Result<Outcome, BenchError> {
        let (mut plans, mut judged, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..self.count {
            let system = independent(seed, self.size, Jitter::Free);
            let begin = Instant::now();
            let plan = plan_within(&system, Solver::FoldedOccupancy, Options::default());
            plans.push(begin.elapsed());
            let plan = plan.map_err(|error| BenchError::Refused { system: system.name, verdict: error.to_string() })?;
            let begin = Instant::now();
            accepted(&plan)?;
            judged.push(begin.elapsed());
            let windows = || plan.tables.iter().flat_map(|table| &table.windows);
            counts.push((windows().count(), windows().filter(|window| window.activate).count()));
        }
        counts.sort_unstable();
        let (windows, jobs) = counts[counts.len() / 2];
        Ok(Outcome { tasks: self.size.tasks, jobs, windows, plan: median(plans), judge: median(judged) })
    }
}

fn median(mut times: Vec<WallTime>) -> WallTime {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: WallTime) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The head of the table.
pub const HEAD: &str = "| tasks | jobs | windows | plan [ms] | judge [ms] | plan and judge, per window [us] |\n\
                        |---:|---:|---:|---:|---:|---:|\n";

impl Outcome {
    /// Returns the row of the table.
    pub fn row(&self) -> String {
        let Outcome { tasks, jobs, windows, plan, judge } = self;
        let each = (ms(*plan) + ms(*judge)) * 1e3 / *windows as f64;
        format!("| {tasks} | {jobs} | {windows} | {:.0} | {:.0} | {each:.2} |\n", ms(*plan), ms(*judge))
    }

    /// Returns the numbers of the row.
    pub fn figures(&self, case: &str) -> Vec<Figure> {
        vec![
            Figure::new("windows", case, self.windows as f64, "windows"),
            Figure::new("jobs", case, self.jobs as f64, "jobs"),
            Figure::new("time.plan", case, ms(self.plan), "ms"),
            Figure::new("time.judge", case, ms(self.judge), "ms"),
        ]
    }
}

/// Draws all rows.
pub fn plot(rows: &[Outcome]) -> String {
    let line = |name: &str, time: fn(&Outcome) -> WallTime| Line {
        name: name.into(),
        points: rows.iter().map(|row| (row.windows as f64 / 1e3, ms(time(row)))).collect(),
    };
    let all = [line("plan", |row| row.plan), line("judge", |row| row.judge)];
    lines("Planning and judging large systems", ["windows in a cycle [thousands]", "time [ms]"], &all)
}
