//! The reasons why a running deployment cannot become another one.

use macrotick_model::CpuSet;

/// The reason why a running deployment cannot become another one. The running deployment stays unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeFault {
    /// A deployment makes one change at a time.
    #[error("another change is under way")]
    UnderWay,
    /// The counts of a soak are those of one plan.
    #[error("a soak runs, and its counts are those of one plan: run `macrotick stop` first")]
    Soak,
    /// The deployment ended before the change was made.
    #[error("the deployment was stopped before the change was made")]
    Ending,
    /// No table is installed, so there is nothing to change.
    #[error("another program stopped or removed the table: run `macrotick stop` first")]
    TableGone,
    /// A deployment has a table during its whole life, or never.
    #[error(
        "{}: run `macrotick stop` first",
        if *.running { "the running deployment has windows, the new one has none" } else { "the running deployment has no windows" }
    )]
    Windows {
        /// Whether the running deployment has windows.
        running: bool,
    },
    /// A running table keeps its clock.
    #[error("the running table is on {running}, the new one on {wanted}: run `macrotick stop` first")]
    Clock {
        /// The clock of the running table.
        running: &'static str,
        /// The clock of the new table.
        wanted: &'static str,
    },
    /// The runner makes network namespaces only at the start.
    #[error("the network namespaces are made at the start, and the new ones differ: run `macrotick stop` first")]
    Namespaces,
    /// The runner configures the devices of interfaces only at the start.
    #[error(
        "interfaces and traffic classes are set up at the start, and the new ones differ: run `macrotick stop` first"
    )]
    Network,
    /// The runner sets up the host only at the start.
    #[error("the host is set up at the start, and the new profile differs: run `macrotick stop` first")]
    Profile,
    /// Groups get their budgets only at the start.
    #[error("groups and the server period are set at the start, and the new ones differ: run `macrotick stop` first")]
    Groups,
    /// Reservations, and the domains for them, are set only at the start.
    #[error("tasks of SCHED_DEADLINE are set at the start, and the new ones differ: run `macrotick stop` first")]
    Reservations,
    /// The new table would start in the middle of a server period. The admission assumed that it starts with a refill.
    #[error("the running cycle is not a multiple of the server period, so the new one would not start with a refill: run `macrotick stop` first")]
    Refills,
    /// A task or pool with threads stays on its CPUs.
    #[error(
        "`{name}` runs on CPU {running} and cannot move to CPU {wanted}: give it {}another name, or run `macrotick stop` first",
        stay(.running)
    )]
    Moves {
        /// The task or pool.
        name: String,
        /// The CPUs of its windows.
        running: CpuSet,
        /// The CPUs of its windows in the new plan.
        wanted: CpuSet,
    },
    /// A pool keeps the keys that decide which threads it has and where they run.
    #[error(
        "pool `{pool}` cannot get another `{key}` while it runs: give it another name, or run `macrotick stop` first"
    )]
    Pool {
        /// The pool.
        pool: String,
        /// The key of the description.
        key: &'static str,
    },
    /// The name is the name of a task in one plan and of a pool in the other.
    #[error("`{0}` cannot become a task or a pool while it runs: give it another name, or run `macrotick stop` first")]
    Kind(String),
}

impl ChangeFault {
    /// Returns whether the new plan is the cause: the deployment would refuse the same plan again. Otherwise the moment
    /// is wrong.
    pub fn is_about_the_plan(&self) -> bool {
        match self {
            ChangeFault::UnderWay | ChangeFault::Soak | ChangeFault::Ending | ChangeFault::TableGone => false,
            ChangeFault::Windows { .. }
            | ChangeFault::Clock { .. }
            | ChangeFault::Namespaces
            | ChangeFault::Network
            | ChangeFault::Groups
            | ChangeFault::Profile
            | ChangeFault::Reservations
            | ChangeFault::Refills
            | ChangeFault::Moves { .. }
            | ChangeFault::Pool { .. }
            | ChangeFault::Kind(_) => true,
        }
    }
}

/// Names the key that keeps a task or pool on its CPU, if the description has such a key: only for a single CPU.
fn stay(running: &CpuSet) -> String {
    match running.as_slice() {
        [cpu] => format!("`cpu: {cpu}`, or "),
        _ => String::new(),
    }
}
