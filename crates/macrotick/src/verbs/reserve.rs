//! `macrotick reserve`

use macrotick_cli::ReserveArgs;
use macrotick_report::output;
use macrotick_reserve::adapt::adapt;
use macrotick_reserve::{prepare, Report, Target};

use super::measure::name_of;
use crate::error::CliError;
use crate::files::Files;
use crate::Outcome;

/// Runs a program in a reservation, or reserves for a running process until it ends.
pub fn execute(args: &ReserveArgs) -> Result<Outcome, CliError> {
    if args.adapt {
        return adaptively(args);
    }
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

/// Adapts the reservation to the program, and says what it learned.
fn adaptively(args: &ReserveArgs) -> Result<Outcome, CliError> {
    Files::default().writes(&args.output).check()?;
    let wish = args.adaptive();
    let name = name_of(&match &wish.request.target {
        Target::Program(words) => macrotick_measure::Target::Program(words.clone()),
        Target::Process(process) => macrotick_measure::Target::Process(*process),
    });
    // Standard output belongs to the program.
    let learned = adapt(&wish, &|line| output::tell(line))?;
    output::tell(&learned);
    if let Some(path) = &args.output {
        let cpu = args.cpus.as_ref().and_then(|cpus| cpus.as_slice().first()).copied().unwrap_or(0);
        let system = learned.describe(&name, cpu)?;
        super::write(path, &system.to_yaml())?;
    }
    Ok(learned.exit_code.map_or(Outcome::Done, Outcome::Program))
}
