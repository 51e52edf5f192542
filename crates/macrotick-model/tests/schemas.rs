//! The schemas of plan and observation: `MACROTICK_BLESS=1 cargo test -p macrotick-model --test schemas` writes them
//! again.

use macrotick_fixtures::{
    by_hand, counters, exact_gates, group_record, hold_schema, job, lab, measured_lead, ms, observation, output,
    pool_record, records, refusals, segment, system, tables, task, unsynchronised_clock, us, window, Side,
};
use macrotick_model::{EntityCounters, GatesInForce, Observation, Plan, Segment};
use serde_json::{json, Value};

#[test]
fn the_schemas_are_those_of_the_types() {
    hold_schema::<Plan>("plan", "A plan of Macrotick", Side::Read);
    hold_schema::<Observation>("observation", "An observation of Macrotick", Side::Read);
}

/// An observation with an example of every possible part.
fn full() -> Observation {
    let system = system("s", vec![task("a", ms(1), us(100))]);
    let mut run = observation(by_hand(system, ms(1), tables([window("a", us(0), us(100), "AD")])));
    run.environment = lab();
    run.lead = Some(measured_lead(us(8), us(20)));
    run.clock = Some(unsynchronised_clock());
    run.gates = vec![GatesInForce { closed: Some(us(9)), dropped: 2, ..exact_gates("left", us(60)) }];
    run.tasks = vec![records("a", vec![job(0, us(0), Some(us(1)), None)])];
    let often = EntityCounters { missed_in_row: 2, stopped: true, restarted: 1, ..counters(3) };
    run.tasks[0].counters = Some(often);
    run.pools = vec![pool_record("p", 1, 2)];
    run.groups = vec![group_record("g", 3)];
    run.segments = vec![segment("a", 1, 2), Segment { pool: Some("p".into()), ..segment("b", 2, 3) }];
    run.output = vec![output("a", "text")];
    run.remarks = vec!["a remark".into()];
    run
}

fn tree(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn what_is_written_is_taken() {
    let run = full();
    assert_eq!(refusals("plan", &tree(&run.plan.to_json())), [""; 0]);
    assert_eq!(refusals("observation", &tree(&run.to_json())), [""; 0]);
    assert_eq!(Observation::from_json(&run.to_json(), "x").expect("read back"), run);
}

/// Schema and decoder refuse the same documents.
#[test]
fn what_is_wrong_is_refused_by_both() {
    let right = tree(&full().to_json());
    let wrong = [
        ("", "more", json!(1), "unknown field `more`"),
        ("", "version", json!(2), "version 2"),
        ("", "duration_ns", json!("24ms"), "invalid type"),
        ("", "backend", json!("Kernel"), "unknown variant"),
        ("/plan", "more", json!(1), "unknown field `more`"),
        ("/plan/system", "more", json!(1), "unknown key `more`"),
        ("/plan/tables/0/windows/0", "offset", json!("5"), "needs a unit"),
        ("/tasks/0/counters", "activations", json!(1), "unknown field `activations`"),
        ("/tasks/0/jobs/0", "3", json!("1us"), "invalid type"),
        ("/environment/lab", "more", json!(1), "unknown field `more`"),
    ];
    for (place, key, value, reason) in wrong {
        let mut tree = right.clone();
        match tree.pointer_mut(place).expect("a place") {
            Value::Array(list) => list[key.parse::<usize>().expect("a place in a list")] = value,
            Value::Object(keys) => _ = keys.insert(key.into(), value),
            other => panic!("{place}: {other}"),
        }
        assert!(!refusals("observation", &tree).is_empty(), "the schema takes {place}/{key}");
        let error = Observation::from_json(&tree.to_string(), "x").expect_err(key).to_string();
        assert!(error.contains(reason), "{place}/{key}: {error}");
    }
}
