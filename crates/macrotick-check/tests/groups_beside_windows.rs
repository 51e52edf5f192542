//! Groups of a description, judged beside the windows of its plan.

use macrotick_analysis::servers::{self, Container, Host};
use macrotick_analysis::{assign, AssignError};
use macrotick_check::{check, Verdict};
use macrotick_fixtures::described;
use macrotick_model::Plan;
use macrotick_plan::Solver;

fn planned(groups: &str) -> Plan {
    let source = format!(
        "system: s\ncpus: [0]\ntasks:\n  - {{name: a, period: 10ms, wcet: 2ms}}\nserver-period: 2ms\ngroups:\n{groups}"
    );
    let system = described(&source);
    let solver = Solver::default_for(&system);
    macrotick_plan::plan(&system, solver).expect("a plan")
}

fn judged(groups: &str) -> Verdict {
    check(&planned(groups))
}

fn assigned(groups: &str) -> Result<Plan, AssignError> {
    assign(planned(groups))
}

#[test]
fn tasks_of_groups_are_analysed_beside_windows() {
    let verdict = judged(
        "  - name: g\n    priority: 9\n    budget: 500us\n    tasks:\n      \
         - {name: t, period: 20ms, wcet: 400us, priority: 5}\n",
    );
    assert!(verdict.is_feasible(), "{verdict}");
    let text = verdict.to_string();
    // In one of five server periods, the window leaves 20 us.
    assert!(
        text.contains("group g: priority 9, budget 500us on CPU 0, guaranteed 20us in each server period"),
        "{text}"
    );
    assert!(text.contains("group g: task t: priority 5, response ") && text.contains(", deadline 20ms"), "{text}");
    let none = judged("  - {name: g, priority: 9, budget: 500us}\n");
    assert!(none.to_string().contains("each server period, without a task that has a deadline\n"), "{none}");
    assert!(none.groups.is_some_and(|analysis| analysis.groups[0].servers[0].tasks.is_empty()));
}

#[test]
fn a_task_that_would_miss_and_a_cpu_that_is_full_are_violations() {
    let late = judged(
        "  - name: g\n    priority: 9\n    budget: 100us\n    tasks:\n      \
         - {name: t, period: 20ms, wcet: 400us, deadline: 3ms, priority: 5}\n",
    );
    assert!(late.to_string().contains("CPU 0: task `t` of group `g` is late by"), "{late}");
    // Windows take 20 %, budgets 80 %. The solver refuses them, so the budget grows in the plan.
    let mut full = planned("  - {name: g, priority: 9, budget: 1400us}\n");
    full.system.groups[0].budget = Some(macrotick_model::Duration::from_micros(1600));
    let full = check(&full);
    assert!(!full.is_feasible() && full.to_string().contains("are too much: budgets must sum up to"), "{full}");
}

/// Each job takes longer by the lead, and tasks below wait for it.
#[test]
fn a_lead_counts_to_what_tasks_need() {
    let group = |lead: &str, tasks: &str| {
        judged(&format!("  - name: g\n    priority: 9\n    budget: 500us\n{lead}    tasks:\n{tasks}"))
    };
    let response = |verdict: &Verdict, task: &str| {
        let analysis = verdict.groups.as_ref().unwrap().task("g", task).unwrap();
        analysis.response.unwrap()
    };
    let us = macrotick_model::Duration::from_micros;
    let alone = "      - {name: t, period: 20ms, wcet: 100us, deadline: 9ms, priority: 5}\n";
    let (without, with) = (group("", alone), group("    lead: 50us\n", alone));
    assert!(without.is_feasible() && with.is_feasible(), "{without}{with}");
    assert_eq!(response(&with, "t"), response(&without, "t") + us(50));
    let both = format!("{alone}      - {{name: u, period: 20ms, wcet: 100us, deadline: 9ms, priority: 4}}\n");
    let (without, with) = (group("", &both), group("    lead: 50us\n", &both));
    assert_eq!(response(&with, "u"), response(&without, "u") + us(100));
    // A job that is longer than a budget waits for the next refills.
    let long = group("    lead: 1ms\n", &both);
    assert!(without.is_feasible() && !long.is_feasible(), "{long}");
    assert!(long.to_string().contains("CPU 0: task `u` of group `g` is late by"), "{long}");
}

/// The least budget includes the lead.
#[test]
fn a_budget_that_is_found_has_room_for_the_lead() {
    let budget = |lead: &str| {
        let open = OPEN.replace("criticality: 1\n", &format!("criticality: 1\n{lead}"));
        assigned(&open).unwrap().system.groups[0].budget.unwrap()
    };
    assert!(budget("    lead: 50us\n") > budget(""));
    let container = |lead: &str| {
        let tasks = "tasks: [{name: t, period: 10ms, wcet: 100us}]\n";
        let text = format!("container: c\ncriticality: 1\n{lead}{tasks}");
        let container = macrotick_model::Container::parse(&text, "c.yaml").unwrap();
        let host = Host::of(&planned("  - {name: g, priority: 9, budget: 20us}\n")).unwrap();
        let admission = servers::admit(&host, &Container::of(&container)).unwrap();
        (admission.budget, admission.group_of(&container, true).lead)
    };
    let ((less, none), (more, lead)) = (container(""), container("lead: 50us\n"));
    assert!(more > less, "{more} {less}");
    assert_eq!((none, lead), (None, Some(macrotick_model::Duration::from_micros(50))));
}

const OPEN: &str =
    "  - name: low\n    criticality: 1\n    tasks:\n      - {name: slow, period: 40ms, wcet: 400us}\n      \
                    - {name: fast, period: 20ms, wcet: 200us}\n  - {name: high, criticality: 2, budget: 300us}\n";

#[test]
fn what_is_left_open_is_found_and_judged() {
    let plan = assigned(OPEN).unwrap();
    let (low, high) = (&plan.system.groups[0], &plan.system.groups[1]);
    assert!(high.priority > low.priority && low.priority.is_some());
    assert_eq!(low.tasks.iter().map(|task| task.priority).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!(high.budget, planned(OPEN).system.groups[1].budget, "what is given stays");
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}");
    // With one microsecond less, the judge finds a miss.
    let mut less = plan.clone();
    let budget = less.system.groups[0].budget.as_mut().unwrap();
    *budget -= macrotick_model::Duration::from_micros(1);
    assert!(check(&less).to_string().contains("of group `low` is late by"), "{}", check(&less));
    // The plan has no open values, so nothing changes.
    assert_eq!(assign(less.clone()).unwrap(), less);
}

/// A group has one budget for both CPUs: the larger need decides.
#[test]
fn a_group_has_the_same_budget_on_all_its_cpus() {
    let source = |tasks: &str| {
        let source = format!(
            "system: s\ncpus: [0, 1]\ntasks:\n  - {{name: a, period: 10ms, wcet: 10us}}\ngroups:\n  \
             - name: g\n    priority: 9\n    cpus: [0, 1]\n    tasks:\n{tasks}"
        );
        let system = described(&source);
        let plan = macrotick_plan::plan(&system, Solver::default_for(&system)).unwrap();
        assign(plan).unwrap().system.groups.remove(0).budget.unwrap()
    };
    let task = |cpu: u32, wcet: &str| format!("      - {{name: t{cpu}, period: 10ms, wcet: {wcet}, cpu: {cpu}}}\n");
    let (small, large) = (task(0, "100us"), task(1, "900us"));
    let both = source(&format!("{small}{large}"));
    assert_eq!(both, source(&format!("{}{large}", task(0, "10us"))));
    assert!(both > source(&format!("{small}{}", task(1, "100us"))));
}

#[test]
fn what_cannot_be_found_is_told_at_its_place() {
    let told = |groups: &str| {
        let plan = planned(groups);
        let error = assign(plan.clone()).unwrap_err();
        let findings = error.findings(&plan.system);
        (findings[0].at.clone(), findings[0].message.clone())
    };
    let late = OPEN.replace("period: 20ms", "deadline: 2ms, period: 20ms");
    let (at, message) = told(&late);
    assert_eq!(at, "groups[0].tasks[1].name");
    assert!(
        message.starts_with("no budget is enough for group `low`: CPU 0: task `fast` of group `low` is late by"),
        "{message}"
    );
    // Each of the two tasks is late below the other.
    let both = late.replace("period: 40ms", "deadline: 2ms, period: 40ms");
    let (at, message) = told(&both);
    assert_eq!(at, "groups[0].name");
    assert!(message.contains("has no order of tasks: none of `slow` (which is late by "), "{message}");
    let given = late.replace("criticality: 1\n", "criticality: 1\n    budget: 400us\n");
    let (_, message) = told(&given);
    assert!(message.starts_with("the tasks of group `low` cannot be ordered: CPU 0: task `fast`"), "{message}");
}

#[test]
fn what_is_still_open_is_not_judged() {
    let verdict = judged(OPEN);
    let expected = "groups: `groups[0].priority` is left open: it needs a value";
    assert!(!verdict.is_feasible() && verdict.to_string().contains(expected), "{verdict}");
}
