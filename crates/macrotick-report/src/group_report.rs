//! The numbers of groups: their processor time, compared with their budgets.

use macrotick_model::{Group, Observation};
use schemars::JsonSchema;
use serde::Serialize;

/// The numbers of one group.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct GroupReport {
    /// The group's name.
    pub name: String,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// The group priority.
    pub priority: u32,
    /// The server period, in nanoseconds.
    pub server_period_ns: i64,
    /// The budget in each server period, on each CPU, in nanoseconds.
    pub budget_ns: i64,
    /// The processor time it had; `None` if nothing served it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub had: Option<GroupUse>,
}

/// The processor time of a group in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct GroupUse {
    /// Time charged to the group, in nanoseconds.
    pub usage_ns: u64,
    /// The same as a share of the budgets in the charged time, in thousandths, rounded down.
    pub permille_of_budget: i64,
    /// Times its budget was exhausted.
    pub exhaustions: u64,
    /// Time that ready threads of the group waited for a refill, in nanoseconds.
    pub throttled_ns: u64,
}

/// Returns all groups, in the order of the system.
pub(crate) fn reports(observation: &Observation) -> Vec<GroupReport> {
    observation.plan.system.servers().map(|group| report(observation, group)).collect()
}

fn report(observation: &Observation, group: &Group) -> GroupReport {
    // The plan of an observation has all values.
    let (priority, budget) = (group.priority.unwrap_or_default(), group.budget.unwrap_or_default());
    let period = observation.plan.system.server_period.as_nanos();
    let record = observation.groups.iter().find(|record| record.name == group.name);
    let counted = (observation.duration + Observation::COUNTED_BEFORE).as_nanos();
    let budgets =
        i128::from(budget.as_nanos()) * group.cpus.len() as i128 * i128::from(counted) / i128::from(period).max(1);
    let had = record.map(|record| GroupUse {
        usage_ns: record.usage_ns,
        permille_of_budget: (i128::from(record.usage_ns) * 1000 / budgets.max(1)) as i64,
        exhaustions: record.exhaustions,
        throttled_ns: record.throttled_ns,
    });
    GroupReport {
        name: group.name.clone(),
        cpus: group.cpus.clone(),
        priority,
        server_period_ns: period,
        budget_ns: budget.as_nanos(),
        had,
    }
}
