//! `macrotick doctor`

use std::io::IsTerminal;
use std::path::PathBuf;

use macrotick_cli::DoctorArgs;
use macrotick_doctor::mend::Mended;
use macrotick_doctor::{capture, examine, mend, Examination, Host, Needs, Verdict};
use macrotick_model::{Backend, System};
use macrotick_report::output;
use macrotick_report::table::Tone;
use serde::Serialize;

use crate::error::CliError;
use crate::files::Files;
use crate::Outcome;

/// Examines a host, captures it, mends it, or undoes that.
pub fn execute(args: &DoctorArgs) -> Result<Outcome, CliError> {
    if args.undo {
        return undo(args.json);
    }
    if let Some(path) = &args.capture {
        return write(path, args);
    }
    let system = args.system.as_deref().map(System::load).transpose()?;
    let place = system.as_ref().map(|system| host_of(system, args)).transpose()?.flatten();
    let needs = |host: &Host| match &system {
        Some(system) => Needs::of(system, args.backend.into(), place),
        None => Needs::here(host),
    };
    let host = match &args.root {
        Some(path) => capture::read(path)?,
        None => capture::take(capture::Options { measure: !args.no_measure }),
    };
    let examination = examine(&host, &needs(&host));
    if !args.fix {
        print(args, None, &examination);
        return Ok(outcome(&examination));
    }
    let made = mend::make(&examination)?;
    // The steps change none of the measurements so soon.
    let after = Host { measured: host.measured, ..capture::take(capture::Options::default()) };
    let examination = examine(&after, &needs(&after));
    print(args, Some(&made), &examination);
    Ok(outcome(&examination))
}

/// Returns the host that is examined, of a system with several.
fn host_of<'a>(system: &'a System, args: &DoctorArgs) -> Result<Option<&'a macrotick_model::Host>, CliError> {
    let Some(path) = &args.system else { return Ok(None) };
    let hosts = || system.hosts.iter().map(|host| host.name.clone()).collect();
    match &args.host {
        None if system.hosts.is_empty() => Ok(None),
        None => Err(CliError::WhichHost { path: path.clone(), hosts: hosts() }),
        Some(name) => match system.host(name) {
            Some(host) => Ok(Some(host)),
            None => Err(CliError::WhichHost { path: path.clone(), hosts: hosts() }),
        },
    }
}

/// Warns if this host has findings that a plan depends on. It measures nothing, and changes nothing.
pub fn warn(system: &System, backend: Backend) {
    let host = capture::take(capture::Options::default());
    let examination = examine(&host, &Needs::of(system, backend, None));
    let has_profile = system.profile.as_ref().is_some_and(|profile| profile.changes_something(backend));
    let names: Vec<&str> = examination.delays(has_profile).map(|found| found.name).collect();
    let Some(warning) = warning(&names) else { return };
    output::tell(warning);
}

/// The most names in a warning.
const NAMED: usize = 5;

fn warning(names: &[&str]) -> Option<String> {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let rest = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let advice = "`macrotick doctor SYSTEM` explains them";
    match names.len() {
        0 => None,
        1 => Some(format!("warning: this host delays the plan ({shown}): {advice}").replace("them", "it")),
        _ => Some(format!("warning: this host delays the plan in {} ways ({shown}{rest}): {advice}", names.len())),
    }
}

fn outcome(examination: &Examination) -> Outcome {
    if examination.is_fit() {
        Outcome::Done
    } else {
        Outcome::DoesNotHold
    }
}

fn write(path: &PathBuf, args: &DoctorArgs) -> Result<Outcome, CliError> {
    Files::default().writes([path]).check()?;
    let host = capture::take(capture::Options { measure: !args.no_measure });
    capture::write(path, &host)?;
    let (files, threads) = (host.files.len(), host.threads.len());
    output::tell(format_args!("{}: {files} files, {threads} threads", path.display()));
    Ok(Outcome::Done)
}

fn undo(json: bool) -> Result<Outcome, CliError> {
    let (undone, left) = mend::undo()?;
    match json {
        true => output::print_json(&(serde_json::to_string_pretty(&undone).expect("changes are always JSON") + "\n")),
        false if undone.is_empty() => output::print_line(format_args!("there is nothing to undo")),
        false => undone.iter().for_each(|made| output::print_line(format_args!("{made}"))),
    }
    Ok(if left > 0 { Outcome::DoesNotHold } else { Outcome::Done })
}

/// All results, for programs.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mended: Option<&'a [Mended]>,
    #[serde(flatten)]
    examination: &'a Examination,
    fit: bool,
}

fn print(args: &DoctorArgs, mended: Option<&[Mended]>, examination: &Examination) {
    if args.json {
        let told = Told { mended, examination, fit: examination.is_fit() };
        output::print_json(&(serde_json::to_string_pretty(&told).expect("verdicts are always JSON") + "\n"));
        return;
    }
    let of = |is_made: bool| {
        let steps = mended.into_iter().flatten().filter(move |mended| mended.made.failure.is_none() == is_made);
        steps.map(|mended| format!("  {}: {}\n", mended.check, mended.made)).collect::<String>()
    };
    for (head, steps) in [("Mended; `macrotick doctor --undo` reverts it", of(true)), ("Not mended", of(false))] {
        if !steps.is_empty() {
            output::print(format!("{head}\n\n{steps}\n"));
        }
    }
    let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
    output::print(examination.text(args.all, |verdict, word| match verdict {
        Verdict::Bad(_) => Tone::Bad.paint(word, colour),
        Verdict::Good { .. } => Tone::Good.paint(word, colour),
        _ => Tone::Faint.paint(word, colour),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_first_findings() {
        assert_eq!(warning(&[]), None);
        let one = "warning: this host delays the plan (swap): `macrotick doctor SYSTEM` explains it";
        assert_eq!(warning(&["swap"]).as_deref(), Some(one));
        let seven = warning(&["a", "b", "c", "d", "e", "f", "g"]).unwrap();
        assert!(seven.contains("in 7 ways (a, b, c, d, e and 2 more)"), "{seven}");
    }
}
