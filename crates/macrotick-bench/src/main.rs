//! `macrotick-bench NAME`: runs an experiment in the lab and writes its tables, plots and figures.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use macrotick_bench::{Experiment, Scale};
use macrotick_report::output;

/// Run an experiment in the lab and write its tables, plots and figures.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
struct Arguments {
    /// Which experiment
    name: Experiment,
    /// Where to write figures, tables and plots [default: build/bench/NAME, or NAME-quick]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Also renew docs/results/NAME.md and its plots
    #[arg(long)]
    publish: bool,
    /// Run a little of each part, in at most two minutes: the same tables, but the figures cannot be published
    #[arg(long)]
    quick: bool,
}

const EXIT_CODES: &str = "Exit codes:\n  0  Done.\n  2  Wrong input.\n  3  This host or the lab failed.";

fn main() -> ExitCode {
    let Arguments { name, output: folder, publish, quick } = Arguments::parse();
    let scale = if quick { Scale::Quick } else { Scale::Full };
    let failed = |error: &dyn std::fmt::Display| output::tell(format_args!("error: {error}"));
    if let Err(error) = name.run(folder, scale, publish) {
        failed(&error);
        return ExitCode::from(error.exit_code());
    }
    match output::fault() {
        None => ExitCode::SUCCESS,
        Some(fault) => {
            failed(&format_args!("cannot write standard output: {fault}"));
            ExitCode::from(3)
        }
    }
}
