//! `macrotick compare`

use std::io::IsTerminal;
use std::path::PathBuf;

use macrotick_cli::CompareArgs;
use macrotick_report::{check_comparable, compare_labelled, output, write_text, Report};

use super::report::terminal_width;
use crate::error::CliError;
use crate::results::Results;
use crate::Outcome;

/// Compares the results of several runs, in the terminal and in one HTML file.
pub fn execute(args: &CompareArgs) -> Result<Outcome, CliError> {
    let results = Results::load(&args.results)?;
    let labels = results.labels();
    let runs: Vec<(&str, &Report)> = labels.iter().map(String::as_str).zip(results.reports()).collect();
    check_comparable(&runs)?;
    let comparison = compare_labelled(&runs);
    let page = page(args, &comparison.system);
    write_text(&page, &comparison.html())?;
    if args.json {
        output::print_json(&comparison.to_json());
        return Ok(Outcome::Done);
    }
    let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
    output::print(comparison.summary(colour, terminal_width()));
    output::print_line(format_args!("\ncomparison: {}", page.display()));
    Ok(Outcome::Done)
}

fn page(args: &CompareArgs, system: &str) -> PathBuf {
    args.output.clone().unwrap_or_else(|| PathBuf::from(format!("build/compare/{system}.html")))
}
