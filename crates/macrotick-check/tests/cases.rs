//! Small systems that a planner easily gets wrong: each `cases/NAME.yaml` must have a plan that the judge accepts, and
//! each `cases/refused/NAME.yaml` must have none, with the answer in its first line.

use std::path::{Path, PathBuf};

use macrotick_check::check;
use macrotick_model::{Plan, System};
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
    for path in cases {
        let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
        planned(&system).unwrap_or_else(|error| panic!("{}: {error}", system.name));
    }
}

/// The order of the description must not decide.
#[test]
fn the_order_of_the_description_does_not_matter() {
    for path in files("cases") {
        let mut system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let tables = planned(&system).expect("the case has a plan").tables;
        for _ in 0..system.tasks.len().max(system.chains.len()) {
            system.tasks.rotate_left(1);
            system.chains.rotate_left(system.chains.len().min(1));
            system.groups.reverse();
            let again = planned(&system).expect("the case has a plan").tables;
            assert_eq!(again, tables, "{}", system.name);
        }
    }
}

#[test]
fn refusals_say_whether_they_are_proved() {
    for path in files("cases/refused") {
        let text = std::fs::read_to_string(&path).expect("a case");
        let expected = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let error = planned(&system).expect_err("the case has no plan");
        let finding = error.finding(&system);
        assert_eq!(error.answer(), Answer::Impossible, "{}: {error}", path.display());
        assert_eq!(finding.message, expected, "{}", path.display());
    }
}
