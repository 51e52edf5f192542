//! `macrotick probe`

use std::io::IsTerminal;
use std::sync::Arc;

use macrotick_cli::{ProbeArgs, ProbeRunArgs, ProbeServeArgs, ProbeVerb};
use macrotick_probe::{ProbeError, Sample, Served, Stop};
use macrotick_report::table::Table;
use macrotick_report::{output, write_text};

use crate::error::CliError;
use crate::files::Files;
use crate::verbs::report::terminal_width;
use crate::Outcome;

/// Measures a network path, or answers those that measure it.
pub fn execute(args: &ProbeArgs) -> Result<Outcome, CliError> {
    let stop = Arc::new(Stop::by_signal().map_err(ProbeError::Network)?);
    match &args.verb {
        ProbeVerb::Serve(args) => serve(args, &stop),
        ProbeVerb::Run(args) => run(args, &stop),
    }
}

fn serve(args: &ProbeServeArgs, stop: &Arc<Stop>) -> Result<Outcome, CliError> {
    let mut ready = |address| output::tell(format_args!("listening at {address}; SIGINT ends it"));
    let served = macrotick_probe::serve(&args.options(), stop, &mut ready)?;
    match args.json {
        true => output::print_json(&(serde_json::to_string_pretty(&served).expect("numbers") + "\n")),
        false => output::print(counts(&served).text(colour(), terminal_width())),
    }
    Ok(Outcome::Done)
}

fn run(args: &ProbeRunArgs, stop: &Arc<Stop>) -> Result<Outcome, CliError> {
    Files::default().writes([&args.output, &args.csv].into_iter().flatten()).check()?;
    let unknown = |source| CliError::NoServer { name: args.destination().to_owned(), source };
    let options = args.options().map_err(unknown)?;
    let finished = macrotick_probe::run(&options, stop)?;
    let results = &finished.results;
    if let Some(path) = &args.output {
        write_text(path, &results.to_json())?;
    }
    if let Some(path) = &args.csv {
        write_text(path, &Sample::csv(&finished.samples, options.course.clock))?;
    }
    match args.json {
        true => output::print_json(&results.to_json()),
        false => output::print(results.table(colour(), terminal_width())),
    }
    Ok(if results.holds() { Outcome::Done } else { Outcome::DoesNotHold })
}

fn colour() -> bool {
    macrotick_report::colour_wanted(std::io::stdout().is_terminal())
}

/// Returns the counts of a server that are not zero, and always the answers.
fn counts(served: &Served) -> Table {
    let rows = [
        ("answered", served.answered),
        ("recorded", served.recorded),
        ("unrecorded", served.unrecorded),
        ("greeted", served.greeted),
        ("foreign", served.foreign),
        ("limited", served.limited),
        ("unsent", served.unsent),
    ];
    let mut table = Table::new(1, &["packets", "count"]);
    let shown = rows.into_iter().filter(|(name, count)| *count > 0 || *name == "answered");
    table.rows.extend(shown.map(|(name, count)| vec![name.into(), count.to_string().into()]));
    table
}
