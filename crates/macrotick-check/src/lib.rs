//! The judge: replays a plan on its own and says whether it keeps what its system asks for.
//!
//! It shares no code with the solvers, and reads a table as the kernel does: window by window. What it checks is
//! written down in `docs/system-yaml.md`; each broken rule is one [`Violation`].
//!
//! What is not time-triggered has no plan to replay: for groups and for tasks of SCHED_DEADLINE the judge asks
//! [`macrotick_analysis`].

mod budgets;
mod chains;
mod domains;
mod jobs;
mod parallel;
mod pools;
mod sync;
mod text;
mod violation;
mod windows;

use macrotick_analysis::servers;
use macrotick_model::{Duration, Plan};
use serde::{Deserialize, Serialize};

pub use domains::{Deadlines, DomainVerdict};
pub use violation::Violation;

/// The judgement on a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Everything that is wrong; empty for a feasible plan.
    pub violations: Vec<Violation>,
    /// One entry per task that has jobs, in the order of the system.
    pub tasks: Vec<TaskVerdict>,
    /// One entry per pool that has windows, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolVerdict>,
    /// One entry per chain, in the order of the system.
    pub chains: Vec<ChainVerdict>,
    /// One entry per table, in the order of the plan.
    pub cpus: Vec<CpuVerdict>,
    /// What was found out about groups, where the system has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<servers::Analysis>,
    /// One entry per set of CPUs that tasks of SCHED_DEADLINE are scheduled on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainVerdict>,
}

/// What the table gives to a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskVerdict {
    /// The task.
    pub name: String,
    /// Jobs in one cycle.
    pub jobs: usize,
    /// Longest time from a job's nominal instant to the end of its DEADLINE window.
    pub response: Duration,
    /// Variation of the nominal instants against the period.
    pub jitter: Duration,
    /// Shortest time from the end of a DEADLINE window to the job's deadline; negative for a late one.
    pub slack: Duration,
}

/// What the table gives to a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolVerdict {
    /// The pool.
    pub name: String,
    /// The CPU of its first window.
    pub cpu: u32,
    /// Its windows in one cycle.
    pub windows: usize,
    /// The least window time in one of its periods.
    pub given: Duration,
    /// What it asks for in each.
    pub budget: Duration,
    /// The period.
    pub period: Duration,
    /// The longest time without a window of it, also around the end of the cycle.
    pub gap: Duration,
}

/// What the table gives to a chain. A time is missing where a task of the chain has no proper jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainVerdict {
    /// The chain.
    pub name: String,
    /// The longest reaction time.
    pub reaction: Option<Duration>,
    /// Its bound.
    pub reaction_bound: Option<Duration>,
    /// The greatest data age.
    pub age: Option<Duration>,
    /// Its bound.
    pub age_bound: Option<Duration>,
}

/// How full a CPU's table is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuVerdict {
    /// The CPU.
    pub cpu: u32,
    /// Sum of all windows in one cycle.
    pub busy: Duration,
    /// The same as a share of the cycle, 0 to 1.
    pub utilisation: f64,
    /// Sum of the leads of all jobs in one cycle; zero without a lead.
    pub leads: Duration,
    /// The same as a share of the cycle, 0 to 1.
    pub lead_share: f64,
}

impl Verdict {
    /// Whether the plan keeps every rule.
    pub fn is_feasible(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Judges a plan.
pub fn check(plan: &Plan) -> Verdict {
    let mut verdict = Verdict::default();
    if !windows::time_base(plan, &mut verdict.violations) {
        // Without a sound cycle nothing can be replayed.
        return verdict;
    }
    windows::check(plan, &mut verdict);
    let served = jobs::by_task(plan);
    let mut replayed = Vec::new();
    for task in &plan.system.tasks {
        if task.reservation().is_some() {
            replayed.push(Vec::new());
            continue;
        }
        let windows = served.get(task.name.as_str()).map_or(&[][..], Vec::as_slice);
        let jobs = jobs::replay(plan, task, windows, &mut verdict.violations);
        parallel::check(plan, task, windows, &mut verdict.violations);
        verdict.tasks.extend(jobs::judge(plan, task, &jobs, &mut verdict.violations));
        replayed.push(jobs);
    }
    for pool in plan.system.pools() {
        let windows = served.get(pool.name.as_str()).map_or(&[][..], Vec::as_slice);
        verdict.pools.extend(pools::judge(plan, &pool, windows, &mut verdict.violations));
    }
    chains::check(plan, &replayed, &mut verdict);
    budgets::check(plan, &mut verdict);
    domains::check(plan, &mut verdict);
    verdict
}
