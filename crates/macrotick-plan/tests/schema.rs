//! Plans keep the schema.

use macrotick_fixtures::{refusals, repository};
use macrotick_model::{Plan, System};
use macrotick_plan::{plan, Solver};

/// As `macrotick plan` makes it.
fn planned(system: &System) -> Plan {
    let plan = plan(system, Solver::default_for(system)).unwrap_or_else(|error| panic!("{}: {error}", system.name));
    macrotick_analysis::assign(plan).unwrap_or_else(|error| panic!("{}: {error}", system.name))
}

fn refused(plan: &Plan) -> Vec<String> {
    refusals("plan", &serde_json::from_str(&plan.to_json()).expect("JSON"))
}

#[test]
fn a_plan_of_each_example_is_taken() {
    let entries =
        std::fs::read_dir(repository("examples")).expect("the examples").map(|entry| entry.expect("one").path());
    let mut taken = 0;
    for path in entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
        if path.ends_with("container.yaml") {
            continue;
        }
        let system = System::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let plan = planned(&system);
        assert_eq!(refused(&plan), [""; 0], "{}", path.display());
        assert_eq!(Plan::from_json(&plan.to_json(), "x").ok().as_ref(), Some(&plan), "{}", path.display());
        taken += 1;
    }
    assert!(taken >= 10, "only {taken} examples found");
}
