//! Tasks that share no CPU.

use std::time::Duration as WallTime;

use macrotick_check::check;
use macrotick_fixtures::described;
use macrotick_model::{Plan, SplitMix64};
use macrotick_plan::{plan_changed, plan_within, Answer, Change, Moved, Options, PlanError, Solver, Unwatched};

fn planned(source: &str) -> Result<Plan, PlanError> {
    let options = Options { time_limit: WallTime::from_secs(2), ..Options::default() };
    plan_within(&described(source), Solver::FoldedOccupancy, options)
}

fn cpu_of(plan: &Plan, name: &str) -> u32 {
    let has = |table: &&macrotick_model::CpuTable| table.windows.iter().any(|window| window.task == name);
    plan.tables.iter().find(has).unwrap().cpu
}

#[test]
fn replicas_are_on_different_cpus() {
    let plan = planned(
        "system: s
cpus: [0, 1, 2]
tasks:
  - {name: a, period: 10ms, wcet: 1ms, apart: [b, c]}
  - {name: b, period: 10ms, wcet: 1ms, apart: [c]}
  - {name: c, period: 10ms, wcet: 1ms}
  - {name: d, period: 10ms, wcet: 5ms, cpu: 1}
",
    )
    .unwrap();
    assert!(check(&plan).is_feasible(), "{:?}", check(&plan).violations);
    let mut cpus = ["a", "b", "c"].map(|name| cpu_of(&plan, name));
    cpus.sort_unstable();
    assert_eq!(cpus, [0, 1, 2]);
    assert_eq!(plan.system.task("a").unwrap().apart, ["b", "c"], "the plan has the description as it was");
    assert_eq!(plan.system.task("a").unwrap().cpu, None);
}

#[test]
fn three_replicas_on_two_cpus_are_proved_impossible() {
    let refused = planned(
        "system: s
cpus: [0, 1]
tasks:
  - {name: a, period: 10ms, wcet: 1ms, apart: [b, c]}
  - {name: b, period: 10ms, wcet: 1ms, apart: [c]}
  - {name: c, period: 10ms, wcet: 1ms}
",
    )
    .unwrap_err();
    assert_eq!(refused.answer(), Answer::Impossible);
    let told =
        "`a`, `b`, `c` are apart, and have only the CPUs 0, 1 together: no choice keeps each pair on different ones";
    assert_eq!(refused.to_string(), told);
}

/// With one CPU for each task, the answer is that of the system without `apart`.
#[test]
fn a_proof_for_the_only_coloring_is_a_proof() {
    let of = |other: &str| {
        planned(&format!(
            "system: s\ncpus: [0, 1]\ntasks:\n  - {{name: a, period: 10ms, wcet: 6ms, cpu: 0, apart: [b]}}\n  \
             - {{name: b, period: 10ms, wcet: 1ms, cpu: 1}}\n  - {{name: c, period: 10ms, wcet: {other}, cpu: 0}}\n"
        ))
    };
    assert_eq!(of("4ms").unwrap_err().answer(), Answer::Impossible);
    assert!(check(&of("3ms").unwrap()).is_feasible());
}

/// A system that is full with the first coloring alone is no proof.
#[test]
fn what_pins_make_impossible_is_not_called_impossible() {
    let refused = planned(
        "system: s
cpus: [0, 1]
tasks:
  - {name: a, period: 10ms, wcet: 6ms, apart: [b]}
  - {name: b, period: 10ms, wcet: 6ms}
  - {name: c, period: 10ms, wcet: 4ms}
",
    )
    .unwrap_err();
    assert_ne!(refused.answer(), Answer::Unanswered);
    let fits = planned(
        "system: s
cpus: [0, 1]
tasks:
  - {name: a, period: 10ms, wcet: 3ms, apart: [b]}
  - {name: b, period: 10ms, wcet: 3ms}
  - {name: c, period: 10ms, wcet: 6ms}
",
    );
    assert!(check(&fits.unwrap()).is_feasible());
}

#[test]
fn a_change_keeps_the_cpus_of_tasks_apart() {
    let with = |tasks: &str| {
        described(&format!(
            "system: s\ncpus: [0, 1]\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms, apart: [b], cpu: 1}}\n  \
             - {{name: b, period: 10ms, wcet: 2ms}}\n{tasks}"
        ))
    };
    let before = plan_within(&with(""), Solver::FoldedOccupancy, Options::default()).unwrap();
    let mut after = with("  - {name: c, period: 10ms, wcet: 3ms, apart: [b]}\n");
    after.tasks[0].cpu = None;
    let change = Change::new(&before, &after, [], []).unwrap();
    let plan = plan_changed(&after, &change, Options::default(), &Unwatched).unwrap();
    assert!(check(&plan).is_feasible(), "{:?}", check(&plan).violations);
    assert!(Moved::between(&before, &plan).moved.is_empty());
    assert_eq!([cpu_of(&plan, "a"), cpu_of(&plan, "b"), cpu_of(&plan, "c")], [1, 0, 1]);
}

#[test]
fn the_judge_accepts_all_plans_of_random_systems() {
    let mut random = SplitMix64::new(11);
    let mut draw = |limit: u64| random.bits() % limit;
    let mut solved = 0;
    for number in 0..80 {
        let cpus = 2 + draw(3);
        let count = 4 + draw(8);
        let load = 20 + draw(50);
        let list = (0..cpus).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(", ");
        let mut source = format!("system: s\ncpus: [{list}]\ntasks:\n");
        for task in 0..count {
            let period = [5_000, 10_000, 20_000][draw(3) as usize];
            let wcet = (period * load * cpus / count / 100).clamp(20, period * 8 / 10);
            let others: Vec<String> = (0..task).filter(|_| draw(4) == 0).map(|other| format!("t{other}")).collect();
            let keys = ["", ", jitter: 0us", ", preemptible: false"][draw(3) as usize];
            let apart = if others.is_empty() { String::new() } else { format!(", apart: [{}]", others.join(", ")) };
            source += &format!("  - {{name: t{task}, period: {period}us, wcet: {wcet}us{keys}{apart}}}\n");
        }
        match planned(&source) {
            Ok(plan) => {
                solved += 1;
                assert!(check(&plan).is_feasible(), "{number}: {:?}\n{source}", check(&plan).violations);
            }
            Err(error) => assert_ne!(error.answer(), Answer::Unanswered, "{source}"),
        }
    }
    assert!(solved >= 40, "only {solved} of 80 have a plan");
}
