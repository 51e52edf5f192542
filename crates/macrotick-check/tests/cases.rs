//! Small systems that a planner easily gets wrong. Each `cases/NAME.yaml` must have a plan that the judge accepts.
//! Each `cases/refused/NAME.yaml` must have none, and begins with the expected answer.

use std::path::{Path, PathBuf};

use macrotick_check::{check, Violation};
use macrotick_model::{Duration, Plan, System};
use macrotick_plan::{plan, Answer, PlanError, Solver};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(folder).expect("the folder of cases");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths
}

fn planned(system: &System) -> Result<Plan, PlanError> {
    let plan = plan(system, Solver::FoldedOccupancy)?;
    let plan = macrotick_analysis::assign(plan).unwrap_or_else(|error| panic!("{}: {error}", system.name));
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{}: {verdict}", system.name);
    Ok(plan)
}

#[test]
fn each_case_has_a_plan() {
    let cases = files("cases");
    assert!(cases.len() >= 6, "only {} cases found", cases.len());
    let failure = |path: &PathBuf| {
        let system = System::load(path).unwrap_or_else(|error| panic!("{error}"));
        planned(&system).err().map(|error| format!("{}: {error}", system.name))
    };
    let failures: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The order of the description must not decide.
#[test]
fn the_order_of_the_description_does_not_matter() {
    for path in files("cases") {
        let mut system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let Ok(Plan { tables, .. }) = planned(&system) else { continue };
        for _ in 0..system.tasks.len().max(system.chains.len()) {
            system.tasks.rotate_left(1);
            system.chains.reverse();
            system.groups.reverse();
            let again = planned(&system).expect("the case has a plan").tables;
            assert_eq!(again, tables, "{}", system.name);
        }
    }
}

#[test]
fn refusals_say_whether_they_are_proved() {
    let mut wrong = Vec::new();
    for path in files("cases/refused") {
        let text = std::fs::read_to_string(&path).expect("a case");
        let expected = text.lines().next().unwrap_or_default();
        let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let error = planned(&system).expect_err("the case has no plan");
        assert_eq!(error.answer(), Answer::Impossible, "{}: {error}", path.display());
        let found = format!("# {}", error.finding(&system).message);
        if found != expected {
            wrong.push(format!("{}: expected\n{expected}\n--- got\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_job_before_those_it_waits_for_is_found() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/after.yaml");
    let mut plan =
        planned(&System::load(&path).unwrap_or_else(|error| panic!("{error}"))).expect("the case has a plan");
    let windows = || plan.tables.iter().flat_map(|table| &table.windows);
    let left = windows().find(|window| window.task == "left" && window.deadline).expect("a window").end();
    let act = plan.tables.iter_mut().flat_map(|table| &mut table.windows).find(|window| window.task == "act");
    act.expect("a window").offset = left - Duration::from_micros(1);
    let early = |violation: &Violation| matches!(violation, Violation::TooEarly { task, .. } if task == "act");
    assert!(check(&plan).violations.iter().any(early), "{}", check(&plan));
}
