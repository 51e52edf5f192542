//! What is analysed: CPUs with their windows, and groups with their tasks.
//!
//! The names are those of the glossary; `docs/feasibility.md` has the model.

use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{CpuSet, CpuTable, Duration};
use serde::{Deserialize, Serialize};

use super::{validate, HostError};
use crate::deadline;

/// One host: everything that competes for its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The one server period of all groups (`T_S` of the papers).
    pub server_period: Duration,
    /// When budgets are refilled.
    pub refill: Refill,
    /// Budgets that are computed are multiples of this; one nanosecond is allowed.
    pub granule: Duration,
    /// The smallest budget there can be.
    pub least: Duration,
    /// What of each CPU windows, budgets and SCHED_DEADLINE may have together.
    pub capacity: Capacity,
    /// The CPUs, each once.
    pub cpus: Vec<u32>,
    /// What SCHED_DEADLINE has admitted. No CPU is in two of them; one that is in none has nothing of it.
    pub domains: Vec<Domain>,
    /// The cycle of all tables; of no meaning without windows.
    pub cycle: Duration,
    /// The lead before each ACTIVATE window, in which the CPU is as taken as in the window; zero without.
    pub lead: Duration,
    /// The tables: windows come before all groups.
    pub tables: Vec<CpuTable>,
    /// The groups, in any order; their priorities order them.
    pub groups: Vec<Group>,
    /// The tasks of SCHED_DEADLINE that are known, and stay on one CPU: windows and budgets come before them.
    pub reserved: Vec<Reserved>,
}

/// CPUs for which SCHED_DEADLINE has one account (a root domain of the kernel): its tasks there migrate between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// The CPUs, at least one.
    pub cpus: CpuSet,
    /// What it has admitted on all of them together.
    pub promised: Bandwidth,
}

impl Domain {
    /// With so many parts of 2^20 of one CPU, or all there is: more may be promised where nothing is refused
    /// (`sched_rt_runtime_us` of -1).
    pub fn new(cpus: CpuSet, parts: i128) -> Domain {
        let none = Domain { cpus, promised: Bandwidth(0) };
        let promised = u32::try_from(parts.max(0)).map_or(none.whole(), |parts| Bandwidth(parts).min(none.whole()));
        Domain { promised, ..none }
    }

    /// The whole of its CPUs.
    pub fn whole(&self) -> Bandwidth {
        let cpus = u32::try_from(self.cpus.as_slice().len()).unwrap_or(u32::MAX);
        Bandwidth(Bandwidth::WHOLE.0.saturating_mul(cpus))
    }

    /// The part that each of its CPUs has in what was promised, rounded up.
    pub fn each(&self) -> Bandwidth {
        Bandwidth(self.promised.0.div_ceil(self.cpus.as_slice().len().max(1) as u32))
    }
}

/// A task of SCHED_DEADLINE that stays on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// Its name.
    pub name: String,
    /// Its CPU.
    pub cpu: u32,
    /// What it is promised, its runtime as the WCET: it is taken to use all of it.
    pub task: deadline::Task,
}

impl Reserved {
    /// Those of a description; not those that migrate, which no test is for beside windows or budgets.
    pub fn of(tasks: &[macrotick_model::Task]) -> Vec<Reserved> {
        let of = |task: &macrotick_model::Task| {
            let reservation = task.reservation()?;
            let &[cpu] = reservation.cpus.as_slice() else { return None };
            Some(Reserved { name: task.name.clone(), cpu, task: deadline::Task::promised(task, reservation) })
        };
        tasks.iter().filter_map(of).collect()
    }
}

/// What may be promised of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capacity {
    /// What the kernel admits, as it counts (`kernel/sched/macrotick/admit.c`): windows and budgets are rounded up to parts of
    /// 1024 and leave 5 %; deadline tasks with the servers of the fair class have 95 % of what they leave of a domain.
    Kernel,
    /// All but this, in exact fractions; of a domain of several CPUs each has its equal part in what was promised.
    AllBut(Permille),
}

impl Capacity {
    /// What windows and budgets leave at least.
    pub fn reserve(self) -> Permille {
        match self {
            Capacity::Kernel => Permille(50),
            Capacity::AllBut(reserve) => reserve,
        }
    }
}

/// A share of a CPU in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Permille(pub u16);

/// A bandwidth as SCHED_DEADLINE counts it: in parts of 2^20 of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bandwidth(pub u32);

impl Bandwidth {
    /// All of one CPU.
    pub const WHOLE: Bandwidth = Bandwidth(1 << 20);
}

/// When budgets are refilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refill {
    /// All of a CPU at the same instants, as the kernel does it: the special form, equation 3 of the paper.
    Lockstep(Phase),
    /// Each server at instants of its own, which nobody knows: the general form, equation 2.
    Independent,
}

/// Where refills lie on the clock of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// One is this long after the start of cycle 0 of the table.
    At(Duration),
    /// Anywhere.
    Any,
}

/// A group: the threads of one control group, with a budget on each of its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How bad its failure would be; more is worse.
    pub criticality: u32,
    /// The group priority, 1 to [`PRIORITIES`]; a higher number goes first, no two groups have the same.
    pub priority: u32,
    /// What it has on each CPU, one entry per CPU.
    pub servers: Vec<Server>,
    /// Whose windows in the tables serve it, too, by its tasks' priorities and nobody else; they are no part of its budget.
    pub windows: Option<String>,
}

/// Group priorities are 1 to this, and so are those of tasks inside a group, as those of SCHED_FIFO.
pub const PRIORITIES: u32 = *macrotick_model::validate::PRIORITIES.end();

/// The deferrable server of a group on one CPU. Its tasks stay on this CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The CPU.
    pub cpu: u32,
    /// The budget per server period (`C_S`).
    pub budget: Duration,
    /// Whether [`admit`](super::admit) may give it more budget, to make room above it.
    pub may_grow: bool,
    /// Its tasks; without any it is a share of the CPU and nothing is promised about response times.
    pub tasks: Vec<GroupTask>,
}

/// A sporadic task inside a group, scheduled there by fixed priority and FIFO among equals.
///
/// A job arrives, is released at most `jitter` later, and its response time counts from the arrival. Deadlines are
/// arbitrary: shorter than the period, equal, or longer; jobs of one task are served in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTask {
    /// Its name.
    pub name: String,
    /// The longest execution time of a job (`C`).
    pub wcet: Duration,
    /// The least time from one arrival to the next (`T`).
    pub period: Duration,
    /// From a job's arrival to when it must be complete (`D`).
    pub deadline: Duration,
    /// Longest time from a job's arrival to its release (`J`); what unbound tasks wait for a refill is no part of it.
    pub jitter: Duration,
    /// The priority inside the group, 1 to [`PRIORITIES`]; a higher number goes first.
    pub priority: u32,
    /// Where its jobs arrive.
    pub arrival: Arrival,
}

/// Where the jobs of a task arrive in the server period (Davis and Burns 2005).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// A bound task: exactly at refills of its server. Its period is a multiple of the server period.
    Bound,
    /// An unbound task: anywhere.
    Unbound,
}

impl Host {
    /// The kernel's files count in microseconds.
    pub const GRANULE: Duration = Duration::from_micros(1);

    /// CPU 0 of a kernel of ours, with nothing on it; where refills would lie in a table is not known.
    pub fn idle(server_period: Duration) -> Host {
        Host {
            server_period,
            refill: Refill::Lockstep(Phase::Any),
            granule: Host::GRANULE,
            least: MIN_BUDGET,
            capacity: Capacity::Kernel,
            cpus: vec![0],
            domains: Vec::new(),
            cycle: Duration::ZERO,
            lead: Duration::ZERO,
            tables: Vec::new(),
            groups: Vec::new(),
            reserved: Vec::new(),
        }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    ///
    /// The first thing that makes none, such as a window outside the cycle.
    pub fn validate(&self) -> Result<(), HostError> {
        validate::host(self)
    }

    /// The groups from the highest to the lowest priority.
    pub fn by_priority(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.priority));
        groups
    }
}

impl GroupTask {
    /// A task that arrives anywhere and is released there, with its period as the deadline.
    pub fn unbound(name: impl Into<String>, wcet: Duration, period: Duration, priority: u32) -> GroupTask {
        let (deadline, jitter, arrival) = (period, Duration::ZERO, Arrival::Unbound);
        GroupTask { name: name.into(), wcet, period, deadline, jitter, priority, arrival }
    }
}

impl Server {
    /// A server whose budget stays as it is.
    pub fn fixed(cpu: u32, budget: Duration, tasks: Vec<GroupTask>) -> Server {
        Server { cpu, budget, may_grow: false, tasks }
    }
}

impl Group {
    /// A group among the least critical, which no windows serve.
    pub fn served(name: impl Into<String>, priority: u32, servers: Vec<Server>) -> Group {
        Group { name: name.into(), criticality: 0, priority, servers, windows: None }
    }

    /// What the group has on `cpu`.
    pub fn on(&self, cpu: u32) -> Option<&Server> {
        self.servers.iter().find(|server| server.cpu == cpu)
    }
}
