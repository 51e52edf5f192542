//! `macrotick check`

use crate::args::CheckArgs;
use crate::error::CliError;
use crate::input::plan_from;
use crate::output;
use crate::Outcome;

/// Judges a plan.
pub fn execute(args: &CheckArgs) -> Result<Outcome, CliError> {
    let verdict = macrotick_check::check(&plan_from(&args.input)?);
    if args.json {
        output::print_line(serde_json::to_string_pretty(&verdict).expect("a verdict is always JSON"));
    } else {
        output::print_line(&verdict);
    }
    Ok(if verdict.is_feasible() { Outcome::Done } else { Outcome::DoesNotHold })
}
