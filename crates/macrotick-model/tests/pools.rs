//! Pools, in a description and in a plan file.

use macrotick_fixtures::{by_hand, ms};
use macrotick_model::{Duration, Plan, PoolOrder, System};
use serde_json::json;

fn described(pool: &str) -> System {
    let source = format!(
        "system: s\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms}}\npools:\n  - {{name: p, period: 20ms, budget: \
         3ms{pool}}}\nbackground:\n  - {{name: load, load: hog, pool: p}}\n"
    );
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn what_is_left_out_has_its_default() {
    let system = described("");
    // What has its default and no key of its own in a plan is not in here.
    let expected = json!([
        {"name": "p", "period": "20ms", "budget": "3ms", "cpu": null, "order": {"round-robin": {"slice": "1ms"}}}
    ]);
    assert_eq!(json!(system.pools), expected);
    assert_eq!(system.background[0].pool.as_deref(), Some("p"));
    assert_eq!(system.hyperperiod(), Some(Duration::from_millis(20)));
}

#[test]
fn every_order_is_read_with_its_slice() {
    let order = |keys: &str| described(keys).pools[0].order;
    assert_eq!(order(", order: fifo"), PoolOrder::Fifo);
    assert_eq!(order(", order: priority"), PoolOrder::Priority { slice: PoolOrder::DEFAULT_SLICE });
    let slice = Duration::from_micros(10);
    assert_eq!(order(", order: round-robin, slice: 10us"), PoolOrder::RoundRobin { slice });
    assert_eq!(order(", slice: 1s"), PoolOrder::RoundRobin { slice: Duration::from_secs(1) });
}

#[test]
fn a_plan_file_keeps_pools_within_their_bounds() {
    let system = described(", slack: true, cgroup: /sys/fs/cgroup/web, slice: 2ms");
    let plan = by_hand(system, ms(20), Vec::new());
    let text = plan.to_json();
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan"), plan);
    let short = text.replace("\"slice\": \"2ms\"", "\"slice\": \"2us\"");
    assert_ne!(short, text);
    let error = Plan::from_json(&short, "plan.json").expect_err("out of range").to_string();
    assert_eq!(error, "plan.json: system.pools[0].slice: slice 2us is out of range: 10us to 1s");
    let pinned = text.replace("\"pool\": \"p\",\n      \"cpu\": null", "\"pool\": \"p\",\n      \"cpu\": 0");
    assert_ne!(pinned, text);
    let error = Plan::from_json(&pinned, "plan.json").expect_err("a CPU of its own").to_string();
    assert!(error.ends_with("background load `load` in a pool has a CPU or a policy of its own"), "{error}");
}

#[test]
fn a_system_without_pools_does_not_mention_them() {
    let source = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n";
    let system = System::parse(source, "s.yaml").expect("valid");
    assert!(!system.to_yaml().contains("pool"), "{}", system.to_yaml());
}
