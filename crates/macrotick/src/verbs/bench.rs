//! `macrotick bench`

use std::path::PathBuf;

use macrotick_lab::Layout;

use crate::args::{BenchArgs, BenchName};
use crate::bench::{self, Bench};
use crate::error::CliError;
use crate::output;
use crate::Outcome;

/// Runs an experiment and writes what came out.
pub fn execute(args: &BenchArgs) -> Result<Outcome, CliError> {
    let layout = Layout::find()?;
    let name = args.name.name();
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("build/bench/{name}")));
    let run = match args.name {
        BenchName::Response => bench::response::run,
        BenchName::Lead => bench::lead::run,
        BenchName::Overhead => bench::overhead::run,
        BenchName::Overrun => bench::overrun::run,
        BenchName::Cost => bench::cost::run,
        BenchName::E2e => bench::e2e::run,
        BenchName::Containers => bench::containers::run,
        BenchName::Isolation => bench::isolation::run,
        BenchName::Deadline => bench::deadline::run,
        BenchName::Jitter => bench::jitter::run,
        BenchName::Timershield => bench::timershield::run,
    };
    let bench = Bench::new(name, layout.root(), folder);
    let results = run(&bench)?;
    output::print_line(format_args!("\nfigures: {}", bench.folder.join("figures.json").display()));
    if args.publish {
        output::print_line(format_args!("results: {}", bench.publish(&results)?.display()));
    }
    Ok(Outcome::Done)
}
