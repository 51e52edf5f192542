//! Solver and judge against each other on random systems of all features.
//!
//! A table may leave too little to SCHED_DEADLINE tasks or budgets, if the solver finds no better one. The judge then
//! refuses it. It must refuse none for another reason.

use std::time::Duration as WallTime;

use macrotick_analysis::assign;
use macrotick_analysis::servers::Refusal;
use macrotick_check::{against, check, Violation};
use macrotick_generate::anything;
use macrotick_model::{PartError, Plan};
use macrotick_plan::{plan_within, Answer, Options, Solver};

/// The number of each answer.
#[derive(Debug, Default)]
struct Answers {
    wrong: u64,
    planned: u64,
    impossible: u64,
    not_found: u64,
    /// Plans with too little time for SCHED_DEADLINE tasks or budgets.
    refused: u64,
}

fn leaves_too_little(violation: &Violation) -> bool {
    matches!(violation, Violation::Demand { .. } | Violation::Groups { refusal: Refusal::CpuFull { .. } })
}

/// Returns the reasons why the part of a host is no feasible plan. `plan` is one.
fn parts(plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut windows = 0;
    for host in &plan.system.hosts {
        let part = match plan.part(Some(&host.name)) {
            Ok(part) => part,
            Err(PartError::Empty(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        windows += part.tables.iter().map(|table| table.windows.len()).sum::<usize>();
        let problems = part.system.problems();
        let violations = check(&part).violations;
        let violations = violations.iter().filter(|violation| !leaves_too_little(violation)).map(ToString::to_string);
        wrong.extend(problems.into_iter().chain(violations).map(|why| format!("host {}: {why}", host.name)));
    }
    let all = plan.tables.iter().map(|table| table.windows.len()).sum::<usize>();
    if !plan.system.hosts.is_empty() && windows != all {
        wrong.push(format!("the parts have {windows} windows, the plan {all}"));
    }
    wrong
}

/// Plans the systems of these seeds. The judge must accept every plan, and the plan must be of its description.
fn answers(seeds: std::ops::Range<u64>) -> Answers {
    let mut answers = Answers::default();
    let mut wrong = Vec::new();
    for seed in seeds {
        let Some(system) = anything(seed) else {
            answers.wrong += 1;
            continue;
        };
        let options = Options { time_limit: WallTime::from_millis(200), ..Options::default() };
        let plan = match plan_within(&system, Solver::FoldedOccupancy, options) {
            Ok(plan) => plan,
            Err(error) if error.answer() == Answer::Impossible => {
                answers.impossible += 1;
                continue;
            }
            Err(_) => {
                answers.not_found += 1;
                continue;
            }
        };
        // No budget is enough for the tasks of a group: the analysis names the reason.
        let Ok(plan) = assign(plan) else {
            answers.not_found += 1;
            continue;
        };
        let mut verdict = check(&plan);
        verdict.violations.extend(against(&plan, &system));
        if verdict.violations.iter().any(leaves_too_little) {
            answers.refused += 1;
            verdict.violations.retain(|violation| !leaves_too_little(violation));
        } else {
            answers.planned += 1;
        }
        if verdict.is_feasible() {
            wrong.extend(parts(&plan).into_iter().map(|why| format!("seed {seed}: {why}\n{}", system.to_yaml())));
        } else {
            wrong.push(format!("seed {seed}: {}\n{}", verdict.violations[0], system.to_yaml()));
        }
    }
    println!("{answers:?}");
    assert!(wrong.is_empty(), "{} plans are refused:\n{}", wrong.len(), wrong.join("\n"));
    answers
}

#[test]
fn the_judge_accepts_every_plan() {
    let answers = answers(0..300);
    assert!(answers.wrong <= 30, "{answers:?}");
    assert!(answers.planned >= 100 && answers.impossible >= 20, "{answers:?}");
    assert!(answers.refused <= 15, "{answers:?}");
}

#[test]
#[ignore = "takes long"]
fn full_ten_thousand_systems() {
    answers(300..10_300);
}
