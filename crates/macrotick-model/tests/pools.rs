//! Pools, in a description and in a plan file.

use macrotick_fixtures::{by_hand, ms};
use macrotick_model::{Duration, Plan, PoolOrder, System};

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
    let expected = "pools:\n  - {name: p, period: 20ms, budget: 3ms, order: {round-robin: 1ms}}\n";
    assert!(system.to_yaml().contains(expected), "{}", system.to_yaml());
    assert_eq!(system.background[0].pool.as_deref(), Some("p"));
    assert_eq!(system.hyperperiod(), Some(Duration::from_millis(20)));
}

#[test]
fn every_order_is_read_with_its_slice() {
    let order = |keys: &str| described(keys).pools[0].order;
    assert_eq!(order(", order: fifo"), PoolOrder::Fifo);
    assert_eq!(order(", order: priority"), PoolOrder::Priority(PoolOrder::DEFAULT_SLICE));
    let slice = Duration::from_micros(10);
    assert_eq!(order(", order: {round-robin: 10us}"), PoolOrder::RoundRobin(slice));
    assert_eq!(order(", order: {round-robin: 1s}"), PoolOrder::RoundRobin(Duration::from_secs(1)));
}

#[test]
fn a_plan_file_keeps_pools_within_their_bounds() {
    let system = described(", slack: true, cgroup: /sys/fs/cgroup/web, order: {round-robin: 2ms}");
    let plan = by_hand(system, ms(20), Vec::new());
    let text = plan.to_json();
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan"), plan);
    let short = text.replace("\"round-robin\": \"2ms\"", "\"round-robin\": \"2us\"");
    assert_ne!(short, text);
    let error = Plan::from_json(&short, "plan.json").expect_err("out of range").to_string();
    assert_eq!(error, "plan.json: system.pools[0].order.round-robin: round-robin 2us is out of range: 10us to 1s");
    let pinned = text.replace("\"pool\": \"p\"", "\"cpu\": 0, \"pool\": \"p\"");
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
