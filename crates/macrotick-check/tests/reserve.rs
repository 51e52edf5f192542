//! Plans with a reserve: the judge accepts each, and a reserve that leaves too little is refused with its reason.

use macrotick_check::check;
use macrotick_fixtures::described;
use macrotick_model::SplitMix64;
use macrotick_plan::{plan_changed, plan_within, Change, Moved, Options, PlanError, Solver, Unwatched};

fn planned(source: &str) -> Result<macrotick_model::Plan, PlanError> {
    let options = Options { time_limit: std::time::Duration::from_secs(1), ..Options::default() };
    plan_within(&described(source), Solver::FoldedOccupancy, options)
}

#[test]
fn the_reserve_counts_beside_the_share_of_the_kernel() {
    // 92 % of windows and a reserve of 8 % fill the CPU. A plan can have 95 % of windows.
    let of = |wcet: u32, length: u32| {
        let tasks = format!("tasks:\n  - {{name: a, period: 10ms, wcet: {wcet}us}}\n");
        planned(&format!("system: s\nreserve: {{period: 10ms, length: {length}us}}\n{tasks}"))
    };
    for (wcet, length) in [(9200, 800), (9500, 500), (100, 9900)] {
        let plan = of(wcet, length).unwrap();
        assert!(check(&plan).is_feasible(), "{wcet} {length}: {:?}", check(&plan).violations);
        assert!(plan.tables[0].windows.iter().all(|window| window.task == "a"), "a reserve has no windows");
    }
    for (wcet, length) in [(9200, 801), (9600, 100)] {
        let refused = of(wcet, length).unwrap_err().to_string();
        assert!(refused.contains("task") && refused.contains("10ms"), "{wcet} {length}: {refused}");
    }
}

#[test]
fn a_job_is_interrupted_for_the_reserve() {
    // A job of 6 ms beside 4 ms of every 5 ms that are taken or free.
    let plan = planned(
        "system: s
reserve: {period: 5ms, length: 1ms}
tasks:
  - {name: long, period: 20ms, wcet: 15ms}
",
    )
    .unwrap();
    assert!(check(&plan).is_feasible(), "{:?}", check(&plan).violations);
    assert!(plan.tables[0].windows.len() >= 3, "{:?}", plan.tables);
}

#[test]
fn a_reserve_that_no_job_can_spare_is_proved() {
    let refused = planned(
        "system: s
reserve: {period: 5ms, length: 1ms}
tasks:
  - {name: whole, period: 20ms, wcet: 9ms, preemptible: false}
",
    )
    .unwrap_err();
    let words = refused.to_string();
    assert!(words.contains("whole"), "{words}");
}

/// A plan that changes keeps its reserve.
#[test]
fn a_changed_plan_has_the_reserve() {
    let with = |tasks: &str| {
        described(&format!(
            "system: s\nreserve: {{period: 5ms, length: 1ms}}\ntasks:\n  - {{name: a, period: 5ms, wcet: 2ms}}\n{tasks}"
        ))
    };
    let before = plan_within(&with(""), Solver::FoldedOccupancy, Options::default()).unwrap();
    let after = with("  - {name: b, period: 10ms, wcet: 3ms}\n");
    let change = Change::new(&before, &after, [], []).unwrap();
    let plan = plan_changed(&after, &change, Options::default(), &Unwatched).unwrap();
    assert!(check(&plan).is_feasible(), "{:?}", check(&plan).violations);
    assert!(Moved::between(&before, &plan).moved.is_empty());
}

/// Random systems on one or two CPUs, with leads, groups with windows and reserves: what is planned is accepted.
#[test]
fn the_judge_accepts_all_plans_of_random_systems() {
    let mut random = SplitMix64::new(7);
    let mut draw = |limit: u64| random.bits() % limit;
    let mut solved = 0;
    for number in 0..100 {
        let cpus = 1 + draw(2);
        let load = 30 + draw(50);
        let count = 3 + draw(6);
        let reserve = [(1_000, 20 + draw(80)), (5_000, 100 + draw(600)), (10_000, 200 + draw(1_500))][draw(3) as usize];
        let mut source = format!(
            "system: s\ncpus: {}\nreserve: {{period: {}us, length: {}us}}\n",
            if cpus == 1 { "[0]" } else { "[0, 1]" },
            reserve.0,
            reserve.1
        );
        if draw(3) == 0 {
            source += "lead: 10us\n";
        }
        source += "tasks:\n";
        for task in 0..count {
            let period = [5_000, 10_000, 20_000, 40_000][draw(4) as usize];
            let wcet = (period * load * cpus / count / 100).max(20);
            let keys = ["", ", jitter: 0us", ", jitter: 500us", ", preemptible: false"][draw(4) as usize];
            source += &format!("  - {{name: t{task}, period: {period}us, wcet: {wcet}us{keys}}}\n");
        }
        if draw(3) == 0 {
            source += "groups:\n  - {name: g, windows: {period: 10ms, length: 300us}}\n";
        }
        if let Ok(plan) = planned(&source) {
            solved += 1;
            let verdict = check(&plan);
            assert!(verdict.is_feasible(), "{number}: {:?}\n{source}", verdict.violations);
        }
    }
    assert!(solved >= 50, "only {solved} of 100 have a plan");
}
