//! Groups in a description, judged beside the windows of its plan.

use macrotick_check::{check, Verdict};
use macrotick_model::System;
use macrotick_plan::Solver;

fn judged(groups: &str) -> Verdict {
    let source = format!(
        "system: s\ncpus: [0]\ntasks:\n  - {{name: a, period: 10ms, wcet: 2ms}}\nserver-period: 2ms\ngroups:\n{groups}"
    );
    let system = System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
    let solver = Solver::default_for(&system);
    check(&macrotick_plan::plan(&system, solver).expect("a plan"))
}

#[test]
fn tasks_of_groups_are_analysed_beside_windows() {
    let verdict = judged(
        "  - name: g\n    priority: 9\n    budget: 500us\n    tasks:\n      \
         - {name: t, period: 20ms, wcet: 400us, priority: 5}\n",
    );
    assert!(verdict.is_feasible(), "{verdict}");
    let text = verdict.to_string();
    // The window leaves 20 us of one server period in five.
    assert!(text.contains("group g: budget 500us on CPU 0, sure of 20us in each server period"), "{text}");
    assert!(text.contains("group g: task t: response ") && text.contains(", deadline 20ms"), "{text}");
    let none = judged("  - {name: g, priority: 9, budget: 500us}\n");
    assert!(none.groups.is_some_and(|analysis| analysis.groups[0].servers[0].tasks.is_empty()));
}

#[test]
fn a_task_that_would_miss_and_a_full_cpu_are_violations() {
    let late = judged(
        "  - name: g\n    priority: 9\n    budget: 100us\n    tasks:\n      \
         - {name: t, period: 20ms, wcet: 400us, deadline: 3ms, priority: 5}\n",
    );
    assert!(late.to_string().contains("CPU 0: task `t` of group `g` is late by"), "{late}");
    // Windows of 20 % and budgets of 80 %.
    let full = judged("  - {name: g, priority: 9, budget: 1600us}\n");
    assert!(!full.is_feasible() && full.to_string().contains("are too much: budgets must sum up to"), "{full}");
}
