//! `macrotick`: the command line. One verb per stage, one function per verb; the work is in the other crates.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "guests, whose output the lab reads")]
mod bench;
mod changes;
mod error;
mod host;
mod input;
mod output;
mod progress;
mod results;
mod service;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::bench::isolation::guest as isolation;
use crate::error::CliError;

/// The result of a verb that ran to its end.
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It did, and the verdict is negative: a miss, a broken bound, an infeasible plan, a deployment that is not well.
    DoesNotHold,
}

fn main() -> ExitCode {
    if let Some(code) = hidden_verb() {
        return code;
    }
    let cli = Cli::parse();
    let result = execute(&cli).and_then(|outcome| output::fault().map_or(Ok(outcome), Err));
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::DoesNotHold) => ExitCode::from(1),
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_code())
        }
    }
}

/// The processes that other verbs start: tasks, background load, the lab's guest.
fn hidden_verb() -> Option<ExitCode> {
    let first = std::env::args().nth(1)?;
    match first.as_str() {
        macrotick_node::task::VERB => Some(macrotick_node::task::main()),
        macrotick_node::background::VERB => Some(macrotick_node::background::main()),
        verb @ (bench::cost::guest::CROSS | bench::cost::guest::INSTALL) => Some(bench::cost::guest::main(verb)),
        verb @ (bench::containers::guest::LOAD | bench::containers::guest::COUNT) => {
            Some(bench::containers::guest::main(verb))
        }
        verb @ (isolation::PLAY | isolation::VICTIM | isolation::ATTACK) => Some(isolation::main(verb)),
        bench::deadline::guest::PLAY => Some(bench::deadline::guest::main()),
        bench::jitter::guest::RUN => Some(bench::jitter::guest::main()),
        bench::timershield::guest::RUN => Some(bench::timershield::guest::main()),
        bench::timershield::window_guest::RUN => Some(bench::timershield::window_guest::main()),
        "guest" => macrotick_lab::agent::main(),
        _ => None,
    }
}

fn execute(cli: &Cli) -> Result<Outcome, CliError> {
    match &cli.verb {
        Verb::Plan(args) => verbs::plan::execute(args),
        Verb::Check(args) => verbs::check::execute(args),
        Verb::Admit(args) => verbs::admit::execute(args),
        Verb::Observe(args) => verbs::observe::execute(args),
        Verb::Report(args) => verbs::report::execute(args),
        Verb::Run(args) => verbs::run::execute(args),
        Verb::Compare(args) => verbs::compare::execute(args),
        Verb::Apply(args) => verbs::apply::execute(args),
        Verb::Status(args) => verbs::status::execute(args),
        Verb::Stop => verbs::stop::execute(),
        Verb::Hook(args) => verbs::hook::execute(args),
        Verb::RtLib(args) => verbs::rt_lib::execute(args),
        Verb::Lab(args) => verbs::lab::execute(args),
        Verb::Bench(args) => verbs::bench::execute(args),
        Verb::Man(args) => verbs::man::execute(args),
    }
}
