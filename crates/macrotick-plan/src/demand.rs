//! The demand of each task and each pool on the grid.

use std::collections::BTreeMap;

use macrotick_model::{CpuSet, Duration, Pool, Reserve, System, Task};

use crate::error::{Kind, PlanError};
use crate::{LEAST_WINDOW, MIN_WINDOW};

/// The period of the kernel's tick: 1000 Hz, or a divisor of it.
const TICK: Duration = Duration::from_millis(1);

/// A task as the solver sees it. All lengths are multiples of the macrotick.
///
/// A pool has the demand of a task: its budget stands for the wcet, and each period is a job's time from release to
/// deadline. It has no lead.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub kind: Kind,
    pub name: String,
    pub period: Duration,
    /// The wcet, or the budget of a pool, rounded up to the macrotick. It is at least the shortest window.
    pub wcet: Duration,
    /// The wcet or budget of the description.
    pub needed: Duration,
    /// The deadline, rounded down to the macrotick.
    pub deadline: Duration,
    pub offset: Option<Duration>,
    pub jitter: Option<Duration>,
    /// The time without windows before each start: the system's lead, rounded up to the macrotick. Zero for a pool.
    pub lead: Duration,
    /// The grid of other timers: they expire at multiples of it, see [`common_grid`].
    pub common_grid: Duration,
    /// The CPUs that its windows may be on.
    pub cpus: CpuSet,
    /// Whether the task may be split over several CPUs if it fits on none.
    pub migrate: bool,
    /// Whether a job can have several windows. Otherwise it has exactly one.
    pub preemptible: bool,
}

impl Demand {
    /// Whether it is a pool or a reserve: something without jobs.
    pub fn is_pool(&self) -> bool {
        self.kind != Kind::Task
    }

    /// Returns the places of its CPUs in the list of all CPUs, in ascending order.
    pub fn places<'a>(&'a self, cpus: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        (0..cpus.len()).filter(|&cpu| self.cpus.contains(cpus[cpu]))
    }

    /// Whether starts must keep to a phase, so the task cannot be left to EDF.
    pub fn needs_phase(&self) -> bool {
        self.jitter.is_some()
    }

    /// Returns the time from the start of the cycle to the first release. The description or the default (0) fixes it.
    pub fn release(&self) -> Duration {
        self.offset.unwrap_or(Duration::ZERO)
    }

    /// Returns the earliest and the latest start of job 0, for a task with the same windows in every period.
    pub fn starts(&self) -> (Duration, Duration) {
        let slack = self.deadline - self.wcet;
        match (self.offset, self.jitter) {
            (Some(offset), Some(jitter)) => (offset, offset + jitter.min(slack)),
            (Some(offset), None) => (offset, offset + slack),
            (None, Some(_)) => (Duration::ZERO, self.period - self.wcet),
            (None, None) => (Duration::ZERO, slack),
        }
    }

    /// Returns the instant by which job 0 must be complete if it starts at `start`. It is the earlier of the deadline
    /// and the start of the next job's lead.
    pub fn limit(&self, start: Duration) -> Duration {
        let deadline = match (self.offset, self.jitter) {
            // The solver chooses the release and keeps every job within its period.
            (None, Some(_)) => (start + self.deadline).min(self.period),
            _ => self.release() + self.deadline,
        };
        deadline.min(start + self.period - self.lead)
    }

    /// Returns the name of a property with which windows for the other demand may not suffice for this one. Its CPU and
    /// its lead are not among them.
    pub fn difference(&self, other: &Demand) -> Option<&'static str> {
        let properties = [
            (self.kind == other.kind, "kind"),
            (self.period == other.period, "period"),
            ((self.wcet, self.needed) == (other.wcet, other.needed), self.kind.length()),
            (self.deadline == other.deadline, "deadline"),
            (self.offset == other.offset, "offset"),
            (self.jitter == other.jitter, "jitter"),
            (self.preemptible || !other.preemptible, "preemptibility"),
        ];
        properties.into_iter().find(|(same, _)| !same).map(|(_, name)| name)
    }

    /// Returns the needed time in one cycle, leads included. That of a reserve is not part of the capacity.
    pub fn per_cycle(&self, cycle: Duration) -> Duration {
        if self.kind == Kind::Reserve {
            return Duration::ZERO;
        }
        (self.wcet + self.lead) * (cycle / self.period)
    }
}

/// Returns the shortest window on the grid that the kernel accepts.
pub(crate) fn quantum(macrotick: Duration) -> Duration {
    round_up(MIN_WINDOW, macrotick)
}

pub(crate) fn round_up(length: Duration, grid: Duration) -> Duration {
    let rest = length % grid;
    if rest == Duration::ZERO {
        length
    } else {
        length - rest + grid
    }
}

/// Rounds a length down to a multiple of the grid.
pub(crate) fn round_down(length: Duration, grid: Duration) -> Duration {
    length - length % grid
}

/// Returns the time to keep free before each job, on the grid.
pub(crate) fn lead(system: &System) -> Duration {
    system.lead.map_or(Duration::ZERO, |lead| round_up(lead.reserved(), system.macrotick))
}

/// Returns the grid of the kernel's tick and of most timers of applications, in the time of a table.
///
/// With groups, a table starts at a refill of their budgets, unless it follows a common clock. Refills lie halfway
/// between the ticks (`mt_ds_phase` in ds_group.c). So refills and ticks are at multiples of half the common divisor of
/// their periods.
fn common_grid(system: &System) -> Duration {
    if system.servers().next().is_none() || system.sync().is_some() {
        return TICK;
    }
    Duration::from_nanos(system.server_period.gcd(TICK).as_nanos() / 2)
}

/// Returns the demands of the tasks with windows in the order of the system, then those of the pools, then the reserve of
/// each CPU.
pub(crate) fn demands(system: &System) -> Result<Vec<Demand>, PlanError> {
    let tasks = system.windowed().map(|task| of_task(task, system));
    let pools = system.pools().map(|pool| of_pool(&pool, system));
    tasks.chain(pools).chain(reserves(system).map(Ok)).collect()
}

fn reserves(system: &System) -> impl Iterator<Item = Demand> + '_ {
    let of = move |Reserve { period, length }, cpu: u32| Demand {
        kind: Kind::Reserve,
        name: format!("reserve of CPU {cpu}"),
        period,
        wcet: round_up(length, system.macrotick),
        needed: length,
        deadline: period,
        offset: None,
        jitter: None,
        lead: Duration::ZERO,
        common_grid: common_grid(system),
        cpus: CpuSet::from_iter([cpu]),
        migrate: false,
        preemptible: true,
    };
    system.reserve.into_iter().flat_map(move |reserve| system.cpus.iter().map(move |&cpu| of(reserve, cpu)))
}

/// The demands of tasks and pools, by name. Some systems have impossible ones.
pub(crate) type ByName = BTreeMap<String, Result<Demand, PlanError>>;

/// Returns the demands of all tasks with windows and all pools.
pub(crate) fn by_name(system: &System) -> ByName {
    let tasks = system.windowed().map(|task| (task.name.clone(), of_task(task, system)));
    tasks.chain(system.pools().map(|pool| (pool.name.clone(), of_pool(&pool, system)))).collect()
}

fn of_task(task: &Task, system: &System) -> Result<Demand, PlanError> {
    let grid = system.macrotick;
    fitting(Demand {
        kind: Kind::Task,
        name: task.name.clone(),
        period: task.period,
        wcet: round_up(task.wcet, grid).max(quantum(grid)),
        needed: task.wcet,
        deadline: task.deadline - task.deadline % grid,
        offset: task.offset,
        jitter: task.jitter.map(|jitter| jitter - jitter % grid),
        lead: lead(system),
        common_grid: common_grid(system),
        cpus: system.cpus_of(task),
        migrate: task.migrate,
        preemptible: system.is_preemptible(task),
    })
}

fn of_pool(pool: &Pool, system: &System) -> Result<Demand, PlanError> {
    let grid = system.macrotick;
    fitting(Demand {
        kind: Kind::Pool,
        name: pool.name.clone(),
        period: pool.period,
        wcet: round_up(pool.length, grid).max(quantum(grid)),
        needed: pool.length,
        deadline: pool.period,
        offset: None,
        jitter: None,
        lead: Duration::ZERO,
        common_grid: common_grid(system),
        cpus: pool.cpu.map_or_else(|| system.cpus_on(pool.host.as_deref()), |cpu| CpuSet::from_iter([cpu])),
        migrate: false,
        preemptible: true,
    })
}

fn fitting(demand: Demand) -> Result<Demand, PlanError> {
    let Demand { kind, wcet, needed, deadline, .. } = demand;
    if needed < LEAST_WINDOW {
        return Err(PlanError::NoStart { kind, task: demand.name, wcet: needed, least: LEAST_WINDOW });
    }
    if wcet > deadline {
        return Err(PlanError::Grid { kind, task: demand.name, wcet, deadline });
    }
    Ok(demand)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes the demand of a task of 1 ms in every 10 ms.
    pub(crate) fn demand() -> Demand {
        let (period, wcet) = (Duration::from_millis(10), Duration::from_millis(1));
        of_task(&Task::named("a", period, wcet), &System::named("s")).expect("it fits")
    }
}
