//! The system description in its normal form: every default filled in, every name resolved.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::engine::ContainerLoad;
use crate::time::Duration;

/// A whole system, as written in `system.yaml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The system's name, shown in reports.
    pub name: String,
    /// The grid: every window's offset and length is a multiple of it.
    pub macrotick: Duration,
    /// The cycle, a multiple of the hyperperiod; `None` leaves it to the solver (the hyperperiod).
    pub cycle: Option<Duration>,
    /// The lead of every job; `None`: jobs are dispatched at their nominal instants, not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<Lead>,
    /// The sync windows of a table that follows `CLOCK_TAI`; `None`: it runs on `CLOCK_MONOTONIC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncWindow>,
    /// The CPUs that tables may use, in ascending order.
    pub cpus: Vec<u32>,
    /// How long a run observes the system.
    pub duration: Duration,
    /// The tasks, in the order of the description.
    pub tasks: Vec<Task>,
    /// The pools, in the order of the description.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// The one period in which all groups' budgets are refilled.
    #[serde(default = "System::default_server_period", skip_serializing_if = "System::is_default_server_period")]
    pub server_period: Duration,
    /// The groups, in the order of the description.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The network namespaces that the runner makes and joins by a bridge, in the order of the description.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Namespace>,
    /// The cause-effect chains.
    pub chains: Vec<Chain>,
    /// Load that runs beside the tasks and has no windows.
    pub background: Vec<Background>,
    /// A table given by hand, for the `null` solver.
    pub table: Option<Vec<GivenWindow>>,
    /// Files, directories and patterns of files that programs need: a run in the lab takes them along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A stretch of every period that no window and no lead lies in, on no CPU: there the table becomes longer or shorter, to
/// follow its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncWindow {
    /// Length from one to the next.
    pub period: Duration,
    /// Start within the period.
    pub offset: Duration,
    /// Length.
    pub length: Duration,
    /// By how much it may become longer or shorter.
    pub bound: Duration,
}

impl SyncWindow {
    /// The longest bound: the kernel keeps it in 32 bits of nanoseconds.
    pub const MAX_BOUND: Duration = Duration::from_nanos(u32::MAX as i64);

    /// The starts within a cycle, which is a multiple of the period.
    pub fn starts(&self, cycle: Duration) -> impl Iterator<Item = Duration> {
        let SyncWindow { period, offset, .. } = *self;
        (0..cycle / period).map(move |number| offset + period * number)
    }
}

/// The time by which the kernel starts to dispatch a job early, to hold it until its nominal instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub enum Lead {
    /// This long.
    Fixed(Duration),
    /// As long as the deployment finds that the host needs.
    Auto {
        /// No longer than this.
        at_most: Duration,
    },
}

impl Lead {
    /// The bound of a measured lead where the description gives none.
    pub const DEFAULT_AT_MOST: Duration = Duration::from_micros(20);
    /// The longest lead.
    pub const MAX: Duration = Duration::from_millis(1);

    /// The time that plans keep free of windows before each job: the longest that the lead can become.
    pub fn reserved(&self) -> Duration {
        match *self {
            Lead::Fixed(lead) => lead,
            Lead::Auto { at_most } => at_most,
        }
    }
}

/// A periodic source of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Unique name; it also names the task's entity in the kernel.
    pub name: String,
    /// Length between two releases.
    pub period: Duration,
    /// Worst-case execution time of a job, the time its windows must sum up to.
    pub wcet: Duration,
    /// Length from release to deadline, at most the period.
    pub deadline: Duration,
    /// Job k is released at `offset + k * period` after the epoch; `None` leaves the phase to the solver.
    pub offset: Option<Duration>,
    /// Bound on the variation of the jobs' starting phases; `None` bounds them by the deadline alone.
    pub jitter: Option<Duration>,
    /// The CPU; `None` leaves it to the solver.
    pub cpu: Option<u32>,
    /// Where it fits on no CPU, it may have windows on several, one after the other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub migrate: bool,
    /// `SCHED_FIFO` priority under the `fifo` backend, 1..=99; `None`: rate-monotonic order.
    pub priority: Option<u8>,
    /// What the kernel class does when a job is a miss.
    #[serde(default, skip_serializing_if = "OnMiss::is_default")]
    pub on_miss: OnMiss,
    /// Misses in a row, 1 or more, after which the kernel class stops the task; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_misses: Option<u32>,
    /// The network namespace that its process is in; `None`: the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What gives its jobs the processor.
    #[serde(default, skip_serializing_if = "Supply::is_windows")]
    pub supply: Supply,
    /// What a job does.
    pub workload: Workload,
}

/// What gives a task's jobs the processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supply {
    /// Windows of a table.
    #[default]
    Windows,
    /// A reservation of `SCHED_DEADLINE`.
    Deadline(Reservation),
}

impl Supply {
    /// The words in a description.
    pub const NAMES: [&'static str; 2] = ["windows", "deadline"];

    /// Whether it is what a description without a word about it means.
    pub fn is_windows(&self) -> bool {
        *self == Supply::Windows
    }
}

/// A reservation of `SCHED_DEADLINE`: so much of each period, before the task's deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// The budget, from the WCET to the deadline.
    pub runtime: Duration,
    /// The CPUs that it may run on: one, or several among which it is scheduled globally. Empty: one, which the solver
    /// chooses; a plan has it.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub cpus: CpuSet,
}

impl Reservation {
    /// The kernel takes no shorter budget (`DL_SCALE`).
    pub const MIN_RUNTIME: Duration = Duration::from_nanos(1024);

    /// The budget where the description gives none: 2 % and 10 us more than the WCET, at least what the kernel takes and at
    /// most the deadline. The wait call and the switch are charged to it too, and a task whose budget is used up to the last
    /// nanosecond is throttled until its next period.
    pub fn default_runtime(wcet: Duration, deadline: Duration) -> Duration {
        let margin = Duration::from_nanos(wcet.as_nanos() / 50) + Duration::from_micros(10);
        wcet.checked_add(margin).unwrap_or(wcet).max(Self::MIN_RUNTIME).min(deadline)
    }
}

impl Task {
    /// Its reservation; `None`: it has windows.
    pub fn reservation(&self) -> Option<&Reservation> {
        match &self.supply {
            Supply::Windows => None,
            Supply::Deadline(reservation) => Some(reservation),
        }
    }

    /// Whether anything but the next window comes of a miss. Only the kernel class does it.
    pub fn acts_on_misses(&self) -> bool {
        self.on_miss != OnMiss::Resume || self.max_misses.is_some()
    }
}

/// What becomes of a task whose job is a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMiss {
    /// The job resumes in the task's next window.
    #[default]
    Resume,
    /// The same, and its thread gets SIGXCPU.
    Signal,
    /// Its process gets SIGKILL, and the task stays dead.
    Kill,
    /// Its process gets SIGKILL; the runner begins the task anew whenever its process ended.
    Restart,
}

impl OnMiss {
    /// All of them, in the order of the reference.
    pub const ALL: [OnMiss; 4] = [OnMiss::Resume, OnMiss::Signal, OnMiss::Kill, OnMiss::Restart];

    /// The word in a description.
    pub fn name(self) -> &'static str {
        match self {
            OnMiss::Resume => "resume",
            OnMiss::Signal => "signal",
            OnMiss::Kill => "kill",
            OnMiss::Restart => "restart",
        }
    }

    /// Whether it is what a description without a word about misses means.
    pub fn is_default(&self) -> bool {
        *self == OnMiss::default()
    }
}

/// What a job of a task does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub enum Workload {
    /// Computes for a time.
    Spin(ExecutionTime),
    /// Computes, then sends one UDP datagram.
    UdpSend {
        /// Time computed before sending.
        spin: ExecutionTime,
        /// Destination, `address:port`.
        to: String,
    },
    /// Waits for one UDP datagram, then computes.
    UdpReceive {
        /// Time computed after receiving.
        spin: ExecutionTime,
        /// Address to bind, `address:port`.
        at: String,
    },
    /// A program that uses `include/macrotick.h`: the command and its arguments.
    Program(Vec<String>),
}

/// The execution time of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub enum ExecutionTime {
    /// Always the same.
    Fixed(Duration),
    /// Uniform over `[min, max]`.
    Uniform {
        /// The shortest time.
        min: Duration,
        /// The longest time.
        max: Duration,
    },
    /// Gumbel, with an exponential tail cut off at `max` (SCHED_TT paper, section 4.1.3).
    Gumbel {
        /// The most likely time.
        mode: Duration,
        /// The scale of the tail.
        scale: Duration,
        /// Samples beyond are drawn again.
        max: Duration,
    },
}

impl ExecutionTime {
    /// What a job computes whose description does not say: the wcet less a tenth, and less 20 us where that is more. A window
    /// has the dispatch in it, and what comes after the computation. At least a half is left.
    pub fn within(wcet: Duration) -> ExecutionTime {
        let part = |of| Duration::from_nanos(wcet.as_nanos() / of);
        let room = part(10).max(Duration::from_micros(20)).min(part(2));
        ExecutionTime::Fixed(wcet - room)
    }

    /// The longest time a job may take.
    pub fn max(&self) -> Duration {
        match *self {
            ExecutionTime::Fixed(time) => time,
            ExecutionTime::Uniform { max, .. } | ExecutionTime::Gumbel { max, .. } => max,
        }
    }
}

/// A cause-effect chain with at least one bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Unique name.
    pub name: String,
    /// Names of the tasks, from cause to effect.
    pub path: Vec<String>,
    /// Bound on the reaction time: from an input just missed by the first task to the end of the first job of the
    /// last task that reflects the next one.
    pub reaction: Option<Duration>,
    /// Bound on the data age: from reading an input to the end of the last job of the last task that still uses it.
    pub age: Option<Duration>,
}

/// An entity whose threads are those of a control group, served by windows as a black box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Unique name; it also names the pool's entity in the kernel.
    pub name: String,
    /// Its windows sum up to the budget in each of these, counted from the epoch.
    pub period: Duration,
    /// Window time in every period.
    pub budget: Duration,
    /// The CPU; `None` leaves it to the solver.
    pub cpu: Option<u32>,
    /// Which of its threads goes first.
    pub order: PoolOrder,
    /// Outside its windows it runs under its threads' own policies; otherwise nowhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub slack: bool,
    /// The directory of an existing control group whose processes are the pool; `None`: the runner makes a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Kernel threads of its CPU that are in it, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_threads: Vec<KernelThread>,
}

/// A thread of the kernel that every CPU has one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelThread {
    /// `ksoftirqd/N`: software interrupts that whoever raised them did not get done, those of the network above all.
    Ksoftirqd,
    /// `ktimers/N`: timers that expire outside hard interrupts, on PREEMPT_RT from Linux 6.13 on.
    Ktimers,
    /// `rcuc/N`: callbacks of RCU, on PREEMPT_RT.
    Rcuc,
    /// `backlog_napi/N`: packets that another CPU put into the queue of this one, on PREEMPT_RT.
    BacklogNapi,
}

impl KernelThread {
    /// All of them, in the order of the reference.
    pub const ALL: [KernelThread; 4] =
        [KernelThread::Ksoftirqd, KernelThread::Ktimers, KernelThread::Rcuc, KernelThread::BacklogNapi];

    /// The word in a description, and what the kernel calls it before the slash.
    pub fn name(self) -> &'static str {
        match self {
            KernelThread::Ksoftirqd => "ksoftirqd",
            KernelThread::Ktimers => "ktimers",
            KernelThread::Rcuc => "rcuc",
            KernelThread::BacklogNapi => "backlog_napi",
        }
    }
}

/// A kernel thread that a group serves, on all of the group's CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GroupThread {
    /// Those of this kind, of all the group's CPUs.
    EachCpu(KernelThread),
    /// The thread of an interrupt, `irq/NUMBER-NAME` as the kernel calls it.
    Interrupt(String),
}

impl GroupThread {
    /// The word in a description.
    pub fn name(&self) -> &str {
        match self {
            GroupThread::EachCpu(thread) => thread.name(),
            GroupThread::Interrupt(name) => name,
        }
    }
}

/// A network namespace with one interface, `eth0`, at the bridge that joins all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Unique name.
    pub name: String,
    /// IPv4 address of the interface with the length of the network's prefix, `10.0.0.1/24`.
    pub address: String,
}

impl Namespace {
    /// The address and the length of the prefix, if they are that.
    pub fn decode(&self) -> Option<(Ipv4Addr, u8)> {
        let (address, prefix) = self.address.split_once('/')?;
        Some((address.parse().ok()?, prefix.parse().ok().filter(|prefix| (1..=30).contains(prefix))?))
    }
}

/// For what is not written where it is not so.
fn is_false(value: &bool) -> bool {
    !value
}

/// Which of a pool's threads that are ready goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub enum PoolOrder {
    /// The one that has been ready for longest, until it blocks.
    Fifo,
    /// They take turns, weighted by their nice values.
    RoundRobin {
        /// The length of a turn at nice value 0.
        slice: Duration,
    },
    /// By the priorities of `SCHED_FIFO` and `SCHED_RR`; those of equal priority take turns, but for `SCHED_FIFO`.
    Priority {
        /// The length of a turn.
        slice: Duration,
    },
}

impl PoolOrder {
    /// The words in a description.
    pub const NAMES: [&'static str; 3] = ["fifo", "round-robin", "priority"];
    /// The length of a turn where the description gives none.
    pub const DEFAULT_SLICE: Duration = Duration::from_millis(1);

    /// The word in a description.
    pub fn name(self) -> &'static str {
        match self {
            PoolOrder::Fifo => Self::NAMES[0],
            PoolOrder::RoundRobin { .. } => Self::NAMES[1],
            PoolOrder::Priority { .. } => Self::NAMES[2],
        }
    }

    /// The length of a turn, where there are any.
    pub fn slice(self) -> Option<Duration> {
        match self {
            PoolOrder::Fifo => None,
            PoolOrder::RoundRobin { slice } | PoolOrder::Priority { slice } => Some(slice),
        }
    }
}

/// An entity whose threads are those of a control group, served by deferrable servers: it has a budget on each of its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Unique name.
    pub name: String,
    /// How bad its failure would be; more is worse. `None`: nobody has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criticality: Option<u32>,
    /// The group priority, 1..=99: a higher number goes first, no two groups have the same. `None`: it is to follow from
    /// criticality; a plan has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// What its threads may run in each server period, on each of its CPUs. `None`: as little as its tasks allow; a plan
    /// has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Duration>,
    /// Whether it may get more budget to make room for another group above it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub may_grow: bool,
    /// The CPUs, in ascending order.
    pub cpus: Vec<u32>,
    /// The directory of an existing control group whose threads are the group; `None`: the runner makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Threads under `SCHED_FIFO` and `SCHED_RR` in it are served like those under `SCHED_DS`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fifo: bool,
    /// How much earlier its threads wake up from sleep, to be held until the instant at which it ends. `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<Duration>,
    /// The pool whose windows serve its threads, too; they are not charged to the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Kernel threads that are in it, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_threads: Vec<GroupThread>,
    /// What its threads do, as far as the check shall answer for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<GroupTask>,
}

/// A sporadic task in a group, which somebody there runs with a fixed priority. The check analyses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTask {
    /// Unique name in the group.
    pub name: String,
    /// The least time from one arrival to the next.
    pub period: Duration,
    /// The longest execution time of a job.
    pub wcet: Duration,
    /// From a job's arrival to when it must be done.
    pub deadline: Duration,
    /// Longest time from a job's arrival to its release.
    pub jitter: Duration,
    /// Priority inside the group, 1..=99: a higher number goes first. `None`: one with which no task of the group misses; a
    /// plan has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// The CPU, one of the group's.
    pub cpu: u32,
    /// Its jobs arrive exactly at refills; otherwise anywhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bound: bool,
}

impl Group {
    fn left_open(&self, path: &str) -> Vec<String> {
        let tasks = self.tasks.iter().enumerate().filter(|(_, task)| task.priority.is_none());
        let tasks = tasks.map(|(index, _)| format!("tasks[{index}].priority"));
        let priority = self.priority.is_none().then(|| "priority".into());
        let budget = self.budget.is_none().then(|| "budget".into());
        priority.into_iter().chain(budget).chain(tasks).map(|key: String| format!("{path}.{key}")).collect()
    }
}

impl System {
    /// The server period where the description gives none: the kernel's.
    pub const DEFAULT_SERVER_PERIOD: Duration = Duration::from_micros(2500);

    fn default_server_period() -> Duration {
        Self::DEFAULT_SERVER_PERIOD
    }

    fn is_default_server_period(period: &Duration) -> bool {
        *period == Self::DEFAULT_SERVER_PERIOD
    }
}

/// Load beside the tasks, or in a pool or a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Unique name.
    pub name: String,
    /// How many processes.
    pub count: u32,
    /// The pool that it runs in; then it has neither a CPU nor a policy but `SCHED_OTHER` of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The group that it runs in; under `SCHED_FIFO` only if the group takes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The network namespace that its processes are in; `None`: the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The CPU; `None`: any.
    pub cpu: Option<u32>,
    /// Under which policy it runs.
    pub policy: Policy,
    /// What it does.
    pub load: Load,
}

impl Background {
    /// What its process is called; of several, that of this index.
    pub fn process_name(&self, index: u32) -> String {
        match self.count {
            1 => self.name.clone(),
            _ => format!("{}.{index}", self.name),
        }
    }

    /// What all of them are called.
    pub fn process_names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.count).map(|index| self.process_name(index))
    }
}

/// A stock scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_OTHER` with a nice value, -20..=19.
    Other(i8),
    /// `SCHED_FIFO` with a priority, 1..=98.
    Fifo(u8),
}

/// What a background process does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub enum Load {
    /// Computes without end.
    Hog,
    /// Issues system calls without end (pipes, memory mappings, files in memory).
    Syscalls,
    /// Computes `run` in every `period`.
    Periodic {
        /// Length between two activations.
        period: Duration,
        /// Time computed in each.
        run: Duration,
    },
    /// Sends ICMP echo requests, each as soon as the last one was answered, or after 10 ms (`ping -f`).
    PingFlood {
        /// Destination, an IPv4 address.
        to: String,
        /// Data bytes of each.
        bytes: u32,
    },
    /// A program: the command and its arguments.
    Program(Vec<String>),
    /// A container.
    Container(ContainerLoad),
}

/// A window of a table given by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenWindow {
    /// Name of the task or pool that is served.
    pub task: String,
    /// The CPU.
    pub cpu: u32,
    /// Start within the cycle.
    pub offset: Duration,
    /// Length.
    pub length: Duration,
    /// Releases a job.
    pub activate: bool,
    /// The job must be done at its end.
    pub deadline: bool,
}

impl System {
    /// The task of that name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// The tasks that have windows, in the order of the system.
    pub fn windowed(&self) -> impl Iterator<Item = &Task> + Clone {
        self.tasks.iter().filter(|task| task.supply.is_windows())
    }

    /// The tasks of `SCHED_DEADLINE` with their reservations, in the order of the system.
    pub fn reserved(&self) -> impl Iterator<Item = (&Task, &Reservation)> + Clone {
        self.tasks.iter().filter_map(|task| Some((task, task.reservation()?)))
    }

    /// The sets of CPUs that tasks of `SCHED_DEADLINE` are scheduled on, each once. They are disjoint, and become root domains:
    /// threads do not move from one to another, and admission is asked for each.
    pub fn domains(&self) -> Vec<CpuSet> {
        let mut domains: Vec<CpuSet> = Vec::new();
        for (_, reservation) in self.reserved().filter(|(_, reservation)| !reservation.cpus.is_empty()) {
            if !domains.contains(&reservation.cpus) {
                domains.push(reservation.cpus.clone());
            }
        }
        domains
    }

    /// The pool of that name.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// What the description leaves to be found of its groups, as paths such as `groups[1].budget`. A plan leaves nothing.
    pub fn left_open(&self) -> Vec<String> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(index, group)| group.left_open(&format!("groups[{index}]"))).collect()
    }

    /// The namespace of that name.
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.iter().find(|namespace| namespace.name == name)
    }

    /// The periods of all tasks with windows, then of all pools, then of the sync windows.
    pub fn periods(&self) -> impl Iterator<Item = Duration> + '_ {
        let pools = self.pools.iter().map(|pool| pool.period);
        self.windowed().map(|task| task.period).chain(pools).chain(self.sync.map(|sync| sync.period))
    }

    /// Whether anything has windows: else there is no table.
    pub fn has_windows(&self) -> bool {
        self.windowed().next().is_some() || !self.pools.is_empty()
    }

    /// The cycle of a plan: as described, or else the hyperperiod, or, without a table, the server period. `None`: the
    /// hyperperiod exceeds the range.
    pub fn cycle_of_plan(&self) -> Option<Duration> {
        match self.has_windows() {
            true => self.cycle.or_else(|| self.hyperperiod()),
            false => Some(self.server_period),
        }
    }

    /// The least common multiple of all periods; `None` where it exceeds the range or there is none.
    pub fn hyperperiod(&self) -> Option<Duration> {
        let mut periods = self.periods();
        let first = periods.next()?;
        periods.try_fold(first, Duration::lcm)
    }
}
