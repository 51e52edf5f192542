//! The input of the analysis: CPUs with their windows, and groups with their tasks.
//!
//! The names are those of the glossary; `docs/explanation/feasibility.md` has the model.

use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{CpuSet, CpuTable, Duration};
use serde::{Deserialize, Serialize};

use super::{validate, HostError};
use crate::deadline;

/// One host, with all load that competes for its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The one server period of all groups (`T_S` of the papers).
    pub server_period: Duration,
    /// The instants of refills.
    pub refill: Refill,
    /// The unit of computed budgets. One nanosecond is possible.
    pub granule: Duration,
    /// The smallest possible budget.
    pub least: Duration,
    /// The share of each CPU for windows, budgets and SCHED_DEADLINE together.
    pub capacity: Capacity,
    /// The CPUs, each once.
    pub cpus: Vec<u32>,
    /// The admitted reservations of SCHED_DEADLINE. No CPU is in two domains. A CPU in no domain has no reservation.
    pub domains: Vec<Domain>,
    /// The cycle of all tables. It has no meaning without windows.
    pub cycle: Duration,
    /// The lead before each ACTIVATE window, which takes the CPU like the window; zero if there is none.
    pub lead: Duration,
    /// The tables. Windows come before all groups.
    pub tables: Vec<CpuTable>,
    /// The groups, in any order. Their priorities order them.
    pub groups: Vec<Group>,
    /// The known tasks of SCHED_DEADLINE that stay on one CPU. Windows and budgets come before them.
    pub reserved: Vec<Reserved>,
}

/// CPUs with one account of SCHED_DEADLINE (a root domain of the kernel). Its tasks there migrate between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// The CPUs, at least one.
    pub cpus: CpuSet,
    /// The admitted bandwidth on all of them together.
    pub promised: Bandwidth,
}

impl Domain {
    /// Makes a domain with a bandwidth in parts of 2^20 of one CPU, and at most the whole. More may be promised where
    /// the kernel refuses nothing (`sched_rt_runtime_us` of -1).
    pub fn new(cpus: CpuSet, parts: i128) -> Domain {
        let none = Domain { cpus, promised: Bandwidth(0) };
        let promised = u32::try_from(parts.max(0)).map_or(none.whole(), |parts| Bandwidth(parts).min(none.whole()));
        Domain { promised, ..none }
    }

    /// Returns the bandwidth of all its CPUs.
    pub fn whole(&self) -> Bandwidth {
        let cpus = u32::try_from(self.cpus.as_slice().len()).unwrap_or(u32::MAX);
        Bandwidth(Bandwidth::WHOLE.0.saturating_mul(cpus))
    }

    /// Returns the part of the promised bandwidth for each of its CPUs, rounded up.
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
    /// Its reservation, with the runtime as the WCET. The analysis assumes that it uses all of it.
    pub task: deadline::Task,
}

impl Reserved {
    /// Returns the tasks of a description that stay on one CPU. For those that migrate, no test is known beside windows
    /// or budgets.
    pub fn of(tasks: &[macrotick_model::Task]) -> Vec<Reserved> {
        let of = |task: &macrotick_model::Task| {
            let reservation = task.reservation()?;
            let &[cpu] = reservation.cpus.as_slice() else { return None };
            Some(Reserved { name: task.name.clone(), cpu, task: deadline::Task::promised(task, reservation) })
        };
        tasks.iter().filter_map(of).collect()
    }
}

/// The share of a CPU that may be promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capacity {
    /// The kernel's own account (`kernel/sched/macrotick/admit.c`). It rounds windows and budgets up to parts of 1024,
    /// and they leave 5 %. Deadline tasks and the servers of the fair class have 95 % of the time that these leave of a
    /// domain.
    Kernel,
    /// All but this share, in exact fractions. In a domain of several CPUs each has an equal part of the promised
    /// bandwidth.
    AllBut(Permille),
}

impl Capacity {
    /// Returns the share that windows and budgets must leave.
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

/// A bandwidth in the unit of SCHED_DEADLINE: parts of 2^20 of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bandwidth(pub u32);

impl Bandwidth {
    /// The whole of one CPU.
    pub const WHOLE: Bandwidth = Bandwidth(1 << 20);
}

/// The instants of refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refill {
    /// All budgets of a CPU are refilled at the same instants, as in the kernel: the special form, equation 3 of the
    /// paper.
    Lockstep(Phase),
    /// Each server has refills at its own, unknown instants: the general form, equation 2.
    Independent,
}

/// The position of refills on the clock of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A refill is this long after the start of cycle 0 of the table.
    At(Duration),
    /// The position is unknown.
    Any,
}

/// A group: the threads of one control group, with a budget on each of its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How bad its failure would be; a greater number is worse.
    pub criticality: u32,
    /// The group priority, 1 to [`PRIORITIES`]. The higher number goes first, and no two groups have the same.
    pub priority: u32,
    /// Its servers, one entry per CPU.
    pub servers: Vec<Server>,
    /// The name of its windows in the tables. They serve only this group, by its tasks' priorities, in addition to its
    /// budget.
    pub windows: Option<String>,
}

/// The highest priority of groups, and of tasks inside a group, as for SCHED_FIFO. The lowest one is 1.
pub const PRIORITIES: u32 = *macrotick_model::validate::PRIORITIES.end();

/// The deferrable server of a group on one CPU. Its tasks stay on this CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The CPU.
    pub cpu: u32,
    /// The budget per server period (`C_S`).
    pub budget: Duration,
    /// Whether [`admit`](super::admit) may give it more budget when it admits a container above it.
    pub may_grow: bool,
    /// Its tasks. Without tasks it is a share of the CPU, and no response time is promised.
    pub tasks: Vec<GroupTask>,
}

/// A sporadic task inside a group, scheduled there by fixed priority and FIFO among equals.
///
/// A job arrives, and is released at most `jitter` later. Its response time counts from the arrival. Deadlines are
/// arbitrary: shorter than the period, equal, or longer. Jobs of one task are served in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTask {
    /// Its name.
    pub name: String,
    /// The longest execution time of a job (`C`).
    pub wcet: Duration,
    /// The least time from one arrival to the next (`T`).
    pub period: Duration,
    /// The time from a job's arrival to its deadline (`D`).
    pub deadline: Duration,
    /// The longest time from a job's arrival to its release (`J`). The wait of an unbound task for a refill is no part
    /// of it.
    pub jitter: Duration,
    /// The priority inside the group, 1 to [`PRIORITIES`]; the higher number goes first.
    pub priority: u32,
    /// The place of its arrivals in the server period.
    pub arrival: Arrival,
}

/// The place of a task's arrivals in the server period (Davis and Burns 2005).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// A bound task: exactly at refills of its server. Its period is a multiple of the server period.
    Bound,
    /// An unbound task: at any instant.
    Unbound,
}

impl Host {
    /// The unit of the kernel's files, a microsecond.
    pub const GRANULE: Duration = Duration::from_micros(1);

    /// Returns CPU 0 of a Macrotick kernel without any load. The position of refills in a table is unknown.
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

    /// Checks that the host is valid.
    ///
    /// # Errors
    ///
    /// The first invalid value, such as a window outside the cycle.
    pub fn validate(&self) -> Result<(), HostError> {
        validate::host(self)
    }

    /// Returns the groups from the highest to the lowest priority.
    pub fn by_priority(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.priority));
        groups
    }
}

impl GroupTask {
    /// Makes a task that arrives at any instant and is released at once, with its period as the deadline.
    pub fn unbound(name: impl Into<String>, wcet: Duration, period: Duration, priority: u32) -> GroupTask {
        let (deadline, jitter, arrival) = (period, Duration::ZERO, Arrival::Unbound);
        GroupTask { name: name.into(), wcet, period, deadline, jitter, priority, arrival }
    }
}

impl Server {
    /// Makes a server with a budget that may not grow.
    pub fn fixed(cpu: u32, budget: Duration, tasks: Vec<GroupTask>) -> Server {
        Server { cpu, budget, may_grow: false, tasks }
    }
}

impl Group {
    /// Makes a group among the least critical, without windows.
    pub fn served(name: impl Into<String>, priority: u32, servers: Vec<Server>) -> Group {
        Group { name: name.into(), criticality: 0, priority, servers, windows: None }
    }

    /// Returns the group's server on `cpu`.
    pub fn on(&self, cpu: u32) -> Option<&Server> {
        self.servers.iter().find(|server| server.cpu == cpu)
    }
}
