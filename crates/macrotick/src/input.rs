//! Reads a plan, or a description and plans it, if wanted as a change of a former plan.
//!
//! Some values of groups that a description leaves open depend on the windows. The analysis finds them after the
//! solver, and the plan contains them. So later stages, and the judge, see values only.

use std::path::Path;

use macrotick_check::check;
use macrotick_model::{Group, PartError, Plan, Supply, System, Task};
use macrotick_plan::{plan_changed, plan_watched, Change, Options, PlanError, Solver};
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

/// Reads a former plan.
pub fn former_plan(path: &Path) -> Result<Plan, CliError> {
    if !is_json(path) {
        return Err(CliError::OtherDocument { path: path.into(), kind: "not a plan, which `plan -o` writes as .json" });
    }
    is_plan(path)?;
    Ok(Plan::load(path)?)
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

/// Plans a description like [`planned`], so that as little as possible differs from a former plan: windows stay where
/// they can. Groups keep the values that their description leaves open, and tasks of SCHED_DEADLINE their CPUs, unless
/// there is no plan with them.
pub fn planned_from(
    path: &Path,
    system: &System,
    former: &Plan,
    (frozen, free): (&[String], &[String]),
    options: Options,
) -> Result<Plan, CliError> {
    let mut kept = system.clone();
    keep_groups(&mut kept, &former.system.groups);
    keep_reservations(&mut kept, &former.system.tasks);
    let planned = |system: &System| {
        let change = Change::new(former, system, frozen.iter().cloned(), free.iter().cloned())?;
        let plan = plan_changed(system, &change, options, &Search::start(options.time_limit));
        assigned(path, plan.map_err(|error| unplanned(path, system, &error))?)
    };
    let holds = |plan: &Result<Plan, CliError>| plan.as_ref().is_ok_and(|plan| check(plan).is_feasible());
    let first = planned(&kept);
    if holds(&first) {
        return first;
    }
    let second = if kept == *system { first } else { planned(system) };
    if holds(&second) || !frozen.is_empty() {
        return second;
    }
    // The windows that stay leave too little to something that only the judge knows.
    let new = self::planned(path, system, Solver::default_for(system), options);
    if holds(&new) {
        new
    } else {
        second
    }
}

/// Plans a change of a deployment that has this plan.
pub fn plan_beside(path: &Path, running: Option<&Plan>) -> Result<Plan, CliError> {
    if is_plan(path)? {
        return Ok(Plan::load(path)?);
    }
    let system = System::load(path)?;
    if system.hosts.len() > 1 {
        return Err(CliError::HostsWithoutPlan { path: path.into() });
    }
    let options = Options::command_line();
    match running {
        Some(running) => planned_from(path, &system, running, (&[], &[]), options),
        None => planned(path, &system, Solver::default_for(&system), options),
    }
}

/// Returns the part of a plan for a host. Without a name, it is the host with the name of this machine.
pub fn part_of(path: &Path, plan: &Plan, host: Option<&str>) -> Result<Plan, CliError> {
    let part = match plan.part(host) {
        Err(PartError::Unnamed(hosts)) => {
            let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            plan.part(hosts.iter().map(String::as_str).find(|name| *name == machine.trim()))
        }
        part => part,
    };
    part.map_err(|source| CliError::Part { path: path.into(), source })
}

/// Gives groups the values of the former plan that their description leaves open.
fn keep_groups(system: &mut System, former: &[Group]) {
    for group in system.servers_mut() {
        let Some(found) = former.iter().find(|other| other.name == group.name) else { continue };
        group.priority = group.priority.or(found.priority);
        group.budget = group.budget.or(found.budget);
        for task in &mut group.tasks {
            let found = found.tasks.iter().find(|other| other.name == task.name);
            task.priority = task.priority.or_else(|| found?.priority);
        }
    }
}

/// Gives tasks of SCHED_DEADLINE the CPUs of the former plan that their description leaves to the solver.
fn keep_reservations(system: &mut System, former: &[Task]) {
    let cpus = system.cpus.clone();
    for task in &mut system.tasks {
        let found = former.iter().find(|other| other.name == task.name).and_then(Task::reservation);
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
    use macrotick_model::Duration;

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
    fn what_the_description_leaves_open_is_that_of_the_former_plan() {
        let group = "groups:\n  - {name: g, priority: 10, cpus: [0], tasks: [{name: t, period: 20ms, wcet: 1ms}]}\n";
        let text = |more: &str| {
            format!("system: s\ncpus: [0, 1]\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms}}\n{more}{group}")
        };
        let parsed = |text: &str| System::parse(text, "s.yaml").unwrap();
        let path = Path::new("s.yaml");
        let system = parsed(&text(""));
        let former = planned(path, &system, Solver::default_for(&system), Options::default()).unwrap();
        let more = parsed(&text("  - {name: b, period: 20ms, wcet: 5ms}\n"));
        let plan = planned_from(path, &more, &former, (&[], &[]), Options::default()).unwrap();
        assert_eq!(plan.system.groups, former.system.groups);
        assert!(former.system.groups[0].budget.is_some());
        let windows = |plan: &Plan, name: &str| -> Vec<(u32, Duration)> {
            let each = plan.tables.iter().flat_map(|table| table.windows.iter().map(move |window| (table.cpu, window)));
            each.filter(|(_, window)| window.task == name).map(|(cpu, window)| (cpu, window.offset)).collect()
        };
        assert_eq!(windows(&plan, "a")[..1], windows(&former, "a")[..1]);
        let unknown = planned_from(path, &system, &former, (&["x".into()], &[]), Options::default()).unwrap_err();
        assert_eq!(unknown.to_string(), "`x` has no windows in the former plan");
    }

    #[test]
    fn what_no_longer_suffices_is_given_up() {
        let path = Path::new("s.yaml");
        let parsed = |text: &str| System::parse(text, "s.yaml").unwrap();
        let changed = |before: &str, after: &str| {
            let system = parsed(before);
            let former = planned(path, &system, Solver::default_for(&system), Options::default()).unwrap();
            let plan = planned_from(path, &parsed(after), &former, (&[], &[]), Options::default()).unwrap();
            assert!(check(&plan).is_feasible(), "{after}");
        };
        let group = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\ngroups:\n  \
                     - {name: x, criticality: 1, tasks: [{name: f, period: 20ms, wcet: 900us}]}\n";
        changed(group, &group.replace("900us", "1900us"));
        let reserved = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: w, period: 10ms, wcet: 5ms, cpu: 0}\n  \
                        - {name: d, period: 10ms, wcet: 3ms, supply: deadline}\n";
        let new = "  - {name: e, period: 10ms, wcet: 8ms, supply: {deadline: {cpus: [1]}}}\n";
        changed(reserved, &format!("{reserved}{new}"));
        // Refills of budgets lie anywhere in this cycle.
        let leads = "system: s\nmacrotick: 10us\nlead: 20us\ncpus: [0, 1, 2]\ntasks:\n  \
                     - {name: t0, period: 1000us, wcet: 50us, jitter: 0us}\n  \
                     - {name: t1, period: 1000us, wcet: 40us, deadline: 870us, offset: 570us}\n  \
                     - {name: t2, period: 4000us, wcet: 300us}\n  \
                     - {name: t3, period: 8000us, wcet: 1410us, offset: 5280us}\n  \
                     - {name: t4, period: 1000us, wcet: 200us, jitter: 0us}\n  \
                     - {name: t5, period: 2000us, wcet: 400us, cpu: 2}\n  \
                     - {name: t6, period: 2000us, wcet: 80us, jitter: 0us, cpu: 2}\n  \
                     - {name: t7, period: 8000us, wcet: 530us, jitter: 0us, preemptible: false}\n  \
                     - {name: t8, period: 1000us, wcet: 200us, after: [t0]}\n  \
                     - {name: t9, period: 4000us, wcet: 880us, deadline: 2240us, jitter: 380us}\ngroups:\n  \
                     - {name: b0, priority: 20, budget: 100us, cpus: [0], tasks: [{name: x, period: 20ms, wcet: 50us}]}\n";
        changed(leads, &leads.replace("lead: 20us", "lead: 100us"));
    }
}
