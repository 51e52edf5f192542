//! Solver and judge against each other on seeded random systems.

mod common;

use common::{system, Random, Shape};
use macrotick_check::check;
use macrotick_fixtures::{self as fixtures, ns};
use macrotick_model::{CpuTable, Duration, Group, Lead, Plan, SyncWindow, System};
use macrotick_plan::{plan, PlanError, Refutation, Solver};

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
        lead: None,
        sync: None,
    }
}

/// Returns the plan, if the system has one. Every plan must be feasible.
fn solved(seed: u64, system: &System) -> Result<Plan, PlanError> {
    let plan = plan(system, Solver::FoldedOccupancy)?;
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "seed {seed}: {verdict}\n{}", system.to_yaml());
    Ok(plan)
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
    // In a few systems, the starts that offset and jitter bound fix contradict each other.
    assert!(failures.len() as u64 * 50 <= COUNT, "{} unsolved:\n{}", failures.len(), failures.join("\n"));
}

/// Makes one to three pools that together need at most `percent` of the CPUs.
fn pools(random: &mut Random, cpus: u32, percent: i64) -> Vec<Group> {
    let count = random.between(1, 3);
    let pool = |index| {
        let period = [1, 5, 10, 20][random.below(4) as usize] * 1_000_000;
        let budget = period * random.between(1, percent) / 100 * i64::from(cpus) / count;
        Group {
            cpus: random.chance(20).then(|| random.below(u64::from(cpus)) as u32).into_iter().collect(),
            ..fixtures::pool(&format!("pool-{index}"), ns(period), ns(budget.clamp(10_000, period / 2)))
        }
    };
    (0..count).map(pool).collect()
}

#[test]
fn plans_with_pools_keep_tasks_and_budgets() {
    const COUNT: u64 = 300;
    let (mut failures, mut overloaded, mut windows) = (Vec::new(), 0, 0);
    for seed in 0..COUNT {
        let random = &mut Random::new(seed ^ 0x9001);
        let lead = random.chance(30).then(|| lead(random));
        let base = shape(seed);
        let utilisation = random.between(30, 70);
        let mut system = system(seed, &Shape { lead, utilisation, ..base });
        system.groups = pools(random, system.cpus.len() as u32, 90 - utilisation);
        System::parse(&system.to_yaml(), "random").unwrap_or_else(|errors| panic!("seed {seed}: {errors}"));
        match solved(seed, &system) {
            Ok(plan) => {
                let all = plan.tables.iter().flat_map(|table| &table.windows);
                windows += all.filter(|window| window.task.starts_with("pool")).count();
            }
            Err(PlanError::Overload { .. }) => overloaded += 1,
            Err(error) => failures.push(format!("seed {seed} ({} CPUs, {utilisation} %): {error}", system.cpus.len())),
        }
    }
    println!("{overloaded} of {COUNT} overloaded, unsolved:\n{}", failures.join("\n"));
    assert!(failures.len() as u64 * 20 <= COUNT, "{} unsolved:\n{}", failures.len(), failures.join("\n"));
    assert!(overloaded * 20 <= COUNT, "{overloaded} overloaded");
    assert!(windows > 5000, "only {windows} windows of pools");
}

/// Makes a lead on the macrotick or off it, from very short to a large part of the shortest period.
fn lead(random: &mut Random) -> Lead {
    let length = Duration::from_nanos([1, 777, 6_000, 20_000, 33_333, 100_000][random.below(6) as usize]);
    match random.below(3) {
        0 => Lead::Auto(length),
        _ => Lead::Fixed(length),
    }
}

/// Fixes the starts of two tasks on each CPU. One starts exactly with the cycle, so its lead lies in the previous
/// cycle. The other starts at the end of the first one's windows plus the lead, or a little later.
fn fix_starts(random: &mut Random, system: &mut System) {
    let reserved = system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let grid = system.macrotick;
    let up = |length: Duration| {
        Duration::from_nanos((length.as_nanos() + grid.as_nanos() - 1) / grid.as_nanos()) * grid.as_nanos()
    };
    for cpu in system.cpus.clone() {
        let mut free = Duration::ZERO;
        for task in system.tasks.iter_mut().skip(2 * cpu as usize).take(2) {
            if free + task.wcet + up(reserved) * 2 > Duration::from_millis(1).min(task.deadline) {
                break;
            }
            (task.cpu, task.offset, task.jitter) = (Some(cpu), Some(free), Some(Duration::ZERO));
            free += up(task.wcet) + up(reserved) + grid * random.between(0, 2);
        }
    }
}

/// Shortens all times to three quarters. Most periods then are not multiples of a millisecond, so jobs may start with
/// the cycle.
fn shrink(system: &mut System) {
    let grid = system.macrotick;
    let shorter = |time: Duration| Duration::from_nanos(time.as_nanos() * 3 / 4);
    for task in &mut system.tasks {
        (task.period, task.deadline) = (shorter(task.period), shorter(task.deadline));
        task.wcet = shorter(task.wcet).max(Duration::from_nanos(1));
        task.offset = task.offset.map(shorter).map(|offset| offset - offset % grid);
        task.jitter = task.jitter.map(shorter);
    }
    for chain in &mut system.chains {
        (chain.reaction, chain.age) = (chain.reaction.map(shorter), chain.age.map(shorter));
    }
}

#[test]
fn plans_with_a_lead_keep_it_free_before_each_job() {
    const COUNT: u64 = 400;
    let (mut failures, mut overloaded, mut wrapping, mut tight) = (Vec::new(), 0, 0, 0);
    for seed in 0..COUNT {
        let random = &mut Random::new(seed ^ 0x1ead);
        let lead = lead(random);
        let shape = Shape { lead: Some(lead), ..shape(seed) };
        let mut system = system(seed, &shape);
        if random.chance(40) {
            shrink(&mut system);
        }
        if random.chance(50) {
            fix_starts(random, &mut system);
        }
        System::parse(&system.to_yaml(), "random").unwrap_or_else(|errors| panic!("seed {seed}: {errors}"));
        match solved(seed, &system) {
            Ok(plan) => {
                for table in &plan.tables {
                    let gaps: Vec<Duration> = gaps(&plan, table).collect();
                    let grid = system.macrotick;
                    tight += gaps.iter().filter(|&&gap| gap >= lead.reserved() && gap < lead.reserved() + grid).count();
                    wrapping += usize::from(table.windows[0].activate && table.windows[0].offset < lead.reserved());
                }
            }
            // The load was chosen without the leads.
            Err(PlanError::Overload { .. }) => overloaded += 1,
            Err(error) => {
                let (cpus, utilisation, phased) = (shape.cpus, shape.utilisation, shape.phased);
                let kind = format!("{cpus} CPUs, {utilisation} %, phased {phased} %, lead {}", lead.reserved());
                failures.push(format!("seed {seed} ({kind}): {error}"));
            }
        }
    }
    println!("{overloaded} of {COUNT} overloaded, unsolved:\n{}", failures.join("\n"));
    // Fixed starts contradict each other more often here.
    assert!(failures.len() as u64 * 20 <= COUNT, "{} unsolved:\n{}", failures.len(), failures.join("\n"));
    assert!(overloaded * 20 <= COUNT, "{overloaded} overloaded");
    // Leads are as short as allowed, and some start before the start of the cycle.
    assert!(tight > 1000 && wrapping > 20, "{tight} tight leads, {wrapping} in the cycle before");
}

/// Makes a sync window of at most a tenth of the period, so it takes little of the tasks' time.
fn sync(random: &mut Random, grid: Duration) -> SyncWindow {
    let period = Duration::from_millis([1, 2, 5, 10][random.below(4) as usize]);
    let on_grid = |nanos: i64| Duration::from_nanos(nanos / grid.as_nanos() * grid.as_nanos());
    let length = on_grid(random.between(20_000, period.as_nanos() / 10));
    let offset = on_grid(random.between(0, (period - length).as_nanos()));
    fixtures::sync(period, offset, length, ns(random.between(1, length.as_nanos() / 2)))
}

#[test]
fn plans_with_sync_windows_keep_them_free() {
    const COUNT: u64 = 300;
    let (mut failures, mut overloaded, mut abutting) = (Vec::new(), 0, 0);
    for seed in 0..COUNT {
        let random = &mut Random::new(seed ^ 0x5c1c);
        let base = shape(seed);
        let lead = random.chance(30).then(|| lead(random));
        let sync = sync(random, base.macrotick);
        // Long jobs and odd deadlines beside many short sync windows leave less choice.
        let utilisation = base.utilisation * 7 / 10;
        let shape = Shape { lead, sync: Some(sync), utilisation, ..base };
        let mut system = system(seed, &shape);
        if random.chance(30) {
            system.groups = pools(random, shape.cpus, 5);
        }
        System::parse(&system.to_yaml(), "random").unwrap_or_else(|errors| panic!("seed {seed}: {errors}"));
        match solved(seed, &system) {
            Ok(plan) => {
                let windows = plan.tables.iter().flat_map(|table| &table.windows);
                abutting += windows.filter(|window| window.end() % sync.period == sync.offset).count();
            }
            Err(PlanError::Overload { .. }) => overloaded += 1,
            Err(error) => failures.push(format!("seed {seed} ({sync:?}): {error}")),
        }
    }
    println!("{overloaded} of {COUNT} overloaded, unsolved:\n{}", failures.join("\n"));
    assert!(failures.len() as u64 * 10 <= COUNT, "{} unsolved:\n{}", failures.len(), failures.join("\n"));
    assert!(overloaded * 20 <= COUNT, "{overloaded} overloaded");
    // Windows use the time up to a sync window.
    assert!(abutting > 100, "{abutting} windows end where a sync window begins");
}

/// Returns the times from the end of the previous window to the start of each job on a CPU.
fn gaps<'a>(plan: &'a Plan, table: &'a CpuTable) -> impl Iterator<Item = Duration> + 'a {
    let last = table.windows.last().map_or(Duration::ZERO, |window| window.end() - plan.cycle);
    let ends = std::iter::once(last).chain(table.windows.iter().map(|window| window.end()));
    table.windows.iter().zip(ends).filter(|(window, _)| window.activate).map(|(window, end)| window.offset - end)
}

/// The judge and the solver measure the same. Bounds equal to the times of a plan are kept again, and bounds that no
/// table can keep are refused.
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
            Err(PlanError::Impossible(Refutation::Chain { bound, least, .. })) => assert!(least > bound),
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

/// Starts off the millisecond cost nothing here. So no start, and no lead, may be within 20 us after one.
#[test]
fn starts_stay_off_the_common_grid_where_there_is_room() {
    let mut jobs = 0;
    for seed in 0..40 {
        let macrotick = Duration::from_micros(1);
        let lead = (seed % 2 == 1).then_some(Duration::from_micros(15));
        let shape = Shape {
            sync: None,
            tasks: 10,
            cpus: 2,
            utilisation: 50,
            macrotick,
            phased: 30,
            chains: 0,
            lead: lead.map(Lead::Fixed),
        };
        let mut system = system(seed, &shape);
        system.tasks.retain(|task| task.offset.is_none());
        let plan = plan(&system, Solver::FoldedOccupancy).expect("half a load has a plan");
        for window in plan.tables.iter().flat_map(|table| &table.windows).filter(|window| window.activate) {
            let phase = window.offset % Duration::from_millis(1);
            let least = Duration::from_micros(20) + lead.unwrap_or(Duration::ZERO);
            assert!(phase >= least, "seed {seed}: {} starts at {}", window.task, window.offset);
            jobs += 1;
        }
    }
    assert!(jobs > 1000, "only {jobs} jobs were seen");
}
