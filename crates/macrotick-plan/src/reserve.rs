//! The choice of CPUs for tasks of `SCHED_DEADLINE`: each task gets one, beside windows and budgets.
//!
//! It is bin packing by bandwidth in decreasing order, as for partitioned EDF. (Lopez, Diaz and Garcia: Utilization
//! bounds for EDF scheduling on real-time multiprocessor systems. Real-Time Systems 28, 2004.) Worst fit leaves the
//! most room on each CPU; if it fails, first fit is tried. The judge checks the deadlines.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{CpuSet, CpuTable, Duration, Supply, System};

use crate::assign::capacity;
use crate::error::PlanError;
use crate::refute::Refutation;
use crate::{room, CAP_PERMILLE};

/// The parts of a CPU in which bandwidths count: 2 to the power of the kernel's `BW_SHIFT`.
const WHOLE: i128 = 1 << 20;
/// The parts of a CPU in which windows and budgets count: the kernel's `SCHED_CAPACITY_SCALE`.
const PARTS: i128 = 1 << 10;
/// The most that windows and budgets take together (`MACROTICK_CAP_PERMILLE`).
const MOST: i128 = PARTS * CAP_PERMILLE as i128 / 1000;
/// The share of the rest beside windows and budgets that deadline tasks can have: the defaults of `sched_rt_runtime_us`
/// and `sched_rt_period_us`.
const LIMIT: i128 = 950_000 * WHOLE / 1_000_000;
/// The share that the kernel keeps on each CPU for the server of its fair class, out of the time of deadline tasks. It
/// is 50 ms of every second (`dl_server_start()` in `kernel/sched/deadline.c`).
const FAIR_SERVER: i128 = WHOLE / 20;

/// Returns the system with a CPU for each of its reservations.
pub(crate) fn reserve(system: &System, tables: &[CpuTable], cycle: Duration) -> Result<System, PlanError> {
    let open = |task: &usize| system.tasks[*task].reservation().is_some_and(|reservation| reservation.cpus.is_empty());
    let mut order: Vec<usize> = (0..system.tasks.len()).filter(open).collect();
    order.sort_by_key(|&task| (Reverse(bandwidth(system, task)), task));
    let bins = bins(system, tables, cycle);
    let worst = fill(system, &order, bins.clone(), Fit::Worst);
    let found = worst.or_else(|_| fill(system, &order, bins, Fit::First))?;
    let mut system = system.clone();
    for (task, cpu) in found {
        if let Supply::Deadline(reservation) = &mut system.tasks[task].supply {
            reservation.cpus = CpuSet::from_iter([cpu]);
        }
    }
    Ok(system)
}

/// A CPU that a task can have alone, with its free bandwidth for deadline tasks.
#[derive(Clone)]
struct Bin {
    cpu: u32,
    free: i128,
}

#[derive(Clone, Copy)]
enum Fit {
    Worst,
    First,
}

/// Returns a CPU for each task, as pairs.
fn fill(system: &System, order: &[usize], mut bins: Vec<Bin>, fit: Fit) -> Result<Vec<(usize, u32)>, PlanError> {
    let mut found = Vec::new();
    for &task in order {
        let need = bandwidth(system, task);
        let host = system.cpus_on(system.tasks[task].host.as_deref());
        let emptiest = bins.iter().filter(|bin| host.contains(bin.cpu)).map(|bin| bin.free).max();
        let takes = |bin: &&mut Bin| match fit {
            _ if !host.contains(bin.cpu) => false,
            Fit::Worst => Some(bin.free) == emptiest && bin.free >= need,
            Fit::First => bin.free >= need,
        };
        let Some(bin) = bins.iter_mut().find(takes) else {
            let task = system.tasks[task].name.clone();
            return Err(PlanError::NoBandwidth {
                task,
                need: percent(need + WHOLE / 100 - 1),
                cpu: None,
                free: emptiest.map(|parts| percent(parts.max(0))),
            });
        };
        bin.free -= need;
        found.push((task, bin.cpu));
    }
    Ok(found)
}

/// Returns the CPUs outside global sets, and outside groups and tasks with several CPUs, each with its free bandwidth.
fn bins(system: &System, tables: &[CpuTable], cycle: Duration) -> Vec<Bin> {
    let bin = |cpu| Bin { cpu, free: free(system, tables, cycle, cpu) };
    for_one_alone(system, tables).map(bin).collect()
}

/// Returns the CPUs that a task can have alone.
pub(crate) fn for_one_alone<'a>(system: &'a System, tables: &[CpuTable]) -> impl Iterator<Item = u32> + use<'a> {
    let domains = system.domains();
    let mut served: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for table in tables {
        table.windows.iter().for_each(|window| _ = served.entry(&window.task).or_default().insert(table.cpu));
    }
    let shared: BTreeSet<u32> = served.into_values().filter(|cpus| cpus.len() > 1).flatten().collect();
    let alone = move |cpu: &u32| {
        let only = CpuSet::from_iter([*cpu]);
        let group = |group: &macrotick_model::Group| group.cpus.iter().copied().collect::<CpuSet>().straddles(&only);
        !shared.contains(cpu) && !domains.iter().any(|domain| domain.straddles(&only)) && !system.servers().any(group)
    };
    system.cpus.iter().copied().filter(alone)
}

/// Returns the reservations that a CPU has alone.
fn given(system: &System, cpu: u32) -> impl Iterator<Item = usize> + '_ {
    let here = move |task: &usize| {
        system.tasks[*task].reservation().is_some_and(|reservation| reservation.cpus.as_slice() == [cpu])
    };
    (0..system.tasks.len()).filter(here)
}

/// Whether the kernel admits the reservations that each CPU has alone. The error names the largest one of a CPU.
pub(crate) fn admitted(system: &System, tables: &[CpuTable], cycle: Duration) -> Result<(), PlanError> {
    for &cpu in &system.cpus {
        let Some(largest) = given(system, cpu).max_by_key(|&task| (bandwidth(system, task), Reverse(task))) else {
            continue;
        };
        let (need, free) = (bandwidth(system, largest), free(system, tables, cycle, cpu));
        if free < 0 {
            return Err(PlanError::NoBandwidth {
                task: system.tasks[largest].name.clone(),
                need: percent(need + WHOLE / 100 - 1),
                cpu: Some(cpu),
                free: Some(percent((free + need).max(0))),
            });
        }
    }
    Ok(())
}

/// Proves that a CPU has too little for its budgets or reservations, whatever the tables are. Its tasks and pools need at
/// least this time there.
pub(crate) fn refute(system: &System, cycle: Duration) -> Result<(), PlanError> {
    let system = &on_the_only_cpu(system);
    let refutation = system.cpus.iter().find_map(|&cpu| {
        let busy = least_busy(system, cycle, cpu);
        refute_budgets(system, busy, cycle, cpu).or_else(|| refute_reservations(system, busy, cycle, cpu))
    });
    refutation.map_or(Ok(()), |refutation| Err(PlanError::Impossible(refutation)))
}

/// Returns the system with the CPU of each reservation, if there is just one.
fn on_the_only_cpu(system: &System) -> System {
    let mut system = system.clone();
    if let [cpu] = system.cpus[..] {
        for task in &mut system.tasks {
            if let Supply::Deadline(reservation) = &mut task.supply {
                reservation.cpus = CpuSet::from_iter([cpu]);
            }
        }
    }
    system
}

/// Returns the time that windows and leads of a CPU need in a cycle, if nothing else is on it than what must be.
fn least_busy(system: &System, cycle: Duration, cpu: u32) -> Duration {
    let lead = system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let must = |pinned: Option<u32>| pinned == Some(cpu) || system.cpus.len() == 1;
    let tasks = system.windowed().filter(|task| must(task.cpu)).map(|task| (task.wcet + lead) * (cycle / task.period));
    let pools = system.pools().filter(|pool| must(pool.cpu)).map(|pool| pool.length * (cycle / pool.period));
    tasks.chain(pools).sum()
}

/// Returns the longest time that windows and leads of a CPU can take in a cycle, beside sync windows and its budgets.
pub(crate) fn room_for_windows(system: &System, cpu: u32, cycle: Duration) -> Duration {
    let budgets = room::budget(system, cpu);
    let capacity = capacity(system, cycle);
    if budgets == Duration::ZERO {
        return capacity;
    }
    let free = (MOST - parts(budgets, system.server_period)).max(0);
    capacity.min(Duration::from_nanos((i128::from(cycle.as_nanos()) * free / PARTS) as i64))
}

fn refute_budgets(system: &System, busy: Duration, cycle: Duration, cpu: u32) -> Option<Refutation> {
    let groups = system.servers().filter(|group| group.cpus.contains(&cpu) && group.budget.is_some());
    let budgets = room::budget(system, cpu);
    let free = i128::from(system.server_period.as_nanos()) * (MOST - parts(busy, cycle));
    let thousandths =
        |part: Duration, whole: Duration| (part.as_nanos() * 1000 + whole.as_nanos() - 1) / whole.as_nanos();
    (budgets > Duration::ZERO && i128::from(budgets.as_nanos()) * PARTS > free).then(|| Refutation::Budgets {
        cpu,
        windows: thousandths(busy, cycle),
        budgets: thousandths(budgets, system.server_period),
        groups: groups.map(|group| group.name.clone()).collect(),
    })
}

fn refute_reservations(system: &System, busy: Duration, cycle: Duration, cpu: u32) -> Option<Refutation> {
    let free = beside(system, busy, cycle, cpu);
    let tasks: Vec<usize> = given(system, cpu).collect();
    let promised: i128 = tasks.iter().map(|&task| bandwidth(system, task)).sum();
    let thousandths = |parts: i128| (parts * 1000).div_euclid(WHOLE) as i64;
    (!tasks.is_empty() && free < 0).then(|| Refutation::Reserved {
        cpu,
        promised: thousandths(promised + WHOLE / 1000 - 1),
        allowed: thousandths((free + promised).max(0)),
        tasks: tasks.into_iter().map(|task| system.tasks[task].name.clone()).collect(),
    })
}

/// Returns the bandwidth that windows with their leads, budgets and given reservations leave to deadline tasks.
///
/// It counts as the kernel does: windows and budgets are rounded up to parts of 1024, and 95 % of the rest is available
/// (`macrotick_dl_capacity()`, `__dl_overflow()`). An open budget counts as zero.
fn free(system: &System, tables: &[CpuTable], cycle: Duration, cpu: u32) -> i128 {
    beside(system, busy(system, tables, cpu), cycle, cpu)
}

/// Returns the time that the windows of a CPU take in a cycle, with their leads.
pub(crate) fn busy(system: &System, tables: &[CpuTable], cpu: u32) -> Duration {
    let lead = system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let windows = tables.iter().filter(|table| table.cpu == cpu).flat_map(|table| &table.windows);
    windows.map(|window| window.length + if window.activate { lead } else { Duration::ZERO }).sum()
}

/// Returns the same beside windows and leads of this time.
fn beside(system: &System, busy: Duration, cycle: Duration, cpu: u32) -> i128 {
    let budgets = room::budget(system, cpu);
    let left = PARTS - parts(busy, cycle) - parts(budgets, system.server_period);
    let here = |task: &usize| system.tasks[*task].reservation().is_some_and(|one| one.cpus.contains(cpu));
    let given: i128 = (0..system.tasks.len()).filter(here).map(|task| bandwidth(system, task)).sum();
    LIMIT * left / PARTS - FAIR_SERVER - given
}

fn percent(parts: i128) -> i64 {
    (parts * 100).div_euclid(WHOLE) as i64
}

fn bandwidth(system: &System, task: usize) -> i128 {
    let task = &system.tasks[task];
    task.reservation().map_or(0, |reservation| {
        // Rounded down, as by `to_ratio()`.
        i128::from(reservation.runtime.as_nanos()) * WHOLE / i128::from(task.period.as_nanos())
    })
}

fn parts(part: Duration, whole: Duration) -> i128 {
    (i128::from(part.as_nanos()) * PARTS + i128::from(whole.as_nanos()) - 1) / i128::from(whole.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan, Solver};

    fn cpus_of(tasks: &str, rest: &str) -> Result<Vec<String>, PlanError> {
        let source =
            format!("system: s\ncpus: [0, 1]\ntasks:\n  - {{name: w, period: 10ms, wcet: 1ms, cpu: 0}}\n{tasks}{rest}");
        let system = System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        let plan = plan(&system, Solver::FoldedOccupancy)?;
        assert_eq!(plan.system.problems(), Vec::<String>::new());
        Ok(plan.system.reserved().map(|(task, one)| format!("{} {}", task.name, one.cpus)).collect())
    }

    fn task(name: &str, runtime_ms: i64, more: &str) -> String {
        format!(
            "  - {{name: {name}, period: 100ms, wcet: {runtime_ms}ms, supply: {{deadline: {{runtime: {runtime_ms}ms{more}}}}}}}\n"
        )
    }

    #[test]
    fn the_emptiest_cpu_comes_first() {
        let tasks =
            task("small", 10, "") + &task("big", 50, "") + &task("middle", 20, "") + &task("given", 5, ", cpus: [0]");
        assert_eq!(cpus_of(&tasks, "").unwrap(), ["small 0", "big 1", "middle 0", "given 0"]);
    }

    #[test]
    fn where_the_emptiest_leaves_no_room_they_are_packed() {
        // CPU 0 has room for 80.5 %, CPU 1 for 90 %. Worst fit puts 50 and 29 on CPU 1, and the last 29 does not fit.
        let others: String = ["b", "c", "d", "e"].map(|name| task(name, 29, "")).concat();
        let tasks = task("a", 50, "") + &others;
        assert_eq!(cpus_of(&tasks, "").unwrap(), ["a 0", "b 0", "c 1", "d 1", "e 1"]);
        let error = cpus_of(&(tasks + &task("f", 9, "")), "").unwrap_err().to_string();
        assert!(error.starts_with("task `f` needs 9 % of a CPU for SCHED_DEADLINE"), "{error}");
    }

    #[test]
    fn leads_count_as_windows_do() {
        // The window of CPU 0 takes 10 %, and its lead another 10 %. So windows and budget leave more on CPU 1.
        let groups = "groups:\n  - {name: g, priority: 1, budget: 375us, cpus: [1]}\n";
        assert_eq!(cpus_of(&task("one", 72, ""), &format!("lead: 1ms\n{groups}")).unwrap(), ["one 1"]);
        assert_eq!(cpus_of(&task("one", 72, ""), groups).unwrap(), ["one 0"]);
    }

    /// The window takes 103 of 1024 parts. The fair class has 52428 parts of 996147 * 921 / 1024, rounded down; the
    /// whole is 2^20.
    #[test]
    fn what_is_left_is_counted_as_the_kernel_does() {
        let of = |runtime: &str| {
            let keys = format!("period: 100ms, wcet: 1ms, supply: {{deadline: {{runtime: {runtime}}}}}");
            cpus_of(&format!("{}  - {{name: one, {keys}}}\n", task("given", 85, ", cpus: [1]")), "")
        };
        // 843520 parts and one more.
        assert_eq!(of("80444336ns").unwrap(), ["given 1", "one 0"]);
        let told = of("80444432ns").unwrap_err().to_string();
        assert!(
            told.starts_with("task `one` needs 81 % of a CPU for SCHED_DEADLINE, but the emptiest CPU has 80 % left"),
            "{told}"
        );
        let full = task("given", 80, ", cpus: [0]") + &task("other", 90, ", cpus: [1]") + &task("one", 1, "");
        let told = cpus_of(&full, "").unwrap_err().to_string();
        assert!(told.contains("the emptiest CPU has 0 % left"), "{told}");
    }

    #[test]
    fn too_much_on_a_given_cpu_is_proved_or_told() {
        // The window of CPU 0 is pinned: 10 % of 95 % and the 5 % of the fair class are gone.
        let proved = cpus_of(&task("given", 90, ", cpus: [0]"), "").unwrap_err().to_string();
        assert_eq!(
            proved,
            "SCHED_DEADLINE would promise 90.0 % of CPU 0, but the kernel allows at most 80.4 % beside the tasks and \
             groups that must be there, and its own reserve: `given`"
        );
        // Two tasks can be on either CPU, but one of them must be on CPU 1.
        let others = ["x", "y"].map(|name| format!("  - {{name: {name}, period: 10ms, wcet: 5ms}}\n")).concat();
        let told = cpus_of(&(others.clone() + &task("given", 60, ", cpus: [1]")), "").unwrap_err().to_string();
        assert!(told.starts_with("task `given` needs 60 % of a CPU for SCHED_DEADLINE, but CPU 1 has "), "{told}");
        // Beside a smaller one, both find a CPU.
        let found = cpus_of(&(others + &task("given", 40, ", cpus: [1]")), "");
        assert_eq!(found.unwrap(), ["given 1"]);
    }

    #[test]
    fn too_much_for_windows_and_budgets_is_proved() {
        let of = |budget: &str| {
            let groups = format!("groups:\n  - {{name: g, priority: 1, budget: {budget}, cpus: [0]}}\n");
            cpus_of("", &groups).map_err(|error| error.to_string())
        };
        // 103 of 1024 parts for the window, 869 are left of 972.
        assert!(of("2121us").is_ok());
        assert_eq!(
            of("2122us").unwrap_err(),
            "CPU 0: its windows take at least 10.0 % and the budgets of `g` 84.9 %, but together they can take at most \
             95 %, in whole parts of 1024"
        );
    }

    #[test]
    fn a_cpu_that_others_share_is_left_out() {
        let global = task("anywhere", 10, ", cpus: [0, 1]");
        let error = cpus_of(&(global + &task("one", 10, "")), "").unwrap_err().to_string();
        assert_eq!(
            error,
            "task `one` needs 10 % of a CPU for SCHED_DEADLINE, but there is no CPU that it can have alone"
        );
        let group = "groups:\n  - {name: g, priority: 1, budget: 1ms, cpus: [1]}\n";
        assert_eq!(cpus_of(&task("one", 10, ""), group).unwrap(), ["one 0"]);
        // Neither `a` nor `b` fits beside `w` and the other one, so one of them has windows on both CPUs.
        let migrating =
            ["a", "b"].map(|name| format!("  - {{name: {name}, period: 10ms, wcet: 6ms, migrate: true}}\n"));
        let rest = "  - {name: v, period: 10ms, wcet: 4ms, cpu: 0}\n";
        let error = cpus_of(&(migrating.concat() + rest + &task("one", 1, "")), "").unwrap_err().to_string();
        assert!(error.ends_with("but there is no CPU that it can have alone"), "{error}");
    }
}
