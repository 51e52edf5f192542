//! The guests of benches: this program with a verb of its own in it, or a plan.

use std::io::IsTerminal;

use macrotick_lab::observe::{self, Dispatch};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, GuestJob, GuestOutcome, Lab, LabError};
use macrotick_model::{Observation, Plan};

use crate::error::CliError;
use crate::output;

/// A verb of the guest's program with its words, on one virtual CPU with the exact clock.
pub fn job<S: Into<String>>(flavor: Flavor, words: impl IntoIterator<Item = S>) -> GuestJob {
    job_on(flavor, 1, 0, words)
}

/// The same on several virtual CPUs, or with another clock.
pub fn job_on<S: Into<String>>(flavor: Flavor, cpus: u32, shift: u32, words: impl IntoIterator<Item = S>) -> GuestJob {
    let program = "/bin/macrotick".to_owned();
    GuestJob::new(flavor, std::iter::once(program).chain(words.into_iter().map(Into::into))).on(cpus, shift)
}

/// Runs a job that has to succeed.
pub fn run(job: &GuestJob) -> Result<GuestOutcome, CliError> {
    Ok(Lab::new()?.succeed(job, &mut Terminal::new())?)
}

/// The same, and reads what it printed.
pub fn read<T>(job: &GuestJob, expected: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, CliError> {
    let output = run(job)?.stdout_text();
    parse(&output).ok_or_else(|| no_output(job, expected, output))
}

/// The fault that a job printed something else.
pub fn no_output(job: &GuestJob, expected: &'static str, output: String) -> CliError {
    LabError::GuestOutput { command: job.argv.join(" "), expected, output }.into()
}

/// Has a plan run, with the exact clock.
pub fn observe(plan: &Plan, dispatch: &Dispatch) -> Result<Observation, CliError> {
    Ok(Lab::new()?.observe(&observe::job(plan, dispatch, None, 0)?, &mut Terminal::new())?)
}

/// Says on a terminal what is about to take a while.
pub fn announce(text: &str) {
    if std::io::stderr().is_terminal() {
        output::tell(text);
    }
}
