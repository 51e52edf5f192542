//! Changes of plans: only what must move does, and the judge accepts the result.

use std::time::Duration as WallTime;

use macrotick_analysis::assign;
use macrotick_check::check;
use macrotick_fixtures::described;
use macrotick_generate::{anything, with_jitter, zero_jitter, Jitter, Size};
use macrotick_model::{Duration, Plan, System, Task};
use macrotick_plan::{plan_changed, plan_within, Change, ChangeError, Moved, Options, Solver, Unwatched};

const OPTIONS: Options = Options { time_limit: WallTime::from_secs(20), seed: 1, jobs: 1 };

fn planned(system: &System) -> Plan {
    plan_within(system, Solver::FoldedOccupancy, OPTIONS).expect("a plan")
}

/// Plans a system from a plan, and returns what moved. The judge accepts the plan.
#[track_caller]
fn changed(from: &Plan, system: &System) -> Moved {
    let change = Change::new(from, system, [], []).unwrap();
    let plan = plan_changed(system, &change, OPTIONS, &Unwatched).expect("a plan");
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}\n{}", system.to_yaml());
    Moved::between(from, &plan)
}

fn named(name: &str, period_us: i64, wcet_us: i64) -> Task {
    Task::named(name, Duration::from_micros(period_us), Duration::from_micros(wcet_us))
}

#[test]
fn one_new_task_moves_no_other() {
    for seed in 0..4 {
        let size = Size { tasks: 100, cpus: 2, load: 60 };
        let systems =
            [zero_jitter(seed, size), with_jitter(seed, size, Jitter::Free), with_jitter(seed, size, Jitter::Part(5))];
        for mut system in systems {
            let from = planned(&system);
            let period = system.tasks[0].period;
            let wcet = Duration::from_micros(60);
            system.tasks.push(Task { jitter: system.tasks[0].jitter, ..Task::named("new", period, wcet) });
            let moved = changed(&from, &system);
            assert_eq!((moved.added, moved.removed), (vec!["new".into()], vec![]), "{}", system.name);
            assert!(moved.moved.len() <= 8, "{}: {:?}", system.name, moved.moved);
            if !moved.moved.is_empty() {
                let all = from.system.tasks.iter().map(|task| task.name.clone());
                let change = Change::new(&from, &system, all, []).unwrap();
                plan_changed(&system, &change, OPTIONS, &Unwatched).expect_err("something must move");
            }
        }
    }
}

#[test]
fn another_wcet_or_cycle_moves_no_other() {
    let size = Size { tasks: 30, cpus: 2, load: 50 };
    for seed in 0..4 {
        let system = with_jitter(seed, size, Jitter::Part(5));
        let from = planned(&system);
        let mut other = system.clone();
        other.tasks[3].wcet += other.macrotick * 4;
        let name = other.tasks[3].name.clone();
        let moved = changed(&from, &other);
        assert!(moved.moved.len() <= 2 && moved.moved.iter().any(|(moved, _)| *moved == name), "{moved:?}");

        let mut fewer = system.clone();
        let removed = fewer.tasks.remove(5).name;
        let moved = changed(&from, &fewer);
        assert_eq!((moved.moved, moved.removed), (vec![], vec![removed]));
    }
    // A longer cycle repeats the windows.
    let system = described("system: s\ncpus: [0]\ntasks:\n  - {name: a, period: 4ms, wcet: 1ms}\n  - {name: b, period: 6ms, wcet: 1ms, jitter: 0ns}\n");
    let from = planned(&system);
    let mut longer = system.clone();
    longer.tasks.push(named("c", 10_000, 500));
    let moved = changed(&from, &longer);
    assert_eq!((moved.kept.len(), moved.moved.len()), (2, 0));
    let moved = changed(&planned(&longer), &system);
    assert_eq!(moved.removed, ["c"]);
}

#[test]
fn only_what_is_in_the_way_moves() {
    // Alone, `a` and `b` leave no 3 ms in a row in every 5 ms.
    let text = "system: s\ncpus: [0]\npreemptible: false\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms, offset: 2ms, jitter: 6ms}\n";
    let system = described(text);
    let from = planned(&system);
    assert_eq!(from.tables[0].windows[0].offset, Duration::from_micros(2020));
    let mut other = system.clone();
    other.tasks.push(Task { offset: Some(Duration::ZERO), jitter: Some(Duration::ZERO), ..named("new", 10_000, 3000) });
    other.tasks.push(named("late", 10_000, 1000));
    let moved = changed(&from, &other);
    assert_eq!(moved.moved, [("a".to_owned(), 1)]);

    // A frozen task stays, and then there is no plan.
    let change = Change::new(&from, &other, ["a".to_owned()], []).unwrap();
    plan_changed(&other, &change, OPTIONS, &Unwatched).expect_err("`a` is in the way");
    let free = Change::new(&from, &system, [], ["a".to_owned()]).unwrap();
    assert!(check(&plan_changed(&system, &free, OPTIONS, &Unwatched).unwrap()).is_feasible());
}

#[test]
fn what_cannot_stay_is_refused_by_name() {
    let system = described(
        "system: s\ncpus: [0]\ntasks:\n  - {name: a, period: 4ms, wcet: 1ms}\n  - {name: b, period: 8ms, wcet: 1ms}\n",
    );
    let from = planned(&system);
    let mut other = system.clone();
    other.tasks[0].wcet = Duration::from_millis(2);
    other.tasks.remove(1);
    let of = |frozen: &str, free: &str| {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        Change::new(&from, &other, names(frozen), names(free)).map(|_| ()).unwrap_err()
    };
    assert_eq!(of("x", ""), ChangeError::Unknown("x".into()));
    assert_eq!(of("a", "a"), ChangeError::Both("a".into()));
    assert_eq!(of("b", ""), ChangeError::Gone("b".into()));
    assert_eq!(of("a", "").to_string(), "`a` cannot be frozen: its wcet is another one");
}

/// Random systems of all features gain a task, or lose one. The judge accepts what it accepts without a former plan.
#[test]
fn every_change_is_accepted() {
    let options = Options { time_limit: WallTime::from_millis(500), ..OPTIONS };
    let (mut tried, mut kept, mut moved_all) = (0, 0, 0);
    let mut wrong = Vec::new();
    for seed in 0..200 {
        let Some(system) = anything(seed) else { continue };
        let mut fewer = system.clone();
        if fewer.tasks.is_empty() {
            continue;
        }
        fewer.tasks.remove(seed as usize % system.tasks.len());
        if !fewer.problems().is_empty() {
            continue;
        }
        let plan = |system: &System| {
            plan_within(system, Solver::FoldedOccupancy, options)
                .ok()
                .and_then(|plan| assign(plan).ok())
                .filter(|plan| check(plan).is_feasible())
        };
        let (Some(less), Some(more)) = (plan(&fewer), plan(&system)) else { continue };
        for (from, to) in [(&less, &system), (&more, &fewer)] {
            tried += 1;
            let change = Change::new(from, to, [], []).unwrap();
            let plan = plan_changed(to, &change, options, &Unwatched).ok().and_then(|plan| assign(plan).ok());
            let Some(plan) = plan else {
                wrong.push(format!("seed {seed}: no plan"));
                continue;
            };
            let verdict = check(&plan);
            if !verdict.is_feasible() {
                wrong.push(format!("seed {seed}: {}\n{}", verdict.violations[0], to.to_yaml()));
            }
            let moved = Moved::between(from, &plan);
            kept += usize::from(moved.moved.is_empty());
            moved_all += usize::from(moved.kept.is_empty() && !moved.moved.is_empty());
        }
    }
    println!("{tried} changes: in {kept} nothing moved, in {moved_all} everything");
    assert!(tried >= 60, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(kept * 10 >= tried * 7, "nothing moved in {kept} of {tried}");
}

#[test]
fn windows_that_break_a_new_order_move() {
    let text = "system: s\ncpus: [0]\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n  \
                - {name: b, period: 10ms, wcet: 2ms}\n";
    let from = planned(&described(text));
    let ordered = described(&text.replace("wcet: 1ms", "wcet: 1ms, after: [b]"));
    let moved = changed(&from, &ordered);
    assert!(!moved.moved.is_empty(), "{moved:?}");
    let change = Change::new(&from, &ordered, ["a".to_owned(), "b".to_owned()], []).unwrap();
    let error = plan_changed(&ordered, &change, OPTIONS, &Unwatched).expect_err("both stay in the wrong order");
    assert!(error.to_string().contains("the windows of `a` cannot stay"), "{error}");

    // The task between two others cannot be late because the first of them moves.
    let text = "system: s\ncpus: [0, 1]\nmacrotick: 10us\n\
                clock: {tai: {period: 3000us, length: 50us, bound: 10us, offset: 20us}}\ntasks:\n  \
                - {name: t1, period: 3000us, wcet: 260us, offset: 2280us, cpu: 1}\n  \
                - {name: t2, period: 3000us, wcet: 90us, jitter: 360us, cpu: 1, after: [t1]}\n  \
                - {name: t7, period: 3000us, wcet: 290us, deadline: 2030us, jitter: 780us, preemptible: false, \
                after: [t1, t2], cpu: 0}\n";
    let from = planned(&described(text));
    changed(&from, &described(&text.replace("offset: 20us", "offset: 2500us")));
}

#[test]
fn a_new_job_without_preemption_is_not_cut_at_the_end_of_the_cycle() {
    let text = "system: s\ncpus: [0]\nmacrotick: 10us\ntasks:\n  - {name: a, period: 10ms, wcet: 2ms, offset: 4ms}\n";
    let from = planned(&described(text));
    let new = "  - {name: n, period: 10ms, wcet: 5ms, offset: 4ms, preemptible: false}\n";
    changed(&from, &described(&format!("{text}{new}")));
}
