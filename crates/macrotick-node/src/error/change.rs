//! Why a running deployment does not become another one.

use macrotick_model::CpuSet;

/// Why a running deployment cannot become another one. It stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeFault {
    /// One change at a time.
    #[error("another change is under way")]
    UnderWay,
    /// The deployment ends meanwhile.
    #[error("the deployment was stopped before the change was made")]
    Ending,
    /// There is nothing to change.
    #[error("somebody else stopped or removed the table: `macrotick stop` first")]
    TableGone,
    /// There is a table from the start to the end, or none.
    #[error(
        "{}: `macrotick stop` first",
        if *.running { "the running deployment has windows, the new one none" } else { "the running deployment has no windows" }
    )]
    Windows {
        /// Whether the running one has some.
        running: bool,
    },
    /// A running table stays on its clock.
    #[error("the running table is on {running}, the new one on {wanted}: `macrotick stop` first")]
    Clock {
        /// The clock of the running table.
        running: &'static str,
        /// The clock of the new one.
        wanted: &'static str,
    },
    /// Namespaces are made at the start.
    #[error("the network namespaces are made at the start, and the new ones differ: `macrotick stop` first")]
    Namespaces,
    /// Groups get their budgets at the start.
    #[error("groups and the server period are set at the start, and the new ones differ: `macrotick stop` first")]
    Groups,
    /// Reservations, and the CPUs that are divided for them, are set at the start.
    #[error("tasks of SCHED_DEADLINE are set at the start, and the new ones differ: `macrotick stop` first")]
    Reservations,
    /// The new table would begin in the middle of a server period, and was checked as if it began with a refill.
    #[error("the running cycle has no whole number of server periods, the new one would not begin with a refill: `macrotick stop` first")]
    Refills,
    /// What has threads stays on its CPUs.
    #[error(
        "`{name}` runs on CPU {running} and cannot move to CPU {wanted}: give it {}another name, or `macrotick stop` first",
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
    /// A pool keeps what decides which threads are in it, and where they run.
    #[error("pool `{pool}` cannot get another `{key}` while it runs: give it another name, or `macrotick stop` first")]
    Pool {
        /// The pool.
        pool: String,
        /// The key of the description.
        key: &'static str,
    },
    /// A name of both a task and a pool.
    #[error("`{0}` cannot become a task or a pool while it runs: give it another name, or `macrotick stop` first")]
    Kind(String),
}

impl ChangeFault {
    /// Whether it is the new plan that cannot be, and not the moment that is wrong: the same plan is refused again.
    pub fn is_about_the_plan(&self) -> bool {
        match self {
            ChangeFault::UnderWay | ChangeFault::Ending | ChangeFault::TableGone => false,
            ChangeFault::Windows { .. }
            | ChangeFault::Clock { .. }
            | ChangeFault::Namespaces
            | ChangeFault::Groups
            | ChangeFault::Reservations
            | ChangeFault::Refills
            | ChangeFault::Moves { .. }
            | ChangeFault::Pool { .. }
            | ChangeFault::Kind(_) => true,
        }
    }
}

/// What keeps a task or pool where it is, if a description can say so.
fn stay(running: &CpuSet) -> String {
    match running.as_slice() {
        [cpu] => format!("`cpu: {cpu}`, or "),
        _ => String::new(),
    }
}
