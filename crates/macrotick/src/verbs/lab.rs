//! `macrotick lab`

use std::io::Write;

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, GuestJob, Lab};

use crate::args::{LabArgs, LabVerb};
use crate::error::CliError;
use crate::output;
use crate::Outcome;
use crate::{guest, programs};

/// Builds a kernel or runs a command in the lab.
pub fn execute(args: &LabArgs) -> Result<Outcome, CliError> {
    match &args.verb {
        LabVerb::Kernel { flavor } => build((*flavor).into()),
        LabVerb::Exec { flavor, options, files, wall_limit, command } => {
            let mut job = guest::job((*flavor).into(), command.clone(), options, 1);
            job.files.extend(programs::taken_along(files, job.image)?);
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
        guest::dry_run(job)?;
        return Ok(Outcome::Done);
    }
    let outcome = Lab::new()?.run(job, &mut Terminal::new(), &mut |_| {})?;
    output::print_bytes(&outcome.stdout);
    let _ = std::io::stderr().write_all(&outcome.stderr);
    if outcome.status.success() {
        return Ok(Outcome::Done);
    }
    Err(CliError::Guest { command: job.argv.join(" "), status: outcome.status.to_string(), output: String::new() })
}
