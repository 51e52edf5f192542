//! `macrotick reserve`

use std::path::{Path, PathBuf};

use macrotick_cli::ReserveArgs;
use macrotick_grant::{ask, GrantError, SOCKET};
use macrotick_report::output;
use macrotick_reserve::adapt::adapt;
use macrotick_reserve::{prepare, Report, Request, Signals, Target};

use super::measure::name_of;
use crate::error::CliError;
use crate::files::Files;
use crate::Outcome;

/// Runs a program in a reservation, or reserves for a running process until it ends.
pub fn execute(args: &ReserveArgs) -> Result<Outcome, CliError> {
    if args.adapt {
        return adaptively(args);
    }
    let request = args.request();
    let prepared = prepare(&request)?;
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
    let made = prepared.commit(|report| match args.json {
        true => output::print_json(&json(report)),
        false => output::tell(report),
    });
    match made {
        Ok(()) => Ok(Outcome::Done),
        Err(error) => match socket().filter(|_| error.needs_privilege()) {
            Some(socket) => granted(args, &request, &socket),
            None => Err(error.into()),
        },
    }
}

/// Returns the socket of the helper, if it is there. The variable names another one.
fn socket() -> Option<PathBuf> {
    let path = std::env::var_os("MACROTICK_GRANT").map_or_else(|| SOCKET.into(), PathBuf::from);
    path.exists().then_some(path)
}

/// Reserves through the helper, within the limits of this user.
fn granted(args: &ReserveArgs, request: &Request, socket: &Path) -> Result<Outcome, CliError> {
    // Signals of a program to start are its own.
    let signals = matches!(request.target, Target::Process(_)).then(Signals::block).transpose()?;
    let granted = ask(socket, request)?;
    match args.json {
        true => output::print_json(&(serde_json::to_string_pretty(&granted.report).expect("it was JSON") + "\n")),
        false => output::tell(format!("{}\n  granted by macrotick-grant", granted.text)),
    }
    match (&request.target, signals) {
        (Target::Program(words), _) => {
            granted.keep_for_program().map_err(|source| GrantError::Unreachable { path: socket.into(), source })?;
            Err(macrotick_reserve::execute(words).into())
        }
        (Target::Process(_), signals) => {
            granted.until(|socket| signals.iter().for_each(|signals| signals.wait(socket)))?;
            Ok(Outcome::Done)
        }
    }
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
