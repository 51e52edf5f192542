//! The guests of benches. A guest runs a verb of the guests' program, or a plan.

use std::io::IsTerminal;

use macrotick_lab::observe::{self, Dispatch};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, GuestJob, GuestOutcome, Lab, LabError, Layout};
use macrotick_model::{Duration, Observation, Plan, System};
use macrotick_plan::Solver;
use macrotick_report::output;

use super::bench::Bench;
use crate::error::BenchError;

/// The program of the guests, beside this program.
const PROGRAM: &str = "macrotick-bench-guest";

/// Returns the lab with the guests' program as its agent.
pub fn lab() -> Result<Lab, BenchError> {
    let this = std::env::current_exe().map_err(|source| BenchError::Read { path: "/proc/self/exe".into(), source })?;
    let program = this.with_file_name(PROGRAM);
    match program.is_file() {
        true => Ok(Lab::with_agent(Layout::find()?, program)),
        false => Err(BenchError::NoGuestProgram { program }),
    }
}

/// Returns a job for a verb of the guests' program with its words, on one virtual CPU with the exact clock.
pub fn job<S: Into<String>>(flavor: Flavor, words: impl IntoIterator<Item = S>) -> GuestJob {
    job_on(flavor, 1, 0, words)
}

/// Returns a job on several virtual CPUs, or with another clock.
pub fn job_on<S: Into<String>>(flavor: Flavor, cpus: u32, shift: u32, words: impl IntoIterator<Item = S>) -> GuestJob {
    let program = "/bin/macrotick".to_owned();
    GuestJob::new(flavor, std::iter::once(program).chain(words.into_iter().map(Into::into))).on(cpus, shift)
}

/// Runs a job that must succeed.
pub fn run(job: &GuestJob) -> Result<GuestOutcome, BenchError> {
    Ok(lab()?.succeed(job, &mut Terminal::new())?)
}

/// Runs a job that must succeed, and parses its output.
pub fn read<T>(job: &GuestJob, expected: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, BenchError> {
    let output = run(job)?.stdout_text();
    parse(&output).ok_or_else(|| no_output(job, expected, output))
}

/// Returns the error that a job printed unexpected text.
pub fn no_output(job: &GuestJob, expected: &'static str, output: String) -> BenchError {
    LabError::GuestOutput { command: job.argv.join(" "), expected, output }.into()
}

/// Returns a description of the repository; a quick run shortens it to this time.
pub fn description(bench: &Bench, path: &str, quick: Duration) -> Result<System, BenchError> {
    let mut system = System::load(&bench.root.join(path))?;
    let duration = &mut system.experiment.duration;
    *duration = bench.scale.of(*duration, quick);
    Ok(system)
}

/// Returns the milliseconds of each of a number of runs of a system. All tasks have jobs in this time.
pub fn extent(system: &System, runs: usize) -> Vec<u64> {
    vec![(system.experiment.duration.as_nanos() / 1_000_000) as u64; runs]
}

/// Returns a plan of a system, made by its default solver.
pub fn plan(system: &System) -> Result<Plan, BenchError> {
    Ok(macrotick_plan::plan(system, Solver::default_for(system))?)
}

/// Runs a plan with the exact clock.
pub fn observe(plan: &Plan, dispatch: &Dispatch) -> Result<Observation, BenchError> {
    Ok(lab()?.observe(&observe::job(plan, dispatch, None, 0)?, &mut Terminal::new())?)
}

/// Reports the next long step, if standard error is a terminal.
pub fn announce(text: &str) {
    if std::io::stderr().is_terminal() {
        output::tell(text);
    }
}
