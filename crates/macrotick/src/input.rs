//! Reads a plan, or a description and plans it, if wanted as a change of a former plan.

use std::path::Path;

use macrotick_admit::{planned, planned_from};
use macrotick_model::{PartError, Plan, System};
use macrotick_plan::{Options, Solver};
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
    let options = Options::command_line();
    Ok(planned(path, &system, Solver::default_for(&system), options, &Search::start(options.time_limit))?)
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
    let watch = Search::start(options.time_limit);
    Ok(match running {
        Some(running) => planned_from(path, &system, running, (&[], &[]), options, &watch)?,
        None => planned(path, &system, Solver::default_for(&system), options, &watch)?,
    })
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
}
