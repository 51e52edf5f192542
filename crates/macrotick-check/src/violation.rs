//! Everything that can be wrong with a plan.

use std::fmt;

use macrotick_analysis::servers::Refusal;
use macrotick_model::{CpuSet, Duration};
use serde::{Deserialize, Serialize};

/// One broken rule. Window indices count within a CPU's table, jobs within the cycle, both from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
#[allow(missing_docs)] // Each field is what the message says.
pub enum Violation {
    /// The cycle is no positive multiple of every period.
    Cycle { cycle: Duration, task: String, period: Duration },
    /// The macrotick is not positive.
    Macrotick { macrotick: Duration },
    /// More windows than a table can hold.
    TooManyWindows { windows: usize, limit: usize },
    /// A table for a CPU that the system does not have.
    UnknownCpu { cpu: u32 },
    /// Two tables for one CPU, or tables not in ascending order.
    TableOrder { cpu: u32 },
    /// A window for a task or pool that the system does not have.
    UnknownTask { cpu: u32, window: usize, task: String },
    /// An offset or length that is no multiple of the macrotick.
    OffGrid { cpu: u32, window: usize, offset: Duration, length: Duration },
    /// A window shorter than the kernel takes.
    TooShort { cpu: u32, window: usize, length: Duration, limit: Duration },
    /// A window not within `[0, cycle)`.
    OutsideCycle { cpu: u32, window: usize, offset: Duration, end: Duration },
    /// A window that begins before the one in front of it.
    NotSorted { cpu: u32, window: usize },
    /// A window that overlaps with another.
    Overlap { cpu: u32, window: usize, other: usize },
    /// A CPU whose windows and leads leave too little to the rest of the system; `leads` is zero without a lead.
    Capacity { cpu: u32, busy: Duration, leads: Duration, capacity: Duration },
    /// An ACTIVATE window too soon behind the end of the one before it, `other`, which for the first window is the last
    /// of the cycle before.
    Lead { cpu: u32, window: usize, other: usize, gap: Duration, lead: Duration },
    /// The cycle is no positive multiple of the sync windows' period.
    SyncCycle { cycle: Duration, period: Duration },
    /// A sync window that does not lie within its period.
    SyncRange { offset: Duration, length: Duration, period: Duration },
    /// A sync window whose bound is not positive, or leaves less than the shortest window.
    SyncBound { length: Duration, bound: Duration, limit: Duration },
    /// A window, or the lead before it, that overlaps with a sync window.
    Sync { cpu: u32, window: usize, begin: Duration, end: Duration, sync: Duration },
    /// A task without a window.
    NoWindow { task: String },
    /// A task with windows on two CPUs that may not migrate.
    Migrates { task: String, cpu: u32, other: u32 },
    /// A window of a task that begins, with the lead before an ACTIVATE, while one on another CPU is open.
    Parallel { task: String, cpu: u32, offset: Duration, begin: Duration, other: u32, end: Duration },
    /// A task not on the CPU it is pinned to.
    WrongCpu { task: String, cpu: u32, pinned: u32 },
    /// A window of a task between a DEADLINE and the next ACTIVATE, or of a task that is never activated.
    NoJob { task: String, offset: Duration },
    /// A job without a DEADLINE before the next ACTIVATE.
    NoDeadline { task: String, start: Duration },
    /// Not one job per period.
    JobCount { task: String, jobs: usize, expected: i64 },
    /// A period in which no job, or more than one, starts.
    Slot { task: String, job: i64, starts: usize },
    /// A job that gets less than its wcet, and what is lost with each of its pieces but the first.
    Starved { task: String, job: i64, given: Duration, wcet: Duration, pieces: u32, lost: Duration },
    /// A job whose window is over before it begins.
    NoStart { task: String, job: i64, given: Duration, limit: Duration },
    /// A job cut into pieces of which one is hardly longer than what it costs.
    ShortPiece { task: String, job: i64, length: Duration, limit: Duration },
    /// A job whose last window ends after its deadline.
    Late { task: String, job: i64, end: Duration, deadline: Duration },
    /// Starts that vary more than the jitter bound allows.
    Jitter { task: String, jitter: Duration, bound: Duration },
    /// A pool without a window.
    PoolNoWindow { pool: String },
    /// A pool with windows on two CPUs.
    PoolMigrates { pool: String, cpu: u32, other: u32 },
    /// A pool not on the CPU it is pinned to.
    PoolWrongCpu { pool: String, cpu: u32, pinned: u32 },
    /// A window of a pool that activates a job or has a deadline.
    PoolFlags { pool: String, cpu: u32, offset: Duration },
    /// A window of a pool that is over before its threads run.
    PoolShort { pool: String, offset: Duration, length: Duration, limit: Duration },
    /// A period in which a pool's windows sum up to less than its budget; periods count within the cycle, from 0.
    PoolBudget { pool: String, number: i64, given: Duration, budget: Duration },
    /// A chain that reacts too slowly.
    Reaction { chain: String, reaction: Duration, bound: Duration },
    /// A chain whose data grow too old.
    Age { chain: String, age: Duration, bound: Duration },
    /// A chain that names a task without proper jobs.
    ChainBroken { chain: String, task: String },
    /// A task in a group that would miss, or a CPU without room for all budgets.
    Groups { refusal: Refusal },
    /// Groups that cannot be analysed.
    GroupsUnknown { error: String },
    /// A task of SCHED_DEADLINE without a CPU.
    NoCpu { task: String },
    /// More is promised by SCHED_DEADLINE than the kernel lets it have beside windows and budgets; per mille of one CPU.
    Promised { cpus: CpuSet, promised: i64, capacity: i64 },
    /// Tasks of SCHED_DEADLINE of which one may miss its deadline.
    Demand { cpu: u32, tasks: Vec<String>, error: String },
    /// A task with windows on both sides of what tasks of SCHED_DEADLINE have to themselves.
    Straddles { task: String, cpus: CpuSet, domain: CpuSet },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Violation::*;
        match self {
            Cycle { cycle, task, period } => {
                write!(f, "cycle {cycle} is no positive multiple of the period {period} of `{task}`")
            }
            Macrotick { macrotick } => write!(f, "macrotick {macrotick} is not positive"),
            TooManyWindows { windows, limit } => write!(f, "{windows} windows, at most {limit} are possible"),
            UnknownCpu { cpu } => write!(f, "CPU {cpu} has a table but is not among the system's CPUs"),
            TableOrder { cpu } => write!(f, "the table of CPU {cpu} is not in ascending order of CPUs"),
            UnknownTask { cpu, window, task } => {
                write!(f, "CPU {cpu}, window {window}: no task or pool is named `{task}`")
            }
            OffGrid { cpu, window, offset, length } => {
                write!(f, "CPU {cpu}, window {window}: offset {offset} or length {length} is off the grid")
            }
            TooShort { cpu, window, length, limit } => {
                write!(f, "CPU {cpu}, window {window}: length {length} is shorter than {limit}")
            }
            OutsideCycle { cpu, window, offset, end } => {
                write!(f, "CPU {cpu}, window {window}: [{offset}, {end}) is not within the cycle")
            }
            NotSorted { cpu, window } => write!(f, "CPU {cpu}, window {window} begins before the one in front of it"),
            Overlap { cpu, window, other } => write!(f, "CPU {cpu}: windows {other} and {window} overlap"),
            Capacity { cpu, busy, leads: Duration::ZERO, capacity } => {
                write!(f, "CPU {cpu}: windows take {busy} of a cycle, at most {capacity} are allowed")
            }
            Capacity { cpu, busy, leads, capacity } => {
                write!(
                    f,
                    "CPU {cpu}: windows take {busy} of a cycle and leads {leads}, at most {capacity} are allowed together"
                )
            }
            Lead { cpu, window, other, gap, lead } => write!(
                f,
                "CPU {cpu}, window {window}: activates a job {gap} after the end of window {other}, the lead is {lead}"
            ),
            SyncCycle { cycle, period } => {
                write!(f, "the cycle {cycle} is no multiple of the sync windows' period {period}")
            }
            SyncRange { offset, length, period } => {
                write!(f, "the sync windows at {offset} of {length} do not lie within their period of {period}")
            }
            SyncBound { length, bound, limit } => {
                write!(f, "sync windows of {length} with a bound of {bound} may become shorter than {limit}")
            }
            Sync { cpu, window, begin, end, sync } => write!(
                f,
                "CPU {cpu}, window {window}: [{begin}, {end}), with its lead, overlaps with the sync window at {sync}"
            ),
            NoWindow { task } => write!(f, "task `{task}` has no window"),
            Migrates { task, cpu, other } => write!(f, "task `{task}` has windows on CPU {cpu} and on CPU {other}"),
            Parallel { task, cpu, offset, begin, other, end } => write!(
                f,
                "task `{task}`: the window at {offset} on CPU {cpu} begins, with its lead, at {begin}, before one on CPU \
                 {other} ends at {end}"
            ),
            WrongCpu { task, cpu, pinned } => {
                write!(f, "task `{task}` is pinned to CPU {pinned} and has windows on CPU {cpu}")
            }
            NoJob { task, offset } => write!(f, "task `{task}`: the window at {offset} belongs to no job"),
            NoDeadline { task, start } => write!(f, "task `{task}`: the job from {start} has no DEADLINE"),
            JobCount { task, jobs, expected } => {
                write!(f, "task `{task}`: {jobs} jobs in a cycle instead of {expected}")
            }
            Slot { task, job, starts } => {
                write!(f, "task `{task}`: {starts} jobs start in period {job} instead of one")
            }
            Starved { task, job, given, wcet, lost: Duration::ZERO, .. } => {
                write!(f, "task `{task}`, job {job}: windows of {given} for a wcet of {wcet}")
            }
            Starved { task, job, given, wcet, pieces, lost } => write!(
                f,
                "task `{task}`, job {job}: windows of {given} in {pieces} pieces, which cost {lost}, for a wcet of {wcet}"
            ),
            ShortPiece { task, job, length, limit } => write!(
                f,
                "task `{task}`, job {job}: a piece of {length} is not worth what it costs, {limit} are the least where a job is cut"
            ),
            NoStart { task, job, given, limit } => write!(
                f,
                "task `{task}`, job {job}: its window of {given} is over before the kernel has come to it: {limit} are the least"
            ),
            Late { task, job, end, deadline } => {
                write!(f, "task `{task}`, job {job}: ends at {end}, its deadline is {deadline}")
            }
            Jitter { task, jitter, bound } => write!(f, "task `{task}`: starts vary by {jitter}, the bound is {bound}"),
            PoolNoWindow { pool } => write!(f, "pool `{pool}` has no window"),
            PoolMigrates { pool, cpu, other } => write!(f, "pool `{pool}` has windows on CPU {cpu} and on CPU {other}"),
            PoolWrongCpu { pool, cpu, pinned } => {
                write!(f, "pool `{pool}` is pinned to CPU {pinned} and has windows on CPU {cpu}")
            }
            PoolFlags { pool, cpu, offset } => {
                write!(f, "pool `{pool}`: the window at {offset} on CPU {cpu} is of a job, which pools do not have")
            }
            PoolShort { pool, offset, length, limit } => write!(
                f,
                "pool `{pool}`: the window of {length} at {offset} is over before the kernel has come to its threads: {limit} are \
                 the least"
            ),
            PoolBudget { pool, number, given, budget } => {
                write!(f, "pool `{pool}`, period {number}: windows of {given} for a budget of {budget}")
            }
            Reaction { chain, reaction, bound } => {
                write!(f, "chain `{chain}`: reaction time {reaction}, the bound is {bound}")
            }
            Age { chain, age, bound } => write!(f, "chain `{chain}`: data age {age}, the bound is {bound}"),
            ChainBroken { chain, task } => write!(f, "chain `{chain}`: task `{task}` has no proper jobs"),
            Groups { refusal } => write!(f, "{refusal}"),
            GroupsUnknown { error } => write!(f, "groups: {error}"),
            NoCpu { task } => write!(f, "task `{task}` has `supply: deadline`, and no CPU"),
            Promised { cpus, promised, capacity } => write!(
                f,
                "CPU {cpus}: SCHED_DEADLINE would promise {} of one CPU, the kernel lets it have {} beside windows, budgets \
                 and its own reserve",
                percent(*promised),
                percent(*capacity)
            ),
            Demand { cpu, tasks, error } => {
                write!(f, "CPU {cpu}: SCHED_DEADLINE, {}: {error}", tasks.join(", "))
            }
            Straddles { task, cpus, domain } => write!(
                f,
                "task `{task}` has windows on the CPUs {cpus}, and tasks of SCHED_DEADLINE have CPU {domain} to themselves: \
                 threads do not move between them"
            ),
        }
    }
}

fn percent(permille: i64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}
