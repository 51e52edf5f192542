//! The judge: it replays a plan and reports whether the plan meets the requirements of its system.
//!
//! It shares no code with the solvers, and reads a table window by window, as the kernel does.
//! `docs/explanation/planning.md` lists the checks. Each broken rule is one [`Violation`].
//!
//! It also sends the frames of flows through the gate lists of the plan ([`network`] has the simulator).
//!
//! Groups and tasks of SCHED_DEADLINE have no windows to replay. For them, the judge uses [`macrotick_analysis`].

mod after;
mod against;
mod apart;
mod budgets;
mod chains;
mod domains;
mod exclusive;
mod gates;
mod jobs;
pub mod network;
mod parallel;
mod pools;
mod preemption;
mod reserve;
mod sync;
mod text;
mod violation;
mod windows;
mod wire;

use macrotick_analysis::servers;
use macrotick_model::{Duration, Plan};
use network::{FlowVerdict, InterfaceVerdict};
use serde::{Deserialize, Serialize};

pub use against::against;
pub use domains::{Deadlines, DomainVerdict};
pub use violation::Violation;
pub use wire::{judge_wire, WireViolation};

/// The verdict on a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// All broken rules; empty for a feasible plan.
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
    /// The analysis of the groups, if the system has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<servers::Analysis>,
    /// One entry per set of CPUs that tasks of SCHED_DEADLINE are scheduled on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainVerdict>,
    /// One entry per interface of the network that can be judged, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceVerdict>,
    /// One entry per flow with frames that can be judged, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowVerdict>,
}

/// The properties of a task in the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskVerdict {
    /// The task.
    pub name: String,
    /// The number of jobs in one cycle.
    pub jobs: usize,
    /// The longest time from the nominal instant of a job to the end of its DEADLINE window.
    pub response: Duration,
    /// The variation of the nominal instants against the period.
    pub jitter: Duration,
    /// The shortest time from the end of a DEADLINE window to the deadline of the job. It is negative for a late job.
    pub slack: Duration,
}

/// The properties of a pool in the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolVerdict {
    /// The pool.
    pub name: String,
    /// The CPU of its first window.
    pub cpu: u32,
    /// The number of its windows in one cycle.
    pub windows: usize,
    /// The least window time in one of its periods.
    pub given: Duration,
    /// The window time that it needs in each period.
    pub budget: Duration,
    /// The period.
    pub period: Duration,
    /// The longest time without one of its windows, also around the end of the cycle.
    pub gap: Duration,
}

/// The times of a chain. A time is `None` if a task of the chain has no valid jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainVerdict {
    /// The chain.
    pub name: String,
    /// The longest reaction time.
    pub reaction: Option<Duration>,
    /// The bound on the reaction time.
    pub reaction_bound: Option<Duration>,
    /// The greatest data age.
    pub age: Option<Duration>,
    /// The bound on the data age.
    pub age_bound: Option<Duration>,
}

impl ChainVerdict {
    /// Returns the bounds that can be judged, each with its kind and the time that is reached: `("age", reached, bound)`.
    pub fn bounds(&self) -> impl Iterator<Item = (&'static str, Duration, Duration)> {
        let each = [("reaction", self.reaction, self.reaction_bound), ("age", self.age, self.age_bound)];
        each.into_iter().filter_map(|(kind, reached, bound)| Some((kind, reached?, bound?)))
    }
}

/// The load of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuVerdict {
    /// The CPU.
    pub cpu: u32,
    /// The sum of all windows in one cycle.
    pub busy: Duration,
    /// That sum as a share of the cycle, 0 to 1.
    pub utilisation: f64,
    /// The sum of the leads of all jobs in one cycle; zero without a lead.
    pub leads: Duration,
    /// That sum as a share of the cycle, 0 to 1.
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
        // A wrong cycle makes a replay impossible.
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
        preemption::check(plan, task, windows, &mut verdict.violations);
        verdict.tasks.extend(jobs::judge(plan, task, &jobs, &mut verdict.violations));
        replayed.push(jobs);
    }
    for pool in plan.system.pools() {
        let windows = served.get(pool.name.as_str()).map_or(&[][..], Vec::as_slice);
        verdict.pools.extend(pools::judge(plan, &pool, windows, &mut verdict.violations));
    }
    apart::check(plan, &mut verdict.violations);
    reserve::check(plan, &mut verdict.violations);
    after::check(plan, &replayed, &mut verdict.violations);
    exclusive::check(plan, &replayed, &mut verdict.violations);
    chains::check(plan, &replayed, &mut verdict);
    budgets::check(plan, &mut verdict);
    domains::check(plan, &mut verdict);
    gates::check(plan, &replayed, &served, &mut verdict);
    verdict
}
