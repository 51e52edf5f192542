//! Solver and judge against each other on seeded random systems without a table that has every task on one CPU.

mod common;

use common::Random;
use macrotick_check::{check, Violation};
use macrotick_fixtures::{ms, pool, us};
use macrotick_model::{Chain, Duration, Plan, System, Window};
use macrotick_plan::{plan, Solver};

/// Makes one task more than there are CPUs, and some small ones, with `percent` of all CPUs together. Any two of the
/// large tasks need more than one CPU.
fn system(seed: u64, percent: i64) -> System {
    let random = &mut Random::new(seed ^ 0x5b117);
    let cpus = [2, 2, 3, 4][random.below(4) as usize];
    let list: Vec<String> = (0..cpus).map(|cpu: i64| cpu.to_string()).collect();
    let mut text = format!("system: random-{seed}\nmacrotick: {}\ncpus: [{}]\n", grid(random), list.join(", "));
    text += ["", "", "lead: 20us\n", "lead: {auto: 6500ns}\n"][random.below(4) as usize];
    if random.chance(20) {
        text += "clock: {tai: {period: 10ms, length: 20us, bound: 5us}}\n";
    }
    text += "tasks:\n";
    let mut left = cpus * percent;
    let migrates = random.below(cpus as u64 + 1) as i64;
    for index in 0..=cpus {
        // Each task needs at least 48 %, so two of them exceed 95 % of a CPU. The last ones take the rest.
        let most = (left - 48 * (cpus - index)).min(90);
        let share = if index == cpus { left.min(85) } else { random.between(48, most.min(70)) };
        left -= share;
        let migrate = index == migrates || random.chance(30);
        text += &task(random, &format!("big-{index}"), share, migrate);
    }
    for index in 0..random.below(4) {
        let share = left.min(random.between(1, 5));
        if share > 0 {
            left -= share;
            let migrate = random.chance(20);
            text += &task(random, &format!("small-{index}"), share, migrate);
        }
    }
    System::parse(&text, "random").unwrap_or_else(|errors| panic!("seed {seed}: {errors}"))
}

fn grid(random: &mut Random) -> &'static str {
    ["1us", "1us", "100ns", "10us"][random.below(4) as usize]
}

fn task(random: &mut Random, name: &str, share: i64, migrate: bool) -> String {
    let period = [1, 2, 5, 5, 10, 10, 20, 20, 40][random.below(9) as usize] * 1000;
    let wcet = period * share / 100;
    let deadline = if random.chance(15) { period - (period - wcet) / 4 } else { period };
    let jitter = if random.chance(10) { ", jitter: 0us" } else { "" };
    let offset = match random.chance(15) {
        true => format!(", offset: {}us", random.between(0, period / 100 - 1) * 100),
        false => String::new(),
    };
    format!("  - {{name: {name}, period: {period}us, wcet: {wcet}us, deadline: {deadline}us{jitter}{offset}, migrate: {migrate}}}\n")
}

/// Returns the names of the tasks with windows on several CPUs.
fn split_tasks(plan: &Plan) -> Vec<String> {
    let names = plan.system.tasks.iter().map(|task| task.name.clone());
    names.filter(|name| plan.cpus(name).is_several()).collect()
}

/// Returns the plan, if one is found. Every plan must be feasible.
fn solved(seed: u64, system: &System) -> Option<Plan> {
    let plan = plan(system, Solver::FoldedOccupancy).ok()?;
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "seed {seed}: {verdict}\n{}", system.to_yaml());
    Some(plan)
}

#[test]
fn systems_that_need_a_split_have_feasible_plans() {
    const COUNT: u64 = 300;
    for (percent, least) in [(75, 290), (85, 280), (93, 240)] {
        let (mut count, mut jobs, mut pieces) = (0, 0, 0);
        for seed in 0..COUNT {
            let Some(plan) = solved(seed, &system(seed, percent)) else { continue };
            let split = split_tasks(&plan);
            assert!(!split.is_empty(), "seed {seed}");
            let windows = plan.tables.iter().flat_map(|table| &table.windows);
            pieces += windows.filter(|window| split.contains(&window.task)).count();
            jobs += split.iter().map(|name| plan.jobs(name).len()).sum::<usize>();
            count += 1;
        }
        println!("{percent} %: {count} of {COUNT} solved, {jobs} jobs in {pieces} pieces");
        assert!(count >= least, "{percent} %: only {count} of {COUNT} solved");
    }
}

#[test]
fn what_fits_stays_where_it_is() {
    let mut same = 0;
    for seed in 0..60 {
        let shape = common::Shape {
            tasks: 12,
            cpus: 2,
            utilisation: 70,
            macrotick: Duration::from_micros(1),
            phased: 20,
            chains: 1,
            lead: None,
            sync: None,
        };
        let mut system = common::system(seed, &shape);
        let Ok(before) = plan(&system, Solver::FoldedOccupancy) else { continue };
        system.tasks.iter_mut().for_each(|task| task.migrate = task.cpu.is_none());
        assert_eq!(plan(&system, Solver::FoldedOccupancy).map(|plan| plan.tables), Ok(before.tables), "seed {seed}");
        same += 1;
    }
    assert!(same > 50, "only {same} were planned");
}

#[test]
fn chains_and_pools_go_with_split_tasks() {
    let (mut count, mut kept) = (0, 0);
    for seed in 0..100 {
        let mut system = system(seed, 80);
        let path: Vec<String> = system.tasks.iter().take(3).map(|task| task.name.clone()).collect();
        let bound: Duration = system.tasks.iter().take(3).map(|task| task.period * 4).sum();
        system.chains = vec![Chain { reaction: Some(bound), age: Some(bound), ..Chain::named("chain", path) }];
        system.groups = vec![pool("pool", ms(20), us(400))];
        assert_eq!(system.problems(), [""; 0]);
        let Some(plan) = solved(seed, &system) else { continue };
        count += 1;
        kept += usize::from(split_tasks(&plan).iter().any(|name| system.chains[0].path.contains(name)));
    }
    assert!(count > 85 && kept > 50, "{count} planned, {kept} with a split task in the chain");
}

/// Changes a window of a split task in many plans. `change` gets its table and its index, and returns whether it
/// changed anything. The judge must report a violation that `expected` accepts.
fn each(change: fn(&mut Plan, usize, usize) -> bool, expected: fn(&Violation) -> bool) {
    let mut applied = 0;
    for seed in 0..40 {
        let Some(plan) = solved(seed, &system(seed, 75)) else { continue };
        let split = split_tasks(&plan);
        for (table, window) in places(&plan, &split) {
            let mut changed = plan.clone();
            if !change(&mut changed, table, window) {
                continue;
            }
            applied += 1;
            let verdict = check(&changed);
            assert!(verdict.violations.iter().any(expected), "seed {seed}, table {table}, window {window}: {verdict}");
        }
    }
    assert!(applied >= 30, "applied only {applied} times");
}

fn places(plan: &Plan, tasks: &[String]) -> Vec<(usize, usize)> {
    let each = plan.tables.iter().enumerate().flat_map(|(table, found)| {
        let own = found.windows.iter().enumerate().filter(|(_, window)| tasks.contains(&window.task));
        own.map(move |(window, _)| (table, window))
    });
    each.collect()
}

/// Returns the start of the task's next window, if that is on another CPU.
fn next_elsewhere(plan: &Plan, table: usize, window: usize) -> Option<Duration> {
    let Window { offset, task, .. } = &plan.tables[table].windows[window];
    let each = plan.tables.iter().enumerate().flat_map(|(place, table)| table.windows.iter().map(move |w| (place, w)));
    let next = each.filter(|(_, other)| other.task == *task && other.offset > *offset);
    next.min_by_key(|(_, other)| other.offset).filter(|(place, _)| *place != table).map(|(_, other)| other.offset)
}

#[test]
fn a_window_that_reaches_into_one_on_another_cpu_is_caught() {
    each(
        |plan, table, window| {
            let (next, grid) = (next_elsewhere(plan, table, window), plan.system.macrotick);
            let changed = &mut plan.tables[table].windows[window];
            changed.length = next.map_or(changed.length, |next| next - changed.offset + grid);
            next.is_some()
        },
        |violation| matches!(violation, Violation::Parallel { .. }),
    );
}

#[test]
fn a_lead_that_reaches_into_a_window_on_another_cpu_is_caught() {
    each(
        |plan, table, window| {
            let lead = plan.system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
            let (next, name) = (next_elsewhere(plan, table, window), &plan.tables[table].windows[window].task);
            let is_next = |other: &&Window| other.activate && other.task == *name && Some(other.offset) == next;
            let Some(next) = plan.tables.iter().flat_map(|table| &table.windows).find(is_next) else {
                return false;
            };
            let (next, grid) = (next.offset, plan.system.macrotick);
            let changed = &mut plan.tables[table].windows[window];
            changed.length = next - changed.offset - (lead - lead % grid) + grid;
            lead >= grid
        },
        |violation| matches!(violation, Violation::Parallel { .. }),
    );
}

#[test]
fn a_piece_that_is_left_out_or_shorter_starves_its_job() {
    each(
        |plan, table, window| {
            let grid = plan.system.macrotick;
            plan.tables[table].windows[window].length -= grid;
            true
        },
        |violation| matches!(violation, Violation::Starved { .. }),
    );
    each(
        |plan, table, window| {
            let window = plan.tables[table].windows.remove(window);
            !window.activate && !window.deadline
        },
        |violation| matches!(violation, Violation::Starved { .. }),
    );
}

#[test]
fn who_may_not_migrate_is_caught() {
    each(
        |plan, table, window| {
            let name = plan.tables[table].windows[window].task.clone();
            let task = plan.system.tasks.iter_mut().find(|task| task.name == name).expect("a known task");
            task.migrate = false;
            true
        },
        |violation| matches!(violation, Violation::Migrates { .. }),
    );
}
