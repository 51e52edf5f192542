//! `macrotick plan`

use macrotick_analysis::servers::{self, Host};
use macrotick_model::timeline::timeline;
use macrotick_model::Plan;
use macrotick_plan::{network_advice, Solver};
use macrotick_report::output;

use crate::args::PlanArgs;
use crate::error::CliError;
use crate::input::{description_from, planned};
use crate::Outcome;

/// Plans a description; the judge has the last word on what the solver made.
pub fn execute(args: &PlanArgs) -> Result<Outcome, CliError> {
    let system = description_from(&args.system)?;
    let solver = args.solver.unwrap_or_else(|| Solver::default_for(&system));
    let plan = planned(&args.system, &system, solver)?;
    if let Some(path) = &args.output {
        plan.save(path)?;
    }
    if args.json {
        output::print_json(&plan.to_json());
    } else {
        output::print(timeline(&plan));
    }
    let verdict = macrotick_check::check(&plan);
    if verdict.is_feasible() {
        // To the errors' channel, so that a plan as JSON stays one.
        network_advice(&plan).iter().for_each(|advice| output::tell(advice.to_string().trim_end()));
        period_advice(&plan);
        return Ok(Outcome::Done);
    }
    output::tell(verdict);
    Ok(Outcome::DoesNotHold)
}

/// Tells of a server period with which groups would need less.
pub fn period_advice(plan: &Plan) {
    let advice = Host::of(plan).ok().and_then(|host| servers::period_advice(&host));
    advice.iter().for_each(|advice| output::tell(format_args!("remark: {advice}")));
}
