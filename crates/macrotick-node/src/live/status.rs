//! The status of this host. It comes from the device, from the lock and from the state file of a deployment's
//! supervisor. Reading it disturbs no other program and needs no privilege.

use macrotick_host::cgroup::Promised;
use macrotick_host::device;
use macrotick_host::lock::{Lock, ROOT};
use macrotick_host::profile;
use macrotick_host::settings::{self, SettingStatus};
use macrotick_host::state as told;
use macrotick_host::state::{Deployed, SharedBlock};
use macrotick_model::{CpuSet, Duration};
use macrotick_uapi::{self as uapi, state, Device};
use schemars::JsonSchema;
use serde::Serialize;

use crate::block::lateness_of;
use crate::error::NodeError;
use crate::live::group_status::{self, GroupStatus};

/// The status of this host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Status {
    /// The version of this format.
    #[schemars(extend("const" = Status::VERSION))]
    pub version: u32,
    /// The installed table.
    pub table: Option<TableStatus>,
    /// The process that holds the lock: a supervisor, or a runner.
    pub owner: Option<u32>,
    /// The last state that a deployment's supervisor wrote.
    pub deployment: Option<Deployed>,
    /// The control groups with a budget, set by any program.
    pub groups: Vec<GroupStatus>,
    /// The settings of the host that are held.
    pub settings: Vec<SettingStatus>,
    /// The problems. Empty: no problem.
    pub problems: Vec<String>,
}

/// The installed table.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TableStatus {
    /// Whether it runs.
    pub running: bool,
    /// `CLOCK_MONOTONIC` or `CLOCK_TAI`.
    #[schemars(extend("enum" = ["CLOCK_MONOTONIC", "CLOCK_TAI"]))]
    pub clock: &'static str,
    /// Its cycle, in nanoseconds.
    pub cycle_ns: u64,
    /// The start of cycle 0 on its clock, in nanoseconds; zero unless it runs.
    pub epoch_ns: u64,
    /// Its lead, in nanoseconds.
    pub lead_ns: u64,
    /// The state of its clock, if it runs on `CLOCK_TAI`.
    pub grid: Option<GridStatus>,
    /// Its tasks and pools.
    pub entities: Vec<EntityStatus>,
}

/// The state of a running table on `CLOCK_TAI`, in nanoseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GridStatus {
    /// The offset of `CLOCK_TAI` to `CLOCK_MONOTONIC` on the table's grid.
    offset_ns: i64,
    /// The deviation that is not corrected yet.
    pub rest_ns: i64,
    /// The time by which sync windows became longer since the start.
    pub stretched_ns: u64,
    /// The time by which they became shorter.
    pub shrunk_ns: u64,
    /// The number of corrections.
    pub corrections: u64,
}

/// A task or pool, and the kernel's counters since it came into a table.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EntityStatus {
    /// Its name.
    pub name: String,
    /// Whether it is a pool.
    pub pool: bool,
    /// The CPUs of its windows: one, unless it migrates.
    #[serde(rename = "cpu")]
    pub cpus: CpuSet,
    /// The number of its windows in a cycle.
    pub windows: u32,
    /// The sum of their lengths, in nanoseconds.
    pub window_ns: u64,
    /// The number of threads that are bound to it.
    pub threads: u32,
    /// The number of released jobs.
    pub released: u64,
    /// The number of completed jobs.
    pub completed: u64,
    /// The number of jobs that were not complete at the end of their DEADLINE windows.
    pub missed: u64,
    /// The number of missed jobs that had not started.
    pub never_ran: u64,
    /// The number of jobs that were never released, because the job before had not started.
    pub lost: u64,
    /// The number of times that a thread was preempted at the end of a window.
    pub overrun: u64,
    /// The number of windows that had passed when their interrupt came.
    pub skipped: u64,
    /// The number of jobs for which the lead was too short.
    pub late: u64,
    /// The processor time received in windows, in nanoseconds.
    pub runtime_ns: u64,
    /// The number of misses since the last job without a miss.
    pub missed_in_row: u32,
    /// Whether its windows serve no thread, because it missed too often.
    pub stopped: bool,
    /// The lateness of its jobs. `None`: it is a pool or no task of a deployment, this user may not read it, or its
    /// process tells none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LatenessStatus>,
}

/// The lateness of a task's jobs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatenessStatus {
    /// The lateness of the latest job.
    pub latest_ns: i64,
    /// The largest lateness since the task's process started.
    pub worst_ns: i64,
}

/// Reads the status of this host.
pub fn status() -> Result<Status, NodeError> {
    let device = device::open()?;
    let mut table = read_table(&device)?;
    let owner = Lock::holder(ROOT);
    let deployment = told::read(ROOT);
    let mut problems = problems(table.as_ref(), owner, deployment.as_ref());
    let alive = deployment.as_ref().filter(|deployed| Some(deployed.supervisor) == owner);
    let blocks = alive.map_or(&[][..], |deployed| &deployed.blocks);
    for entity in table.iter_mut().flat_map(|table| &mut table.entities).filter(|entity| !entity.pool) {
        let block = blocks.iter().find(|block| block.task == entity.name);
        let read = |block: &SharedBlock| lateness_of(owner?, block.descriptor);
        entity.lateness = block.and_then(read).map(|lateness| LatenessStatus {
            latest_ns: lateness.latest.as_nanos(),
            worst_ns: lateness.worst.as_nanos(),
        });
    }
    let promised = alive.map_or(&[][..], |deployed| &deployed.promised);
    let broken = |promised: &Promised| Some(format!("{}: {}", promised.owner, promised.broken()?));
    problems.extend(promised.iter().filter_map(broken));
    let groups = group_status::read(alive.map_or(&[][..], |deployed| &deployed.groups))?;
    problems.extend(groups.iter().filter_map(|group| group.astray.clone()));
    problems.extend(settings::left());
    problems.extend(profile::left());
    let version = Status::VERSION;
    Ok(Status { version, table, owner, deployment, groups, settings: settings::held(), problems })
}

/// Returns the names of the tasks and pools of the installed table, in its order. Returns an empty list if there is no
/// table.
pub fn entity_names() -> Result<Vec<String>, NodeError> {
    let table = read_table(&device::open()?)?;
    Ok(table.map_or(Vec::new(), |table| table.entities.into_iter().map(|entity| entity.name).collect()))
}

fn read_table(device: &Device) -> Result<Option<TableStatus>, NodeError> {
    Ok(device::unchanged(|| read_once(device))?)
}

/// Reads the installed table with the kernel's counters.
fn read_once(device: &Device) -> Result<Option<TableStatus>, i32> {
    let Some((get, entities, windows)) = device::read_table(device)? else { return Ok(None) };
    let each = entities.iter().enumerate().map(|(place, entity)| {
        let stats = device.stats(place as u32)?;
        match stats.name == entity.name {
            true => Ok(describe_entity(entity, &stats, place as u32, &windows)),
            false => Err(libc::EAGAIN),
        }
    });
    Ok(Some(describe_table(&get, each.collect::<Result<_, i32>>()?)))
}

fn describe_table(get: &uapi::Get, entities: Vec<EntityStatus>) -> TableStatus {
    let running = get.state == state::RUNNING;
    let follows = get.clockid == libc::CLOCK_TAI as u32;
    let grid = (running && follows).then_some(GridStatus {
        offset_ns: get.offset_ns,
        rest_ns: get.error_ns,
        stretched_ns: get.stretched_ns,
        shrunk_ns: get.shrunk_ns,
        corrections: get.corrections,
    });
    TableStatus {
        running,
        clock: if follows { "CLOCK_TAI" } else { "CLOCK_MONOTONIC" },
        cycle_ns: get.cycle_ns,
        epoch_ns: get.epoch_ns,
        lead_ns: get.lead_ns,
        grid,
        entities,
    }
}

fn describe_entity(entity: &uapi::Entity, stats: &uapi::Stats, place: u32, windows: &[uapi::Window]) -> EntityStatus {
    let own = || windows.iter().filter(|window| window.flags & uapi::SYNC == 0 && window.entity == place);
    EntityStatus {
        name: device::text(&entity.name),
        pool: entity.flags & uapi::POOL != 0,
        cpus: own().map(|window| window.cpu).collect(),
        windows: own().count() as u32,
        window_ns: own().map(|window| window.length_ns).sum(),
        threads: stats.nr_threads,
        released: stats.activations,
        completed: stats.completions,
        missed: stats.misses,
        never_ran: stats.never_ran,
        lost: stats.lost,
        overrun: stats.preemptions,
        skipped: stats.skipped,
        late: stats.late,
        runtime_ns: stats.runtime_ns,
        missed_in_row: stats.misses_in_row,
        stopped: stats.stopped != 0,
        lateness: None,
    }
}

fn problems(table: Option<&TableStatus>, owner: Option<u32>, deployment: Option<&Deployed>) -> Vec<String> {
    let mut problems = Vec::new();
    if let (None, Some(left)) = (owner, deployment) {
        problems.push(format!(
            "the supervisor of `{}` (process {}) was killed: `macrotick stop` removes what is left, `macrotick apply` \
             starts it again",
            left.system, left.supervisor
        ));
    }
    let Some(table) = table else { return problems };
    if !table.running {
        problems.push("the table does not run".into());
    }
    for entity in table.entities.iter().filter(|entity| !entity.pool) {
        let name = &entity.name;
        if entity.stopped {
            problems.push(format!("task `{name}` was stopped after {} misses in a row", entity.missed_in_row));
        } else if entity.threads == 0 {
            problems.push(format!("no thread runs the jobs of task `{name}`"));
        }
        match entity.missed {
            0 => {}
            1 => problems.push(format!("task `{name}` missed a deadline")),
            missed => problems.push(format!("task `{name}` missed {missed} deadlines")),
        }
    }
    problems
}

impl Status {
    /// The version that this code writes.
    pub const VERSION: u32 = 1;
}

impl TableStatus {
    /// Returns the cycle as a duration.
    pub fn cycle(&self) -> Duration {
        Duration::from_nanos(self.cycle_ns as i64)
    }
}

#[cfg(test)]
mod tests;
