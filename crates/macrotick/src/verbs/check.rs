//! `macrotick check`

use macrotick_cli::CheckArgs;
use macrotick_report::output;

use crate::error::CliError;
use crate::files::Files;
use crate::input::{description_from, plan_from};
use crate::verbs::capture;
use crate::verbs::plan::{draw, period_advice};
use crate::Outcome;

/// Judges a plan, or a capture against it.
pub fn execute(args: &CheckArgs) -> Result<Outcome, CliError> {
    let read = [&args.against, &args.capture].into_iter().flatten().chain([&args.input]);
    Files::default().reads(read).writes(args.pictures.files()).check()?;
    let plan = plan_from(&args.input)?;
    if let Some(path) = &args.capture {
        return capture::judge(&plan, path, &args.of_capture, args.json);
    }
    let mut verdict = macrotick_check::check(&plan);
    if let Some(path) = &args.against {
        verdict.violations.extend(macrotick_check::against(&plan, &description_from(path)?));
    }
    if args.json {
        output::print_json(&format!("{}\n", serde_json::to_string_pretty(&verdict).expect("a verdict is always JSON")));
    } else {
        output::print(&verdict);
    }
    draw(&args.pictures, &plan, &verdict)?;
    period_advice(&plan);
    Ok(if verdict.is_feasible() { Outcome::Done } else { Outcome::DoesNotHold })
}
