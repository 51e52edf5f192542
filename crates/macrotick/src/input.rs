//! Reads a plan, or a description and plans it, if necessary beside a running deployment.
//!
//! Some values of groups that a description leaves open depend on the windows. The analysis finds them after the
//! solver, and the plan contains them. So later stages, and the judge, see values only.

use std::path::Path;

use macrotick_model::{CpuSet, Group, Plan, Supply, System, Task};
use macrotick_plan::{plan_watched, Options, PlanError, Solver};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::CliError;
use crate::search::Search;

/// Reads a plan from its file, or plans a description with its default solver.
pub fn plan_from(path: &Path) -> Result<Plan, CliError> {
    if is_plan(path)? {
        return Ok(Plan::load(path)?);
    }
    let system = System::load(path)?;
    planned(path, &system, Solver::default_for(&system), Options::command_line())
}

/// Reads a description, and refuses documents of other stages.
pub fn description_from(path: &Path) -> Result<System, CliError> {
    match kind(path) {
        Kind::Plan if is_json(path) => Err(CliError::OtherDocument { path: path.into(), kind: "already a plan" }),
        Kind::Other(kind) => Err(CliError::OtherDocument { path: path.into(), kind }),
        _ => Ok(System::load(path)?),
    }
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// Whether a file is a plan. A description may be JSON, too.
pub fn is_plan(path: &Path) -> Result<bool, CliError> {
    match kind(path) {
        Kind::Other(kind) => Err(CliError::OtherDocument { path: path.into(), kind }),
        kind => Ok(kind == Kind::Plan),
    }
}

#[derive(PartialEq)]
enum Kind {
    /// A plan, or any JSON that is not one of the others.
    Plan,
    Description,
    /// Another document, in words.
    Other(&'static str),
}

/// Returns the kind of a file, according to its keys.
fn kind(path: &Path) -> Kind {
    if !is_json(path) {
        return Kind::Description;
    }
    // The values are skipped: a document may be large, and a caller reads it in full later.
    let keys = std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok());
    match keys.unwrap_or_default() {
        Keys { backend: Some(_), verdict: Some(_), .. } => Kind::Other("a report, not a plan"),
        Keys { backend: Some(_), plan: Some(_), .. } => Kind::Other("an observation, not a plan"),
        Keys { owner: Some(_), problems: Some(_), .. } => Kind::Other("a status, not a plan"),
        Keys { version: None, system: Some(Value::String(_)), .. } => Kind::Description,
        _ => Kind::Plan,
    }
}

/// The keys that distinguish the documents; `owner` of a status may be null.
#[derive(Default, Deserialize)]
struct Keys {
    version: Option<IgnoredAny>,
    system: Option<Value>,
    backend: Option<IgnoredAny>,
    verdict: Option<IgnoredAny>,
    plan: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    owner: Option<IgnoredAny>,
    problems: Option<IgnoredAny>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<IgnoredAny>, D::Error> {
    IgnoredAny::deserialize(value).map(Some)
}

/// Plans a description and fills in the values that the description at `path` leaves open.
pub fn planned(path: &Path, system: &System, solver: Solver, options: Options) -> Result<Plan, CliError> {
    assigned(path, search(system, solver, options).map_err(|error| unplanned(path, system, &error))?)
}

fn search(system: &System, solver: Solver, options: Options) -> Result<Plan, PlanError> {
    plan_watched(system, solver, options, &Search::start(options.time_limit))
}

fn assigned(path: &Path, plan: Plan) -> Result<Plan, CliError> {
    let system = plan.system.clone();
    macrotick_analysis::assign(plan)
        .map_err(|error| CliError::Infeasible(System::refuse_file(path, error.findings(&system))))
}

fn unplanned(path: &Path, system: &System, error: &PlanError) -> CliError {
    let refused = System::refuse_file(path, vec![error.finding(system)]);
    if error.is_infeasible() {
        CliError::Infeasible(refused)
    } else {
        CliError::Load(refused)
    }
}

/// Plans a change of a deployment. Running tasks and pools keep their CPUs where the solver can leave them there; those
/// with several CPUs are split again. Running groups keep the values that their description leaves open: budgets do not
/// change with the windows, and the judge checks whether they still suffice. Tasks of SCHED_DEADLINE keep their values,
/// too.
pub fn plan_beside(
    path: &Path,
    running: &[(String, CpuSet)],
    groups: &[Group],
    reserved: &[Task],
) -> Result<Plan, CliError> {
    if running.is_empty() || is_plan(path)? {
        return plan_from(path);
    }
    let mut system = System::load(path)?;
    keep_groups(&mut system, groups);
    keep_reservations(&mut system, reserved);
    let solver = Solver::default_for(&system);
    let kept = macrotick_plan::plan(&keep_cpus(system.clone(), running), solver);
    let plan = kept.or_else(|_| search(&system, solver, Options::command_line()));
    assigned(path, plan.map_err(|error| unplanned(path, &system, &error))?)
}

/// Gives CPUs to tasks and pools that leave them to the solver and run on exactly one CPU, which the system has.
fn keep_cpus(mut system: System, running: &[(String, CpuSet)]) -> System {
    let cpus = system.cpus.clone();
    let found = |name: &str| {
        let (_, found) = running.iter().find(|(other, _)| other == name)?;
        found.first().filter(|cpu| !found.is_several() && cpus.contains(cpu))
    };
    for task in system.tasks.iter_mut().filter(|task| task.supply.is_windows()) {
        task.cpu = task.cpu.or_else(|| found(&task.name));
        task.migrate &= task.cpu.is_none();
    }
    for group in system.groups.iter_mut().filter(|group| group.cpus.is_empty()) {
        group.cpus.extend(found(&group.name));
    }
    system
}

/// Gives running groups the values that their description leaves open.
fn keep_groups(system: &mut System, running: &[Group]) {
    for group in system.servers_mut() {
        let Some(found) = running.iter().find(|other| other.name == group.name) else { continue };
        group.priority = group.priority.or(found.priority);
        group.budget = group.budget.or(found.budget);
        for task in &mut group.tasks {
            let found = found.tasks.iter().find(|other| other.name == task.name);
            task.priority = task.priority.or_else(|| found?.priority);
        }
    }
}

/// Gives running tasks of SCHED_DEADLINE the CPUs that their description leaves to the solver.
fn keep_reservations(system: &mut System, running: &[Task]) {
    let cpus = system.cpus.clone();
    for task in &mut system.tasks {
        let found = running.iter().find(|other| other.name == task.name).and_then(Task::reservation);
        let found = found.filter(|found| found.cpus.as_slice().iter().all(|cpu| cpus.contains(cpu)));
        if let (Supply::Deadline(reservation), Some(found)) = (&mut task.supply, found) {
            if reservation.cpus.is_empty() {
                reservation.cpus = found.cpus.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_may_be_json() {
        let file = std::env::temp_dir().join(format!("macrotick-input-{}.json", std::process::id()));
        let description = r#"{"system": "a", "tasks": [{"name": "t", "period": "10ms", "wcet": "1ms"}]}"#;
        std::fs::write(&file, description).unwrap();
        let plan = plan_from(&file).unwrap();
        std::fs::write(&file, plan.to_json()).unwrap();
        assert_eq!(plan_from(&file).unwrap(), plan);
        for wrong in ["{", "[]", r#"{"system": {}}"#] {
            std::fs::write(&file, wrong).unwrap();
            assert!(matches!(plan_from(&file), Err(CliError::File(_))), "{wrong}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn documents_of_other_stages_are_called_by_name() {
        let file = std::env::temp_dir().join(format!("macrotick-kinds-{}.json", std::process::id()));
        for (text, name) in [
            (r#"{"version": 3, "system": "a", "backend": "kernel", "verdict": {}, "tasks": []}"#, "a report"),
            (r#"{"version": 3, "backend": "kernel", "plan": {"system": {}}}"#, "an observation"),
            (r#"{"version": 1, "table": null, "owner": null, "problems": []}"#, "a status"),
        ] {
            std::fs::write(&file, text).unwrap();
            for told in [plan_from(&file).err(), description_from(&file).err()] {
                let expected = format!("{} is {name}, not a plan", file.display());
                assert_eq!(told.unwrap().to_string(), expected);
            }
        }
        std::fs::write(&file, r#"{"version": 1, "system": {}, "tables": []}"#).unwrap();
        assert!(description_from(&file).unwrap_err().to_string().contains(" is already a plan"));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_runs_keeps_its_cpu_unless_the_description_says_another() {
        let text = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 1ms, wcet: 100us}\n  \
                    - {name: b, period: 1ms, wcet: 100us, cpu: 0}\n  - {name: c, period: 1ms, wcet: 100us}\n  \
                    - {name: d, period: 1ms, wcet: 100us, migrate: true}\n  \
                    - {name: e, period: 1ms, wcet: 100us, migrate: true}\n";
        let system = System::parse(text, "s.yaml").unwrap();
        let on = |name: &str, cpus: &[u32]| (name.to_owned(), cpus.iter().copied().collect());
        let running = [on("a", &[1]), on("b", &[1]), on("c", &[7]), on("d", &[0, 1]), on("e", &[1])];
        let kept: Vec<(Option<u32>, bool)> =
            keep_cpus(system, &running).tasks.iter().map(|task| (task.cpu, task.migrate)).collect();
        assert_eq!(kept, [(Some(1), false), (Some(0), false), (None, false), (None, true), (Some(1), false)]);
    }
}
