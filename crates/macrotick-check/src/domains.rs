//! Tasks of SCHED_DEADLINE beside windows and budgets: whether the kernel admits them, and whether they meet their
//! deadlines.
//!
//! The kernel promises each task its runtime, and the analysis assumes that each task uses all of it. So a miss of one
//! task does not depend on the wcet of another. These tasks come after windows and groups.

use std::collections::BTreeMap;

use macrotick_analysis::deadline::{
    demand, density_test, response_bounds, tardiness_bounds, DeadlineError, Left, Task,
};
use macrotick_analysis::kernel::{self, WHOLE};
use macrotick_analysis::servers::Taken;
use macrotick_model::{CpuSet, Duration, Plan};
use serde::{Deserialize, Serialize};

use crate::jobs::allowed;
use crate::{Verdict, Violation};

/// A set of CPUs with its tasks of SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainVerdict {
    /// The CPUs: one, or several among which the tasks migrate.
    pub cpus: CpuSet,
    /// The tasks, in the order of the system.
    pub tasks: Vec<String>,
    /// The bandwidth that the kernel promises them, as a share of one CPU.
    pub promised: f64,
    /// The bandwidth that the kernel admits beside windows and budgets, as a share of one CPU.
    pub capacity: f64,
    /// The result for their deadlines.
    pub deadlines: Deadlines,
}

/// The result for the deadlines of a set of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deadlines {
    /// All deadlines are met.
    Met,
    /// A deadline may be missed.
    Missed,
    /// Jobs may be late. The list has the longest lateness of each task.
    Late(Vec<Duration>),
    /// No result, for the reason in the string.
    Unknown(String),
}

/// Checks the sets, if there are any.
pub(crate) fn check(plan: &Plan, verdict: &mut Verdict) {
    let open = plan.system.reserved().filter(|(_, reservation)| reservation.cpus.is_empty());
    verdict.violations.extend(open.map(|(task, _)| Violation::NoCpu { task: task.name.clone() }));
    for (task, reservation) in plan.system.reserved() {
        let Some(allowed) = allowed(plan, None, task.host.as_ref()) else { continue };
        if let Some(&cpu) = reservation.cpus.as_slice().iter().find(|cpu| !allowed.contains(**cpu)) {
            verdict.violations.push(Violation::WrongReservation { task: task.name.clone(), cpu, allowed });
        }
    }
    let domains = plan.system.domains();
    verdict.domains = domains.iter().map(|cpus| judge(plan, cpus, &mut verdict.violations)).collect();
    if domains.is_empty() {
        return;
    }
    let mut served: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for table in &plan.tables {
        table.windows.iter().for_each(|window| served.entry(&window.task).or_default().push(table.cpu));
    }
    for task in plan.system.windowed() {
        let cpus: CpuSet = served.get(task.name.as_str()).into_iter().flatten().copied().collect();
        if let Some(domain) = domains.iter().find(|domain| cpus.straddles(domain)) {
            verdict.violations.push(Violation::Straddles { task: task.name.clone(), cpus, domain: domain.clone() });
        }
    }
}

fn judge(plan: &Plan, cpus: &CpuSet, violations: &mut Vec<Violation>) -> DomainVerdict {
    let of: Vec<_> = plan.system.reserved().filter(|(_, reservation)| reservation.cpus == *cpus).collect();
    let room = Room::new(plan, cpus, of.iter().map(|(task, reservation)| (reservation.runtime, task.period)));
    if room.promised > room.capacity {
        let percent = |parts: i128| (parts * 1000 / WHOLE) as i64;
        violations.push(Violation::Promised {
            cpus: cpus.clone(),
            promised: percent(room.promised + WHOLE / 1000 - 1),
            capacity: percent(room.capacity.max(0)),
        });
    }
    let tasks: Vec<Task> = of.iter().map(|(task, reservation)| Task::promised(task, reservation)).collect();
    let names: Vec<String> = of.iter().map(|(task, _)| task.name.clone()).collect();
    let deadlines = match cpus.as_slice() {
        &[cpu] => alone(plan, cpu, &names, &tasks, violations),
        _ => together(plan, cpus, &tasks),
    };
    let share = |parts: i128| parts as f64 / WHOLE as f64;
    let (promised, capacity) = (share(room.promised), share(room.capacity));
    DomainVerdict { cpus: cpus.clone(), tasks: names, promised, capacity, deadlines }
}

/// Checks one CPU: the processor demand against the time that windows and groups leave.
fn alone(plan: &Plan, cpu: u32, names: &[String], tasks: &[Task], violations: &mut Vec<Violation>) -> Deadlines {
    let system = &plan.system;
    let lead = system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    let table = plan.tables.iter().find(|table| table.cpu == cpu);
    let left = Left::new(plan.cycle, lead, table, system.server_period, budgets(plan, cpu));
    match left.and_then(|left| demand(tasks, &left)) {
        Ok(()) => Deadlines::Met,
        Err(error) => {
            let (tasks, error) = (names.to_vec(), error.to_string());
            violations.push(Violation::Demand { cpu, tasks, error });
            Deadlines::Missed
        }
    }
}

/// Checks several CPUs with sufficient tests, of which one has to pass, or else with a bound on lateness. If windows or
/// groups use one of the CPUs, there is no result.
fn together(plan: &Plan, cpus: &CpuSet, tasks: &[Task]) -> Deadlines {
    let shared = |cpu: &&u32| budgets(plan, **cpu) > Duration::ZERO || busy(plan, **cpu) > Duration::ZERO;
    if let Some(cpu) = cpus.as_slice().iter().find(shared) {
        return Deadlines::Unknown(format!("CPU {cpu} has windows or budgets, and global EDF has no test for this"));
    }
    let count = cpus.as_slice().len() as u32;
    if density_test(tasks, count) == Ok(true) || matches!(response_bounds(tasks, count), Ok(Some(_))) {
        return Deadlines::Met;
    }
    match tardiness_bounds(tasks, count) {
        Ok(Some(bounds)) => Deadlines::Late(bounds),
        Ok(None) => Deadlines::Unknown("they need more time than their CPUs have".into()),
        Err(DeadlineError::NotImplicit { .. }) => Deadlines::Unknown(
            "no test of global EDF passes, and there is no bound for deadlines shorter than periods".into(),
        ),
        Err(error) => Deadlines::Unknown(error.to_string()),
    }
}

/// Returns the budgets on a CPU in a server period. An open budget counts as zero.
fn budgets(plan: &Plan, cpu: u32) -> Duration {
    let here = plan.system.servers().filter(|group| group.cpus.contains(&cpu));
    here.filter_map(|group| group.budget).sum()
}

/// Returns the time of windows and leads in a cycle.
fn busy(plan: &Plan, cpu: u32) -> Duration {
    let lead = plan.system.lead.map_or(Duration::ZERO, |lead| lead.reserved());
    Taken::new(plan.cycle, lead, plan.tables.iter().find(|table| table.cpu == cpu)).per_cycle()
}

/// The two values that the kernel's admission compares (`__dl_overflow()`, `macrotick_dl_capacity()`).
struct Room {
    promised: i128,
    capacity: i128,
}

impl Room {
    fn new(plan: &Plan, cpus: &CpuSet, promised: impl Iterator<Item = (Duration, Duration)>) -> Room {
        let taken = |cpu: &u32| {
            let budgets = kernel::round_up(budgets(plan, *cpu), plan.system.server_period, kernel::PARTS);
            kernel::round_up(busy(plan, *cpu), plan.cycle, kernel::PARTS) + budgets
        };
        let count = cpus.as_slice().len();
        let left = count as i128 * kernel::PARTS - cpus.as_slice().iter().map(taken).sum::<i128>();
        Room {
            promised: promised.map(|(runtime, period)| kernel::bandwidth(runtime, period)).sum(),
            capacity: kernel::for_deadline(count, left),
        }
    }
}
