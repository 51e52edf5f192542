//! Solver and judge against each other on systems without preemption.

use std::time::Duration as WallTime;

use macrotick_check::check;
use macrotick_fixtures::described;
use macrotick_generate::{ecu, feasible, with_jitter, Jitter, Random, Size, Unit};
use macrotick_model::{Plan, System};
use macrotick_plan::{plan_within, Options, PlanError, Solver};

/// Plans a system. The judge accepts the plan, and each job has one window.
fn planned(system: &System, limit: WallTime) -> Result<Plan, PlanError> {
    let plan = plan_within(system, Solver::FoldedOccupancy, Options { time_limit: limit, ..Options::default() })?;
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{}: {verdict}", system.name);
    let whole = |task: &str| !system.is_preemptible(system.task(task).expect("a task"));
    let windows = || plan.tables.iter().flat_map(|table| &table.windows).filter(|window| whole(&window.task));
    assert!(windows().all(|window| window.activate && window.deadline), "{}", system.name);
    Ok(plan)
}

#[test]
fn any_jitter_is_planned_without_preemption() {
    for jitter in [Jitter::Free, Jitter::Part(5), Jitter::Zero] {
        let mut count = 0;
        for seed in 0..12 {
            let size = Size { tasks: 16, cpus: 2, load: 40 };
            let system = System { preemptible: Some(false), ..with_jitter(seed, size, jitter) };
            count += usize::from(planned(&system, WallTime::from_secs(2)).is_ok());
        }
        assert!(count >= 6, "{jitter:?}: {count} of 12");
    }
}

#[test]
fn some_tasks_are_cut_and_others_not() {
    let random = &mut Random::new(4);
    let mut count = 0;
    for seed in 0..12 {
        let mut system = with_jitter(seed, Size { tasks: 16, cpus: 2, load: 50 }, Jitter::Free);
        system.tasks.iter_mut().for_each(|task| task.preemptible = random.chance(50).then_some(false));
        count += usize::from(planned(&system, WallTime::from_secs(2)).is_ok());
    }
    assert!(count >= 6, "{count} of 12");
}

#[test]
fn control_units_are_planned_in_any_order() {
    for number in 1..=3 {
        let system = ecu(1, Unit::set(number), 700, Jitter::Zero);
        let plan = planned(&system, WallTime::from_secs(60)).unwrap_or_else(|error| panic!("set {number}: {error}"));
        let mut turned = system.clone();
        turned.tasks.reverse();
        turned.tasks.iter_mut().for_each(|task| task.after.reverse());
        turned.chains.reverse();
        let other = planned(&turned, WallTime::from_secs(60)).unwrap_or_else(|error| panic!("set {number}: {error}"));
        assert_eq!(plan.tables, other.tables, "set {number}");
    }
}

#[test]
fn harmonic_tables_are_full() {
    for kind in feasible::HARD {
        let system = feasible::full(1, kind, 900);
        planned(&system, WallTime::from_secs(60)).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

/// The second job of `often` ends when its third one is released, and `whole` has the only time before.
#[test]
fn a_job_can_end_at_the_next_release() {
    let system = described(
        "system: s
macrotick: 1ms
tasks:
  - {name: often, period: 2ms, wcet: 1ms}
  - {name: whole, period: 8ms, wcet: 2ms, deadline: 3ms, preemptible: false}
",
    );
    planned(&system, WallTime::from_secs(2)).unwrap();
}
