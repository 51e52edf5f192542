//! `migrate` in a description and in a plan file.

use macrotick_fixtures::{by_hand, ms, table, window};
use macrotick_model::{Plan, System};

fn described(keys: &str) -> System {
    let source = format!("system: s\ncpus: [0, 1]\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms{keys}}}\n");
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn plan(system: System, cpus: &[u32]) -> Plan {
    let tables = cpus.iter().map(|&cpu| table(cpu, [window("a", ms(0), ms(1), "AD")])).collect();
    by_hand(system, ms(10), tables)
}

#[test]
fn without_a_word_a_task_stays_and_nothing_mentions_it() {
    let system = described("");
    assert_eq!(described(", migrate: false"), system);
    assert!(!system.tasks[0].migrate && !system.to_yaml().contains("migrate"));
    assert!(!plan(system, &[0]).to_json().contains("migrate"));
}

#[test]
fn a_plan_file_keeps_it_and_its_rule() {
    let system = described(", migrate: true");
    assert!(system.tasks[0].migrate && system.to_yaml().contains("migrate: true"));
    let text = plan(system.clone(), &[0]).to_json();
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan").system, system);
    let pinned = text.replace("\"migrate\": true", "\"cpu\": 1, \"migrate\": true");
    assert_ne!(pinned, text);
    let error = Plan::from_json(&pinned, "plan.json").expect_err("pinned").to_string();
    assert_eq!(error, "plan.json: system.tasks[0].migrate: task `a` may migrate, but is pinned to CPU 1");
}

#[test]
fn a_plan_tells_the_cpus_of_a_task() {
    let plan = plan(described(", migrate: true"), &[0, 1]);
    assert_eq!(plan.cpus("a").as_slice(), [0, 1]);
    assert!(plan.cpus("b").is_empty());
}
