//! The reasons why the kernel refuses a table.

/// The reason why the kernel refused a table: `enum macrotick_error`. The names of windows, tasks and pools replace the
/// kernel's indices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Flags, reserved fields or counts that the kernel does not accept.
    #[error("it does not accept this header (is the kernel older than this program?)")]
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
    /// The kernel does not know the flags of an entity.
    #[error("{0} has flags that the kernel does not know")]
    EntityFlags(String),
    /// A task or pool without a window.
    #[error("{0} has no window")]
    EntityIdle(String),
    /// The kernel does not know the flags of a window.
    #[error("{0} has flags that the kernel does not know")]
    WindowFlags(String),
    /// The CPU does not exist or is not online.
    #[error("{0} is on a CPU that does not exist or is not online")]
    WindowCpu(String),
    /// A window without a task or pool.
    #[error("{0} belongs to no task and no pool")]
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
    /// The windows and leads of a CPU take more than 95 % of its time.
    #[error("the windows and leads of the CPU of {0} take more than 95 % of it")]
    Capacity(String),
    /// Another program installed a table.
    #[error("another table is installed already (`macrotick stop` removes it)")]
    Installed,
    /// The lead is too long.
    #[error("the lead is longer than 1ms")]
    Lead,
    /// No room for the lead.
    #[error("{1} leaves no room for the lead before {0}")]
    WindowLead(String, String),
    /// A slice of an entity that is no round-robin or priority pool, or a slice out of range.
    #[error("{0} has a slice that the kernel does not accept")]
    EntitySlice(String),
    /// A window of a pool with the flags of a job.
    #[error("{0} serves a pool, which has no jobs, but is flagged as a job's")]
    WindowPool(String),
    /// A sync window on another clock than CLOCK_TAI, with an entity, or with another flag.
    #[error("{0} is a sync window of a table on another clock, or of a task")]
    WindowSync(String),
    /// A sync window without a bound, or with a bound that leaves less than 1 us of it.
    #[error("{0} has no bound, or leaves less than 1us of the window")]
    SyncBound(String),
    /// CPUs with different sync windows.
    #[error("the CPU of {0} does not have the sync windows of that of {1}")]
    SyncCpu(String, String),
    /// The windows would take time that SCHED_DEADLINE has promised to its tasks.
    #[error(
        "SCHED_DEADLINE has admitted tasks for {1} per mille of a CPU: too much beside the windows of the CPU of {0}"
    )]
    Bandwidth(String, u32),
    /// The windows would take time that groups have as budgets.
    #[error("control groups have budgets of {1} per mille of the CPU of {0}: too much beside its windows")]
    Budgets(String, u32),
    /// The entity has threads, and the new table has it on another CPU.
    #[error("{0} has threads, which cannot go to another CPU")]
    SwapCpu(String),
    /// The entity has threads, and the new table changes its kind or its slack.
    #[error("{0} has threads, and cannot change between task and pool, or get or lose its slack")]
    SwapPool(String),
    /// The new table is on another clock than the running one.
    #[error("the running table is on another clock")]
    SwapClock,
    /// The kernel makes one change at a time.
    #[error("another change is under way")]
    Swapping,
    /// A code that this program does not know.
    #[error("error {code} at index {index}: {message}")]
    Other {
        /// `enum macrotick_error`.
        code: u32,
        /// The index.
        index: u32,
        /// The text of errno.
        message: String,
    },
}
