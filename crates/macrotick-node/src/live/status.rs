//! What runs on this host: read from the device, from the lock and from what a deployment's supervisor told. Nobody is
//! disturbed by that, and it needs no privilege.

use macrotick_host::cgroup::Promised;
use macrotick_host::device;
use macrotick_host::lock::{Lock, ROOT};
use macrotick_host::settings::{self, SettingStatus};
use macrotick_host::state as told;
use macrotick_host::state::Deployed;
use macrotick_model::{CpuSet, Duration};
use macrotick_uapi::{self as uapi, state, Device};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::NodeError;
use crate::live::group_status::{self, GroupStatus};

/// What runs on this host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Status {
    /// Version of this format.
    #[schemars(extend("const" = Status::VERSION))]
    pub version: u32,
    /// The installed table.
    pub table: Option<TableStatus>,
    /// The process that holds the lock: a supervisor, or a runner.
    pub owner: Option<u32>,
    /// What a deployment's supervisor told last.
    pub deployment: Option<Deployed>,
    /// The control groups with a budget, whoever gave it.
    pub groups: Vec<GroupStatus>,
    /// Settings of the host that are held.
    pub settings: Vec<SettingStatus>,
    /// What is wrong, in words; empty: nothing.
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
    /// On `CLOCK_TAI`: how it follows that.
    pub grid: Option<GridStatus>,
    /// Its tasks and pools.
    pub entities: Vec<EntityStatus>,
}

/// How a running table follows `CLOCK_TAI`, in nanoseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GridStatus {
    /// By how much the grid takes that clock to be ahead of `CLOCK_MONOTONIC`.
    offset_ns: i64,
    /// What is still to be made good.
    pub rest_ns: i64,
    /// By how much sync windows became longer since the start.
    pub stretched_ns: u64,
    /// By how much they became shorter.
    pub shrunk_ns: u64,
    /// How many did either.
    pub corrections: u64,
}

/// A task or pool and what the kernel has counted of it since it came into a table.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EntityStatus {
    /// Its name.
    pub name: String,
    /// A pool, and no task.
    pub pool: bool,
    /// The CPUs of its windows: one, unless it migrates.
    #[serde(rename = "cpu")]
    pub cpus: CpuSet,
    /// Its windows in a cycle.
    pub windows: u32,
    /// Their lengths, all together, in nanoseconds.
    pub window_ns: u64,
    /// Threads that are bound to it.
    pub threads: u32,
    /// Jobs released.
    pub released: u64,
    /// Jobs completed.
    pub completed: u64,
    /// Jobs that were not complete at the end of their DEADLINE windows.
    pub missed: u64,
    /// Those of them that had not begun.
    pub never_ran: u64,
    /// Jobs that were never released, because the one before was not begun.
    pub lost: u64,
    /// How often a thread was preempted at the end of a window: it overran that.
    pub overrun: u64,
    /// Windows passed over by a late interrupt.
    pub skipped: u64,
    /// Jobs that the lead was too short for.
    pub late: u64,
    /// Processor time received in windows, in nanoseconds.
    pub runtime_ns: u64,
    /// Misses since a job was done in time.
    pub missed_in_row: u32,
    /// It is served no longer, because it missed too often.
    pub stopped: bool,
}

/// Reads what runs on this host.
pub fn status() -> Result<Status, NodeError> {
    let device = device::open()?;
    let table = read_table(&device)?;
    let owner = Lock::holder(ROOT);
    let deployment = told::read(ROOT);
    let mut problems = problems(table.as_ref(), owner, deployment.as_ref());
    let alive = deployment.as_ref().filter(|deployed| Some(deployed.supervisor) == owner);
    let promised = alive.map_or(&[][..], |deployed| &deployed.promised);
    let broken = |promised: &Promised| Some(format!("{}: {}", promised.owner, promised.broken()?));
    problems.extend(promised.iter().filter_map(broken));
    let groups = group_status::read(alive.map_or(&[][..], |deployed| &deployed.groups))?;
    problems.extend(groups.iter().filter_map(|group| group.astray.clone()));
    problems.extend(settings::left());
    let version = Status::VERSION;
    Ok(Status { version, table, owner, deployment, groups, settings: settings::held(), problems })
}

/// The names of the tasks and pools of the installed table, in its order; none: there is no table.
pub fn entity_names() -> Result<Vec<String>, NodeError> {
    let table = read_table(&device::open()?)?;
    Ok(table.map_or(Vec::new(), |table| table.entities.into_iter().map(|entity| entity.name).collect()))
}

/// Name and CPUs of each task and pool of the table that runs and that somebody looks after, if there is one.
pub fn cpus_of_entities() -> Vec<(String, CpuSet)> {
    if Lock::holder(ROOT).is_none() {
        return Vec::new();
    }
    let table = device::open().ok().and_then(|device| read_table(&device).ok()).flatten();
    let running = table.filter(|table| table.running);
    running.map_or(Vec::new(), |table| table.entities.into_iter().map(|entity| (entity.name, entity.cpus)).collect())
}

fn read_table(device: &Device) -> Result<Option<TableStatus>, NodeError> {
    Ok(device::unchanged(|| read_once(device))?)
}

/// The table that is there, with what the kernel has counted.
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
    }
}

fn problems(table: Option<&TableStatus>, owner: Option<u32>, deployment: Option<&Deployed>) -> Vec<String> {
    let mut problems = Vec::new();
    if let (None, Some(left)) = (owner, deployment) {
        problems.push(format!(
            "the supervisor of `{}` (process {}) was killed: `macrotick stop` removes what is left, `macrotick apply` \
             begins anew",
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
            problems.push(format!("nobody runs the jobs of task `{name}`"));
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
    /// The cycle as a length.
    pub fn cycle(&self) -> Duration {
        Duration::from_nanos(self.cycle_ns as i64)
    }
}

#[cfg(test)]
mod tests;
