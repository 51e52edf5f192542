//! `macrotick reserve`

use macrotick_cli::ReserveArgs;
use macrotick_report::output;
use macrotick_reserve::{prepare, Report};

use crate::error::CliError;
use crate::Outcome;

/// Runs a program in a reservation, or reserves for a running process until it ends.
pub fn execute(args: &ReserveArgs) -> Result<Outcome, CliError> {
    let prepared = prepare(&args.request())?;
    let json = |report: &Report| serde_json::to_string_pretty(report).expect("a report is always JSON") + "\n";
    if args.dry_run {
        if let Some(refusal) = prepared.foreseen() {
            return Err(refusal.into());
        }
        match args.json {
            true => output::print_json(&json(prepared.report())),
            false => output::print_line(prepared.report()),
        }
        return Ok(Outcome::Done);
    }
    // Standard output belongs to the program.
    prepared.commit(|report| match args.json {
        true => output::print_json(&json(report)),
        false => output::tell(report),
    })?;
    Ok(Outcome::Done)
}
