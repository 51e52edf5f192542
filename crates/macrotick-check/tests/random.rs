//! Solver and judge against each other on seeded random systems.

mod common;

use common::{system, Random, Shape};
use macrotick_check::check;
use macrotick_model::{Duration, System};
use macrotick_plan::{plan, PlanError, Solver};

fn shape(seed: u64) -> Shape {
    let random = &mut Random::new(seed ^ 0xdead_beef);
    let cpus = [1, 1, 2, 2, 3, 4, 8][random.below(7) as usize];
    Shape {
        tasks: random.between(3, 20) as usize * cpus as usize,
        cpus,
        utilisation: random.between(50, 90),
        macrotick: Duration::from_nanos([1, 100, 1_000, 1_000, 10_000][random.below(5) as usize]),
        phased: [0, 10, 30, 60][random.below(4) as usize],
        chains: random.below(3) as usize,
    }
}

/// Whether the system is planned; whatever is planned must be feasible.
fn solved(seed: u64, system: &System) -> Result<(), PlanError> {
    let plan = plan(system, Solver::FoldedOccupancy)?;
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "seed {seed}: {verdict}\n{}", system.to_yaml());
    Ok(())
}

#[test]
fn plans_of_random_systems_are_feasible() {
    const COUNT: u64 = 300;
    let mut failures = Vec::new();
    for seed in 0..COUNT {
        let shape = shape(seed);
        let system = system(seed, &shape);
        System::parse(&system.to_yaml(), "random").unwrap_or_else(|errors| panic!("seed {seed}: {errors}"));
        if let Err(error) = solved(seed, &system) {
            let (cpus, utilisation, phased) = (shape.cpus, shape.utilisation, shape.phased);
            failures.push(format!("seed {seed} ({cpus} CPUs, {utilisation} %, phased {phased} %): {error}"));
        }
    }
    println!("{} of {COUNT} solved\n{}", COUNT - failures.len() as u64, failures.join("\n"));
    // A few have starts fixed by offset and jitter bound that contradict each other.
    assert!(failures.len() as u64 * 50 <= COUNT, "{} unsolved:\n{}", failures.len(), failures.join("\n"));
}

/// What the judge measures is what the solver measures: bounds set to exactly the times of a plan are kept again, and
/// bounds that no table can keep are refused.
#[test]
fn chain_bounds_are_met_to_the_nanosecond() {
    let mut chains = 0;
    for seed in 0..60 {
        let shape = Shape { chains: 1, ..shape(seed) };
        let mut system = system(seed, &shape);
        let Ok(loose) = plan(&system, Solver::FoldedOccupancy) else {
            continue;
        };
        let times = check(&loose).chains[0].clone();
        (system.chains[0].reaction, system.chains[0].age) = (times.reaction, times.age);
        let tight = plan(&system, Solver::FoldedOccupancy).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(check(&tight).is_feasible(), "seed {seed}: {}", check(&tight));
        let wcets: Duration =
            system.chains[0].path.iter().filter_map(|name| system.task(name)).map(|task| task.wcet).sum();
        system.chains[0].age = Some(wcets - Duration::from_nanos(1));
        match plan(&system, Solver::FoldedOccupancy) {
            Err(PlanError::Chain { bound, reached, .. }) => assert!(reached > bound),
            other => panic!("seed {seed}: an age below the sum of the wcets gives {other:?}"),
        }
        chains += 1;
    }
    assert!(chains >= 50, "only {chains} systems had a plan");
}

#[test]
fn the_same_system_has_the_same_plan() {
    for seed in [1, 7, 42] {
        let system = system(seed, &shape(seed));
        let plans: Vec<_> = (0..2).map(|_| plan(&system, Solver::FoldedOccupancy).map(|plan| plan.to_json())).collect();
        assert_eq!(plans[0], plans[1], "seed {seed}");
    }
}

/// Starts kept off the millisecond cost nothing here, so none may stand within 20 us after one.
#[test]
fn starts_stay_off_the_common_grid_where_there_is_room() {
    let mut jobs = 0;
    for seed in 0..20 {
        let macrotick = Duration::from_micros(1);
        let shape = Shape { tasks: 10, cpus: 2, utilisation: 50, macrotick, phased: 30, chains: 0 };
        let mut system = system(seed, &shape);
        system.tasks.retain(|task| task.offset.is_none());
        let plan = plan(&system, Solver::FoldedOccupancy).expect("half a load has a plan");
        for window in plan.tables.iter().flat_map(|table| &table.windows).filter(|window| window.activate) {
            let phase = window.offset % Duration::from_millis(1);
            assert!(phase >= Duration::from_micros(20), "seed {seed}: {} starts at {}", window.task, window.offset);
            jobs += 1;
        }
    }
    assert!(jobs > 1000, "only {jobs} jobs were seen");
}
