//! The observation: the raw records of a run.
//!
//! All instants are relative to the epoch, so two runs of the same plan in the lab compare equal. Instants of jobs are
//! times of the table: they do not contain the changes in length of the sync windows before the job.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::Plan;
use crate::time::Duration;

/// The raw records of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Version of this format.
    #[schemars(extend("const" = Observation::VERSION))]
    pub version: u32,
    /// The backend that dispatched the jobs.
    pub backend: Backend,
    /// The enforcement that the run really had.
    pub tier: Tier,
    /// The place of the run.
    pub environment: Environment,
    /// The lead that the kernel class used; `None` without a lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<LeadInForce>,
    /// The clock that the kernel class followed. `None` stands for `CLOCK_MONOTONIC`, which all instants here are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockInForce>,
    /// The gates of interfaces, in the order of the description; empty without gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GatesInForce>,
    /// The observed time from the epoch on. Jobs with a later deadline are not recorded.
    #[serde(rename = "duration_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub duration: Duration,
    /// One entry per task, in the order of the system.
    pub tasks: Vec<TaskObservation>,
    /// One entry per pool under the kernel backend, in the order of the system. Empty under other backends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolObservation>,
    /// One entry per group under the kernel backend, in the order of the system. Empty under other backends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupObservation>,
    /// The threads that ran on each CPU, for the length of the trace. Empty without a trace.
    pub segments: Vec<Segment>,
    /// The standard output and error of each process that wrote anything, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<ProcessOutput>,
    /// Unexpected events in words, such as a program that ended early or a full record buffer.
    pub remarks: Vec<String>,
    /// The plan of the run.
    pub plan: Plan,
}

impl Observation {
    /// The counters of pools and groups start this long before the epoch.
    pub const COUNTED_BEFORE: Duration = Duration::from_millis(5);
    /// The version that this code reads and writes.
    pub const VERSION: u32 = 3;
}

/// A mechanism that dispatches jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The scheduling class SCHED_TT.
    Kernel,
    /// The user-space dispatcher (SCHED_TT paper, section 3.3).
    User,
    /// `SCHED_FIFO`: absolute sleeps release the jobs.
    Fifo,
    /// `SCHED_DEADLINE`: absolute sleeps release the jobs.
    Deadline,
    /// `SCHED_OTHER`: absolute sleeps release the jobs.
    Other,
}

impl Backend {
    /// All backends, from the least to the most deterministic.
    pub const ALL: [Backend; 5] = [Backend::Other, Backend::Fifo, Backend::Deadline, Backend::User, Backend::Kernel];

    /// Returns the name on the command line.
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

/// The enforcement that a run really had (DESIGN rule 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The kernel class enforced every window.
    KernelClass,
    /// A user-space dispatcher imitated the table.
    UserSpaceDispatcher,
    /// No mechanism enforced a table: a stock policy ran the tasks.
    NotEnforced,
}

/// The lead of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeadInForce {
    /// The time by which the kernel dispatched jobs early.
    #[serde(rename = "lead_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub lead: Duration,
    /// The time that the plan keeps free for the lead before each job.
    #[serde(rename = "kept_free_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub kept_free: Duration,
    /// The lead that this host needs, if it was measured. Jobs are late if it is longer than the time that is kept
    /// free.
    #[serde(rename = "needed_ns", with = "crate::time::nanos::maybe")]
    #[schemars(with = "Option<i64>")]
    pub needed: Option<Duration>,
}

/// `CLOCK_TAI` in a run, and the changes with which the table followed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockInForce {
    /// Whether the clock was synchronised at the start and at the end, according to the kernel (`adjtimex(2)`, no
    /// `STA_UNSYNC`).
    pub synchronised: bool,
    /// The error of the clock at the end, as estimated by the program that synchronises it (`adjtimex(2)`, `esterror`).
    /// `None` if no program does, or if it estimates none, as linuxptp.
    #[serde(rename = "estimated_error_ns", with = "crate::time::nanos::maybe")]
    #[schemars(with = "Option<i64>")]
    pub estimated_error: Option<Duration>,
    /// The offset of `CLOCK_TAI` from UTC at the end, in seconds. 0: no program has set it.
    pub tai_offset_s: i32,
    /// The total time by which sync windows became longer.
    #[serde(rename = "stretched_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub stretched: Duration,
    /// The total time by which sync windows became shorter.
    #[serde(rename = "shrunk_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub shrunk: Duration,
    /// The number of sync windows that became longer or shorter.
    pub corrections: u64,
    /// The deviation from the clock at the end, not corrected yet. If it is positive, sync windows must become longer.
    #[serde(rename = "rest_ns", with = "crate::time::nanos")]
    #[schemars(with = "i64")]
    pub rest: Duration,
}

/// The part that opens gates, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateTier {
    /// The device.
    Hardware,
    /// The gate thread of a kernel with exact gates.
    Exact,
    /// The software of an unmodified kernel.
    Software,
    /// The software gives each frame an instant, and the device sends at it.
    TxtimeAssist,
}

impl GateTier {
    /// Returns the name in documents.
    pub fn name(self) -> &'static str {
        match self {
            GateTier::Hardware => "hardware",
            GateTier::Exact => "exact",
            GateTier::Software => "software",
            GateTier::TxtimeAssist => "txtime-assist",
        }
    }
}

/// The gates of an interface: the best ones that kernel and device really have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatesInForce {
    /// The name of the interface in the description.
    pub interface: String,
    /// The name of its device.
    pub device: String,
    /// The network namespace of the device, with its name for iproute2; `None`: the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The part that opens the gates.
    pub tier: GateTier,
    /// The time by which the gate thread begins before a gate opens. Only exact gates have it.
    #[serde(rename = "lead_ns", with = "crate::time::nanos::maybe", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>")]
    pub lead: Option<Duration>,
    /// The better tiers that the kernel or the device refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedTier>,
    /// The time for which the device sent no frames, because its gates replaced others; `None`: it stayed open.
    #[serde(
        rename = "closed_ns",
        with = "crate::time::nanos::maybe",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<i64>")]
    pub closed: Option<Duration>,
    /// The frames that were dropped in that time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dropped: u32,
}

/// A tier that the kernel or the device refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedTier {
    /// The tier.
    pub tier: GateTier,
    /// The reason, in the words of the kernel.
    pub reason: String,
}

/// The place of a run. No value here may differ between two lab runs of the same plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// The preemption model according to the kernel, such as `PREEMPT_RT` or `PREEMPT`.
    pub preemption: String,
    /// The name of the CPU model according to the kernel.
    pub cpu_model: String,
    /// The number of CPUs online.
    pub cpus: u32,
    /// The clock of the lab, if the run took place there.
    pub lab: Option<Lab>,
    /// Further facts for a reader of the report, as pairs of name and value.
    pub facts: Vec<(String, String)>,
    /// The set-up of the host for the plan; `None`: the run left the host as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileInForce>,
}

/// The set-up of the host during a run (`profile` of the description).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileInForce {
    /// The name of the set-up in the description.
    pub name: String,
    /// Its settings, in the order in which the run made them.
    pub settings: Vec<SettingInForce>,
}

/// One setting of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingInForce {
    /// The file, or the thread and its property.
    pub name: String,
    /// The value before the run, which the end of the run restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The reason why the setting is not in force: the host does not have it, or another part of the plan needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// The lab's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// The nanoseconds of virtual time per guest instruction.
    pub ns_per_instruction: u32,
    /// The number of virtual CPUs.
    pub cpus: u32,
}

/// The records of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskObservation {
    /// The task's name.
    pub name: String,
    /// Its jobs in ascending order of job number. Every job with a deadline within the duration has an entry, also if
    /// it never ran, except the jobs from `recorded_until_ns` on.
    pub jobs: Vec<Job>,
    /// The nominal instant of the first job for which there was no room; `None` if all jobs are present.
    #[serde(
        rename = "recorded_until_ns",
        with = "crate::time::nanos::maybe",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<i64>")]
    pub recorded_until: Option<Duration>,
    /// The counters of the entity under the kernel backend.
    pub counters: Option<EntityCounters>,
}

impl TaskObservation {
    /// The largest number of listed jobs of a task: their records take 64 MiB.
    pub const MOST_JOBS: usize = 1 << 21;
}

/// One activation of a task. In JSON: `[job, nominal, start, end]` in nanoseconds since the epoch, `null` for an event
/// that did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the activation since the epoch, from 0.
    pub job: u64,
    /// The nominal instant in the table, since the epoch.
    pub nominal: Duration,
    /// The first instruction, since the epoch; `None` if the job never ran.
    pub start: Option<Duration>,
    /// The last instruction, since the epoch; `None` if the job was not complete at the end of the run.
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
/// runner's counters of its process.
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
    /// Windows that had passed when the window interrupt came.
    pub skipped: u64,
    /// Preemptions of a thread at the end of a window.
    pub overrun: u64,
    /// Processor time that threads of the entity received in the class, in nanoseconds.
    pub runtime_ns: u64,
    /// The part of the runtime in which the kernel held jobs until their nominal instants, in nanoseconds.
    #[serde(default)]
    pub held_ns: u64,
    /// Jobs for which the lead was too short.
    #[serde(default)]
    pub late: u64,
    /// Misses with a job that had not started.
    #[serde(default)]
    pub never_ran: u64,
    /// Consecutive misses since the last job that was complete in time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missed_in_row: u32,
    /// Whether the kernel stopped the entity, after the largest allowed number of consecutive misses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// The number of times that the runner restarted the process of the task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarted: u32,
}

/// Whether a value is the default: such counters are not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The records of one pool, from the epoch to the end of the observed time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolObservation {
    /// The pool's name.
    pub name: String,
    /// Processor time that its threads received in the class, in nanoseconds.
    pub runtime_ns: u64,
    /// Processor time of its whole control group, in nanoseconds. The part above `runtime_ns` was received outside the
    /// class.
    pub usage_ns: u64,
    /// Preemptions of a thread at the end of a window.
    pub overrun: u64,
    /// Windows that had passed when the window interrupt came.
    pub skipped: u64,
    /// The number of threads at the end.
    pub threads: u32,
}

/// The records of one group on all its CPUs together, from the epoch to the end of the observed time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupObservation {
    /// The group's name.
    pub name: String,
    /// Processor time that the kernel charged to the group, in nanoseconds.
    pub usage_ns: u64,
    /// The number of refills of a budget that was not full.
    pub refills: u64,
    /// The number of times that the budget was exhausted.
    pub exhaustions: u64,
    /// The time without a budget while threads of the group were ready, in nanoseconds.
    pub throttled_ns: u64,
}

/// The output of one process, or of all processes of a restarted task. Of a long output, the start and the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessOutput {
    /// The name of the task or process, with `.N` appended for process N of several.
    pub name: String,
    /// The text as written, with replacement characters for bytes that are not UTF-8.
    pub text: String,
}

/// A stretch of time in which one thread had one CPU. Instants are since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The CPU.
    pub cpu: u32,
    /// The name of the task, process or kernel thread; the list has no entries for `idle`.
    pub who: String,
    /// The pool of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The start, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// The end, in nanoseconds since the epoch (exclusive).
    pub end_ns: i64,
}
