//! Why the kernel refused a table.

/// Why the kernel refused a table: `enum macrotick_error`, with the windows, tasks and pools that its indices
/// mean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Flags, reserved fields or counts.
    #[error("it does not take such a header (is the kernel older than this program?)")]
    Header,
    /// A clock that tables cannot run on.
    #[error("it cannot run tables on this clock")]
    Clock,
    /// The cycle is zero or too long.
    #[error("the cycle is too long (at most one hour)")]
    Cycle,
    /// A name is empty or too long.
    #[error("{0} has an empty name, or one that is too long")]
    EntityName(String),
    /// Two tasks or pools have the same name.
    #[error("{0} and {1} have the same name")]
    EntityTwice(String, String),
    /// Flags of an entity.
    #[error("{0} has flags that it does not know")]
    EntityFlags(String),
    /// A task or pool without a window.
    #[error("{0} has no window")]
    EntityIdle(String),
    /// Flags of a window.
    #[error("{0} has flags that it does not know")]
    WindowFlags(String),
    /// The CPU does not exist.
    #[error("{0} is on a CPU that does not exist or is not online")]
    WindowCpu(String),
    /// A window of no task.
    #[error("{0} is for no task and no pool")]
    WindowEntity(String),
    /// A window is too short.
    #[error("{0} is shorter than 1us")]
    WindowLength(String),
    /// A window reaches beyond the cycle.
    #[error("{0} reaches beyond the cycle")]
    WindowRange(String),
    /// Windows are not sorted.
    #[error("{0} and {1} are not in order")]
    WindowOrder(String, String),
    /// Windows overlap.
    #[error("{0} and {1} overlap")]
    WindowOverlap(String, String),
    /// One task or pool on two CPUs.
    #[error("{0} and {1} are on different CPUs")]
    WindowMigrates(String, String),
    /// One task on two CPUs at the same time.
    #[error("{0} and {1} are open at the same time, leads included, and a task runs on one CPU at a time")]
    WindowParallel(String, String),
    /// The windows and leads of a CPU take too much of it.
    #[error("the windows and leads of the CPU of {0} take more than 95 % of it")]
    Capacity(String),
    /// Somebody else's table is there.
    #[error("another table is installed already (`macrotick stop` removes it)")]
    Installed,
    /// The lead is too long.
    #[error("the lead is longer than 1ms")]
    Lead,
    /// No room for the lead.
    #[error("{1} leaves no room for the lead before {0}")]
    WindowLead(String, String),
    /// A slice of what takes no turns, or out of range.
    #[error("{0} has a slice that it does not take")]
    EntitySlice(String),
    /// A window of a pool with flags.
    #[error("{0} serves a pool, which has no jobs, but is flagged as a job's")]
    WindowPool(String),
    /// A sync window that is also something else.
    #[error("{0} is a sync window of a table on another clock, or of a task")]
    WindowSync(String),
    /// The bound of a sync window.
    #[error("{0} has no bound, or leaves less than 1us of the window")]
    SyncBound(String),
    /// CPUs with different sync windows.
    #[error("the CPU of {0} does not have the sync windows of that of {1}")]
    SyncCpu(String, String),
    /// The windows would take what deadline tasks have been promised.
    #[error(
        "SCHED_DEADLINE has admitted tasks for {1} per mille of a CPU: too much beside the windows of the CPU of {0}"
    )]
    Bandwidth(String, u32),
    /// The windows would take what groups have been given.
    #[error("control groups have budgets of {1} per mille of the CPU of {0}: too much beside its windows")]
    Budgets(String, u32),
    /// Not beside the threads that it has.
    #[error("{0} has threads, which cannot go to another CPU")]
    SwapCpu(String),
    /// Not with the threads that it has.
    #[error("{0} has threads, and would become a task or a pool, or get or lose its slack")]
    SwapPool(String),
    /// Not while the other one runs.
    #[error("the running table is on another clock")]
    SwapClock,
    /// One change at a time.
    #[error("another change is under way")]
    Swapping,
    /// A code that this program does not know.
    #[error("error {code} at index {index}: {message}")]
    Other {
        /// `enum macrotick_error`.
        code: u32,
        /// Its index.
        index: u32,
        /// What errno says.
        message: String,
    },
}
