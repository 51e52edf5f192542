//! `macrotick-bench NAME`: runs an experiment in the lab and writes its tables, plots and figures.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use macrotick_bench::{publication, BenchError, Experiment, Scale};
use macrotick_report::output;

/// Run an experiment in the lab and write its tables, plots and figures.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Arguments {
    /// Which experiments, one after the other
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "outdated"])]
    names: Vec<Experiment>,
    /// Run all experiments; with --publish, those without a page of the present commit
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Where to write figures, tables and plots [default: build/bench/NAME, or NAME-quick]
    #[arg(short, long, value_name = "DIR", conflicts_with = "all")]
    output: Option<PathBuf>,
    /// Also renew docs/results/NAME.md and its plots
    #[arg(long)]
    publish: bool,
    /// Run a little of each part, in at most two minutes: the same tables, but the figures cannot be published
    #[arg(long)]
    quick: bool,
    /// List the pages in docs/results that do not describe the present kernel, and exit with 1 if there are any
    #[arg(long, exclusive = true)]
    outdated: bool,
}

const EXIT_CODES: &str =
    "Exit codes:\n  0  Done.\n  1  A page of results is outdated.\n  2  Wrong input.\n  3  This host or the lab failed.";

fn main() -> ExitCode {
    let failed = |error: &dyn std::fmt::Display| output::tell(format_args!("error: {error}"));
    let code = match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            failed(&error);
            return ExitCode::from(error.exit_code());
        }
    };
    match output::fault() {
        None => code,
        Some(fault) => {
            failed(&format_args!("cannot write standard output: {fault}"));
            ExitCode::from(3)
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, BenchError> {
    let Arguments { names, all, output: folder, publish, quick, outdated } = arguments;
    if outdated {
        return Ok(ExitCode::from(u8::from(Experiment::print_outdated()? > 0)));
    }
    if folder.is_some() && names.len() > 1 {
        return Err(BenchError::OneFolder);
    }
    if all && publish && !quick {
        publication::publish_all()?;
        return Ok(ExitCode::SUCCESS);
    }
    let scale = if quick { Scale::Quick } else { Scale::Full };
    let chosen = if all { Experiment::all() } else { &names };
    for experiment in chosen {
        experiment.run(folder.clone(), scale, publish)?;
    }
    Ok(ExitCode::SUCCESS)
}
