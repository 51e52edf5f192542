//! The rules that a plan can break.

use std::fmt;

use macrotick_analysis::servers::Refusal;
use macrotick_model::{CpuSet, Duration};
use serde::{Deserialize, Serialize};

use crate::network::NetworkViolation;

/// One broken rule. Indices of windows count within the table of a CPU, those of jobs within the cycle, both from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
#[allow(missing_docs)] // The message of each rule explains its fields.
pub enum Violation {
    /// The cycle is not a positive multiple of every period.
    Cycle { cycle: Duration, task: String, period: Duration },
    /// The macrotick is not positive.
    Macrotick { macrotick: Duration },
    /// The tables have more windows than is possible.
    TooManyWindows { windows: usize, limit: usize },
    /// A table belongs to a CPU that the system does not have.
    UnknownCpu { cpu: u32 },
    /// A CPU has two tables, or the tables are not in ascending order.
    TableOrder { cpu: u32 },
    /// A window serves a task or pool that the system does not have.
    UnknownTask { cpu: u32, window: usize, task: String },
    /// An offset or a length is not a multiple of the macrotick.
    OffGrid { cpu: u32, window: usize, offset: Duration, length: Duration },
    /// A window is shorter than the kernel accepts.
    TooShort { cpu: u32, window: usize, length: Duration, limit: Duration },
    /// A window is not within `[0, cycle)`.
    OutsideCycle { cpu: u32, window: usize, offset: Duration, end: Duration },
    /// A window starts before the previous one in the table.
    NotSorted { cpu: u32, window: usize },
    /// A window overlaps with another.
    Overlap { cpu: u32, window: usize, other: usize },
    /// The windows and leads of a CPU leave too little time for other threads. `leads` is zero without a lead.
    Capacity { cpu: u32, busy: Duration, leads: Duration, capacity: Duration },
    /// An ACTIVATE window starts too early after the end of the window before it, `other`. For the first window, that
    /// is the last one of the previous cycle.
    Lead { cpu: u32, window: usize, other: usize, gap: Duration, lead: Duration },
    /// The cycle is not a positive multiple of the period of the sync windows.
    SyncCycle { cycle: Duration, period: Duration },
    /// A sync window is not within its period.
    SyncRange { offset: Duration, length: Duration, period: Duration },
    /// The bound of a sync window is not positive, or leaves less than the shortest window.
    SyncBound { length: Duration, bound: Duration, limit: Duration },
    /// A window, or the lead before it, overlaps with a sync window.
    Sync { cpu: u32, window: usize, begin: Duration, end: Duration, sync: Duration },
    /// Two tasks that are apart have windows on the same CPU.
    Together { task: String, other: String, cpu: u32 },
    /// A job starts while the job of another task has a resource of both.
    Exclusive { resource: String, task: String, start: Duration, other: String, until: Duration },
    /// The cycle is not a positive multiple of the period of the reserve.
    ReserveCycle { cycle: Duration, period: Duration },
    /// In the period from `at`, a CPU has less free time than the reserve.
    Reserve { cpu: u32, at: Duration, period: Duration, free: Duration, length: Duration },
    /// A task has no window.
    NoWindow { task: String },
    /// A task that may not migrate has windows on two CPUs.
    Migrates { task: String, cpu: u32, other: u32 },
    /// A window of a task, with the lead before an ACTIVATE, starts before a window on another CPU ends.
    Parallel { task: String, cpu: u32, offset: Duration, begin: Duration, other: u32, end: Duration },
    /// A job of a task that is not preemptible has another window after the one that ends at `end`. It starts at `next`
    /// on CPU `other`, and `next` may be beyond the cycle.
    Preempted { task: String, cpu: u32, end: Duration, other: u32, next: Duration },
    /// A task has windows on a CPU that it may not use.
    WrongCpu { task: String, cpu: u32, allowed: CpuSet },
    /// A window of a task lies between a DEADLINE and the next ACTIVATE, or the task has no ACTIVATE.
    NoJob { task: String, offset: Duration },
    /// A job has no DEADLINE before the next ACTIVATE.
    NoDeadline { task: String, start: Duration },
    /// The number of jobs is not one per period.
    JobCount { task: String, jobs: usize, expected: i64 },
    /// In a period no job starts, or more than one.
    Slot { task: String, job: i64, starts: usize },
    /// A job gets less than its wcet. `lost` is the cost of all its pieces except the first.
    Starved { task: String, job: i64, given: Duration, wcet: Duration, pieces: u32, lost: Duration },
    /// The window of a job ends before the job runs.
    NoStart { task: String, job: i64, given: Duration, limit: Duration },
    /// A job is cut, and one of its pieces is hardly longer than its cost.
    ShortPiece { task: String, job: i64, length: Duration, limit: Duration },
    /// The last window of a job ends after the deadline.
    Late { task: String, job: i64, end: Duration, deadline: Duration },
    /// The starts vary more than the jitter bound allows.
    Jitter { task: String, jitter: Duration, bound: Duration },
    /// A job starts before the job of a task in its `after` has ended.
    TooEarly { task: String, job: usize, start: Duration, other: String, end: Duration },
    /// A pool has no window.
    PoolNoWindow { pool: String },
    /// A pool has windows on two CPUs.
    PoolMigrates { pool: String, cpu: u32, other: u32 },
    /// A pool has windows on a CPU that it may not use.
    PoolWrongCpu { pool: String, cpu: u32, allowed: CpuSet },
    /// A window of a pool activates a job or has a deadline.
    PoolFlags { pool: String, cpu: u32, offset: Duration },
    /// A window of a pool ends before its threads run.
    PoolShort { pool: String, offset: Duration, length: Duration, limit: Duration },
    /// The windows of a pool in one period are shorter together than its budget. Periods count within the cycle, from
    /// 0.
    PoolBudget { pool: String, number: i64, given: Duration, budget: Duration },
    /// The reaction time of a chain exceeds its bound.
    Reaction { chain: String, reaction: Duration, bound: Duration },
    /// The data age of a chain exceeds its bound.
    Age { chain: String, age: Duration, bound: Duration },
    /// A chain names a task without valid jobs.
    ChainBroken { chain: String, task: String },
    /// A task in a group would miss, or a CPU has no room for all budgets.
    Groups { refusal: Refusal },
    /// The groups cannot be analysed.
    GroupsUnknown { error: String },
    /// A task of SCHED_DEADLINE has no CPU.
    NoCpu { task: String },
    /// A task of SCHED_DEADLINE has a CPU of another host.
    WrongReservation { task: String, cpu: u32, allowed: CpuSet },
    /// SCHED_DEADLINE would promise more than the kernel admits beside windows and budgets. The values are per mille of
    /// one CPU.
    Promised { cpus: CpuSet, promised: i64, capacity: i64 },
    /// A task of SCHED_DEADLINE may miss its deadline.
    Demand { cpu: u32, tasks: Vec<String>, error: String },
    /// A rule of gates, flows or slots.
    Network { violation: NetworkViolation },
    /// A task has windows on a CPU that is reserved for tasks of SCHED_DEADLINE, and on other CPUs.
    Straddles { task: String, cpus: CpuSet, domain: CpuSet },
    /// The plan is of another system than the given description.
    OtherSystem { at: String, described: String, planned: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Violation::*;
        match self {
            Cycle { cycle, task, period } => {
                write!(f, "cycle {cycle} is not a positive multiple of the period {period} of `{task}`")
            }
            Macrotick { macrotick } => write!(f, "macrotick {macrotick} is not positive"),
            TooManyWindows { windows, limit } => {
                write!(f, "the tables have {windows} windows, but at most {limit} are possible")
            }
            UnknownCpu { cpu } => write!(f, "CPU {cpu} has a table, but is not one of the CPUs of the system"),
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
            NotSorted { cpu, window } => write!(f, "CPU {cpu}, window {window} starts before the previous one"),
            Overlap { cpu, window, other } => write!(f, "CPU {cpu}: windows {other} and {window} overlap"),
            Capacity { cpu, busy, leads: Duration::ZERO, capacity } => {
                write!(f, "CPU {cpu}: windows take {busy} of a cycle, but at most {capacity} are allowed")
            }
            Capacity { cpu, busy, leads, capacity } => {
                write!(
                    f,
                    "CPU {cpu}: windows take {busy} of a cycle and leads {leads}, but at most {capacity} are allowed \
                     together"
                )
            }
            Lead { cpu, window, other, gap, lead } => write!(
                f,
                "CPU {cpu}, window {window}: activates a job {gap} after the end of window {other}, but the lead is \
                 {lead}"
            ),
            SyncCycle { cycle, period } => {
                write!(f, "the cycle {cycle} is not a multiple of the period {period} of the sync windows")
            }
            SyncRange { offset, length, period } => {
                write!(
                    f,
                    "the sync windows at {offset} with a length of {length} are not within their period of {period}"
                )
            }
            SyncBound { length, bound, limit } => {
                write!(f, "sync windows of {length} with a bound of {bound} can become shorter than {limit}")
            }
            Sync { cpu, window, begin, end, sync } => write!(
                f,
                "CPU {cpu}, window {window}: [{begin}, {end}) including its lead overlaps with the sync window at \
                 {sync}"
            ),
            Together { task, other, cpu } => {
                write!(f, "tasks `{task}` and `{other}` are apart, but both have windows on CPU {cpu}")
            }
            Exclusive { resource, task, start, other, until } => write!(
                f,
                "task `{task}`: a job starts at {start}, but a job of `{other}` has `{resource}` until {until}"
            ),
            ReserveCycle { cycle, period } => {
                write!(f, "the cycle {cycle} is not a multiple of the period {period} of the reserve")
            }
            Reserve { cpu, at, period, free, length } => write!(
                f,
                "CPU {cpu}: in the {period} from {at} only {free} are free of windows, leads and sync windows, but the \
                 reserve is {length}"
            ),
            NoWindow { task } => write!(f, "task `{task}` has no window"),
            Migrates { task, cpu, other } => write!(f, "task `{task}` has windows on CPU {cpu} and on CPU {other}"),
            Preempted { task, cpu, end, other, next } => write!(
                f,
                "task `{task}` is not preemptible: its window on CPU {cpu} ends at {end}, but the job continues at \
                 {next} on CPU {other}"
            ),
            Parallel { task, cpu, offset, begin, other, end } => write!(
                f,
                "task `{task}`: the window at {offset} on CPU {cpu} starts, including its lead, at {begin}. A window \
                 on CPU {other} ends later, at {end}"
            ),
            WrongCpu { task, cpu, allowed } if allowed.is_several() => {
                write!(f, "task `{task}` may use the CPUs {allowed}, but has windows on CPU {cpu}")
            }
            WrongCpu { task, cpu, allowed } => {
                write!(f, "task `{task}` is pinned to CPU {allowed}, but has windows on CPU {cpu}")
            }
            WrongReservation { task, cpu, allowed } => {
                write!(f, "task `{task}` may use the CPUs of its host ({allowed}), but its reservation is on CPU {cpu}")
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
                "task `{task}`, job {job}: windows of {given} in {pieces} pieces, which cost {lost}, for a wcet of \
                 {wcet}"
            ),
            ShortPiece { task, job, length, limit } => write!(
                f,
                "task `{task}`, job {job}: a piece of {length} is too short: each piece of a job that is cut needs at \
                 least {limit}"
            ),
            NoStart { task, job, given, limit } => write!(
                f,
                "task `{task}`, job {job}: its window of {given} ends before the kernel runs it: at least {limit} are \
                 necessary"
            ),
            Late { task, job, end, deadline } => {
                write!(f, "task `{task}`, job {job}: ends at {end}, but its deadline is {deadline}")
            }
            Jitter { task, jitter, bound } => {
                write!(f, "task `{task}`: starts vary by {jitter}, but the bound is {bound}")
            }
            TooEarly { task, job, start, other, end } => {
                write!(f, "task `{task}`, job {job}: starts at {start}, but its job of `{other}` ends at {end}")
            }
            PoolNoWindow { pool } => write!(f, "pool `{pool}` has no window"),
            PoolMigrates { pool, cpu, other } => write!(f, "pool `{pool}` has windows on CPU {cpu} and on CPU {other}"),
            PoolWrongCpu { pool, cpu, allowed } if allowed.is_several() => {
                write!(f, "pool `{pool}` may use the CPUs {allowed}, but has windows on CPU {cpu}")
            }
            PoolWrongCpu { pool, cpu, allowed } => {
                write!(f, "pool `{pool}` is pinned to CPU {allowed}, but has windows on CPU {cpu}")
            }
            PoolFlags { pool, cpu, offset } => {
                write!(
                    f,
                    "pool `{pool}`: the window at {offset} on CPU {cpu} has a flag of a job, but pools have no jobs"
                )
            }
            PoolShort { pool, offset, length, limit } => write!(
                f,
                "pool `{pool}`: the window of {length} at {offset} ends before the kernel runs its threads: at least \
                 {limit} are necessary"
            ),
            PoolBudget { pool, number, given, budget } => {
                write!(f, "pool `{pool}`, period {number}: windows of {given} for a budget of {budget}")
            }
            Reaction { chain, reaction, bound } => {
                write!(f, "chain `{chain}`: reaction time {reaction}, but the bound is {bound}")
            }
            Age { chain, age, bound } => write!(f, "chain `{chain}`: data age {age}, but the bound is {bound}"),
            ChainBroken { chain, task } => write!(f, "chain `{chain}`: task `{task}` has no valid jobs"),
            Groups { refusal } => write!(f, "{refusal}"),
            GroupsUnknown { error } => write!(f, "groups: {error}"),
            NoCpu { task } => write!(f, "task `{task}` has `supply: deadline`, but no CPU"),
            Promised { cpus, promised, capacity } => write!(
                f,
                "CPU {cpus}: SCHED_DEADLINE would promise {} of one CPU, but the kernel allows {} beside windows, \
                 budgets and its own reserve",
                percent(*promised),
                percent(*capacity)
            ),
            Demand { cpu, tasks, error } => {
                write!(f, "CPU {cpu}: SCHED_DEADLINE, {}: {error}", tasks.join(", "))
            }
            Network { violation } => write!(f, "{violation}"),
            Straddles { task, cpus, domain } => write!(
                f,
                "task `{task}` has windows on {}, but tasks of SCHED_DEADLINE reserve {}: threads do not migrate \
                 between them",
                cpus.words(),
                domain.words()
            ),
            OtherSystem { at, described, planned } => {
                write!(f, "`{at}`: the description has {described}, but the plan has {planned}")
            }
        }
    }
}

fn percent(permille: i64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}
