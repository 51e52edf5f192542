//! All experiments.

use std::path::PathBuf;

use clap::ValueEnum;
use macrotick_lab::Layout;
use macrotick_report::output;

use crate::error::BenchError;
use crate::kit::bench::{Bench, Results};
use crate::{containers, cost, deadline, e2e, isolation, jitter, lead, overhead, overrun, response, timershield};

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Figure 3 of the SCHED_TT paper: one periodic task over a CPU hog, under every backend
    Response,
    /// How much the start of a job varies under three loads: SCHED_FIFO, SCHED_TT, and SCHED_TT with a lead
    Lead,
    /// The patched kernel with no table against the pristine one: cyclictest and hackbench
    Overhead,
    /// One task takes far more than it says: misses and starts of 14 others, under each way to dispatch the same plan
    Overrun,
    /// Instructions of a window's boundary with 1 to 1000 entities, memory, and size, beside the papers' numbers
    Cost,
    /// Sections 4.2.1 and 4.3 of the SCHED_TT paper: a datagram from task to task, under three loads and policies
    E2e,
    /// Section IV of the TimerShield paper: responses beside tasks and timers that matter less, on three kernels
    Timershield,
    /// Figures 5 and 6 of the paper on real-time containers: what picks, refills and budgets of SCHED_DS cost
    Containers,
    /// Figure 7 and table 2 of the same paper, and attacks: whether one container can hurt another (an hour)
    Isolation,
    /// Figure 3 and tables I to III of the SCHED_DEADLINE paper: greedy tasks, and misses of random task sets
    Deadline,
    /// Equations 1 and 3 of the same paper: responses of bound and unbound tasks, computed and measured
    Jitter,
}

type Run = fn(&Bench) -> Result<Results, BenchError>;

impl Experiment {
    /// Its name in paths, and what runs it.
    fn parts(self) -> (&'static str, Run) {
        match self {
            Experiment::Response => ("response", response::run),
            Experiment::Lead => ("lead", lead::run),
            Experiment::Overhead => ("overhead", overhead::run),
            Experiment::Overrun => ("overrun", overrun::run),
            Experiment::Cost => ("cost", cost::run),
            Experiment::E2e => ("e2e", e2e::run),
            Experiment::Timershield => ("timershield", timershield::run),
            Experiment::Containers => ("containers", containers::run),
            Experiment::Isolation => ("isolation", isolation::run),
            Experiment::Deadline => ("deadline", deadline::run),
            Experiment::Jitter => ("jitter", jitter::run),
        }
    }

    /// Runs it, and writes what came out: to `folder`, by default `build/bench/NAME`, and for the documents if it is
    /// published.
    pub fn run(self, folder: Option<PathBuf>, is_published: bool) -> Result<(), BenchError> {
        let (name, run) = self.parts();
        let folder = folder.unwrap_or_else(|| PathBuf::from(format!("build/bench/{name}")));
        let bench = Bench::new(name, Layout::find()?.root(), folder);
        let results = run(&bench)?;
        output::print_line(format_args!("\nfigures: {}", bench.folder.join("figures.json").display()));
        if is_published {
            output::print_line(format_args!("results: {}", bench.publish(&results)?.display()));
        }
        Ok(())
    }
}
