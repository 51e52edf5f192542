//! `macrotick`: the command line. Each stage has one verb, and each verb one function. The other crates do the work.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error;
mod files;
mod input;
mod progress;
mod results;
mod search;
mod service;
mod summary;
mod verbs;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use macrotick_cli::{Cli, Verb};
use macrotick_report::output;

use crate::error::CliError;

/// The result of a verb that ran to its end.
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It succeeded, and the verdict is negative: a miss, a broken bound, an infeasible plan, a deployment with
    /// problems.
    DoesNotHold,
    /// A program that it has started ended with this exit code.
    Program(u8),
}

fn main() -> ExitCode {
    if let Some(code) = hidden_verb() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return told(&error),
    };
    let result = execute(&cli).and_then(|outcome| unwritten().map_or(Ok(outcome), Err));
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::DoesNotHold) => ExitCode::from(1),
        Ok(Outcome::Program(code)) => ExitCode::from(code),
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints the text of clap: the requested help, or the error in the arguments.
fn told(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        output::tell(error.render().to_string().trim_end_matches('\n'));
        return ExitCode::from(2);
    }
    match error.print().and_then(|()| io::stdout().flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            let error = CliError::Write { path: "standard output".into(), source };
            error.print();
            ExitCode::from(error.exit_code())
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Returns an error if part of the output could not be written.
fn unwritten() -> Option<CliError> {
    output::fault().map(|source| CliError::Write { path: "standard output".into(), source })
}

/// Runs the processes that other verbs start: tasks, other processes, the lab's guest.
fn hidden_verb() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    match first.to_str()? {
        macrotick_node::task::VERB => Some(macrotick_node::task::main()),
        macrotick_node::processes::VERB => Some(macrotick_node::processes::main()),
        "guest" => macrotick_lab::agent::main(),
        _ => None,
    }
}

fn execute(cli: &Cli) -> Result<Outcome, CliError> {
    match &cli.verb {
        Verb::Plan(args) => verbs::plan::execute(args),
        Verb::Check(args) => verbs::check::execute(args),
        Verb::Explain(args) => verbs::explain::execute(args),
        Verb::Admit(args) => verbs::admit::execute(args),
        Verb::Observe(args) => verbs::observe::execute(args),
        Verb::Report(args) => verbs::report::execute(args),
        Verb::Run(args) => verbs::run::execute(args),
        Verb::Compare(args) => verbs::compare::execute(args),
        Verb::Apply(args) => verbs::apply::execute(args),
        Verb::Status(args) => verbs::status::execute(args),
        Verb::Top(args) => verbs::top::execute(args),
        Verb::Soak(args) => verbs::soak::execute(args),
        Verb::Stop => verbs::stop::execute(),
        Verb::Hook(args) => verbs::hook::execute(args),
        Verb::RtLib(args) => verbs::rt_lib::execute(args),
        Verb::Import(args) => verbs::import::execute(args),
        Verb::Export(args) => verbs::export::execute(args),
        Verb::Generate(args) => verbs::generate::execute(args),
        Verb::Doctor(args) => verbs::doctor::execute(args),
        Verb::Probe(args) => verbs::probe::execute(args),
        Verb::Kernel(args) => verbs::kernel::execute(args),
        Verb::Reserve(args) => verbs::reserve::execute(args),
        Verb::Grant(args) => verbs::grant::execute(args),
        Verb::Measure(args) => verbs::measure::execute(args),
        Verb::Lab(args) => verbs::lab::execute(args),
        Verb::Man(args) => verbs::man::execute(args),
        Verb::Completions(args) => verbs::completions::execute(args),
    }
}
