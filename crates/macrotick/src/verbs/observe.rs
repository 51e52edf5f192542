//! `macrotick observe`

use std::io::IsTerminal;

use macrotick_cli::{DispatchArgs, ObserveArgs};
use macrotick_model::{Duration, Plan};
use macrotick_node::RunOptions;
use macrotick_report::output;

use crate::error::CliError;
use crate::files::Files;
use crate::input::part_of;
use crate::progress::RunBar;
use crate::Outcome;

/// Runs a plan on this host, unless the judge refuses it, and writes the raw records.
pub fn execute(args: &ObserveArgs) -> Result<Outcome, CliError> {
    Files::default().reads([&args.plan]).writes([&args.output]).check()?;
    let plan = part_of(&args.plan, &Plan::load(&args.plan)?, None)?;
    let verdict = macrotick_check::check(&plan);
    if !verdict.is_feasible() && !args.unchecked {
        output::tell(verdict);
        return Ok(Outcome::DoesNotHold);
    }
    let mut bar = RunBar::new();
    let observation = macrotick_node::run(&plan, &options(&args.dispatch), &mut |progress| bar.update(progress))?;
    observation.save(&args.output)?;
    Ok(Outcome::Done)
}

/// Without a terminal, no wake-up for progress disturbs the run.
pub fn options(args: &DispatchArgs) -> RunOptions {
    let watched = std::io::stderr().is_terminal();
    RunOptions {
        duration: args.duration,
        trace: args.trace,
        seed: args.seed,
        host_settings: args.host_settings.into(),
        progress_every: watched.then_some(Duration::from_millis(200)),
        ..RunOptions::new(args.backend.into())
    }
}
