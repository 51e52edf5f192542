//! `macrotick apply`

use std::io::IsTerminal;
use std::path::Path;

use macrotick_cli::ApplyArgs;
use macrotick_model::{Backend, Load, Plan, Program, Workload};
use macrotick_node::{Event, RunOptions};
use macrotick_report::output;
use macrotick_view::seconds;

use super::report::terminal_width;
use super::{doctor, recording, run, tell_verdict};
use crate::error::CliError;
use crate::input::{part_of, plan_beside};
use crate::service;
use crate::Outcome;

/// Changes the running deployment, or else deploys the plan and supervises it.
pub fn execute(args: &ApplyArgs) -> Result<Outcome, CliError> {
    let running = macrotick_host::present::deployed_plan().filter(|_| !args.new);
    let whole = plan_beside(&args.input, running.as_ref())?;
    let verdict = macrotick_check::check(&whole);
    if !verdict.is_feasible() {
        tell_verdict(&verdict);
        return Ok(Outcome::DoesNotHold);
    }
    let mut plan = part_of(&args.input, &whole, args.host.as_deref())?;
    let directory = std::env::current_dir().map_err(|source| CliError::Read { path: ".".into(), source })?;
    anchor(&mut plan, &directory);
    if args.dry_run {
        return run::dry_run(&plan, &RunOptions::new(Backend::Kernel));
    }
    // Without a change, the lock of the deployment refuses a second one.
    let changed = if args.new { None } else { macrotick_node::change(&plan)? };
    if let Some(changes) = changed {
        let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
        output::print(macrotick_view::changes(&changes, colour, terminal_width()));
        return Ok(Outcome::Done);
    }
    doctor::warn(&plan.system, Backend::Kernel);
    macrotick_node::supervise(&plan, args.seed, &mut |event| tell(&plan, &event))?;
    Ok(Outcome::Done)
}

/// Makes relative paths of programs absolute: their processes may start in another directory.
pub(super) fn anchor(plan: &mut Plan, directory: &Path) {
    let anchor = |program: &mut Program| {
        if let Some(program) = program.command.first_mut().filter(|program| program.contains('/')) {
            *program = directory.join(&*program).display().to_string();
        }
    };
    for task in &mut plan.system.tasks {
        if let Workload::Program(program) = &mut task.run {
            anchor(program);
        }
    }
    for process in plan.system.processes_mut() {
        if let Load::Program(program) = &mut process.run {
            anchor(program);
        }
    }
}

/// Prints one line per event, for a terminal or a journal.
pub(super) fn tell(plan: &Plan, event: &Event) {
    match event {
        Event::Started(epoch) => {
            let (system, at) = (&plan.system, seconds(epoch.as_nanos()));
            let parts = [(system.tasks.len(), "task(s)"), (system.groups.len(), "group(s)")];
            let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
            let (name, parts) = (&system.name, parts.collect::<Vec<_>>().join(", "));
            output::print_line(format_args!("{name}: {parts} run from {at} s of CLOCK_MONOTONIC on"));
            output::print_line(
                "`macrotick apply` changes the deployment, `status` shows it, `stop` or SIGTERM ends it",
            );
            service::notify("READY=1");
        }
        Event::Gates(gates) => macrotick_report::describe_gates(gates).iter().for_each(output::print_line),
        Event::Changed(changes) => output::print(macrotick_view::changes(changes, false, usize::MAX)),
        Event::Refused(why) => output::print_line(format_args!("change refused: {why}")),
        // Only a soak has readings, and it counts them.
        Event::Reading(_) => {}
        Event::Recorded(recorded) => {
            let place = match recording::keep(recorded) {
                Ok(path) => format!("recorded in {}", path.display()),
                Err(error) => format!("the recording is lost: {}", error.with_reasons()),
            };
            output::print_line(format_args!("{}; {place}", recorded.sentence));
        }
        Event::Remark(text) => output::print_line(text),
        Event::Ending(why) => {
            output::print_line(format_args!("{why}: the deployment ends"));
            service::notify("STOPPING=1");
        }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_model::System;
    use macrotick_plan::Solver;

    use super::*;

    #[test]
    fn programs_are_found_wherever_they_are_started() {
        let task = |name, program| {
            format!("  - {{name: {name}, period: 1ms, wcet: 100us, run: {{program: [{program}, x/y]}}}}\n")
        };
        let tasks = [task("a", "build/a"), task("b", "/bin/b"), task("c", "c")].concat();
        let load = "load:\n  - {name: d, program: [./d]}\n";
        let system = System::parse(&format!("system: s\ntasks:\n{tasks}{load}"), "s.yaml").unwrap();
        let mut plan = macrotick_plan::plan(&system, Solver::default_for(&system)).unwrap();
        anchor(&mut plan, Path::new("/home"));
        let command = |index: usize| match &plan.system.tasks[index].run {
            Workload::Program(program) => program.command.join(" "),
            other => panic!("{other:?}"),
        };
        assert_eq!([command(0), command(1), command(2)], ["/home/build/a x/y", "/bin/b x/y", "c x/y"]);
        assert_eq!(plan.system.load[0].run, Load::Program(Program::new(["/home/./d"])));
    }
}
