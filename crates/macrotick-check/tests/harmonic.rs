//! Harmonic tasks without jitter, with windows that take all time of their CPUs.

use std::time::Duration as WallTime;

use macrotick_check::check;
use macrotick_fixtures::us;
use macrotick_generate::feasible;
use macrotick_model::{Clock, Lead, SyncWindow, System, Task};
use macrotick_plan::{plan_within, Options, Solver};

/// Plans a system, and asks the judge.
fn planned(system: &System) {
    let limit = WallTime::from_secs(60);
    let options = Options { time_limit: limit, ..Options::default() };
    let plan = plan_within(system, Solver::FoldedOccupancy, options)
        .unwrap_or_else(|error| panic!("{}: {error}", system.name));
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{}: {verdict}", system.name);
}

#[test]
fn windows_can_take_all_time() {
    for kind in feasible::HARD {
        for (seed, permille) in (0..3).flat_map(|seed| [(seed, 1000), (seed, 990)]) {
            planned(&feasible::full(seed, kind, permille));
        }
    }
}

#[test]
fn two_full_cpus_share_their_tasks() {
    for pinned in [false, true] {
        let system = feasible::full(0, (3, 20), 1000);
        let mut both = System { cpus: vec![0, 1], tasks: Vec::new(), ..system.clone() };
        for cpu in 0..2 {
            let own = feasible::full(u64::from(cpu), (3, 20), 1000).tasks.into_iter();
            let named = |task: Task| Task { name: format!("{}-{cpu}", task.name), cpu: pinned.then_some(cpu), ..task };
            both.tasks.extend(own.map(named));
        }
        planned(&both);
    }
}

fn task(name: &str, period: i64, wcet: i64) -> Task {
    Task { jitter: Some(us(0)), ..Task::named(name, us(period), us(wcet)) }
}

#[test]
fn leads_take_room() {
    let system = |wcet: i64| System {
        preemptible: Some(false),
        lead: Some(Lead::Fixed(us(5))),
        tasks: vec![task("a", 1000, 450), task("b", 2000, 490), task("c", 2000, wcet)],
        ..System::named("leads")
    };
    planned(&system(490));
    let long = plan_within(&system(491), Solver::FoldedOccupancy, Options::default());
    assert!(long.is_err(), "a plan would exceed what the kernel gives to windows");
}

#[test]
fn a_sync_window_divides_the_period() {
    let sync = SyncWindow { period: us(1000), offset: us(100), length: us(52), bound: us(2) };
    planned(&System {
        preemptible: Some(false),
        clock: Clock::Tai(sync),
        tasks: vec![
            task("a", 1000, 100),
            task("b", 2000, 800),
            task("c", 2000, 848),
            task("d", 4000, 48),
            task("e", 4000, 48),
        ],
        ..System::named("sync")
    });
}
