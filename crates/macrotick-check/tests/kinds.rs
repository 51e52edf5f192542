//! Solver and judge against each other on the kinds of random systems of the bench.

use std::time::{Duration as WallTime, Instant};

use macrotick_check::check;
use macrotick_generate::infeasible::{infeasible, Conflict};
use macrotick_generate::{at_the_cap, feasible, shared_chains, with_jitter, zero_jitter, Jitter, Size};
use macrotick_model::System;
use macrotick_plan::{plan_within, Answer, Options, Solver};

/// The outcome of some systems of a kind.
#[derive(Default)]
struct Outcome {
    planned: usize,
    impossible: usize,
    not_found: usize,
    longest: WallTime,
    reasons: Vec<String>,
}

fn run(systems: impl Iterator<Item = System>, limit: WallTime) -> Outcome {
    let mut outcome = Outcome::default();
    for system in systems {
        assert_eq!(system.problems(), [""; 0], "{}", system.to_yaml());
        let begin = Instant::now();
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
                outcome.not_found += 1;
                outcome.reasons.push(format!("{}: {error}", system.name));
            }
        }
        outcome.longest = outcome.longest.max(begin.elapsed());
    }
    outcome
}

fn told(kind: &str, outcome: &Outcome) {
    let Outcome { planned, impossible, not_found, longest, reasons } = outcome;
    println!("{kind}: {planned} planned, {impossible} impossible, {not_found} not found, {longest:?}");
    for reason in reasons.iter().take(2) {
        println!("    {}", reason.chars().take(240).collect::<String>());
    }
}

#[test]
#[ignore = "a measurement"]
fn measure() {
    let only = std::env::var("KIND").unwrap_or_default();
    let limit = WallTime::from_secs_f64(std::env::var("LIMIT").ok().and_then(|text| text.parse().ok()).unwrap_or(3.0));
    let count: u64 = std::env::var("COUNT").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    if "chains".contains(&only) {
        for (tasks, cpus) in [(50, 2), (100, 3), (200, 4), (500, 8)] {
            for load in [40, 60, 80, 90] {
                for jitter in [Jitter::Free, Jitter::Zero] {
                    let size = Size { tasks, cpus, load };
                    let outcome = run((0..count).map(|seed| shared_chains(seed, size, jitter)), limit);
                    told(&format!("chains {tasks} tasks {load} % {jitter:?}"), &outcome);
                }
            }
        }
    }
    if "jitter".contains(&only) {
        for (tasks, cpus) in [(20, 1), (50, 2), (100, 4)] {
            for load in [60, 80, 90] {
                for part in [5, 10] {
                    let size = Size { tasks, cpus, load };
                    let outcome = run((0..count).map(|seed| with_jitter(seed, size, Jitter::Part(part))), limit);
                    told(&format!("jitter p/{part} {tasks} tasks {load} %"), &outcome);
                }
            }
        }
    }
    if "zero".contains(&only) {
        for (tasks, cpus) in [(20, 1), (50, 2), (100, 4)] {
            for load in [60, 80] {
                let size = Size { tasks, cpus, load };
                told(&format!("zero {tasks} tasks {load} %"), &run((0..count).map(|seed| zero_jitter(seed, size)), limit));
            }
        }
    }
    if "cap".contains(&only) {
        for (tasks, cpus) in [(10, 2), (20, 2), (30, 3), (50, 4)] {
            told(&format!("cap {tasks} tasks {cpus} CPUs"), &run((0..count).map(|seed| at_the_cap(seed, tasks, cpus)), limit));
        }
    }
    if "infeasible".contains(&only) {
        for conflict in Conflict::ALL {
            told(&format!("{conflict:?}"), &run((0..count).map(|seed| infeasible(seed, conflict)), limit));
        }
    }
    if "harmonic".contains(&only) {
        for load in [80, 90, 94] {
            told(&format!("harmonic {load} %"), &run((0..count).map(|seed| feasible::harmonic(seed, 60, load)), limit));
        }
    }
}
