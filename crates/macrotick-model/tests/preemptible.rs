//! `preemptible` in a description and in a plan file.

use macrotick_fixtures::{by_hand, ms, table, window};
use macrotick_model::{Plan, System};

fn described(default: &str, keys: &str) -> System {
    let source = format!("system: s\n{default}tasks:\n  - {{name: a, period: 10ms, wcet: 1ms{keys}}}\n");
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn is_preemptible(default: &str, keys: &str) -> bool {
    let system = described(default, keys);
    system.is_preemptible(&system.tasks[0])
}

#[test]
fn the_key_of_a_task_comes_before_that_of_the_system() {
    for (default, keys, expected) in [
        ("", "", true),
        ("", ", preemptible: false", false),
        ("preemptible: true\n", "", true),
        ("preemptible: false\n", "", false),
        ("preemptible: false\n", ", preemptible: true", true),
        ("preemptible: false\n", ", preemptible: false", false),
    ] {
        assert_eq!(is_preemptible(default, keys), expected, "{default}{keys}");
    }
}

#[test]
fn without_a_word_nothing_mentions_it() {
    let system = described("", "");
    assert!(!system.to_yaml().contains("preemptible"), "{}", system.to_yaml());
}

#[test]
fn a_plan_file_keeps_it() {
    for (default, keys) in [("preemptible: false\n", ""), ("", ", preemptible: false")] {
        let system = described(default, keys);
        assert!(system.to_yaml().contains("preemptible: false"), "{}", system.to_yaml());
        let plan = by_hand(system.clone(), ms(10), vec![table(0, [window("a", ms(0), ms(1), "AD")])]);
        assert_eq!(Plan::from_json(&plan.to_json(), "plan.json").expect("a valid plan").system, system);
    }
}
