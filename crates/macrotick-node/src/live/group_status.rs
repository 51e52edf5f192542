//! The control groups with a budget, and their counters since they got it.

use std::path::PathBuf;

use macrotick_host::budgets::{parse_stat, STAT};
use macrotick_host::cgroup::{read_file, threads_below};
use macrotick_host::present;
use macrotick_host::sys;
use macrotick_model::{CpuSet, Duration, Group};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::NodeError;

/// A control group with a budget.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupStatus {
    /// Its name in the deployment, or else its path in the hierarchy.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// The group priority.
    pub priority: u32,
    /// The budget per server period, for each online CPU that has one.
    pub budgets: Vec<(u32, Duration)>,
    /// The online CPUs that its processes may run on.
    pub cpus: CpuSet,
    /// The number of threads in it and in the groups below.
    pub threads: u32,
    /// The processor time charged to its budgets, in nanoseconds.
    pub usage_ns: u64,
    /// The number of times that a budget was exhausted.
    pub exhaustions: u64,
    /// The time without budget while its threads were ready, in nanoseconds.
    pub throttled_ns: u64,
    /// A problem with the CPUs of its processes.
    #[serde(skip)]
    pub astray: Option<String>,
}

/// Reads the control groups with a budget on this host. `declared` are the groups of the deployment. Returns an empty
/// list if the kernel has no budgets.
pub fn read(declared: &[Group]) -> Result<Vec<GroupStatus>, NodeError> {
    let online = sys::online_cpus()?;
    let each = present::groups(&online, declared)?.into_iter().map(|group| {
        let text = read_file(&group.path, STAT)?.unwrap_or_default();
        let had = parse_stat(&group.name, &text).unwrap_or_default();
        Ok(GroupStatus {
            astray: group.astray(),
            threads: threads_below(&group.path).len() as u32,
            name: group.name,
            path: group.path,
            priority: group.priority,
            budgets: group.budgets,
            cpus: group.cpus,
            usage_ns: had.usage_ns,
            exhaustions: had.exhaustions,
            throttled_ns: had.throttled_ns,
        })
    });
    each.collect()
}
