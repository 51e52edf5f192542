//! `macrotick lab`

use std::io::Write;

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, Lab};

use crate::args::{FlavorName, LabArgs, LabOptions, LabVerb};
use crate::error::CliError;
use crate::Outcome;
use crate::{guest, programs};

/// Builds a kernel or runs a command in the lab.
pub fn execute(args: &LabArgs) -> Result<Outcome, CliError> {
    match &args.verb {
        LabVerb::Kernel { flavor } => build((*flavor).into()),
        LabVerb::Exec { flavor, options, files, command } => exec(*flavor, options, files, command),
    }
}

fn build(flavor: Flavor) -> Result<Outcome, CliError> {
    let kernel = Lab::new()?.build_kernel(flavor, &mut Terminal::new())?;
    println!("{}: {}", kernel.release, kernel.image.display());
    Ok(Outcome::Done)
}

fn exec(flavor: FlavorName, options: &LabOptions, files: &[String], command: &[String]) -> Result<Outcome, CliError> {
    let mut job = guest::job(flavor.into(), command.to_vec(), options, 1);
    job.files.extend(programs::taken_along(files)?);
    if options.dry_run {
        guest::dry_run(&job)?;
        return Ok(Outcome::Done);
    }
    let outcome = Lab::new()?.run(&job, &mut Terminal::new(), &mut |_| {})?;
    // A closed pipe on our side is no failure of the command.
    let _ = std::io::stdout().write_all(&outcome.stdout);
    let _ = std::io::stderr().write_all(&outcome.stderr);
    if outcome.status.success() {
        return Ok(Outcome::Done);
    }
    Err(CliError::Guest { command: command.join(" "), status: outcome.status.to_string(), output: String::new() })
}
