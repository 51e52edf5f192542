//! The rules of a system beyond its syntax. They are the same for every source: a description or a plan file.

mod after;
mod apart;
mod container;
mod deadline;
mod engine;
mod exclusive;
mod flows;
mod group;
mod hosts;
mod network;
mod process;
mod profile;
mod program;
mod reserve;
mod slots;
mod sync;
mod table;
mod task;
mod traffic;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

pub(crate) use container::{rules as container_rules, task_rules};

use crate::keys::{Field, Found};
use crate::parse::nearest_name;
use crate::system::{GroupTask, Process, System};
use crate::time::Duration;

/// The longest cycle (`MACROTICK_MAX_CYCLE_NS`).
pub const MAX_CYCLE: Duration = Duration::from_secs(3600);
/// The largest number of windows in a table (`MACROTICK_MAX_WINDOWS`). Each job needs at least one.
pub const MAX_WINDOWS: i64 = 1 << 20;
/// The largest number of tasks, and groups with windows, in a table (`MACROTICK_MAX_ENTITIES`).
pub const MAX_TASKS: usize = 4096;
/// The priorities of `SCHED_FIFO` and of groups.
pub const PRIORITIES: RangeInclusive<u32> = 1..=99;
/// The shortest budget of the kernel.
pub const MIN_BUDGET: Duration = Duration::from_micros(10);
/// The shortest and the longest period of a reservation (`sched_deadline_period_min_us`,
/// `sched_deadline_period_max_us`).
pub const RESERVATION_RANGE: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_micros(1 << 22);

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The path of the value to mark, such as `tasks[2].deadline`.
    pub at: String,
    /// The paths of the other values that the rule depends on.
    pub needs: Vec<String>,
    pub message: String,
    pub hint: Option<String>,
}

/// Stands for the names of all tasks in `needs`.
pub(crate) const TASK_NAMES: &str = "(task names)";
/// Stands for the names of all groups.
pub(crate) const GROUP_NAMES: &str = "(group names)";
/// Stands for the names of all namespaces.
pub(crate) const NAMESPACE_NAMES: &str = "(namespace names)";
/// Stands for the names of all hosts.
pub(crate) const HOST_NAMES: &str = "(host names)";
/// Stands for the names of all traffic classes.
pub(crate) const CLASS_NAMES: &str = "(class names)";
/// Stands for the names of all interfaces.
pub(crate) const INTERFACE_NAMES: &str = "(interface names)";
/// Stands for the periods of all tasks and windows.
pub(crate) const PERIODS: &str = "(periods)";
/// Stands for the list of CPUs.
pub(crate) const CPUS: &str = "cpus";

impl System {
    /// Returns the broken rules, each with the path of the value. A system that was parsed or loaded breaks none; one
    /// that was built in a program may.
    pub fn problems(&self) -> Vec<String> {
        values(self)
            .into_iter()
            .chain(rules(self))
            .map(|problem| format!("system.{}: {}", problem.at, problem.message))
            .collect()
    }

    /// Returns the names of tasks, groups and processes, which must be unique together, each with its path.
    fn placed_names(&self) -> Vec<(String, String)> {
        let tasks = self.tasks.iter().enumerate().map(|(i, task)| (format!("tasks[{i}].name"), task.name.clone()));
        let groups = self.groups.iter().enumerate().flat_map(|(i, group)| {
            let windows = group.pool_name().filter(|name| *name != group.name);
            let own =
                [group.name.clone()].into_iter().chain(windows).map(move |name| (format!("groups[{i}].name"), name));
            let run = group.run.iter().enumerate();
            own.chain(run.flat_map(move |(j, process)| all_names(format!("groups[{i}].run[{j}].name"), process)))
        });
        let load = self.load.iter().enumerate().flat_map(|(i, load)| all_names(format!("load[{i}].name"), load));
        tasks.chain(groups).chain(load).collect()
    }

    /// Returns all names of tasks, groups and processes. A new one needs a different name.
    pub fn names(&self) -> BTreeSet<String> {
        self.placed_names().into_iter().map(|(_, name)| name).collect()
    }
}

/// Returns the broken rules of single values, which come from the table of keys.
pub(crate) fn values<T: Field>(document: &T) -> Vec<Problem> {
    let mut found = Found::default();
    document.check("", "", &T::KIND, &mut found);
    found.0
}

/// Returns the broken rules of single values in a list of tasks.
pub(crate) fn values_of_tasks(tasks: &Vec<GroupTask>) -> Vec<Problem> {
    let mut found = Found::default();
    tasks.check("tasks", "tasks", &Vec::<GroupTask>::KIND, &mut found);
    found.0
}

/// Returns the broken rules between the values of a system.
pub(crate) fn rules(system: &System) -> Vec<Problem> {
    let mut rules = Rules { system, found: Found::default() };
    rules.header();
    rules.unique_names();
    for (index, task) in system.tasks.iter().enumerate() {
        rules.task(&format!("tasks[{index}]"), task);
    }
    rules.groups();
    rules.domains();
    rules.namespaces();
    rules.hosts();
    if let Some(network) = &system.network {
        rules.network(network);
    }
    for (index, chain) in system.chains.iter().enumerate() {
        rules.chain(&format!("chains[{index}]"), chain);
    }
    for (index, process) in system.load.iter().enumerate() {
        rules.process(&format!("load[{index}]"), process);
    }
    rules.profile();
    if let Some(table) = &system.table {
        rules.table(table);
    }
    for (index, file) in system.lab.files.iter().enumerate() {
        rules.file(&format!("lab.files[{index}]"), file);
    }
    rules.found.0
}

struct Rules<'a> {
    system: &'a System,
    found: Found,
}

impl Rules<'_> {
    fn add(&mut self, at: impl Into<String>, needs: &[&str], message: impl Into<String>) -> &mut Problem {
        self.found.add(at, needs, message)
    }

    fn file(&mut self, path: &str, file: &str) {
        if file.is_empty() {
            self.add(path, &[], "the path is empty");
        } else if file.contains('\0') {
            self.add(path, &[], "a path cannot contain a NUL character");
        }
    }

    /// Whether `length` is off the grid. A wrong macrotick is reported separately, so it does not count here.
    fn off_grid(&self, length: Duration) -> bool {
        self.system.macrotick > Duration::ZERO && !length.is_multiple_of(self.system.macrotick)
    }

    fn on_grid(&mut self, path: &str, key: &str, length: Duration) {
        if self.off_grid(length) {
            let macrotick = self.system.macrotick;
            let text = format!("{key} {length} is not a multiple of the macrotick {macrotick}");
            if length.as_nanos().unsigned_abs() > MAX_CYCLE.as_nanos().unsigned_abs() {
                // The length is also too long, which another rule reports. Its neighbours on the grid are too long as
                // well.
                self.add(format!("{path}{key}"), &["macrotick"], text);
                return;
            }
            let below = Duration::from_nanos(length.as_nanos().div_euclid(macrotick.as_nanos()) * macrotick.as_nanos());
            let above = below.checked_add(macrotick).unwrap_or(below);
            let fits = macrotick.gcd(length);
            let advice = match below > Duration::ZERO {
                true => format!("write {below} or {above}, or set `macrotick: {fits}`"),
                false => format!("write {above}, or set `macrotick: {fits}`"),
            };
            self.add(format!("{path}{key}"), &["macrotick"], text).hint = Some(advice);
        }
    }

    fn header(&mut self) {
        let system = self.system;
        if system.cpus.is_empty() {
            self.add(CPUS, &[], "the system has no CPU");
        }
        for (index, cpu) in system.cpus.iter().enumerate() {
            if system.cpus[..index].contains(cpu) {
                self.add(CPUS, &[], format!("CPU {cpu} is listed twice"));
            }
        }
        if !system.cpus.is_sorted() {
            self.add(CPUS, &[], "CPUs are not in ascending order");
        }
        let (tasks, pools) = (system.tasks.len(), system.pools().count());
        if system.tasks.is_empty() && system.groups.is_empty() {
            self.add("", &["tasks", "groups"], "a system needs `tasks`, `groups` or both");
        } else if tasks + pools > MAX_TASKS {
            let what = if pools > 0 {
                format!("{tasks} tasks and {pools} groups with windows")
            } else {
                format!("{tasks} tasks")
            };
            self.add("tasks", &[], format!("{what} are too many, the limit is {MAX_TASKS}"));
        }
        self.cycle();
        self.sync();
        self.reserve();
    }

    fn cycle(&mut self) {
        let system = self.system;
        if system.periods().any(|period| period <= Duration::ZERO) {
            return;
        }
        if !system.has_windows() {
            let beside = system.has_cycle();
            for (key, given) in [
                ("cycle", system.cycle.is_some() && !beside),
                ("clock", system.sync().is_some() && !beside),
                ("lead", system.lead.is_some()),
            ] {
                if given {
                    self.add(
                        key,
                        &["tasks", "groups"],
                        format!("`{key}` applies to tables, but no task or group has windows"),
                    );
                }
            }
            if !beside {
                return;
            }
        }
        let Some(hyperperiod) = system.hyperperiod().filter(|&length| length <= MAX_CYCLE) else {
            let text = match system.hyperperiod() {
                Some(length) => format!("the hyperperiod {length} is longer than {MAX_CYCLE}"),
                None => "the hyperperiod exceeds the range of times".to_string(),
            };
            self.add("tasks", &[PERIODS], text).hint = Some("choose periods with a small common multiple".into());
            return;
        };
        let usable = |cycle: &Duration| *cycle > Duration::ZERO && *cycle <= MAX_CYCLE;
        let cycle = system.cycle.filter(usable).unwrap_or(hyperperiod);
        if !cycle.is_multiple_of(hyperperiod) {
            let text = format!("cycle {cycle} is not a multiple of the hyperperiod {hyperperiod}");
            self.add("cycle", &[PERIODS], text).hint = Some(format!("write {hyperperiod}, or leave it out"));
        }
        let jobs: i64 = system.periods().map(|period| cycle / period).sum();
        if jobs > MAX_WINDOWS {
            let periods = if system.pools().next().is_none() { "" } else { " and periods of groups" };
            let text =
                format!("a cycle of {cycle} has {jobs} jobs{periods}, but a table has at most {MAX_WINDOWS} windows");
            self.add("tasks", &[PERIODS, "cycle"], text);
        }
    }

    /// Checks that names of tasks, groups and processes are unique together, because traces identify them by name. This
    /// includes derived names: of the windows of a group with a budget, and of each process of several.
    fn unique_names(&mut self) {
        let system = self.system;
        let chains = system.chains.iter().enumerate();
        let chains = chains.map(|(i, chain)| (format!("chains[{i}].name"), chain.name.clone()));
        self.unique(system.placed_names(), "task, group or process");
        let namespaces = system.namespaces.iter().enumerate();
        let namespaces = namespaces.map(|(i, namespace)| (format!("namespaces[{i}].name"), namespace.name.clone()));
        let hosts = system.hosts.iter().enumerate();
        let hosts = hosts.map(|(i, host)| (format!("hosts[{i}].name"), host.name.clone()));
        self.unique(hosts.collect(), "host");
        self.unique(chains.collect(), "chain");
        self.unique(namespaces.collect(), "namespace");
        if let Some(network) = &system.network {
            let named = |list: &str, names: Vec<&String>| {
                let path = |(i, name): (usize, &&String)| (format!("network.{list}[{i}].name"), (*name).clone());
                names.iter().enumerate().map(path).collect()
            };
            self.unique(named("classes", network.classes.iter().map(|class| &class.name).collect()), "class");
            let interfaces = network.interfaces.iter().map(|interface| &interface.name);
            self.unique(named("interfaces", interfaces.collect()), "interface");
            self.unique(named("flows", network.flows.iter().map(|flow| &flow.name).collect()), "flow");
        }
    }

    fn unique(&mut self, names: Vec<(String, String)>, what: &str) {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (path, name) in names {
            if let Some(first) = seen.get(&name).cloned() {
                self.add(path, &[&first], format!("duplicate name `{name}`: another {what} has this name"));
            } else {
                seen.insert(name, path);
            }
        }
    }

    fn cpu(&mut self, path: &str, cpu: u32) {
        if !self.system.cpus.contains(&cpu) {
            let all: Vec<String> = self.system.cpus.iter().map(u32::to_string).collect();
            let text = format!("CPU {cpu} is not one of the CPUs of the system ({})", all.join(", "));
            self.add(path, &[CPUS], text).hint = Some("list it in `cpus`".into());
        }
    }

    /// Checks that a task has windows. Only windows have fixed instants.
    fn windowed_task(&mut self, path: &str, name: &str) {
        if self.system.task(name).is_some_and(|task| !task.supply.is_windows()) {
            let text = format!("task `{name}` has a reservation and no windows");
            self.add(path, &[TASK_NAMES, "tasks"], text);
        }
    }

    /// Checks that one of some named things has the name that stands at the path.
    fn known<'n>(&mut self, (path, name): (&str, &str), (what, set): (&str, &str), all: impl Iterator<Item = &'n str>) {
        let all: Vec<&str> = all.collect();
        if !all.contains(&name) {
            let near = nearest_name(name, all.into_iter());
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.add(path, &[set], format!("no {what} is named `{name}`")).hint = hint;
        }
    }

    fn known_task(&mut self, path: &str, name: &str) {
        if self.system.task(name).is_none() {
            let near = nearest_name(name, self.system.tasks.iter().map(|task| task.name.as_str()));
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.add(path, &[TASK_NAMES], format!("no task is named `{name}`")).hint = hint;
        }
    }
}
/// Returns the name of a process, and if there are several, also the name of each. All have the same path.
fn all_names(path: String, process: &Process) -> impl Iterator<Item = (String, String)> + '_ {
    let each = process.process_names().filter(|name| *name != process.name);
    [process.name.clone()].into_iter().chain(each).map(move |name| (path.clone(), name))
}
