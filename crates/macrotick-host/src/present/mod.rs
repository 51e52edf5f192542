//! The promises on this host: the budgets of control groups, the windows of the installed table, and the reservations
//! of SCHED_DEADLINE. Reading them disturbs no program and needs no privilege.
//!
//! Groups of a running deployment come with the parameters of its description, and those of containers with their
//! declaration. Of other groups only the budgets are known.

mod analysis;
mod deadline;

use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::visible::visible;
use macrotick_model::{CpuSet, CpuTable, Duration, Group, Plan, Task, Window};
use macrotick_uapi as uapi;
use serde::Serialize;

use crate::budgets::{self, BUDGET, PRIORITY};
use crate::cgroup::{is_default_path, read_file, EFFECTIVE_CPUS, ROOT};
use crate::device;
use crate::error::HostFailure;
use crate::lock;
use crate::state::{self, Deployed};
use crate::sys;

pub use analysis::{analysed, name, together, Unanalysable};
pub use deadline::{deadline_threads, DeadlineThread};

/// The promises on this host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Present {
    /// The one server period of all groups.
    pub server_period: Duration,
    /// The CPUs that are online.
    pub cpus: Vec<u32>,
    /// The reservations of SCHED_DEADLINE. No CPU is in two of them.
    pub domains: Vec<PresentDomain>,
    /// The deployment's tasks of SCHED_DEADLINE, from its plan.
    pub reserved: Vec<Task>,
    /// The installed table.
    pub table: Option<PresentTable>,
    /// The control groups with a budget, parents before children.
    pub groups: Vec<PresentGroup>,
    /// The name of the deployed system, if there is a deployment.
    pub system: Option<String>,
    /// Whether a change of the deployment is in progress.
    pub changes: bool,
}

/// CPUs between which tasks of SCHED_DEADLINE migrate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PresentDomain {
    /// The online CPUs of the domain.
    cpus: CpuSet,
    /// The sum of these tasks' bandwidths, in units of 2^-20 of one CPU.
    promised: u64,
}

impl PresentDomain {
    /// Makes a domain of these CPUs, with the bandwidth of its tasks in units of 2^-20 of one CPU.
    pub fn new(cpus: CpuSet, promised: u64) -> PresentDomain {
        PresentDomain { cpus, promised }
    }
}

/// The windows of the installed table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresentTable {
    /// Its cycle.
    cycle: Duration,
    /// Its lead; zero if there is none.
    lead: Duration,
    /// The first refill of budgets after the start of cycle 0. `None`: the table does not run, or follows another
    /// clock, and has no constant first refill.
    refill: Option<Duration>,
    /// The windows of tasks and pools, by CPU.
    tables: Vec<CpuTable>,
}

/// A control group with a budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresentGroup {
    /// Its name in the deployment, or its path in the hierarchy, such as `/machine.slice/web.scope`.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// The group priority.
    pub priority: u32,
    /// The budget per server period, on each online CPU that has one.
    pub budgets: Vec<(u32, Duration)>,
    /// The online CPUs that its processes may run on.
    pub cpus: CpuSet,
    /// Whether admission bound its container to the CPUs of its budget.
    pub bound: bool,
    /// The declaration, from the deployment's description or the container.
    pub declared: Option<Group>,
}

impl PresentGroup {
    /// Returns a warning if its processes may run on CPUs without its budget. An engine may change the CPUs of a
    /// container, and admission does not run again.
    pub fn astray(&self) -> Option<String> {
        let budgets: CpuSet = self.budgets.iter().map(|(cpu, _)| *cpu).collect();
        let without: Vec<u32> = self.cpus.as_slice().iter().copied().filter(|cpu| !budgets.contains(*cpu)).collect();
        let nowhere = without.len() == self.cpus.as_slice().len();
        (!without.is_empty() && (nowhere || self.bound)).then(|| {
            format!(
                "group `{}`: its processes may run on CPU {}, where it has no budget and they run as \
                 SCHED_OTHER: its budget is on CPU {budgets}",
                self.name,
                sys::cpu_list(&without)
            )
        })
    }
}

/// Reads the promises on this host.
pub fn present() -> Result<Present, HostFailure> {
    let (server_period, phase) = (budgets::server_period()?, budgets::refill_phase()?);
    let until_refill = |epoch| budgets::until_refill(epoch, server_period, phase);
    let cpus = sys::online_cpus()?;
    let deployed = deployed();
    let declared = deployed.as_ref().map_or(&[][..], |deployed| &deployed.groups);
    Ok(Present {
        server_period,
        table: device::installed()?.map(|(get, entities, windows)| table(&get, &entities, &windows, until_refill)),
        groups: groups(&cpus, declared)?,
        domains: domains(deadline_threads().map(|thread| (thread.bandwidth, thread.cpus)), &cpus),
        changes: deployed.as_ref().is_some_and(|deployed| deployed.coming.is_some()),
        reserved: deployed.as_ref().map_or(Vec::new(), |deployed| deployed.reserved.clone()),
        system: deployed.map(|deployed| deployed.system),
        cpus,
    })
}

/// Returns the control groups with a budget on an online CPU, parents before children.
pub fn groups(online: &[u32], declared: &[Group]) -> Result<Vec<PresentGroup>, HostFailure> {
    let groups = budgets::budgets()?.into_iter();
    let groups = groups.filter_map(|(path, budget)| read_group(&path, &budget, online, declared).transpose());
    groups.collect()
}

/// Returns the plan of the running deployment.
pub fn deployed_plan() -> Option<Plan> {
    deployed().and_then(|_| state::plan(lock::ROOT))
}

/// Returns the deployment if its supervisor is alive.
pub fn deployed() -> Option<Deployed> {
    let owner = lock::Lock::holder(lock::ROOT)?;
    state::read(lock::ROOT).filter(|deployed| deployed.supervisor == owner)
}

fn table(
    get: &uapi::Get,
    entities: &[uapi::Entity],
    windows: &[uapi::Window],
    until_refill: impl Fn(Duration) -> Duration,
) -> PresentTable {
    let length = |ns: u64| Duration::from_nanos(ns as i64);
    let steady = get.state == uapi::state::RUNNING && get.clockid == libc::CLOCK_MONOTONIC as u32;
    let mut tables: Vec<CpuTable> = Vec::new();
    for window in windows.iter().filter(|window| window.flags & uapi::SYNC == 0) {
        if tables.last().is_none_or(|table| table.cpu != window.cpu) {
            tables.push(CpuTable::new(window.cpu, Vec::new()));
        }
        let table = tables.last_mut().expect("just pushed");
        let task = entities.get(window.entity as usize).map_or(String::new(), |entity| device::text(&entity.name));
        table.windows.push(Window {
            activate: window.flags & uapi::ACTIVATE != 0,
            deadline: window.flags & uapi::DEADLINE != 0,
            ..Window::new(task, length(window.offset_ns), length(window.length_ns))
        });
    }
    PresentTable {
        cycle: length(get.cycle_ns),
        lead: length(get.lead_ns),
        refill: steady.then(|| until_refill(length(get.epoch_ns))),
        tables,
    }
}

/// Reads a group. `None`: it has no budget on an online CPU, or is gone.
fn read_group(
    path: &Path,
    budget: &str,
    online: &[u32],
    declared: &[Group],
) -> Result<Option<PresentGroup>, HostFailure> {
    let odd = |file: &str, text: &str| {
        HostFailure::file("parse", path.join(file))(io::Error::other(format!("its value is `{}`", text.trim())))
    };
    let budgets = parse_budgets(budget, online).ok_or_else(|| odd(BUDGET, budget))?;
    if budgets.is_empty() {
        return Ok(None);
    }
    let Some(priority) = read_file(path, PRIORITY)? else { return Ok(None) };
    let priority = priority.trim().parse().map_err(|_| odd(PRIORITY, &priority))?;
    let deployed = declared.iter().find(|group| is_directory_of(path, group)).cloned();
    let name = deployed.as_ref().map_or_else(|| name_of(path), |group| group.name.clone());
    let admitted = if deployed.is_none() { budgets::declaration(path) } else { None };
    let (bound, declared) = (budgets::is_bound(path), deployed.or(admitted));
    let cpus = cpus_below(path)?.into_iter().filter(|cpu| online.contains(cpu)).collect();
    Ok(Some(PresentGroup { name, path: path.into(), priority, budgets, cpus, bound, declared }))
}

/// Returns the CPUs of a control group's processes. The first group upwards with the cpuset controller has the list.
fn cpus_below(path: &Path) -> Result<Vec<u32>, HostFailure> {
    for group in path.ancestors().take_while(|group| group.starts_with(ROOT)) {
        if let Some(text) = read_file(group, EFFECTIVE_CPUS)? {
            return Ok(sys::parse_cpu_list(text.trim()));
        }
    }
    sys::online_cpus()
}

/// Decodes `BUDGET`, or `CPULIST=BUDGET ...`, in microseconds.
fn parse_budgets(text: &str, online: &[u32]) -> Option<Vec<(u32, Duration)>> {
    let mut budgets = Vec::new();
    for word in text.split_whitespace() {
        let (cpus, budget) = match word.split_once('=') {
            Some((cpus, budget)) => (sys::parse_cpu_list(cpus), budget),
            None => (online.to_vec(), word),
        };
        let budget = Duration::from_micros(budget.parse().ok()?);
        let with = cpus.into_iter().filter(|cpu| online.contains(cpu) && budget > Duration::ZERO);
        budgets.extend(with.map(|cpu| (cpu, budget)));
    }
    budgets.sort_unstable();
    Some(budgets)
}

/// Whether the path is the directory of this group of a deployment.
fn is_directory_of(path: &Path, group: &Group) -> bool {
    match &group.cgroup {
        Some(given) => Path::new(given).canonicalize().unwrap_or_else(|_| given.into()) == path,
        None => is_default_path(path, &group.name),
    }
}

/// Returns the path as in `/proc/PID/cgroup`, safe for a terminal. The owner of a group can choose any names for the
/// groups below.
fn name_of(path: &Path) -> String {
    visible(&format!("/{}", path.strip_prefix(ROOT).unwrap_or(path).display()))
}

/// Sums reservations by root domain, because the kernel has one account per root domain. The affinity of a thread gives
/// its domain: SCHED_DEADLINE requires an affinity with all CPUs of the domain.
fn domains(reservations: impl Iterator<Item = (u64, CpuSet)>, online: &[u32]) -> Vec<PresentDomain> {
    let mut domains = Vec::new();
    for (promised, cpus) in reservations {
        let cpus: CpuSet = online.iter().copied().filter(|&cpu| cpus.contains(cpu)).collect();
        if !cpus.is_empty() {
            join(&mut domains, PresentDomain { cpus, promised });
        }
    }
    domains
}

/// Adds a domain, and joins it with those that have a CPU in common.
fn join(domains: &mut Vec<PresentDomain>, mut more: PresentDomain) {
    let mut others = Vec::new();
    for domain in domains.drain(..) {
        match domain.cpus.as_slice().iter().any(|&cpu| more.cpus.contains(cpu)) {
            true => {
                more.cpus = more.cpus.as_slice().iter().chain(domain.cpus.as_slice()).copied().collect();
                more.promised += domain.promised;
            }
            false => others.push(domain),
        }
    }
    others.push(more);
    *domains = others;
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::us;

    use super::*;

    #[test]
    fn tasks_that_share_a_cpu_share_an_account() {
        let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
        let reservations = [(101, set(&[0, 1])), (30, set(&[3])), (7, set(&[9])), (8, set(&[1, 2, 9])), (1, set(&[4]))];
        let told: Vec<(CpuSet, u64)> = domains(reservations.into_iter(), &[0, 1, 2, 3, 4])
            .into_iter()
            .map(|domain| (domain.cpus, domain.promised))
            .collect();
        assert_eq!(told, [(set(&[3]), 30), (set(&[0, 1, 2]), 109), (set(&[4]), 1)]);
    }

    #[test]
    fn budgets_are_those_of_cpus_that_are_online() {
        let parse = |text| parse_budgets(text, &[0, 1, 3]);
        assert_eq!(parse("500\n"), Some(vec![(0, us(500)), (1, us(500)), (3, us(500))]));
        assert_eq!(parse("3=750 0,2=500\n"), Some(vec![(0, us(500)), (3, us(750))]));
        assert_eq!(parse("0\n"), Some(vec![]));
        assert_eq!(parse("\n"), Some(vec![]));
        assert_eq!(parse("1=x\n"), None);
    }

    #[test]
    fn windows_are_read_without_those_of_synchronisation() {
        let window = |cpu, entity, flags, offset_ns| uapi::Window {
            cpu,
            entity,
            flags,
            offset_ns,
            length_ns: 10_000,
            ..Default::default()
        };
        let both = uapi::ACTIVATE | uapi::DEADLINE;
        let windows = [window(0, 0, uapi::SYNC, 0), window(0, 1, both, 20_000), window(2, 0, 0, 5000)];
        let entities = ["a", "b"].map(|name| uapi::Entity { name: uapi::name(name), ..Default::default() });
        let mut get = uapi::Get {
            state: uapi::state::RUNNING,
            clockid: libc::CLOCK_MONOTONIC as u32,
            cycle_ns: 1_000_000,
            epoch_ns: 7_000_000,
            ..Default::default()
        };
        let read = table(&get, &entities, &windows, |epoch| us(7500) - epoch);
        assert_eq!((read.cycle, read.refill), (us(1000), Some(us(500))));
        let told: Vec<(u32, &str, bool)> = read
            .tables
            .iter()
            .flat_map(|table| table.windows.iter().map(|window| (table.cpu, window.task.as_str(), window.activate)))
            .collect();
        assert_eq!(told, [(0, "b", true), (2, "a", false)]);
        get.clockid = libc::CLOCK_TAI as u32;
        assert_eq!(table(&get, &entities, &windows, |epoch| epoch).refill, None);
    }

    #[test]
    fn processes_are_to_be_where_their_budget_is() {
        let group = |budget: &[u32], cpus: &[u32], bound| PresentGroup {
            name: "web".into(),
            path: "/sys/fs/cgroup/web".into(),
            priority: 1,
            budgets: budget.iter().map(|cpu| (*cpu, us(500))).collect(),
            cpus: cpus.iter().copied().collect(),
            bound,
            declared: None,
        };
        let text = "group `web`: its processes may run on CPU 0, where it has no budget and they run as \
                    SCHED_OTHER: its budget is on CPU 1";
        assert_eq!(group(&[1], &[0], false).astray().as_deref(), Some(text));
        assert_eq!(group(&[1], &[0, 1], true).astray().as_deref(), Some(text));
        // Single threads may be bound.
        assert_eq!(group(&[1], &[0, 1], false).astray(), None);
        assert_eq!(group(&[0, 1], &[0], true).astray(), None);
    }

    #[test]
    fn control_groups_are_named_as_proc_names_them() {
        assert_eq!(name_of(Path::new("/sys/fs/cgroup/machine.slice/web.scope")), "/machine.slice/web.scope");
        assert_eq!(name_of(Path::new("/sys/fs/cgroup/a\u{1b}[2J")), "/a\\u{1b}[2J");
    }
}
