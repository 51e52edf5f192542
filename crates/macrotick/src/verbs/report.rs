//! `macrotick report`

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use macrotick_cli::ReportArgs;
use macrotick_model::Observation;
use macrotick_report::{output, write_text, Report};

use crate::error::CliError;
use crate::results::{self, process_names};
use crate::Outcome;

/// Judges an observation.
pub fn execute(args: &ReportArgs) -> Result<Outcome, CliError> {
    let observation = results::observation(&args.observation)?;
    let report = Report::new(&observation);
    if let Some(directory) = &args.output {
        write(directory, &report, &observation)?;
    }
    if args.json {
        output::print_json(&report.to_json());
    } else {
        show(&report);
    }
    Ok(outcome(&report))
}

/// Whether all bounds and deadlines were met.
pub fn outcome(report: &Report) -> Outcome {
    if report.holds() {
        Outcome::Done
    } else {
        Outcome::DoesNotHold
    }
}

/// Prints the report's tables.
pub fn show(report: &Report) {
    let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
    output::print(macrotick_report::terminal(report, colour, terminal_width()));
}

/// Returns the columns of the terminal, from `COLUMNS`.
pub fn terminal_width() -> usize {
    const FALLBACK: usize = 100;
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.unwrap_or(FALLBACK)
}

/// Writes report.json, report.html and trace.json, and the output of each process in NAME.log.
pub fn write(directory: &Path, report: &Report, observation: &Observation) -> Result<(), CliError> {
    write_text(&directory.join("report.json"), &report.to_json())?;
    write_text(&directory.join("report.html"), &macrotick_report::html(report, observation))?;
    write_text(&directory.join("trace.json"), &macrotick_report::trace_json(observation))?;
    let stale = process_names(observation).filter(|name| observation.output.iter().all(|output| output.name != *name));
    stale.for_each(|name| drop(std::fs::remove_file(log(directory, &name))));
    observation.output.iter().try_for_each(|output| write_text(&log(directory, &output.name), &output.text))?;
    Ok(())
}

/// Returns the file with the output of a process.
pub fn log(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.log"))
}
