//! Reactions to misses in a description and in a plan file.

use macrotick_fixtures::{by_hand, ms};
use macrotick_model::{OnMiss, Plan, System};

fn described(keys: &str) -> System {
    let source = format!("system: s\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms{keys}}}\n");
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn plan_file(system: System) -> String {
    by_hand(system, ms(10), Vec::new()).to_json()
}

#[test]
fn every_word_is_read() {
    for &on_miss in OnMiss::ALL {
        let task = &described(&format!(", on-miss: {}, max-misses: 3", on_miss.name())).tasks[0];
        assert_eq!((task.on_miss, task.max_misses), (on_miss, Some(3)));
        assert!(task.acts_on_misses());
    }
    let task = &described("").tasks[0];
    assert_eq!((task.on_miss, task.max_misses, task.acts_on_misses()), (OnMiss::Resume, None, false));
}

#[test]
fn a_plan_tells_that_tasks_resume() {
    let text = plan_file(described(", on-miss: resume"));
    assert!(!text.contains("max-misses") && text.contains("\"on-miss\": \"resume\""), "{text}");
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan").system, described(""));
}

#[test]
fn a_plan_file_keeps_it_within_its_bounds() {
    let text = plan_file(described(", on-miss: restart, max-misses: 3"));
    assert!(text.contains("\"on-miss\": \"restart\"") && text.contains("\"max-misses\": 3"), "{text}");
    assert_eq!(
        Plan::from_json(&text, "plan.json").expect("a valid plan").system,
        described(", on-miss: restart, max-misses: 3")
    );
    let none = text.replace("\"max-misses\": 3", "\"max-misses\": 0");
    let error = Plan::from_json(&none, "plan.json").expect_err("out of range").to_string();
    assert_eq!(error, "plan.json: system.tasks[0].max-misses: max-misses 0 is out of range: 1 to 4294967295");
}
