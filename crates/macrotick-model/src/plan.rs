//! The plan: a system and the tables that a solver made for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::gates::GateList;
use crate::system::{Reservation, System, Task};
use crate::time::Duration;

/// A schedule for one host. It contains its system: a plan file is all that later stages need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this format.
    #[schemars(extend("const" = Plan::VERSION))]
    pub version: u32,
    /// The name of the solver that made the plan.
    pub solver: String,
    /// The cycle after which the tables repeat.
    pub cycle: Duration,
    /// One table per CPU that has windows, in ascending order of CPU.
    pub tables: Vec<CpuTable>,
    /// One gate list per interface with gates, planned or by hand, in the order of the description. They start at the
    /// epoch of the tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateList>,
    /// The system that the plan is for.
    pub system: System,
}

/// The table of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuTable {
    /// The CPU.
    pub cpu: u32,
    /// The windows in ascending order, without overlap, all within `[0, cycle)`.
    pub windows: Vec<Window>,
}

/// The interval `[offset, offset + length)` of each cycle, given to one task or pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The start within the cycle.
    pub offset: Duration,
    /// The length.
    pub length: Duration,
    /// The name of the task or pool that the window serves.
    pub task: String,
    /// Whether the window releases a job. Its start is then the nominal instant of the job.
    pub activate: bool,
    /// Whether the end of the window is the deadline of the job.
    pub deadline: bool,
}

impl CpuTable {
    /// Makes the table of a CPU with these windows.
    pub fn new(cpu: u32, windows: Vec<Window>) -> CpuTable {
        CpuTable { cpu, windows }
    }
}

impl Window {
    /// Makes a window without the flags ACTIVATE and DEADLINE, such as the windows of a pool.
    pub fn new(task: impl Into<String>, offset: Duration, length: Duration) -> Window {
        Window { offset, length, task: task.into(), activate: false, deadline: false }
    }

    /// Returns the end of the window within the cycle (exclusive).
    pub fn end(&self) -> Duration {
        self.offset + self.length
    }
}

/// One job of a plan: the windows from an ACTIVATE to its DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedJob {
    /// The job's nominal instant within the cycle.
    pub nominal: Duration,
    /// The end of its DEADLINE window, from the start of the cycle. It is later than the end of the cycle if the job
    /// wraps around.
    pub deadline: Duration,
}

impl Plan {
    /// The version that this code reads and writes.
    pub const VERSION: u32 = 2;

    /// Makes a plan of a system without gate lists, in the version that this code writes.
    pub fn new(solver: impl Into<String>, cycle: Duration, tables: Vec<CpuTable>, system: System) -> Plan {
        Plan { version: Plan::VERSION, solver: solver.into(), cycle, tables, gates: Vec::new(), system }
    }

    /// Returns the CPUs of the windows of a task or pool, or of the reservation of a task.
    pub fn cpus(&self, name: &str) -> CpuSet {
        if let Some(reservation) = self.reservation(name) {
            return reservation.cpus.clone();
        }
        let serves = |table: &&CpuTable| table.windows.iter().any(|window| window.task == name);
        self.tables.iter().filter(serves).map(|table| table.cpu).collect()
    }

    /// Returns the reservation of a task; `None` if it has windows.
    fn reservation(&self, task: &str) -> Option<&Reservation> {
        self.system.task(task).and_then(Task::reservation)
    }

    /// Returns the length after which the jobs of `task` repeat. That is the cycle, or the period of a task with a
    /// reservation, which needs no table.
    pub fn repetition(&self, task: &str) -> Duration {
        let reserved = self.system.task(task).filter(|task| task.reservation().is_some());
        reserved.map_or(self.cycle, |task| task.period)
    }

    /// Returns the jobs of `task` in one [`repetition`](Plan::repetition), in the order of their nominal instants. Jobs
    /// of a reservation are released at the multiples of its period.
    ///
    /// The deadline of a job is the end of the next DEADLINE window, which can be in the next cycle. Without any
    /// DEADLINE window, it is the start of the next ACTIVATE window.
    pub fn jobs(&self, task: &str) -> Vec<PlannedJob> {
        if let Some(task) = self.system.task(task).filter(|task| task.reservation().is_some()) {
            return vec![PlannedJob { nominal: Duration::ZERO, deadline: task.deadline }];
        }
        let mut windows: Vec<&Window> =
            self.tables.iter().flat_map(|table| &table.windows).filter(|window| window.task == task).collect();
        windows.sort_by_key(|window| window.offset);
        let activations: Vec<Duration> =
            windows.iter().filter(|window| window.activate).map(|window| window.offset).collect();
        let ends =
            |shift: Duration| windows.iter().filter(|window| window.deadline).map(move |window| window.end() + shift);
        activations
            .iter()
            .enumerate()
            .map(|(index, &nominal)| {
                let next = activations.get(index + 1).copied().unwrap_or(activations[0] + self.cycle);
                let deadline = ends(Duration::ZERO).chain(ends(self.cycle)).find(|&end| end > nominal);
                PlannedJob { nominal, deadline: deadline.unwrap_or(next) }
            })
            .collect()
    }
}
