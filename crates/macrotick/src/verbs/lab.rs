//! `macrotick lab`

use std::io::Write;

use macrotick_cli::{LabArgs, LabVerb};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{taken_along, Flavor, GuestJob, Lab, LabError};
use macrotick_report::output;

use crate::error::CliError;
use crate::Outcome;

/// Builds a kernel or runs a command in the lab.
pub fn execute(args: &LabArgs) -> Result<Outcome, CliError> {
    match &args.verb {
        LabVerb::Kernel { flavor } => build(*flavor),
        LabVerb::Exec { flavor, options, files, wall_limit, command } => {
            let job = GuestJob::new(*flavor, command.clone());
            let mut job = job.on(options.smp.unwrap_or(1), options.shift);
            job.files.extend(taken_along(files, job.image)?);
            job.wall_limit = *wall_limit;
            exec(&job, options.dry_run)
        }
    }
}

fn build(flavor: Flavor) -> Result<Outcome, CliError> {
    let kernel = Lab::new()?.build_kernel(flavor, &mut Terminal::new())?;
    output::print_line(format_args!("{}: {}", kernel.release, kernel.image.display()));
    Ok(Outcome::Done)
}

fn exec(job: &GuestJob, is_dry_run: bool) -> Result<Outcome, CliError> {
    if is_dry_run {
        return dry_run(job);
    }
    let outcome = Lab::new()?.run(job, &mut Terminal::new(), &mut |_| {})?;
    output::print_bytes(&outcome.stdout);
    let _ = std::io::stderr().write_all(&outcome.stderr);
    if outcome.status.success() {
        return Ok(Outcome::Done);
    }
    let (command, status) = (job.argv.join(" "), outcome.status.to_string());
    Err(LabError::Guest { command, status, output: String::new() }.into())
}

/// Prints the command that would boot the guest.
pub fn dry_run(job: &GuestJob) -> Result<Outcome, CliError> {
    output::print_line(Lab::new()?.dry_run(job, &mut Terminal::new())?);
    Ok(Outcome::Done)
}
