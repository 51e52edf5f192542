//! The numbers of pools: their processor time, compared with their budgets.

use macrotick_model::{Duration, Observation, Pool};
use schemars::JsonSchema;
use serde::Serialize;

/// The numbers of one pool.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct PoolReport {
    /// The pool's name.
    pub name: String,
    /// The CPU of its windows, or the requested one if it has no windows.
    pub cpu: Option<u32>,
    /// The period, in nanoseconds.
    pub period_ns: i64,
    /// Window time in each period, in nanoseconds.
    pub budget_ns: i64,
    /// Whether it may run outside its windows.
    pub slack: bool,
    /// Its windows in one cycle.
    pub windows: u64,
    /// The length of its windows within the run, in nanoseconds.
    pub window_ns: i64,
    /// The processor time it had; `None` if nothing served it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub had: Option<Had>,
}

/// The processor time of a pool in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct Had {
    /// Time in the class, in nanoseconds: in its windows, and the time in which lock owners ran for waiters.
    pub runtime_ns: u64,
    /// The same as a share of the budgets of the run, in thousandths, rounded down.
    pub permille_of_budget: i64,
    /// Time outside the class, in nanoseconds. Without slack, this is the time of processes that end, and of the
    /// budgets of groups in the pool.
    pub outside_ns: u64,
    /// Times a thread was preempted at a window's end.
    pub overrun: u64,
    /// The number of threads at the end.
    pub threads: u32,
}

/// Returns all pools, in the order of the system.
pub(crate) fn reports(observation: &Observation) -> Vec<PoolReport> {
    observation.plan.system.pools().map(|pool| report(observation, &pool)).collect()
}

fn report(observation: &Observation, pool: &Pool) -> PoolReport {
    let plan = &observation.plan;
    let table = plan.tables.iter().find(|table| table.windows.iter().any(|window| window.task == pool.name));
    let windows = || table.into_iter().flat_map(|table| &table.windows).filter(|window| window.task == pool.name);
    let record = observation.pools.iter().find(|record| record.name == pool.name);
    let budgets = i128::from(pool.length.as_nanos()) * i128::from(observation.duration.as_nanos())
        / i128::from(pool.period.as_nanos()).max(1);
    let had = record.map(|record| Had {
        runtime_ns: record.runtime_ns,
        permille_of_budget: (i128::from(record.runtime_ns) * 1000 / budgets.max(1)) as i64,
        outside_ns: record.usage_ns.saturating_sub(record.runtime_ns),
        overrun: record.overrun,
        threads: record.threads,
    });
    PoolReport {
        name: pool.name.clone(),
        cpu: table.map(|table| table.cpu).or(pool.cpu),
        period_ns: pool.period.as_nanos(),
        budget_ns: pool.length.as_nanos(),
        slack: pool.slack,
        windows: windows().count() as u64,
        window_ns: windows().map(|window| within(window.offset, window.length, observation)).sum(),
        had,
    }
}

/// Returns the length of a window within the run, over all its cycles, in nanoseconds.
fn within(offset: Duration, length: Duration, observation: &Observation) -> i64 {
    let (cycle, duration) = (observation.plan.cycle.as_nanos().max(1), observation.duration.as_nanos());
    let (whole, rest) = (duration / cycle, duration % cycle);
    let last = (rest - offset.as_nanos()).clamp(0, length.as_nanos());
    length.as_nanos() * whole + last
}

/// Returns remarks on counters that the kernel keeps of faults.
pub(crate) fn remarks(observation: &Observation) -> Vec<String> {
    let skipped = observation.pools.iter().filter(|pool| pool.skipped > 0);
    skipped
        .map(|pool| format!("{}: the kernel counted {} windows skipped by a late interrupt", pool.name, pool.skipped))
        .collect()
}
