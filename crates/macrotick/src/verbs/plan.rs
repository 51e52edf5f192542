//! `macrotick plan`

use macrotick_admit::{planned, planned_from};
use macrotick_analysis::servers::{self, Host};
use macrotick_check::Verdict;
use macrotick_cli::{PictureArgs, PlanArgs};
use macrotick_model::timeline::{outline, timeline};
use macrotick_model::{Duration, Plan, Window};
use macrotick_plan::{network_advice, Moved, Solver, RESUMING};
use macrotick_report::{output, timetable_page, timetable_picture, write_text};

use super::tell_verdict;
use crate::error::CliError;
use crate::files::Files;
use crate::input::{description_from, former_plan};
use crate::search::Search;
use crate::summary::{moved, served, summary, Served};
use crate::Outcome;

/// Plans a description. The judge decides whether the plan is feasible.
pub fn execute(args: &PlanArgs) -> Result<Outcome, CliError> {
    // The new plan may replace the former one, which is read before. Pictures may not.
    Files::default().reads([&args.system]).writes(&args.output).writes(args.pictures.files()).check()?;
    Files::default().reads(&args.from).writes(args.pictures.files()).check()?;
    let system = description_from(&args.system)?;
    let former = args.from.as_deref().map(former_plan).transpose()?;
    let solver = args.solver.unwrap_or_else(|| Solver::default_for(&system));
    let (options, watch) = (args.options(), Search::start(args.options().time_limit));
    let plan = match &former {
        None => planned(&args.system, &system, solver, options, &watch)?,
        Some(_) if system.table.is_some() => return Err(CliError::TableByHand { path: args.system.clone() }),
        Some(former) => planned_from(&args.system, &system, former, (&args.frozen, &args.free), options, &watch)?,
    };
    drop(watch);
    let verdict = macrotick_check::check(&plan);
    if args.json {
        output::print_json(&plan.to_json());
    } else {
        let word = if verdict.is_feasible() { "planned" } else { "not found, the judge refuses this plan" };
        let text = if args.windows { timeline(&plan) + LETTERS } else { outline(&plan) };
        let served = served(&plan);
        let moved = former.as_ref().map_or_else(String::new, |former| moved(&Moved::between(former, &plan)));
        let text = format!("{word}: {text}") + &beside(&plan, &served) + &summary(&plan, &served, &verdict) + &moved;
        output::print(text);
    }
    draw(&args.pictures, &plan, &verdict)?;
    if !verdict.is_feasible() {
        tell_verdict(&verdict);
        if let Some(path) = &args.output {
            output::tell(format_args!("{} is not written: the judge refuses the plan", path.display()));
        }
        return Ok(Outcome::DoesNotHold);
    }
    if let Some(path) = &args.output {
        plan.save(path)?;
    }
    // On standard error: a plan on standard output stays valid JSON.
    network_advice(&plan).iter().for_each(|advice| output::tell(advice.to_string().trim_end()));
    period_advice(&plan);
    Ok(Outcome::Done)
}

/// Writes the pictures of a plan, also of one that the judge refuses: it shows where the plan breaks a rule.
pub fn draw(to: &PictureArgs, plan: &Plan, verdict: &Verdict) -> Result<(), CliError> {
    if let Some(path) = &to.html {
        write_text(path, &timetable_page(plan, verdict))?;
    }
    if let Some(path) = &to.svg {
        write_text(path, &timetable_picture(plan))?;
    }
    Ok(())
}

/// Explains the timeline.
const LETTERS: &str = "A releases a job, D is its deadline\n";

/// Names tasks without windows, and jobs with windows longer than the WCET.
fn beside(plan: &Plan, served: &Served) -> String {
    let mut text = String::new();
    for (task, reservation) in plan.system.reserved() {
        let by = if task.deadline == task.period { String::new() } else { format!(" by {}", task.deadline) };
        let (name, period, runtime, cpus) = (&task.name, task.period, reservation.runtime, &reservation.cpus);
        text += &format!("deadline task {name}: {runtime}{by} of {period} on CPU {cpus}\n");
    }
    for task in &plan.system.tasks {
        let (given, pieces) =
            served.get(task.name.as_str()).map_or_else(Default::default, |windows| longest_job(windows));
        if given > task.wcet && pieces > 1 {
            let (name, wcet) = (&task.name, task.wcet);
            text += &format!(
                "{name}: {given} for a wcet of {wcet}: each window of a job except the first has {RESUMING} more, in \
                 whole macroticks\n"
            );
        }
    }
    text
}

/// Returns the longest window time of a job, and its number of windows. Windows before the first release of a cycle
/// belong to the last job.
fn longest_job(windows: &[&Window]) -> (Duration, usize) {
    let mut windows = windows.to_vec();
    windows.sort_by_key(|window| window.offset);
    let first = windows.iter().position(|window| window.activate).unwrap_or(0);
    windows.rotate_left(first);
    let jobs = windows.chunk_by(|_, next| !next.activate);
    jobs.map(|job| (job.iter().map(|window| window.length).sum(), job.len())).max().unwrap_or_default()
}

/// Prints the server period with which groups would need less, if there is one.
pub fn period_advice(plan: &Plan) {
    let advice = Host::of(plan).ok().and_then(|host| servers::period_advice(&host));
    advice.iter().for_each(|advice| output::tell(format_args!("remark: {advice}")));
}
