//! The schema of the report: `MACROTICK_BLESS=1 cargo test -p macrotick-report --test schema` writes it again. The
//! records and reports of the tree conform to it and to the schema of the observation.

#[allow(dead_code)]
mod synthetic;

use macrotick_fixtures::{group_record, hold_schema, pool_record, read_tree, refusals, unsynchronised_clock, Side};
use macrotick_model::{Backend, Observation};
use macrotick_report::Report;
use serde_json::{json, Value};

#[test]
fn the_schema_is_that_of_the_types() {
    hold_schema::<Report>("report", "A report of Macrotick", Side::Written);
}

fn tree(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn recorded(name: &str) -> Value {
    tree(&read_tree(&format!("crates/macrotick-report/tests/data/{name}.json")))
}

#[test]
fn what_was_recorded_is_taken() {
    for name in ["kernel.observation", "other.observation"] {
        assert_eq!(refusals("observation", &recorded(name)), [""; 0], "{name}");
        let run = Observation::from_json(&recorded(name).to_string(), name).expect("an observation");
        assert_eq!(refusals("report", &tree(&Report::new(&run).to_json())), [""; 0], "{name}");
    }
    assert_eq!(refusals("report", &recorded("kernel.report")), [""; 0]);
}

#[test]
fn a_report_of_everything_is_taken() {
    let system = "system: s\nserver-period: 1ms\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 1ms, wcet: 100us, supply: \
                  {deadline: {runtime: 200us, cpus: [0, 1]}}}\ngroups:\n  - {name: p, windows: {period: 1ms, length: 1us}}\n  \
                  - {name: g, budget: 100us, priority: 3, cpus: [0]}\n";
    let mut run = synthetic::small(Backend::Kernel);
    run.plan.system = macrotick_fixtures::described(system);
    run.clock = Some(unsynchronised_clock());
    run.pools = vec![pool_record("p", 1, 2)];
    run.groups = vec![group_record("g", 3)];
    let report = tree(&Report::new(&run).to_json());
    assert_eq!(refusals("report", &report), [""; 0]);
    assert!(report.pointer("/pools/0/had").is_some() && report.pointer("/groups/0/had").is_some(), "{report}");
    assert!(report.pointer("/tasks/0/runtime_ns").is_some() && report.get("clock").is_some(), "{report}");
}

#[test]
fn what_is_no_report_is_refused() {
    let wrong = [("", "version", json!(1)), ("", "more", json!(1)), ("/verdict", "misses", json!(0))];
    let wrong = wrong.into_iter().chain([
        ("/tasks/0", "period_ns", json!("1ms")),
        ("/tasks/0/lateness", "mean_ns", json!("1")),
        ("/chains/0/age", "verdict", json!("perhaps")),
        ("/environment", "cpus", Value::Null),
    ]);
    for (place, key, value) in wrong {
        let mut report = recorded("kernel.report");
        let object = report.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
        object.insert(key.into(), value);
        assert!(!refusals("report", &report).is_empty(), "{place}/{key} is taken");
    }
}
