//! `macrotick soak`

use std::io::IsTerminal;
use std::time::Duration as WallTime;

use macrotick_cli::{SoakArgs, SoakReportArgs, SoakRunArgs, SoakVerb};
use macrotick_model::{Backend, Duration, Plan, System};
use macrotick_node::Event;
use macrotick_report::output;
use macrotick_soak::{Counts, Recorder, SoakError, State};

use super::report::terminal_width;
use super::{apply, doctor, tell_verdict};
use crate::error::CliError;
use crate::input::{is_plan, part_of, plan_beside};
use crate::Outcome;

/// Runs or reports a soak.
pub fn execute(args: &SoakArgs) -> Result<Outcome, CliError> {
    match &args.verb {
        SoakVerb::Run(args) => run(args),
        SoakVerb::Report(args) => report(args),
    }
}

fn run(args: &SoakRunArgs) -> Result<Outcome, CliError> {
    let state = State::open(&args.state)?;
    let former = state.plan()?;
    let plan = match &former {
        Some(former) => same_plan(args, former)?,
        None => fresh_plan(args)?,
    };
    let verdict = macrotick_check::check(&plan);
    if !verdict.is_feasible() {
        tell_verdict(&verdict);
        return Ok(Outcome::DoesNotHold);
    }
    if former.is_none() {
        state.begin(&plan)?;
    }
    let saved = state.counts()?;
    let is_new = saved.is_none();
    let counts = match saved {
        Some(counts) => counts,
        None => Counts::new(plan.system.name.clone(), state.plan_sha256()?, 0),
    };
    let soaked = Duration::from_nanos(i64::try_from(counts.soaked_ns).unwrap_or(i64::MAX));
    let left = args.duration.map(|duration| duration - soaked);
    if left.is_some_and(|left| left <= Duration::ZERO) {
        return Ok(show(&counts, false));
    }
    doctor::warn(&plan.system, Backend::Kernel);
    let save_every = WallTime::from_nanos(args.save_every.as_nanos().unsigned_abs());
    let recorder = Recorder::start(state, counts, is_new, save_every, |error| {
        output::tell(format_args!("{error}; the counts stay in memory until a later save"));
    });
    let (mut failure, mut is_started) = (None, false);
    let result = macrotick_node::soak(&plan, args.seed, left, &mut |event| match event {
        Event::Reading(reading) => {
            if reading.failure.is_some() && reading.failure != failure {
                failure.clone_from(&reading.failure);
                output::tell(format_args!("counters are missing: {}", failure.as_deref().unwrap_or_default()));
            }
            recorder.read(reading);
        }
        event => {
            match &event {
                Event::Started(_) => {
                    is_started = true;
                    recorder.started();
                }
                Event::Ending(why) => recorder.ending(why),
                _ => {}
            }
            apply::tell(&plan, &event);
        }
    });
    let (counts, saved) = recorder.finish();
    // The report comes before any error: a full disk does not lose them.
    let outcome = is_started.then(|| show(&counts, false));
    result?;
    saved?;
    Ok(outcome.unwrap_or(Outcome::Done))
}

/// Plans the description, or reads the plan.
fn fresh_plan(args: &SoakRunArgs) -> Result<Plan, CliError> {
    let plan = part_of(&args.input, &plan_beside(&args.input, None)?, args.host.as_deref())?;
    anchored(plan.system.clone(), &plan)
}

/// Returns the plan with which the soak began. Another plan of the same description would make its counts worthless.
fn same_plan(args: &SoakRunArgs, former: &Plan) -> Result<Plan, CliError> {
    // Without a search, if the planner left the description as it was.
    let is_same = !is_plan(&args.input)? && anchored(System::load(&args.input)?, former)?.system == former.system;
    match is_same || fresh_plan(args)?.system == former.system {
        true => Ok(former.clone()),
        false => Err(SoakError::OtherSystem { path: args.state.clone() }.into()),
    }
}

fn anchored(system: System, former: &Plan) -> Result<Plan, CliError> {
    let mut plan = Plan { system, ..former.clone() };
    let directory = std::env::current_dir().map_err(|source| CliError::Read { path: ".".into(), source })?;
    apply::anchor(&mut plan, &directory);
    Ok(plan)
}

fn report(args: &SoakReportArgs) -> Result<Outcome, CliError> {
    let (counts, runs) = macrotick_soak::read(&args.state)?;
    if args.json {
        output::print_json(&format!("{}\n", serde_json::to_string(&counts).expect("counts are always JSON")));
        return Ok(outcome(&counts));
    }
    Ok(show(&counts, runs))
}

fn show(counts: &Counts, runs: bool) -> Outcome {
    let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
    output::print(macrotick_soak::report(counts, runs, colour, terminal_width()));
    outcome(counts)
}

fn outcome(counts: &Counts) -> Outcome {
    match counts.holds() {
        true => Outcome::Done,
        false => Outcome::DoesNotHold,
    }
}
