//! `macrotick run`

use std::path::{Path, PathBuf};

use macrotick_cli::{LabOptions, RunArgs};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{GuestJob, Lab};
use macrotick_model::{Backend, Observation, Plan, ProcessOutput};
use macrotick_node::RunOptions;
use macrotick_report::{output, Report};

use super::{doctor, lab, report};
use crate::error::CliError;
use crate::input::{part_of, plan_from};
use crate::progress::RunBar;
use crate::verbs::plan::period_advice;
use crate::verbs::{create, observe, tell_verdict};
use crate::Outcome;

/// Plans, deploys, runs, observes and reports.
pub fn execute(args: &RunArgs) -> Result<Outcome, CliError> {
    let whole = plan_from(&args.input)?;
    let plan = part_of(&args.input, &whole, args.host.as_deref())?;
    if args.lab_options.dry_run {
        return match args.lab {
            true => lab::dry_run(&job(args, &plan)?),
            false => dry_run(&plan, &observe::options(&args.dispatch)),
        };
    }
    let verdict = macrotick_check::check(&whole);
    if !verdict.is_feasible() {
        tell_verdict(&verdict);
        return Ok(Outcome::DoesNotHold);
    }
    period_advice(&plan);
    // Written first: an output that cannot be written fails before the run, not after it.
    let directory = directory(args, &plan);
    create(&directory)?;
    plan.save(&directory.join("plan.json"))?;
    let observation = observe_here_or_there(args, &plan)?;
    let report = Report::new(&observation);
    observation.save(&directory.join("observation.json"))?;
    report::write(&directory, &report, &observation)?;
    report::show(&report);
    output::print_line(format_args!("\nreport: {}", directory.join("report.html").display()));
    let trace = directory.join("trace.json");
    output::print_line(format_args!("trace: {}, for https://ui.perfetto.dev", trace.display()));
    tell_output(&directory, &observation);
    Ok(report::outcome(&report))
}

/// Prints the commands that set up this host for a plan.
pub(super) fn dry_run(plan: &Plan, options: &RunOptions) -> Result<Outcome, CliError> {
    let commands = macrotick_node::set_up_commands(plan, options)?;
    commands.iter().for_each(output::print_line);
    if commands.is_empty() {
        output::print_line("# nothing to set up");
    }
    Ok(Outcome::Done)
}

fn tell_output(directory: &Path, observation: &Observation) {
    let file = |output: &ProcessOutput| report::log(directory, &output.name).display().to_string();
    match observation.output.as_slice() {
        [] => {}
        [one] => output::print_line(format_args!("output: {}", file(one))),
        [one, two] => output::print_line(format_args!("output: {} and {}", file(one), file(two))),
        [one, rest @ ..] => {
            output::print_line(format_args!("output: {} and {} other files there", file(one), rest.len()))
        }
    }
}

fn observe_here_or_there(args: &RunArgs, plan: &Plan) -> Result<Observation, CliError> {
    if args.lab {
        return Ok(Lab::new()?.observe(&job(args, plan)?, &mut Terminal::new())?);
    }
    doctor::warn(&plan.system, args.dispatch.backend.into());
    let mut bar = RunBar::new();
    Ok(macrotick_node::run(plan, &observe::options(&args.dispatch), &mut |progress| bar.update(progress))?)
}

/// Runs the plan in the lab.
fn job(args: &RunArgs, plan: &Plan) -> Result<GuestJob, CliError> {
    let LabOptions { shift, smp, .. } = args.lab_options;
    Ok(macrotick_lab::observe::job(plan, &args.dispatch.into(), smp, shift)?)
}

fn directory(args: &RunArgs, plan: &Plan) -> PathBuf {
    let backend: Backend = args.dispatch.backend.into();
    args.output.clone().unwrap_or_else(|| PathBuf::from(format!("build/run/{}-{backend}", plan.system.name)))
}
