//! Plans and commands in the lab.

use std::io::IsTerminal;

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, GuestJob, GuestOutcome, Lab};
use macrotick_model::{Backend, Duration, Observation, Plan};

use crate::args::{DispatchArgs, HostSettingsName, LabOptions};
use crate::error::CliError;
use crate::output;
use crate::programs;

const PLAN: &str = "/tmp/plan.json";
const OBSERVATION: &str = "/tmp/observation.json";
/// Wall time that a guest may take per second of virtual time, and on top of it. A busy guest needs about 5 s.
const WALL_PER_VIRTUAL: i64 = 60;
const WALL_LEAST: Duration = Duration::from_secs(120);

/// A job of the lab with its clock told to the guest, where `observe` writes it into the environment.
pub fn job(flavor: Flavor, argv: Vec<String>, options: &LabOptions, cpus: u32) -> GuestJob {
    let mut job = GuestJob::new(flavor, argv);
    job.cpus = options.smp.unwrap_or(cpus);
    job.shift = options.shift;
    job.env.push(("MACROTICK_LAB".into(), format!("{},{}", job.shift, job.cpus)));
    job
}

/// The job that observes a plan. The programs that the plan names by a path come with it.
pub fn observe_job(plan: &Plan, dispatch: &DispatchArgs, options: &LabOptions) -> Result<GuestJob, CliError> {
    let backend: Backend = dispatch.backend.into();
    let mut argv = vec!["/bin/macrotick".into(), "observe".into(), PLAN.into()];
    let mut option = |name: &str, value: String| argv.extend([name.to_string(), value]);
    option("--output", OBSERVATION.into());
    option("--backend", backend.to_string());
    option("--seed", dispatch.seed.to_string());
    if dispatch.host_settings == HostSettingsName::Leave {
        option("--host-settings", "leave".into());
    }
    if let Some(duration) = dispatch.duration {
        option("--duration", duration.to_string());
    }
    if let Some(trace) = dispatch.trace {
        option("--trace", trace.to_string());
    }
    let cpus = plan.system.cpus.iter().max().map_or(1, |last| last + 1);
    let mut job = job(Flavor::Patched, argv, options, cpus);
    job.files.push((PLAN.into(), plan.to_json().into_bytes()));
    job.files.extend(programs::files(plan)?);
    job.collect.push(OBSERVATION.into());
    let virtual_time = dispatch.duration.unwrap_or(plan.system.duration);
    job.wall_limit = WALL_LEAST + virtual_time * WALL_PER_VIRTUAL;
    job.title = Some(format!("run {virtual_time} of virtual time in the lab under `{backend}`"));
    Ok(job)
}

/// Runs a plan in the lab.
pub fn observe(plan: &Plan, dispatch: &DispatchArgs, options: &LabOptions) -> Result<Observation, CliError> {
    let job = observe_job(plan, dispatch, options)?;
    let outcome = run(&job)?;
    let records = outcome.files.get(OBSERVATION).ok_or_else(|| CliError::GuestOutput {
        command: job.argv.join(" "),
        expected: "observation",
        output: outcome.stderr_text(),
    })?;
    Ok(Observation::from_json(&String::from_utf8_lossy(records), "the lab's observation.json")?)
}

/// Runs a job that has to succeed.
pub fn run(job: &GuestJob) -> Result<GuestOutcome, CliError> {
    let outcome = Lab::new()?.run(job, &mut Terminal::new(), &mut |_| {})?;
    if outcome.status.success() {
        return Ok(outcome);
    }
    let command = job.argv.join(" ");
    Err(CliError::Guest { command, status: outcome.status.to_string(), output: outcome.stderr_text() })
}

/// Prints the command that would boot the guest.
pub fn dry_run(job: &GuestJob) -> Result<(), CliError> {
    output::print_line(Lab::new()?.dry_run(job, &mut Terminal::new())?);
    Ok(())
}

/// Says on a terminal what is about to take a while.
pub fn announce(text: &str) {
    if std::io::stderr().is_terminal() {
        output::tell(text);
    }
}
