//! A plan's table in the kernel's form, and the decoding of a refusal.

use std::io;

use macrotick_model::{CpuSet, Duration, OnMiss, Plan, Pool, PoolOrder, Task};
use macrotick_uapi as uapi;

use crate::error::Refusal;

/// A plan's tables in the kernel's form: one list, sorted by CPU and offset. The entities are in the order of the tasks
/// with windows, then of the pools.
pub struct Table {
    names: Vec<String>,
    /// The tasks, then the pools.
    pub entities: Vec<uapi::Entity>,
    /// Sorted by CPU and offset.
    pub windows: Vec<uapi::Window>,
}

impl Table {
    /// Converts the tables of a plan.
    pub fn new(plan: &Plan) -> Table {
        let (tasks, pools) = (plan.system.windowed(), plan.system.pools().collect::<Vec<_>>());
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

/// Returns the sync windows. They are the same on every CPU that has windows.
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

/// Converts a task with the CPUs of its windows. The kernel kills a task, and the runner restarts it.
fn entity(task: &Task, cpus: &CpuSet) -> uapi::Entity {
    let on_miss = match task.on_miss {
        OnMiss::Resume | OnMiss::Record => 0,
        OnMiss::Signal => uapi::MISS_SIGNAL,
        OnMiss::Kill | OnMiss::Restart => uapi::MISS_KILL,
    };
    // A task that may migrate but has windows on one CPU only gets no flag.
    let migrate = if task.migrate && cpus.is_several() { uapi::MIGRATE } else { 0 };
    let (name, max_misses) = (uapi::name(&task.name), task.max_misses.unwrap_or(0));
    uapi::Entity { name, flags: on_miss | migrate, max_misses, slice_ns: 0 }
}

/// Converts a pool.
fn entity_of_pool(pool: &Pool) -> uapi::Entity {
    let order = match pool.order {
        PoolOrder::Fifo => 0,
        PoolOrder::RoundRobin { .. } => uapi::RR,
        PoolOrder::Priority { .. } => uapi::PRIORITY,
    };
    let slack = if pool.slack { uapi::SLACK } else { 0 };
    let slice_ns = pool.order.slice().map_or(0, |slice| slice.as_nanos() as u64);
    uapi::Entity { name: uapi::name(&pool.name), flags: uapi::POOL | order | slack, max_misses: 0, slice_ns }
}

/// Decodes a refusal: `enum macrotick_error` and the indices that the kernel filled in. Names replace the indices of
/// windows, tasks and pools.
pub fn refusal(table: &Table, install: &uapi::Install, error: &io::Error) -> Refusal {
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

#[cfg(test)]
mod tests {
    use macrotick_model::{Group, Windows};

    use super::*;
    use crate::deployment::samples::{plan, task, window};

    fn example() -> Table {
        let ms = Duration::from_millis;
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
        let ms = Duration::from_millis;
        let reservation = macrotick_model::Reservation { runtime: ms(1), cpus: CpuSet::from_iter([0]) };
        let reserved = Task { supply: macrotick_model::Supply::Deadline(reservation), ..task("d", ms(7), None) };
        let tasks = vec![reserved, task("a", ms(1), None)];
        let table = Table::new(&plan(tasks, vec![window("a", 0, 100, true, true)]));
        assert_eq!((table.names, table.entities.len(), table.windows[0].entity), (vec!["a".into()], 1, 0));
    }

    #[test]
    fn every_cpu_with_windows_has_the_sync_windows() {
        let (us, ms) = (Duration::from_micros, Duration::from_millis);
        let mut plan = plan(vec![task("a", ms(1), None)], vec![window("a", 600, 100, true, true)]);
        plan.tables.push(macrotick_model::CpuTable { cpu: 1, windows: Vec::new() });
        let sync = macrotick_model::SyncWindow { period: us(500), offset: us(400), length: us(50), bound: us(20) };
        plan.system.clock = macrotick_model::Clock::Tai(sync);
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
            let (period, length) = (Duration::from_millis(10), Duration::from_millis(1));
            let windows = Windows { order, slack, ..Windows::new(period, length) };
            let pool = Group { windows: Some(windows), ..Group::named("p", vec![0]) }.pool().expect("windows");
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
            refusal(&example(), &install, &error).to_string()
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
        assert_eq!(refusal(&example(), &install, &error), Refusal::Swapping);
    }
}
