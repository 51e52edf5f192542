//! `macrotick admit`

use std::time::Instant;

use macrotick_admit::{Answer, Base};
use macrotick_cli::AdmitArgs;
use macrotick_model::{Container, Duration, Plan};
use macrotick_plan::Options;
use macrotick_report::output;
use serde::Serialize;

use crate::error::CliError;
use crate::input::is_plan;
use crate::search::Search;
use crate::Outcome;

/// Answers for containers; each answer counts the containers before it that were admitted.
pub fn execute(args: &AdmitArgs) -> Result<Outcome, CliError> {
    let containers = args.containers.iter().map(|path| Container::load(path)).collect::<Result<Vec<_>, _>>()?;
    let watch = Search::start(Options::default().time_limit);
    let begun = Instant::now();
    let mut base = match &args.system {
        None => Base::here()?,
        Some(path) if is_plan(path)? => Base::of_plan(&Plan::load(path)?)?,
        Some(path) => Base::of_description(path, &watch)?,
    };
    let answers = args.containers.iter().zip(&containers).map(|(path, container)| base.admit(path, container, &watch));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    drop(watch);
    let took = Duration::from_nanos(begun.elapsed().as_nanos() as i64);
    if args.json {
        let told = Told { against: &base.what, remarks: &base.remarks, containers: &answers, took };
        output::print_json(&format!("{}\n", serde_json::to_string_pretty(&told).expect("an answer is always JSON")));
    } else {
        output::print(macrotick_admit::describe(&base, &answers, took));
    }
    Ok(if answers.iter().all(Answer::is_admitted) { Outcome::Done } else { Outcome::DoesNotHold })
}

/// All answers, for programs.
#[derive(Serialize)]
struct Told<'a> {
    against: &'a str,
    remarks: &'a [String],
    containers: &'a [Answer],
    /// Time for reading and analysing the host and for all answers.
    took: Duration,
}
