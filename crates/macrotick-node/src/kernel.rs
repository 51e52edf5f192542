//! The backend `kernel`: the table and the threads in `/dev/macrotick` (`linux/macrotick.h`).

use std::io;
use std::os::fd::AsRawFd;

use macrotick_host::cgroup;
use macrotick_host::device;
use macrotick_host::lock::Lock;
use macrotick_host::network;
use macrotick_host::sys;
use macrotick_host::HostFailure;
use macrotick_model::{CpuSet, Duration, EntityCounters, Instant, OnMiss, Plan, Pool, PoolOrder, Task};
use macrotick_uapi::{self as uapi, Device};

use crate::child::Child;
use crate::error::NodeError;

/// Why the kernel refused a table: `enum macrotick_error`, with the windows, tasks and pools that its indices
/// mean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Flags, reserved fields or counts.
    #[error("it does not take such a header (is the kernel older than this program?)")]
    Header,
    /// A clock that tables cannot run on.
    #[error("it cannot run tables on this clock")]
    Clock,
    /// The cycle is zero or too long.
    #[error("the cycle is too long (at most one hour)")]
    Cycle,
    /// A name is empty or too long.
    #[error("{0} has an empty name, or one that is too long")]
    EntityName(String),
    /// Two tasks or pools have the same name.
    #[error("{0} and {1} have the same name")]
    EntityTwice(String, String),
    /// Flags of an entity.
    #[error("{0} has flags that it does not know")]
    EntityFlags(String),
    /// A task or pool without a window.
    #[error("{0} has no window")]
    EntityIdle(String),
    /// Flags of a window.
    #[error("{0} has flags that it does not know")]
    WindowFlags(String),
    /// The CPU does not exist.
    #[error("{0} is on a CPU that does not exist or is not online")]
    WindowCpu(String),
    /// A window of no task.
    #[error("{0} is for no task and no pool")]
    WindowEntity(String),
    /// A window is too short.
    #[error("{0} is shorter than 1us")]
    WindowLength(String),
    /// A window reaches beyond the cycle.
    #[error("{0} reaches beyond the cycle")]
    WindowRange(String),
    /// Windows are not sorted.
    #[error("{0} and {1} are not in order")]
    WindowOrder(String, String),
    /// Windows overlap.
    #[error("{0} and {1} overlap")]
    WindowOverlap(String, String),
    /// One task or pool on two CPUs.
    #[error("{0} and {1} are on different CPUs")]
    WindowMigrates(String, String),
    /// One task on two CPUs at the same time.
    #[error("{0} and {1} are open at the same time, leads included, and a task runs on one CPU at a time")]
    WindowParallel(String, String),
    /// The windows and leads of a CPU take too much of it.
    #[error("the windows and leads of the CPU of {0} take more than 95 % of it")]
    Capacity(String),
    /// Somebody else's table is there.
    #[error("another table is installed already (`macrotick stop` removes it)")]
    Installed,
    /// The lead is too long.
    #[error("the lead is longer than 1ms")]
    Lead,
    /// No room for the lead.
    #[error("{1} leaves no room for the lead before {0}")]
    WindowLead(String, String),
    /// A slice of what takes no turns, or out of range.
    #[error("{0} has a slice that it does not take")]
    EntitySlice(String),
    /// A window of a pool with flags.
    #[error("{0} serves a pool, which has no jobs, but is flagged as a job's")]
    WindowPool(String),
    /// A sync window that is also something else.
    #[error("{0} is a sync window of a table on another clock, or of a task")]
    WindowSync(String),
    /// The bound of a sync window.
    #[error("{0} has no bound, or leaves less than 1us of the window")]
    SyncBound(String),
    /// CPUs with different sync windows.
    #[error("the CPU of {0} does not have the sync windows of that of {1}")]
    SyncCpu(String, String),
    /// The windows would take what deadline tasks have been promised.
    #[error(
        "SCHED_DEADLINE has admitted tasks for {1} per mille of a CPU: too much beside the windows of the CPU of {0}"
    )]
    Bandwidth(String, u32),
    /// The windows would take what groups have been given.
    #[error("control groups have budgets of {1} per mille of the CPU of {0}: too much beside its windows")]
    Budgets(String, u32),
    /// Not beside the threads that it has.
    #[error("{0} has threads, which cannot go to another CPU")]
    SwapCpu(String),
    /// Not with the threads that it has.
    #[error("{0} has threads, and would become a task or a pool, or get or lose its slack")]
    SwapPool(String),
    /// Not while the other one runs.
    #[error("the running table is on another clock")]
    SwapClock,
    /// One change at a time.
    #[error("another change is under way")]
    Swapping,
    /// A code that this program does not know.
    #[error("error {code} at index {index}: {message}")]
    Other {
        /// `enum macrotick_error`.
        code: u32,
        /// Its index.
        index: u32,
        /// What errno says.
        message: String,
    },
}

impl Refusal {
    /// Decodes what the kernel filled in.
    fn decode(table: &Table, install: &uapi::Install, error: &io::Error) -> Refusal {
        let entity = |index: u32| table.describe_entity(index);
        let window = |index: u32| table.describe_window(index);
        let (index, other) = (install.error_index, install.error_other);
        match install.error {
            uapi::error::HEADER => Refusal::Header,
            uapi::error::CLOCK => Refusal::Clock,
            uapi::error::CYCLE => Refusal::Cycle,
            uapi::error::ENTITY_NAME => Refusal::EntityName(entity(index)),
            uapi::error::ENTITY_TWICE => Refusal::EntityTwice(entity(index), entity(other)),
            uapi::error::ENTITY_FLAGS => Refusal::EntityFlags(entity(index)),
            uapi::error::ENTITY_IDLE => Refusal::EntityIdle(entity(index)),
            uapi::error::WINDOW_FLAGS => Refusal::WindowFlags(window(index)),
            uapi::error::WINDOW_CPU => Refusal::WindowCpu(window(index)),
            uapi::error::WINDOW_ENTITY => Refusal::WindowEntity(window(index)),
            uapi::error::WINDOW_LENGTH => Refusal::WindowLength(window(index)),
            uapi::error::WINDOW_RANGE => Refusal::WindowRange(window(index)),
            uapi::error::WINDOW_ORDER => Refusal::WindowOrder(window(index), window(other)),
            uapi::error::WINDOW_OVERLAP => Refusal::WindowOverlap(window(index), window(other)),
            uapi::error::WINDOW_MIGRATES => Refusal::WindowMigrates(window(index), window(other)),
            uapi::error::WINDOW_PARALLEL => Refusal::WindowParallel(window(index), window(other)),
            uapi::error::CAPACITY => Refusal::Capacity(window(index)),
            uapi::error::INSTALLED if install.flags & uapi::SWAP != 0 => Refusal::Swapping,
            uapi::error::INSTALLED => Refusal::Installed,
            uapi::error::LEAD => Refusal::Lead,
            uapi::error::WINDOW_LEAD => Refusal::WindowLead(window(index), window(other)),
            uapi::error::ENTITY_SLICE => Refusal::EntitySlice(entity(index)),
            uapi::error::WINDOW_POOL => Refusal::WindowPool(window(index)),
            uapi::error::WINDOW_SYNC => Refusal::WindowSync(window(index)),
            uapi::error::SYNC_BOUND => Refusal::SyncBound(window(index)),
            uapi::error::SYNC_CPU => Refusal::SyncCpu(window(index), window(other)),
            uapi::error::SWAP_CPU => Refusal::SwapCpu(entity(index)),
            uapi::error::SWAP_POOL => Refusal::SwapPool(entity(index)),
            uapi::error::SWAP_CLOCK => Refusal::SwapClock,
            uapi::error::BANDWIDTH => Refusal::Bandwidth(window(index), other),
            uapi::error::BUDGETS => Refusal::Budgets(window(index), other),
            code => Refusal::Other { code, index, message: error.to_string() },
        }
    }
}

/// A plan's tables in the kernel's form: one list, sorted by CPU and offset; entities in the order of the tasks with windows,
/// then of the pools.
struct Table {
    names: Vec<String>,
    entities: Vec<uapi::Entity>,
    windows: Vec<uapi::Window>,
}

impl Table {
    fn new(plan: &Plan) -> Table {
        let (tasks, pools) = (plan.system.windowed(), &plan.system.pools);
        let names: Vec<String> =
            tasks.clone().map(|task| &task.name).chain(pools.iter().map(|pool| &pool.name)).cloned().collect();
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let mut windows = Vec::new();
        for table in &plan.tables {
            windows.extend(table.windows.iter().map(|window| uapi::Window {
                offset_ns: window.offset.as_nanos() as u64,
                length_ns: window.length.as_nanos() as u64,
                cpu: table.cpu,
                entity: names.iter().position(|name| *name == window.task).map_or(u32::MAX, |index| index as u32),
                flags: flag(window.activate, uapi::ACTIVATE) | flag(window.deadline, uapi::DEADLINE),
                bound_ns: 0,
            }));
        }
        windows.extend(sync_windows(plan));
        windows.sort_by_key(|window| (window.cpu, window.offset_ns));
        let entities =
            tasks.map(|task| entity(task, &plan.cpus(&task.name))).chain(pools.iter().map(entity_of_pool)).collect();
        Table { names, entities, windows }
    }

    fn describe_entity(&self, index: u32) -> String {
        let pool = self.entities.get(index as usize).is_some_and(|entity| entity.flags & uapi::POOL != 0);
        let kind = if pool { "pool" } else { "task" };
        match self.names.get(index as usize) {
            Some(name) => format!("{kind} `{name}`"),
            None => format!("{kind} #{index}"),
        }
    }

    fn describe_window(&self, index: u32) -> String {
        let Some(window) = self.windows.get(index as usize) else { return format!("window #{index}") };
        let entity = match window.flags & uapi::SYNC {
            0 => self.describe_entity(window.entity),
            _ => "sync".into(),
        };
        let length = |ns: u64| Duration::from_nanos(ns as i64);
        let (offset, length) = (length(window.offset_ns), length(window.length_ns));
        format!("window #{index} (CPU {}, offset {offset}, length {length}, {entity})", window.cpu)
    }
}

/// The same on every CPU that has windows.
fn sync_windows(plan: &Plan) -> Vec<uapi::Window> {
    let Some(sync) = plan.system.sync() else { return Vec::new() };
    let window = |cpu, start: Duration| uapi::Window {
        offset_ns: start.as_nanos() as u64,
        length_ns: sync.length.as_nanos() as u64,
        cpu,
        flags: uapi::SYNC,
        bound_ns: sync.bound.as_nanos() as u32,
        ..Default::default()
    };
    let served = plan.tables.iter().filter(|table| !table.windows.is_empty());
    served.flat_map(|table| sync.starts(plan.cycle).map(move |start| window(table.cpu, start))).collect()
}

/// A task as the kernel knows it, with the CPUs of its windows. To begin anew what it killed is the runner's business.
fn entity(task: &Task, cpus: &CpuSet) -> uapi::Entity {
    let on_miss = match task.on_miss {
        OnMiss::Resume => 0,
        OnMiss::Signal => uapi::MISS_SIGNAL,
        OnMiss::Kill | OnMiss::Restart => uapi::MISS_KILL,
    };
    // Who may migrate and does not is like any other.
    let migrate = if task.migrate && cpus.is_several() { uapi::MIGRATE } else { 0 };
    let (name, max_misses) = (uapi::name(&task.name), task.max_misses.unwrap_or(0));
    uapi::Entity { name, flags: on_miss | migrate, max_misses, slice_ns: 0 }
}

/// A pool as the kernel knows it.
fn entity_of_pool(pool: &Pool) -> uapi::Entity {
    let order = match pool.order {
        PoolOrder::Fifo => 0,
        PoolOrder::RoundRobin(_) => uapi::RR,
        PoolOrder::Priority(_) => uapi::PRIORITY,
    };
    let slack = if pool.slack { uapi::SLACK } else { 0 };
    let slice_ns = pool.order.slice().map_or(0, |slice| slice.as_nanos() as u64);
    uapi::Entity { name: uapi::name(&pool.name), flags: uapi::POOL | order | slack, max_misses: 0, slice_ns }
}

/// Installs a plan's table with a lead, decoding a refusal. Returns the instant of a swap, in nanoseconds.
fn install(device: &Device, plan: &Plan, lead: Duration, flags: u32) -> Result<u64, NodeError> {
    let table = Table::new(plan);
    let mut install = uapi::Install {
        flags,
        clockid: plan.system.sync().map_or(libc::CLOCK_MONOTONIC, |_| libc::CLOCK_TAI) as u32,
        nr_entities: table.entities.len() as u32,
        nr_windows: table.windows.len() as u32,
        cycle_ns: plan.cycle.as_nanos() as u64,
        lead_ns: lead.as_nanos() as u64,
        entities: table.entities.as_ptr() as u64,
        windows: table.windows.as_ptr() as u64,
        ..Default::default()
    };
    match device.call(&mut install).map_err(io::Error::from_raw_os_error) {
        Ok(()) => Ok(install.swap_ns),
        // No privilege or no memory, say: nothing is wrong with the table.
        Err(error) if install.error == 0 => {
            Err(HostFailure::Call { what: "install the table".into(), source: error }.into())
        }
        Err(error) => Err(NodeError::Refused(Refusal::decode(&table, &install, &error))),
    }
}

/// An installed table. Dropping it stops and removes it.
pub struct InstalledTable {
    device: Device,
}

impl InstalledTable {
    /// Installs a plan's table with a lead; it does not run yet.
    pub fn install(plan: &Plan, lead: Duration) -> Result<InstalledTable, NodeError> {
        let device = device::open()?;
        install(&device, plan, lead, 0)?;
        Ok(InstalledTable { device })
    }

    /// Has a plan's table take the place of this one, which runs. Returns the new table's epoch on its clock: the
    /// instant at which all CPUs change.
    pub fn swap(&self, plan: &Plan, lead: Duration) -> Result<Instant, NodeError> {
        let at = install(&self.device, plan, lead, uapi::SWAP)?;
        Ok(Instant::from_nanos(at as i64))
    }

    /// Makes a task's thread a member of its entity.
    pub fn bind(&self, child: &Child) -> Result<(), NodeError> {
        let what = || format!("bind the thread of task `{}`", child.name);
        let pidfd = sys::pidfd_open(child.pid(), child.block.tid())
            .map_err(|source| HostFailure::Call { what: what(), source })?;
        self.device.bind(pidfd.as_raw_fd(), &child.name).map_err(|errno| failed(&what(), errno))
    }

    /// Ends the membership of a task's thread, which goes on as an ordinary one.
    pub fn unbind(&self, child: &Child) -> Result<(), NodeError> {
        let what = || format!("unbind the thread of task `{}`", child.name);
        let pidfd = sys::pidfd_open(child.pid(), child.block.tid())
            .map_err(|source| HostFailure::Call { what: what(), source })?;
        self.device.unbind(pidfd.as_raw_fd()).map_err(|errno| failed(&what(), errno))
    }

    /// Makes a thread of the kernel a member of a pool.
    pub fn bind_thread(&self, tid: sys::Tid, name: &str, pool: &str) -> Result<(), NodeError> {
        let what = || format!("bind the kernel thread {name} to pool `{pool}`");
        let pidfd = sys::pidfd_open(tid, tid).map_err(|source| HostFailure::Call { what: what(), source })?;
        self.device.bind(pidfd.as_raw_fd(), pool).map_err(|errno| failed(&what(), errno))
    }

    /// Starts the table; returns the epoch in force. Both are on the table's clock.
    pub fn start(&self, epoch: Instant) -> Result<Instant, NodeError> {
        let started = self.device.start(epoch.as_nanos() as u64).map_err(|errno| failed("start the table", errno))?;
        Ok(Instant::from_nanos(started as i64))
    }

    /// Where the table stands on its clock.
    pub fn grid(&self) -> Result<uapi::Get, NodeError> {
        self.device.get().map_err(|errno| failed("tell where the table stands", errno))
    }

    /// Stops the table: no more jobs are released.
    pub fn stop(&self) -> Result<(), NodeError> {
        self.device.stop().map_err(|errno| failed("stop the table", errno))
    }

    /// Everything that the kernel counts for an entity. Its place in the table is looked at first: the tasks, then the
    /// pools. While tables change it may have another.
    pub fn stats(&self, name: &str, place: usize) -> Result<uapi::Stats, NodeError> {
        let wanted = uapi::name(name);
        match self.device.stats(place as u32) {
            Ok(stats) if stats.name == wanted => return Ok(stats),
            Ok(_) | Err(libc::ENOENT) => {}
            Err(errno) => return Err(failed("tell the counters", errno)),
        }
        for place in 0.. {
            match self.device.stats(place) {
                Ok(stats) if stats.name != wanted => {}
                result => return result.map_err(|errno| failed("tell the counters", errno)),
            }
        }
        Err(failed("tell the counters", libc::ENOENT))
    }

    /// The counters of a task's entity, whose place in the system is looked at first.
    pub fn counters(&self, name: &str, place: usize) -> Result<EntityCounters, NodeError> {
        let stats = self.stats(name, place)?;
        Ok(EntityCounters {
            activations: stats.activations,
            completions: stats.completions,
            misses: stats.misses,
            lost: stats.lost,
            skipped: stats.skipped,
            preemptions: stats.preemptions,
            runtime_ns: stats.runtime_ns,
            held_ns: stats.held_ns,
            late: stats.late,
            never_ran: stats.never_ran,
            misses_in_row: stats.misses_in_row,
            stopped: stats.stopped != 0,
            begun_anew: 0,
        })
    }
}

impl Drop for InstalledTable {
    fn drop(&mut self) {
        // What is stopped already may be stopped again; nothing can be done about a failure here.
        let _ = self.stop();
        let _ = self.device.remove();
    }
}

/// Removes the installed table, such as one that a killed runner left behind, the control groups of its pools, and
/// its network namespaces; its tasks' threads continue under SCHED_OTHER. The lock says that no runner is alive.
/// Returns whether there was one.
pub fn remove_left(_lock: &Lock) -> Result<bool, NodeError> {
    network::remove_left();
    let removed = match device::open()?.remove() {
        Ok(()) => true,
        Err(libc::ENOENT) => false,
        Err(errno) => return Err(failed("remove the table", errno)),
    };
    cgroup::remove_left();
    Ok(removed)
}

/// A call of the device that failed.
fn failed(what: &str, errno: i32) -> NodeError {
    device::failed(what, errno).into()
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{self as fixtures, ms, reserved, us};
    use macrotick_model::Clock;

    use super::*;
    use crate::deployment::tests::{plan, task, window};

    fn example() -> Table {
        let tasks = vec![task("a", ms(1), None), task("b", ms(1), None)];
        Table::new(&plan(tasks, vec![window("b", 0, 100, true, false), window("a", 100, 50, true, true)]))
    }

    #[test]
    fn a_plan_becomes_the_kernels_table() {
        let table = example();
        assert_eq!(table.names, ["a", "b"]);
        let expected = uapi::Window { offset_ns: 100_000, length_ns: 50_000, cpu: 0, entity: 0, flags: 3, bound_ns: 0 };
        assert_eq!(table.windows[1], expected);
        assert_eq!((table.windows[0].entity, table.windows[0].flags), (1, uapi::ACTIVATE));
    }

    #[test]
    fn a_reservation_is_no_part_of_the_table() {
        let reserved = Task { supply: reserved(ms(1), &[0]), ..task("d", ms(7), None) };
        let tasks = vec![reserved, task("a", ms(1), None)];
        let table = Table::new(&plan(tasks, vec![window("a", 0, 100, true, true)]));
        assert_eq!((table.names, table.entities.len(), table.windows[0].entity), (vec!["a".into()], 1, 0));
    }

    #[test]
    fn every_cpu_with_windows_has_the_sync_windows() {
        let mut plan = plan(vec![task("a", ms(1), None)], vec![window("a", 600, 100, true, true)]);
        plan.tables.push(fixtures::table(1, []));
        plan.system.clock = Clock::Tai(fixtures::sync(us(500), us(400), us(50), us(20)));
        let table = Table::new(&plan);
        let offsets: Vec<_> = table.windows.iter().map(|window| (window.offset_ns, window.flags)).collect();
        assert_eq!(offsets, [(400_000, uapi::SYNC), (600_000, 3), (900_000, uapi::SYNC)]);
        let expected =
            uapi::Window { offset_ns: 400_000, length_ns: 50_000, flags: 4, bound_ns: 20_000, ..Default::default() };
        assert_eq!(table.windows[0], expected);
        assert_eq!(table.describe_window(2), "window #2 (CPU 0, offset 900us, length 50us, sync)");
    }

    #[test]
    fn an_entity_says_what_becomes_of_misses() {
        let of = |on_miss, max_misses| {
            let one: CpuSet = [0].into_iter().collect();
            let entity = entity(&Task { on_miss, max_misses, ..task("a", Duration::from_millis(1), None) }, &one);
            (entity.name, entity.flags, entity.max_misses)
        };
        let name = uapi::name("a");
        assert_eq!(of(OnMiss::Resume, None), (name, 0, 0));
        assert_eq!(of(OnMiss::Signal, Some(3)), (name, uapi::MISS_SIGNAL, 3));
        assert_eq!(of(OnMiss::Kill, None), (name, uapi::MISS_KILL, 0));
        assert_eq!(of(OnMiss::Restart, Some(1)), (name, uapi::MISS_KILL, 1));
    }

    #[test]
    fn an_entity_says_that_it_migrates_only_if_it_does() {
        let of = |migrate, cpus: &[u32]| {
            let task = Task { migrate, on_miss: OnMiss::Signal, ..task("a", Duration::from_millis(1), None) };
            entity(&task, &cpus.iter().copied().collect()).flags
        };
        assert_eq!(of(true, &[0, 1]), uapi::MISS_SIGNAL | uapi::MIGRATE);
        assert_eq!((of(true, &[1]), of(false, &[0, 1])), (uapi::MISS_SIGNAL, uapi::MISS_SIGNAL));
    }

    #[test]
    fn a_pool_says_its_order() {
        let of = |order, slack| {
            let pool = Pool { order, slack, ..fixtures::pool("p", ms(10), ms(1)) };
            let entity = entity_of_pool(&pool);
            assert_eq!((entity.name, entity.max_misses), (uapi::name("p"), 0));
            (entity.flags, entity.slice_ns)
        };
        let slice = Duration::from_micros(500);
        assert_eq!(of(PoolOrder::Fifo, false), (uapi::POOL, 0));
        assert_eq!(of(PoolOrder::RoundRobin(slice), true), (uapi::POOL | uapi::RR | uapi::SLACK, 500_000));
        assert_eq!(of(PoolOrder::Priority(slice), false), (uapi::POOL | uapi::PRIORITY, 500_000));
    }

    #[test]
    fn a_refusal_names_windows_and_tasks() {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        let decode = |code, index, other| {
            let install = uapi::Install { error: code, error_index: index, error_other: other, ..Default::default() };
            Refusal::decode(&example(), &install, &error).to_string()
        };
        assert_eq!(
            decode(14, 0, 1),
            "window #0 (CPU 0, offset 0ns, length 100us, task `b`) and window #1 (CPU 0, offset 100us, length 50us, \
             task `a`) overlap"
        );
        assert_eq!(
            decode(29, 0, 1),
            "window #0 (CPU 0, offset 0ns, length 100us, task `b`) and window #1 (CPU 0, offset 100us, length 50us, \
             task `a`) are open at the same time, leads included, and a task runs on one CPU at a time"
        );
        assert_eq!(decode(7, 1, 0), "task `b` has no window");
        assert_eq!(decode(4, 9, 0), "task #9 has an empty name, or one that is too long");
        assert_eq!(decode(17, 0, 0), "another table is installed already (`macrotick stop` removes it)");
        assert_eq!(decode(20, 0, 1), "task `a` has threads, which cannot go to another CPU");
        assert!(decode(99, 3, 0).starts_with("error 99 at index 3"));
        let install = uapi::Install { flags: uapi::SWAP, error: uapi::error::INSTALLED, ..Default::default() };
        assert_eq!(Refusal::decode(&example(), &install, &error), Refusal::Swapping);
    }
}
