//! Plans keep the schema, and `docs/reference/documents.md` shows a plan of the solver.

use macrotick_fixtures::{described, hold, read_tree, refusals, repository};
use macrotick_model::{Plan, System};
use macrotick_plan::{plan, Solver};

/// Makes a plan as `macrotick plan` does.
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

/// `MACROTICK_BLESS=1` writes it again.
#[test]
fn the_plan_of_the_documentation_is_that_of_its_description() {
    let document = "docs/reference/documents.md";
    let text = read_tree(document);
    let between = |begin: &str| text.split_once(begin).and_then(|(_, rest)| rest.split_once("```")).expect(begin).0;
    let (description, shown) = (between("```yaml\n"), between("```json\n"));
    let plan = planned(&described(description));
    hold(document, &text.replace(shown, &plan.to_json()));
    assert_eq!(refused(&plan), [""; 0]);
}
