//! Solver and judge against each other on the kinds of random systems of the bench.

use std::time::Duration as WallTime;

use macrotick_check::check;
use macrotick_generate::infeasible::{infeasible, Conflict};
use macrotick_generate::{at_the_cap, feasible, shared_chains, with_jitter, zero_jitter, Jitter, Size};
use macrotick_model::System;
use macrotick_plan::{plan_in_trials, plan_within, Answer, Options, Solver, Unwatched};

/// The outcome of some systems of a kind.
#[derive(Default)]
struct Outcome {
    planned: usize,
    impossible: usize,
    reasons: Vec<String>,
}

fn run(systems: impl Iterator<Item = System>, limit: WallTime) -> Outcome {
    let mut outcome = Outcome::default();
    for system in systems {
        assert_eq!(system.problems(), [""; 0], "{}", system.to_yaml());
        let options = Options { time_limit: limit, ..Options::default() };
        match plan_within(&system, Solver::FoldedOccupancy, options) {
            Ok(plan) => {
                let verdict = check(&plan);
                assert!(verdict.is_feasible(), "{}: {verdict}\n{}", system.name, system.to_yaml());
                outcome.planned += 1;
            }
            Err(error) if error.answer() == Answer::Impossible => {
                outcome.impossible += 1;
                outcome.reasons.push(error.to_string());
            }
            Err(error) => {
                outcome.reasons.push(format!("{}: {error}", system.name));
            }
        }
    }
    outcome
}

/// Runs a few systems of a kind, which all have a plan.
#[track_caller]
fn planned(kind: &str, system: impl Fn(u64) -> System) {
    let outcome = run((0..4).map(system), WallTime::from_secs(30));
    assert_eq!(outcome.planned, 4, "{kind}: {:?}", outcome.reasons);
}

#[test]
fn chains_that_share_tasks_have_plans() {
    for load in [40, 80, 90] {
        let size = Size { tasks: 50, cpus: 2, load };
        planned(&format!("chains at {load} %"), |seed| shared_chains(seed, size, Jitter::Free));
    }
}

#[test]
fn jitter_is_planned_as_it_is() {
    for (tasks, cpus, load) in [(20, 1, 90), (50, 2, 80), (50, 2, 90)] {
        let size = Size { tasks, cpus, load };
        for part in [5, 10] {
            planned(&format!("p/{part} at {load} %"), |seed| with_jitter(seed, size, Jitter::Part(part)));
        }
    }
    let size = Size { tasks: 20, cpus: 1, load: 80 };
    planned("no jitter", |seed| zero_jitter(seed, size));
    planned("harmonic", |seed| feasible::harmonic(seed, 60, 94));
}

/// The first pieces of all jobs get phases, and the rest is filled in. This takes few trials, at a high load on four CPUs
/// too.
#[test]
fn jitter_takes_few_trials() {
    let size = Size { tasks: 100, cpus: 4, load: 90 };
    for (seed, part) in (0..4).flat_map(|seed| [(seed, 5), (seed, 10)]) {
        let options = Options { time_limit: WallTime::from_secs(60), ..Options::default() };
        let system = with_jitter(seed, size, Jitter::Part(part));
        let planned = plan_in_trials(&system, Solver::FoldedOccupancy, options, 3, &Unwatched);
        assert!(planned.is_ok(), "{seed}, p/{part}: {:?}", planned.err());
    }
}

/// Of trials at the same time, the one with the least number wins.
#[test]
fn the_plan_does_not_depend_on_the_number_of_threads() {
    let size = Size { tasks: 20, cpus: 1, load: 80 };
    for seed in 0..4 {
        let system = zero_jitter(seed, size);
        let [one, three] = [1, 3].map(|jobs| {
            let options = Options { time_limit: WallTime::from_secs(60), jobs, ..Options::default() };
            plan_within(&system, Solver::FoldedOccupancy, options).expect("a plan")
        });
        assert_eq!(one, three);
    }
}

#[test]
fn cpus_at_the_cap_have_plans() {
    planned("at the cap", |seed| at_the_cap(seed, 50, 4));
    planned("at the cap", |seed| at_the_cap(seed + 4, 30, 3));
}

/// With few tasks, only few jobs can be cut. Each system has the best table, or a proof that it is not good enough.
#[test]
fn few_tasks_at_the_cap_have_plans_or_proofs() {
    let outcome = run((0..20).map(|seed| at_the_cap(seed, 10, 2)), WallTime::from_secs(30));
    assert_eq!((outcome.planned, outcome.impossible), (15, 5), "{:?}", outcome.reasons);
    let proof = "cannot be divided among 2 CPUs so that each needs at most 190ms of every 200ms: some jobs must be cut";
    assert!(outcome.reasons.iter().all(|reason| reason.contains(proof)), "{:?}", outcome.reasons);
}

#[test]
fn conflicts_are_proved() {
    for conflict in Conflict::ALL {
        let outcome = run((0..20).map(|seed| infeasible(seed, conflict)), WallTime::from_secs(1));
        assert_eq!(outcome.impossible, 20, "{conflict:?}: {:?}", outcome.reasons);
    }
}
