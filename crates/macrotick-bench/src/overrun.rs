//! The effect of one task that overruns its WCET on all other tasks, under each way to dispatch the same plan.

use std::fmt::Write as _;

use macrotick_lab::observe::Dispatch;
use macrotick_lab::Flavor;
use macrotick_model::{Backend, Duration, Plan};
use macrotick_report::{figures, output, Figure, Report, TaskReport};

use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::lab;

const DESCRIPTION: &str = "bench/overrun.yaml";
/// The length of a quick run: some cycles.
const QUICK: Duration = Duration::from_millis(400);
/// The task that overruns.
const FAULTY: &str = "faulty";
const LEADING: &str = "SCHED_TT, lead";
const DISPATCHES: [(&str, Backend); 5] = [
    ("SCHED_FIFO, at the plan's instants", Backend::Fifo),
    ("SCHED_DEADLINE", Backend::Deadline),
    ("user-space dispatcher", Backend::User),
    ("SCHED_TT", Backend::Kernel),
    (LEADING, Backend::Kernel),
];

const METHOD: &str = "\
Fifteen tasks use 65.5 % of a CPU. One of them declares 100 us every 4 ms, but takes 1.5 ms in each job. The plan is \
the same in all runs, and gives each task the same windows in every period. The bench counts the misses of the \
fourteen other tasks. It also measures the spread of their starts: the greatest lateness of a task minus its least \
lateness, for the task with the greatest spread. Under SCHED_FIFO jobs are released at the plan's instants, with \
priorities by their deadlines.";

/// The result of one way to dispatch.
struct Row {
    dispatch: &'static str,
    /// Jobs of the other tasks that were due.
    jobs: u64,
    misses: u64,
    /// The spread of starts in nanoseconds, of the task with the greatest one.
    spread: i64,
    /// Misses of the task that overruns.
    own: u64,
}

impl Row {
    fn of(dispatch: &'static str, report: &Report) -> Row {
        let others = || report.tasks.iter().filter(|task| task.name != FAULTY);
        let spread = |task: &TaskReport| task.lateness.map_or(0, |lateness| lateness.max_ns - lateness.min_ns);
        Row {
            dispatch,
            jobs: others().map(|task| task.released).sum(),
            misses: others().map(|task| task.missed).sum(),
            spread: others().map(spread).max().unwrap_or(0),
            own: report.task(FAULTY).map_or(0, |task| task.missed),
        }
    }

    fn figures(&self) -> [Figure; 4] {
        let figure = |figure: &str, value: f64, unit: &str| Figure::new(figure, self.dispatch, value, unit);
        [
            figure("jobs of the others", self.jobs as f64, "jobs"),
            figure("misses of the others", self.misses as f64, "jobs"),
            figure("worst start spread of the others", self.spread as f64 / 1e3, "us"),
            figure("misses of the task that overruns", self.own as f64, "jobs"),
        ]
    }
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let plan = lab::plan(&lab::description(bench, DESCRIPTION, QUICK)?)?;
    let mut rows = Vec::new();
    for (dispatch, backend) in DISPATCHES {
        lab::announce(&format!("{}: {dispatch}", bench.name));
        rows.push(Row::of(dispatch, &observe(variant(&plan, dispatch), backend)?));
    }
    let all: Vec<Figure> = rows.iter().flat_map(Row::figures).collect();
    figures::write(&bench.folder.join("figures.json"), &all)?;
    let table = table(&rows);
    output::print(&table);
    Ok(Results {
        title: "An overrun, and what it does to others",
        method: METHOD.into(),
        tables: table,
        kernels: vec![kernel(Flavor::Patched)?],
        packages: &[],
        plots: Vec::new(),
    })
}

/// Returns the milliseconds of each run.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(lab::extent(&lab::description(bench, DESCRIPTION, QUICK)?, DISPATCHES.len()))
}

fn observe(plan: Plan, backend: Backend) -> Result<Report, BenchError> {
    Ok(Report::new(&lab::observe(&plan, &Dispatch::under(backend))?))
}

/// Returns the plan for a way to dispatch. Without a lead, the time that the plan keeps free for it stays idle.
fn variant(plan: &Plan, dispatch: &str) -> Plan {
    let mut plan = plan.clone();
    plan.system.lead = plan.system.lead.filter(|_| dispatch == LEADING);
    plan
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| dispatched by | misses of the 14 others | worst start spread of the others [us] | misses of the task that overruns |\n\
         |---|---:|---:|---:|\n",
    );
    for Row { dispatch, jobs, misses, spread, own } in rows {
        let _ = writeln!(text, "| {dispatch} | {misses} of {jobs} | {:.3} | {own} |", *spread as f64 / 1e3);
    }
    text
}
