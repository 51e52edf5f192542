//! The observation: what really happened in a run, as raw records.
//!
//! All instants are relative to the epoch, so that two runs of the same plan in the lab compare equal. Those of jobs
//! are the table's: by how much sync windows became longer or shorter before a job is not in them.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::Plan;
use crate::time::Duration;

/// A run's raw records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Version of this format.
    #[schemars(extend("const" = Observation::VERSION))]
    pub version: u32,
    /// What dispatched the jobs.
    pub backend: Backend,
    /// What was really enforced.
    pub tier: Tier,
    /// Where it ran.
    pub environment: Environment,
    /// The lead that the kernel class held; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<LeadInForce>,
    /// The clock that the kernel class followed; `None`: `CLOCK_MONOTONIC`, which everything here is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockInForce>,
    /// How long was observed, from the epoch. Jobs whose deadline lies beyond are not recorded.
    #[serde(rename = "duration_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub duration: Duration,
    /// One entry per task, in the order of the system.
    pub tasks: Vec<TaskObservation>,
    /// One entry per pool under the kernel backend, in the order of the system; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolObservation>,
    /// One entry per group under the kernel backend, in the order of the system; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupObservation>,
    /// Which thread had a CPU when, for as long as a trace was taken; empty without a trace.
    pub segments: Vec<Segment>,
    /// What was written to standard output and error by each process that wrote anything, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<ProcessOutput>,
    /// What went wrong on the side, in words (a program that ended early, a full record buffer).
    pub remarks: Vec<String>,
    /// The plan that was run.
    pub plan: Plan,
}

impl Observation {
    /// So long before the epoch begins what pools and groups receive to count.
    pub const COUNTED_BEFORE: Duration = Duration::from_millis(5);
    /// The version that this code reads and writes.
    pub const VERSION: u32 = 3;
}

/// What dispatches the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The scheduling class SCHED_TT.
    Kernel,
    /// The user-space dispatcher (SCHED_TT paper, section 3.3).
    User,
    /// `SCHED_FIFO`, released by absolute sleeps.
    Fifo,
    /// `SCHED_DEADLINE`, released by absolute sleeps.
    Deadline,
    /// `SCHED_OTHER`, released by absolute sleeps.
    Other,
}

impl Backend {
    /// All backends, from the least to the most deterministic.
    pub const ALL: [Backend; 5] = [Backend::Other, Backend::Fifo, Backend::Deadline, Backend::User, Backend::Kernel];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Kernel => "kernel",
            Backend::User => "user",
            Backend::Fifo => "fifo",
            Backend::Deadline => "deadline",
            Backend::Other => "other",
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What was really enforced (DESIGN rule 7). Further dimensions (gates, clock) join when they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The kernel class held every window.
    KernelClass,
    /// A user-space dispatcher imitated the table.
    UserSpaceDispatcher,
    /// No table was enforced: a stock policy ran the tasks.
    NotEnforced,
}

/// The lead of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeadInForce {
    /// By how much jobs were dispatched early.
    #[serde(rename = "lead_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub lead: Duration,
    /// What the plan keeps free for it before each job.
    #[serde(rename = "kept_free_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub kept_free: Duration,
    /// What this host needs, where it was measured: more than is kept free makes jobs late.
    #[serde(rename = "needed_ns", with = "crate::time::nanos::maybe")]
    #[schemars(with = "Option<i64>")]
    pub needed: Option<Duration>,
}

/// `CLOCK_TAI` of a run, and what the table did to follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockInForce {
    /// Whether the kernel holds it for synchronised (`adjtimex(2)`, no `STA_UNSYNC`), at the beginning and at the end.
    pub synchronised: bool,
    /// By how much whoever synchronises it estimates it to be off (`adjtimex(2)`, `esterror`), at the end; `None` where
    /// nobody does.
    #[serde(rename = "estimated_error_ns", with = "crate::time::nanos::maybe")]
    #[schemars(with = "Option<i64>")]
    pub estimated_error: Option<Duration>,
    /// By how much sync windows became longer, altogether.
    #[serde(rename = "stretched_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub stretched: Duration,
    /// By how much they became shorter.
    #[serde(rename = "shrunk_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub shrunk: Duration,
    /// How many of them became longer or shorter.
    pub corrections: u64,
    /// What was still to be made good at the end; more than zero: by becoming longer.
    #[serde(rename = "rest_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub rest: Duration,
}

/// Where a run took place. Nothing here may differ between two lab runs of the same plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// `PREEMPT_RT`, `PREEMPT` or what the kernel says of itself.
    pub preemption: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Whether the run took place in the lab, and with which clock: nanoseconds of virtual time per instruction.
    pub lab: Option<Lab>,
    /// Further facts that a reader of the report should know, name and value.
    pub facts: Vec<(String, String)>,
}

/// The lab's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// Virtual nanoseconds per guest instruction.
    pub ns_per_instruction: u32,
    /// Virtual CPUs.
    pub cpus: u32,
}

/// What one task did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskObservation {
    /// The task's name.
    pub name: String,
    /// Its jobs in ascending order of job number; one entry for every job whose deadline lies within the duration,
    /// also for those that never ran, but none from `recorded_until_ns` on.
    pub jobs: Vec<Job>,
    /// The nominal instant of the first job that there was no room for; `None`: they are all there.
    #[serde(
        rename = "recorded_until_ns",
        with = "crate::time::nanos::maybe",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<i64>")]
    pub recorded_until: Option<Duration>,
    /// The entity's counters under the kernel backend.
    pub counters: Option<EntityCounters>,
}

impl TaskObservation {
    /// The most jobs of a task that are listed: their records take 64 MiB.
    pub const MOST_JOBS: usize = 1 << 21;
}

/// One activation of a task. In JSON: `[job, nominal, start, end]` in nanoseconds since the epoch, `null` for what
/// did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the activation since the epoch, from 0.
    pub job: u64,
    /// The nominal instant in the table, since the epoch.
    pub nominal: Duration,
    /// The first instruction, since the epoch; `None`: it never ran.
    pub start: Option<Duration>,
    /// The last instruction, since the epoch; `None`: it was not complete when the run ended.
    pub end: Option<Duration>,
}

impl Serialize for Job {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.job, self.nominal.as_nanos(), self.start.map(Duration::as_nanos), self.end.map(Duration::as_nanos))
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (job, nominal, start, end) = <(u64, i64, Option<i64>, Option<i64>)>::deserialize(deserializer)?;
        Ok(Job {
            job,
            nominal: Duration::from_nanos(nominal),
            start: start.map(Duration::from_nanos),
            end: end.map(Duration::from_nanos),
        })
    }
}

/// The kernel's counters of one entity (`struct macrotick_entity_stats` in `include/uapi/linux/macrotick.h`), and the
/// runner's of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntityCounters {
    /// Jobs released by an ACTIVATE.
    pub released: u64,
    /// Jobs completed.
    pub completed: u64,
    /// Jobs not complete at the end of their DEADLINE window.
    pub missed: u64,
    /// Activations lost because an older one was still pending.
    pub lost: u64,
    /// Windows passed over because the window interrupt came too late.
    pub skipped: u64,
    /// Times a thread was preempted at a window's end.
    pub overrun: u64,
    /// Processor time that threads of the entity received in the class, in nanoseconds.
    pub runtime_ns: u64,
    /// The part of it in which jobs were held until their nominal instants, in nanoseconds.
    #[serde(default)]
    pub held_ns: u64,
    /// Jobs that the lead was too short for.
    #[serde(default)]
    pub late: u64,
    /// Misses with a job that had not begun.
    #[serde(default)]
    pub never_ran: u64,
    /// Misses since a job was done in time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missed_in_row: u32,
    /// At the end the entity was stopped, after as many misses in a row as its task may have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// How often the runner restarted the task's process.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarted: u32,
}

/// For what is not written where it did not happen.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What one pool had, from the epoch to the end of what was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolObservation {
    /// The pool's name.
    pub name: String,
    /// Processor time that its threads received in the class, in nanoseconds.
    pub runtime_ns: u64,
    /// Processor time of its control group in all, in nanoseconds; what exceeds the former was received outside.
    pub usage_ns: u64,
    /// Times a thread was preempted at a window's end.
    pub overrun: u64,
    /// Windows passed over because the window interrupt came too late.
    pub skipped: u64,
    /// Threads at the end.
    pub threads: u32,
}

/// What one group had, on all its CPUs together, from the epoch to the end of what was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupObservation {
    /// The group's name.
    pub name: String,
    /// Processor time that was charged to it, in nanoseconds.
    pub usage_ns: u64,
    /// Refills of what it had used of.
    pub refills: u64,
    /// How often its budget was used up.
    pub exhaustions: u64,
    /// How long it had no budget while threads of it were ready, in nanoseconds.
    pub throttled_ns: u64,
}

/// What one process wrote; of a task that was begun anew, all of its processes. Of a lot, the beginning and the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessOutput {
    /// The task's name, or the process's, with `.N` behind it for process N of several.
    pub name: String,
    /// The text as it was written; what is not UTF-8 is replaced.
    pub text: String,
}

/// A stretch of time in which one thread had one CPU. Instants are since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The CPU.
    pub cpu: u32,
    /// The task's or the process's name, or the kernel thread's; `idle` is left out.
    pub who: String,
    /// The pool that the thread was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// From, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// To, in nanoseconds since the epoch (exclusive).
    pub end_ns: i64,
}
