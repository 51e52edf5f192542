//! A plan is of one description: each change of the description is found, and what the planner adds is none.

use macrotick_analysis::assign;
use macrotick_check::{against, Violation};
use macrotick_fixtures::{described, repository};
use macrotick_model::{Duration, System};
use macrotick_plan::{plan, Solver};

const SYSTEM: &str = "system: s
cpus: [0, 1]
tasks:
  - {name: a, period: 10ms, wcet: 1ms}
  - {name: b, period: 20ms, wcet: 2ms}
  - {name: d, period: 33ms, wcet: 1ms, supply: deadline}
groups:
  - {name: g, priority: 5, budget: 200us, cpus: [0]}
chains:
  - {name: c, path: [a, b], age: 50ms}
";

type Change = fn(&mut System);

fn differences(system: &System, changed: &System) -> Vec<String> {
    let plan = assign(plan(system, Solver::default_for(system)).expect("a plan")).expect("budgets");
    against(&plan, changed).iter().map(Violation::to_string).collect()
}

#[test]
fn a_plan_is_of_its_description() {
    let system = described(SYSTEM);
    assert_eq!(differences(&system, &system), [""; 0]);
}

#[test]
fn the_order_of_lists_with_names_does_not_count() {
    let (system, mut changed) = (described(SYSTEM), described(SYSTEM));
    changed.tasks.reverse();
    assert_eq!(differences(&system, &changed), [""; 0]);
}

#[test]
fn every_change_is_found_at_its_place() {
    let changes: [(Change, &str); 8] = [
        (
            |system| system.tasks[0].wcet = Duration::from_millis(2),
            "`tasks.a.wcet`: the description has `2ms`, but the plan has `1ms`",
        ),
        (
            |system| system.tasks[2].period = Duration::from_millis(34),
            "`tasks.d.period`: the description has `34ms`, but the plan has `33ms`",
        ),
        (|system| drop(system.tasks.remove(1)), "`tasks.b`: the description has nothing, but the plan has an entry"),
        (
            |system| system.tasks[0].name = "x".into(),
            "`tasks.x`: the description has an entry, but the plan has nothing",
        ),
        (
            |system| system.groups[0].budget = Some(Duration::from_micros(300)),
            "`groups.g.budget`: the description has `300us`, but the plan has `200us`",
        ),
        (|system| system.chains[0].age = None, "`chains.c.age`: the description has nothing, but the plan has `50ms`"),
        (
            |system| system.chains[0].path = vec!["b".into(), "a".into()],
            "`chains.c.path.0`: the description has `b`, but the plan has `a`",
        ),
        (|system| system.cpus = vec![0], "`cpus.1`: the description has nothing, but the plan has `1`"),
    ];
    for (change, expected) in changes {
        let system = described(SYSTEM);
        let mut changed = system.clone();
        change(&mut changed);
        let found = differences(&system, &changed);
        assert!(found.iter().any(|text| text == expected), "{expected}: {found:?}");
    }
}

#[test]
fn the_plans_of_all_examples_are_of_their_descriptions() {
    let mut count = 0;
    for entry in std::fs::read_dir(repository("examples")).unwrap() {
        let path = entry.unwrap().path();
        // Others are descriptions of containers.
        let Ok(system) = System::load(&path) else { continue };
        assert_eq!(differences(&system, &system), [""; 0], "{}", path.display());
        count += 1;
    }
    assert!(count > 5, "{count} examples");
}
