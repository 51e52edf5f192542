//! Groups with windows in a description and in a plan file.

use macrotick_fixtures::{by_hand, described as system, ms};
use macrotick_model::{Duration, Plan, PoolOrder, System};

fn text(windows: &str, group: &str) -> String {
    format!(
        "system: s\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms}}\ngroups:\n  - name: p\n    windows: {{period: 20ms, \
         length: 3ms{windows}}}\n    run: [{{name: load, hog: {{}}}}]\n{group}"
    )
}

fn described(windows: &str) -> System {
    system(&text(windows, ""))
}

#[test]
fn what_is_left_out_has_its_default() {
    let system = described("");
    let expected =
        "groups:\n  - name: p\n    windows: {period: 20ms, length: 3ms, order: {round-robin: 1ms}}\n    run:\n      \
                    - {name: load, hog: {}, nice: 0, count: 1}\n";
    assert!(system.to_yaml().contains(expected), "{}", system.to_yaml());
    let placed: Vec<_> = system.processes().collect();
    assert_eq!((placed[0].pool().map(String::as_str), placed[0].server()), (Some("p"), None));
    assert_eq!(system.hyperperiod(), Some(Duration::from_millis(20)));
    assert_eq!((system.servers().count(), system.left_open()), (0, vec![]));
    assert_eq!(system.pool("p").map(|pool| pool.cpu), Some(None));
}

#[test]
fn every_order_is_read_with_its_slice() {
    let order = |keys: &str| described(keys).pool("p").unwrap().order;
    assert_eq!(order(", order: fifo"), PoolOrder::Fifo);
    assert_eq!(order(", order: priority"), PoolOrder::Priority(PoolOrder::DEFAULT_SLICE));
    let slice = Duration::from_micros(10);
    assert_eq!(order(", order: {round-robin: 10us}"), PoolOrder::RoundRobin(slice));
    assert_eq!(order(", order: {round-robin: 1s}"), PoolOrder::RoundRobin(Duration::from_secs(1)));
}

#[test]
fn windows_beside_a_budget_are_an_entity_of_their_own() {
    let both =
        "    priority: 7\n    budget: 500us\n    cpus: [0]\n    serve-fifo: true\n    cgroup: /sys/fs/cgroup/web\n";
    let system = system(&text(", order: priority", both));
    let pool = system.pool("p.windows").unwrap();
    assert_eq!((pool.cpu, pool.cgroup, pool.slack), (Some(0), None, false));
    assert_eq!(system.servers().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["p"]);
    let placed: Vec<_> = system.processes().collect();
    assert_eq!((placed[0].pool(), placed[0].server().map(String::as_str)), (None, Some("p")));
}

#[test]
fn a_plan_file_keeps_windows_within_their_bounds() {
    let system = described(", slack: true, order: {round-robin: 2ms}");
    let plan = by_hand(system, ms(20), Vec::new());
    let text = plan.to_json();
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan"), plan);
    let short = text.replace("\"round-robin\": \"2ms\"", "\"round-robin\": \"2us\"");
    assert_ne!(short, text);
    let error = Plan::from_json(&short, "plan.json").expect_err("out of range").to_string();
    assert_eq!(
        error,
        "plan.json: system.groups[0].windows.order.round-robin: round-robin 2us is out of range: 10us to 1s"
    );
    let pinned = text.replace("\"count\": 1", "\"count\": 1, \"cpu\": 0");
    assert_ne!(pinned, text);
    let error = Plan::from_json(&pinned, "plan.json").expect_err("a CPU of its own").to_string();
    assert!(error.ends_with("it cannot have its own cpu"), "{error}");
}

#[test]
fn a_system_without_groups_does_not_mention_them() {
    let source = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n";
    let system = System::parse(source, "s.yaml").expect("valid");
    assert!(!system.to_yaml().contains("group"), "{}", system.to_yaml());
}
