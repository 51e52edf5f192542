//! What each task asks of its CPU, on the grid.

use macrotick_model::{Duration, System};

use crate::error::PlanError;
use crate::MIN_WINDOW;

/// A task as the solver sees it; all lengths are multiples of the macrotick.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub name: String,
    pub period: Duration,
    /// Rounded up to the macrotick, at least the shortest window.
    pub wcet: Duration,
    /// Rounded down to the macrotick.
    pub deadline: Duration,
    pub offset: Option<Duration>,
    pub jitter: Option<Duration>,
    /// How long the CPU must be free of windows before each start: the system's lead, rounded up to the macrotick.
    pub lead: Duration,
    pub cpu: Option<u32>,
}

impl Demand {
    /// Whether starts must keep to a phase, so that the task cannot be left to EDF.
    pub fn needs_phase(&self) -> bool {
        self.jitter.is_some()
    }

    /// Length from the cycle's start to the first release, where the description or the default (0) fixes it.
    pub fn release(&self) -> Duration {
        self.offset.unwrap_or(Duration::ZERO)
    }

    /// Time needed in one cycle, leads included.
    pub fn per_cycle(&self, cycle: Duration) -> Duration {
        (self.wcet + self.lead) * (cycle / self.period)
    }
}

/// The shortest window on the grid that the kernel takes.
pub(crate) fn quantum(macrotick: Duration) -> Duration {
    round_up(MIN_WINDOW, macrotick)
}

pub(crate) fn round_up(length: Duration, grid: Duration) -> Duration {
    let rest = length % grid;
    if rest == Duration::ZERO {
        length
    } else {
        length - rest + grid
    }
}

/// What is kept free before each job, on the grid.
pub(crate) fn lead(system: &System) -> Duration {
    system.lead.map_or(Duration::ZERO, |lead| round_up(lead.reserved(), system.macrotick))
}

pub(crate) fn demands(system: &System) -> Result<Vec<Demand>, PlanError> {
    let grid = system.macrotick;
    let lead = lead(system);
    let demand = |task: &macrotick_model::Task| {
        let wcet = round_up(task.wcet, grid).max(quantum(grid));
        let deadline = task.deadline - task.deadline % grid;
        if wcet > deadline {
            return Err(PlanError::Grid { task: task.name.clone(), wcet, deadline });
        }
        Ok(Demand {
            name: task.name.clone(),
            period: task.period,
            wcet,
            deadline,
            offset: task.offset,
            jitter: task.jitter.map(|jitter| jitter - jitter % grid),
            lead,
            cpu: task.cpu,
        })
    };
    system.tasks.iter().map(demand).collect()
}
