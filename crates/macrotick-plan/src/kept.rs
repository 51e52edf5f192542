//! Time that windows leave to tasks of `SCHED_DEADLINE`, which come after windows and groups.
//!
//! The first table is made without regard to these tasks. Its windows may leave too little before a deadline. Further
//! tables are then made beside *kept time*: a task or a pool with windows that are taken out afterwards. Its period is a
//! part of the shortest deadline. Its length is the least with which the work fits into every interval.
//!
//! As a task without jitter, kept time is at the same phase in every period, and the least of it is enough. As a pool it
//! takes more, but can lie anywhere (Shin, Lee: Periodic resource model for compositional real-time guarantees, RTSS
//! 2003). The reservations of a CPU share one such time, or each has its own. A reservation without a CPU always has its
//! own, and gets the CPU on which that time was placed.
//!
//! Groups take their budgets before these tasks, so some attempts also keep time for budgets.
//!
//! The test here is sufficient, and weaker than that of the judge: if no table passes it, the first one is the result.

use std::collections::BTreeSet;

use macrotick_model::{CpuSet, CpuTable, Duration, Group, PoolOrder, Reservation, Supply, System, Task, Windows};

use crate::demand::round_up;
use crate::error::PlanError;
use crate::folded;
use crate::frozen::Windows as Frozen;
use crate::options::Clock;
use crate::reserve::{admitted, for_one_alone, refute, reserve};
use crate::room;
use crate::LEAST_WINDOW;

/// A way to keep time.
#[derive(Clone, Copy)]
struct Manner {
    /// Whether it has a phase.
    fixed: bool,
    /// The number of its periods before the shortest deadline.
    parts: i64,
    /// Whether all reservations of a CPU have one such time together.
    together: bool,
    /// Whether it is also for budgets.
    with_budgets: bool,
}

/// The ways to keep time, one attempt after the other.
const ATTEMPTS: [(bool, i64); 9] =
    [(true, 1), (false, 2), (true, 2), (false, 4), (true, 4), (false, 8), (true, 8), (false, 16), (false, 32)];
/// The most periods of a pool in a cycle.
const MOST_PERIODS: i64 = 4096;
/// The most deadlines of one pool, and the most steps of the test of one CPU. They bound the time without a clock, so
/// the plan is the same on every machine.
const DEADLINES: i64 = 1000;
const STEPS: usize = 4_000_000;
/// The beginning of the names of pools. No description has it.
const PREFIX: &str = "\u{0}";

/// The tables of all CPUs.
pub(crate) struct Tables {
    pub tables: Vec<CpuTable>,
    /// The system with a CPU for each reservation.
    pub system: System,
    /// Whether they certainly leave enough time to all reservations. Otherwise the judge decides.
    pub is_enough: bool,
}

/// Returns the tables, in which the frozen windows are as they were.
pub(crate) fn tables(system: &System, cycle: Duration, clock: &Clock, frozen: &Frozen) -> Result<Tables, PlanError> {
    refute(system, cycle)?;
    let tables = folded::tables(system, cycle, clock, frozen)?;
    let reserved = reserve(system, &tables, cycle);
    if reserved.as_ref().is_ok_and(|reserved| is_enough(reserved, &tables, cycle)) {
        return Ok(Tables { tables, system: reserved?, is_enough: true });
    }
    // First with the CPUs that the first table leaves to the tasks.
    let open = alone(system).any(|(_, reservation)| reservation.cpus.is_empty());
    let bases: Vec<&System> = reserved.as_ref().ok().into_iter().chain(open.then_some(system)).collect();
    let attempts: Vec<(&System, Manner)> =
        bases.iter().flat_map(|base| manners(base).map(move |manner| (*base, manner))).collect();
    for (number, (base, manner)) in attempts.iter().enumerate() {
        let clock = clock.part((attempts.len() - number) as u32);
        if clock.is_over() {
            break;
        }
        let found = beside(base, cycle, *manner).and_then(|beside| {
            let (tables, system) = taken_out(base, folded::tables(&beside, cycle, &clock, frozen).ok()?)?;
            is_enough(&system, &tables, cycle).then_some(Tables { tables, system, is_enough: true })
        });
        if let Some(found) = found {
            return Ok(found);
        }
    }
    let reserved = reserved?;
    admitted(&reserved, &tables, cycle)?;
    Ok(Tables { tables, system: reserved, is_enough: false })
}

/// Adds a CPU for each reservation to tables. `None` if they may not leave enough time.
pub(crate) fn enough(system: &System, tables: Vec<CpuTable>, cycle: Duration) -> Option<Tables> {
    let reserved = reserve(system, &tables, cycle).ok()?;
    is_enough(&reserved, &tables, cycle).then_some(Tables { tables, system: reserved, is_enough: true })
}

/// Returns the ways to keep time that differ for a system.
fn manners(system: &System) -> impl Iterator<Item = Manner> {
    let has_budgets = system.servers().next().is_some();
    let several = system.cpus.iter().any(|&cpu| alone(system).filter(|(_, one)| one.cpus.contains(cpu)).count() > 1);
    let of = move |(fixed, parts)| {
        let all = [(true, false), (true, true), (false, false)];
        let differing =
            all.into_iter().filter(move |(together, with)| (!with || has_budgets) && (*together || several));
        differing.map(move |(together, with_budgets)| Manner { fixed, parts, together, with_budgets })
    };
    ATTEMPTS.into_iter().flat_map(of)
}

/// Returns the tasks with a reservation on at most one CPU.
fn alone(system: &System) -> impl Iterator<Item = (&Task, &Reservation)> {
    system.reserved().filter(|(_, reservation)| !reservation.cpus.is_several())
}

/// Returns the system with kept time instead of reservations. A task keeps the least reservation on its CPU, so windows
/// do not migrate over it.
fn beside(system: &System, cycle: Duration, manner: Manner) -> Option<System> {
    let mut beside = system.clone();
    let mut keep = |name: String,
                    (cpu, host): (Option<u32>, Option<String>),
                    tasks: &[(&Task, &Reservation)],
                    budget: Duration| {
        let shortest = tasks.iter().map(|(task, _)| task.deadline.min(task.period)).min()?;
        let most = Duration::from_nanos(shortest.as_nanos() / manner.parts);
        let period = part_of(cycle, most, system.macrotick)?;
        let work = |at| works(tasks, at) + by_groups(budget, system.server_period, at);
        let length = least_length(manner.fixed, period, system.macrotick, tasks, &work)?;
        if manner.fixed {
            beside.tasks.push(Task {
                cpu,
                host,
                jitter: Some(Duration::ZERO),
                preemptible: Some(false),
                ..Task::named(name, period, length)
            });
        } else {
            let order = PoolOrder::RoundRobin(PoolOrder::DEFAULT_SLICE);
            let windows = Some(Windows { period, length, order, slack: false });
            beside.groups.push(Group { windows, host, ..Group::named(name, cpu.into_iter().collect()) });
        }
        Some(())
    };
    for &cpu in system.cpus.iter().filter(|_| manner.together) {
        let here: Vec<_> = alone(system).filter(|(_, one)| one.cpus.contains(cpu)).collect();
        let budget = if manner.with_budgets { room::expected_budget(system, cpu) } else { Duration::ZERO };
        if !here.is_empty() {
            keep(format!("{PREFIX}{PREFIX}{cpu}"), (Some(cpu), None), &here, budget)?;
        }
    }
    for one in alone(system).filter(|(_, one)| one.cpus.is_empty() || !manner.together) {
        let place = (one.1.cpus.as_slice().first().copied(), one.0.host.clone());
        keep(format!("{PREFIX}{}", one.0.name), place, &[one], Duration::ZERO)?;
    }
    for task in &mut beside.tasks {
        if let Supply::Deadline(reservation) = &mut task.supply {
            if !reservation.cpus.is_several() {
                reservation.runtime = Reservation::MIN_RUNTIME;
            }
        }
    }
    Some(beside)
}

/// Returns the most work of tasks with arrival and deadline in an interval.
fn works(tasks: &[(&Task, &Reservation)], interval: Duration) -> Duration {
    let due = tasks.iter().filter(|(task, _)| task.deadline <= interval);
    due.map(|(task, one)| one.runtime * ((interval - task.deadline) / task.period + 1)).sum()
}

/// Returns the most time of an interval that groups take. They can use their budgets at the end of a server period and
/// at the start of the next.
fn by_groups(budget: Duration, server_period: Duration, interval: Duration) -> Duration {
    let again = (interval - budget).max(Duration::ZERO);
    interval.min(budget) + budget * (again / server_period) + (again % server_period).min(budget)
}

/// Returns the longest part of a cycle on the grid that is at most this long.
fn part_of(cycle: Duration, most: Duration, grid: Duration) -> Option<Duration> {
    let least = (cycle.as_nanos() + most.as_nanos() - 1).checked_div(most.as_nanos())?.max(1);
    let fits = |&count: &i64| {
        cycle.as_nanos() % count == 0 && Duration::from_nanos(cycle.as_nanos() / count).is_multiple_of(grid)
    };
    (least..=MOST_PERIODS).find(fits).map(|count| Duration::from_nanos(cycle.as_nanos() / count))
}

/// Returns the least length in each period with which there is enough time before every deadline. The interval can begin
/// anywhere. Without a fixed phase, the time can be anywhere in its period.
fn least_length(
    fixed: bool,
    period: Duration,
    grid: Duration,
    tasks: &[(&Task, &Reservation)],
    work: &dyn Fn(Duration) -> Duration,
) -> Option<Duration> {
    let sure = |length: Duration, interval: Duration| {
        let behind = (interval - (period - length)).max(Duration::ZERO);
        let last = behind % period;
        let last = if fixed { last.min(length) } else { (last - (period - length)).max(Duration::ZERO) };
        length * (behind / period) + last
    };
    let in_time = |length: Duration, task: &Task| {
        let mut deadlines = (0..DEADLINES).map(|job| task.deadline + task.period * job);
        deadlines.all(|at| sure(length, at) >= work(at))
    };
    let is_enough = |length: Duration| tasks.iter().all(|(task, _)| in_time(length, task));
    let (mut short, mut enough) = (0, period / grid);
    if !is_enough(grid * enough) {
        return None;
    }
    while enough - short > 1 {
        let middle = (short + enough) / 2;
        match is_enough(grid * middle) {
            true => enough = middle,
            false => short = middle,
        }
    }
    Some((grid * enough).max(round_up(LEAST_WINDOW, grid)))
}

/// Takes the kept time out of the tables. Returns the system with the CPUs of the pools for their tasks, unless one of
/// them cannot be had alone.
fn taken_out(system: &System, mut tables: Vec<CpuTable>) -> Option<(Vec<CpuTable>, System)> {
    let mut chosen = system.clone();
    let mut kept = vec![BTreeSet::new(); tables.len()];
    for (table, kept) in tables.iter_mut().zip(&mut kept) {
        table.windows.retain(|window| match window.task.strip_prefix(PREFIX) {
            Some(task) => {
                kept.insert(task.to_owned());
                false
            }
            None => true,
        });
    }
    let free: BTreeSet<u32> = for_one_alone(system, &tables).collect();
    for task in &mut chosen.tasks {
        let Supply::Deadline(reservation) = &mut task.supply else { continue };
        if !reservation.cpus.is_empty() {
            continue;
        }
        let on = kept.iter().position(|kept| kept.contains(&task.name));
        let cpu = on.map(|index| tables[index].cpu).filter(|cpu| free.contains(cpu))?;
        reservation.cpus = CpuSet::from_iter([cpu]);
    }
    Some((tables, chosen))
}

/// Whether the kernel admits the tasks of SCHED_DEADLINE on each CPU beside windows and budgets, and whether they meet
/// their deadlines.
fn is_enough(system: &System, tables: &[CpuTable], cycle: Duration) -> bool {
    let keeps = |cpu: u32| {
        let here = |(_, reservation): &(&Task, &Reservation)| reservation.cpus.as_slice() == [cpu];
        let tasks: Vec<(&Task, &Reservation)> = system.reserved().filter(here).collect();
        let table = tables.iter().find(|table| table.cpu == cpu);
        tasks.is_empty() || Busy::new(system, table, cycle).leaves_enough(system, cpu, &tasks)
    };
    admitted(system, tables, cycle).is_ok() && system.cpus.iter().all(|&cpu| keeps(cpu))
}

/// The time that windows take on a CPU, leads included.
struct Busy {
    cycle: Duration,
    /// Start and end of each stretch in the cycle, with the time taken before it.
    stretches: Vec<(Duration, Duration, Duration)>,
    per_cycle: Duration,
}

impl Busy {
    fn new(system: &System, table: Option<&CpuTable>, cycle: Duration) -> Busy {
        let lead = system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
        let mut parts: Vec<(Duration, Duration)> = Vec::new();
        for window in table.into_iter().flat_map(|table| &table.windows) {
            let start = window.offset - if window.activate { lead } else { Duration::ZERO };
            let end = window.offset + window.length;
            parts.push((start.max(Duration::ZERO), end));
            if start < Duration::ZERO {
                parts.push((start + cycle, cycle));
            }
        }
        parts.sort_unstable();
        let (mut stretches, mut before): (Vec<(Duration, Duration, Duration)>, _) = (Vec::new(), Duration::ZERO);
        for (start, end) in parts {
            match stretches.last_mut().filter(|(_, last, _)| start <= *last) {
                Some((_, last, _)) => {
                    before += (end - *last).max(Duration::ZERO);
                    *last = end.max(*last);
                }
                None => {
                    stretches.push((start, end, before));
                    before += end - start;
                }
            }
        }
        Busy { cycle, stretches, per_cycle: before }
    }

    /// Returns the time taken from the start of the first cycle to an instant.
    fn until(&self, at: Duration) -> Duration {
        let (cycles, within) = (at / self.cycle, at % self.cycle);
        let next = self.stretches.partition_point(|(start, ..)| *start < within);
        let here = next.checked_sub(1).map_or(Duration::ZERO, |last| {
            let (start, end, before) = self.stretches[last];
            before + within.min(end) - start
        });
        self.per_cycle * cycles + here
    }

    /// Returns the most time taken in an interval of this length. The worst one begins with a stretch.
    fn most_in(&self, interval: Duration) -> Duration {
        let from = |&(start, _, before): &(Duration, Duration, Duration)| self.until(start + interval) - before;
        self.stretches.iter().map(from).max().unwrap_or(Duration::ZERO)
    }

    /// The processor demand test (Baruah, Mok, Rosier 1990) beside windows and budgets.
    fn leaves_enough(&self, system: &System, cpu: u32, tasks: &[(&Task, &Reservation)]) -> bool {
        let budget = room::expected_budget(system, cpu);
        let longest = tasks.iter().map(|(task, _)| task.period).max().unwrap_or(self.cycle);
        let until = (self.cycle * 2 + longest * 2).max(longest * 8);
        let mut deadlines: Vec<Duration> = tasks
            .iter()
            .flat_map(|(task, _)| (0..).map(|job| task.deadline + task.period * job).take_while(|at| *at <= until))
            .take(STEPS)
            .collect();
        deadlines.sort_unstable();
        deadlines.dedup();
        deadlines.truncate(STEPS / (self.stretches.len() + 1));
        deadlines
            .into_iter()
            .all(|at| self.most_in(at) + by_groups(budget, system.server_period, at) + works(tasks, at) <= at)
    }
}
