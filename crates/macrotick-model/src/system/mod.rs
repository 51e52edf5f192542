//! The system description in its normal form, with all defaults filled in and all names resolved.
//!
//! Each type is declared together with its keys ([`crate::keys`]).

mod chain;
mod clock;
mod gates;
mod group;
mod host;
mod load;
mod network;
mod pool;
mod profile;
mod program;
mod reserve;
mod route;
mod run;
mod table;
mod task;
mod traffic;

pub use chain::Chain;
pub use clock::{Clock, Lead, SyncWindow};
pub use gates::Gates;
pub(crate) use group::PRIORITY;
pub use group::{Group, GroupTask, GroupThread};
pub use host::Host;
pub use load::{ContainerLoad, ContainerRoot, Engine, Load, Periodic, PingFlood, Placed, Policy, Process};
pub use network::Namespace;
pub use pool::{KernelThread, Pool, PoolOrder, Windows};
pub use profile::{IdleLatency, Profile, ProfileSettings, Serving, SetUp};
pub use program::Program;
pub use reserve::Reserve;
pub use run::{ExecutionTime, Gumbel, UdpReceive, UdpSend, Uniform, Workload};
pub use table::GivenWindow;
pub use task::{OnMiss, Reservation, Supply, Task};
pub use traffic::{Flow, Interface, InterfaceEnd, Network, Slot, SyncClass, TrafficClass};

use std::collections::BTreeMap;

use crate::cpus::CpuSet;
use crate::keys::{object, Field, Kind};
use crate::time::Duration;

/// The longest name: the kernel stores `MACROTICK_NAME_LEN` bytes with the terminating NUL.
pub const MAX_NAME: usize = 31;
/// The longest name that the kernel does not see. It is the limit of a file name, less the room for prefixes and
/// suffixes (`NAME-deadline`, `NAME.999.log.partial`).
pub const MAX_LONG_NAME: usize = 230;

object! {
    /// A whole system, as written in `system.yaml`.
    pub struct System: "the description" {
        "system" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "The name of the system, shown in reports.";
        "macrotick" macrotick: Duration, or "`1us`" { System::DEFAULT_MACROTICK }
            = "The grid of the tables: every offset and length of a window, and every period in a table, is a multiple of it.";
        "cycle" cycle: Option<Duration> [System::CYCLE], optional "the hyperperiod"
            = "Interval after which the tables repeat, a multiple of the hyperperiod.";
        "lead" lead: Option<Lead>, optional "none" = "How early the kernel starts to dispatch a job, see [The lead](#the-lead).";
        "clock" clock: Clock, or "`monotonic`" { Clock::Monotonic } = "The clock of the tables, see [The clock](#the-clock).";
        "cpus" cpus: Vec<u32> [Kind::CPUS], or "`[0]`, or those of `hosts`" { vec![0] } = "CPUs that tables can use, in any order.";
        "hosts" hosts: Vec<Host>, optional "one host" = "The [hosts](#hosts) of a system with several machines.";
        "preemptible" preemptible: Option<bool>, optional "`true`"
            = "The default of `preemptible` of all tasks, see [Tasks without preemption](#tasks-without-preemption).";
        "tasks" tasks: Vec<Task>, optional "none" = "The [tasks](#tasks). At most 4096, counted together with the groups that have windows.";
        "reserve" reserve: Option<Reserve>, optional "none" = "Time of each CPU that the tables keep free, see [The reserve](#the-reserve).";
        "server-period" server_period: Duration [System::SERVER_PERIOD], or "`2500us`" { System::DEFAULT_SERVER_PERIOD }
            = "Period after which the kernel refills the budgets of all groups, in whole microseconds.";
        "groups" groups: Vec<Group>, optional "none" = "The [groups](#groups).";
        "namespaces" namespaces: Vec<Namespace>, optional "none" = "The [network namespaces](#namespaces).";
        "network" network: Option<Network>, optional "none" = "The [network](#network): classes, gates, flows and slots.";
        "chains" chains: Vec<Chain>, optional "none" = "The [cause-effect chains](#chains).";
        "load" load: Vec<Process>, optional "none" = "Test [load](#load) that runs beside tasks and groups.";
        "table" table: Option<Vec<GivenWindow>>, optional "none" = "The windows of [a table by hand](#a-table-by-hand).";
        "profile" profile: Option<Profile>, optional "`none`" = "The set-up of the host, see [The profile](#the-profile).";
        "experiment" experiment: Experiment, or "the defaults of its keys" { Experiment::default() } = "Settings of a [run](#the-experiment).";
        "lab" lab: Lab, or "the defaults of its keys" { Lab::default() } = "Settings of a run in the [lab](#the-lab).";
    }
}

object! {
    /// The settings of a run.
    #[derive(Eq)]
    pub struct Experiment: "`experiment`" {
        "duration" duration: Duration [Experiment::DURATION], or "`10s`" { System::DEFAULT_DURATION }
            = "How long the run observes the system.";
    }
}

impl Experiment {
    /// The longest run. A system that must run longer needs a deployment (`macrotick apply`).
    pub const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
    /// The range of the duration of a run.
    pub const DURATION: Kind = Kind::Time { least: Duration::from_nanos(1), most: Experiment::MAX_DURATION };
}

impl Default for Experiment {
    fn default() -> Self {
        Experiment { duration: System::DEFAULT_DURATION }
    }
}

object! {
    /// The settings of a run in the lab.
    #[derive(Default, Eq)]
    pub struct Lab: "`lab`" {
        "files" files: Vec<String> [Kind::List(&Kind::Text("paths"))], optional "none"
            = "Files, directories and patterns of files that programs need. The run copies them into the lab.";
    }
}

impl System {
    /// The default macrotick.
    pub const DEFAULT_MACROTICK: Duration = Duration::from_micros(1);
    /// The default duration.
    pub const DEFAULT_DURATION: Duration = Duration::from_secs(10);
    /// The default server period, which is that of the kernel.
    pub const DEFAULT_SERVER_PERIOD: Duration = Duration::from_micros(2500);
    const CYCLE: Kind = Kind::Time { least: Duration::from_nanos(1), most: crate::validate::MAX_CYCLE };
    /// The shortest and the longest server period of the kernel.
    const SERVER_PERIOD: Kind = Kind::Time { least: Duration::from_micros(100), most: Duration::from_secs(1) };

    /// Returns the system as `system.yaml` in its normal form. Parsing it gives the same system.
    pub fn to_yaml(&self) -> String {
        self.write().to_yaml()
    }

    /// Fills in the defaults that follow from other values.
    pub(crate) fn complete(&mut self) {
        self.complete_hosts();
        self.tasks.iter_mut().for_each(Task::complete);
        let cpus: Vec<CpuSet> = self.groups.iter().map(|group| self.cpus_on(group.host.as_deref())).collect();
        self.groups.iter_mut().zip(cpus).for_each(|(group, cpus)| group.complete(cpus.as_slice()));
        let shares_clock = self.sync().is_some();
        self.network.iter_mut().for_each(|network| network.complete(shares_clock));
    }

    /// Returns the sync windows of a table that follows `CLOCK_TAI`; `None` for a table on `CLOCK_MONOTONIC`.
    pub fn sync(&self) -> Option<SyncWindow> {
        match self.clock {
            Clock::Monotonic => None,
            Clock::Tai(sync) => Some(sync),
        }
    }
}

impl System {
    /// Returns the task of that name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns the CPUs that the windows of this task may be on: its own, else those of its host, else all.
    pub fn cpus_of(&self, task: &Task) -> CpuSet {
        match task.cpu {
            Some(cpu) => CpuSet::from_iter([cpu]),
            None if task.cpus.is_empty() => self.cpus_on(task.host.as_deref()),
            None => task.cpus.clone(),
        }
    }

    /// Whether the table can interrupt the jobs of this task: its own key, else that of the system.
    pub fn is_preemptible(&self, task: &Task) -> bool {
        task.preemptible.or(self.preemptible).unwrap_or(true)
    }

    /// Returns the tasks that have windows, in the order of the system.
    pub fn windowed(&self) -> impl Iterator<Item = &Task> + Clone {
        self.tasks.iter().filter(|task| task.supply.is_windows())
    }

    /// Returns the resources that tasks have for themselves, in the order of their names, each with its tasks.
    pub fn resources(&self) -> impl Iterator<Item = (&str, Vec<&Task>)> {
        let mut resources: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for task in &self.tasks {
            task.exclusive.iter().for_each(|name| resources.entry(name).or_default().push(task));
        }
        resources.into_iter()
    }

    /// Returns the tasks of `SCHED_DEADLINE` with their reservations, in the order of the system.
    pub fn reserved(&self) -> impl Iterator<Item = (&Task, &Reservation)> + Clone {
        self.tasks.iter().filter_map(|task| Some((task, task.reservation()?)))
    }

    /// Returns the sets of CPUs that tasks of `SCHED_DEADLINE` are scheduled on, each set once. They are disjoint and
    /// become root domains: no thread moves from one to another, and each has its own admission.
    pub fn domains(&self) -> Vec<CpuSet> {
        let mut domains: Vec<CpuSet> = Vec::new();
        for (_, reservation) in self.reserved().filter(|(_, reservation)| !reservation.cpus.is_empty()) {
            if !domains.contains(&reservation.cpus) {
                domains.push(reservation.cpus.clone());
            }
        }
        domains
    }

    /// Returns the windows of groups as entities, in the order of the system.
    pub fn pools(&self) -> impl Iterator<Item = Pool> + '_ {
        self.groups.iter().filter_map(Group::pool)
    }

    /// Returns the entity of that name, which belongs to a group with windows.
    pub fn pool(&self, name: &str) -> Option<Pool> {
        self.pools().find(|pool| pool.name == name)
    }

    /// Returns the groups with budgets, in the order of the system.
    pub fn servers(&self) -> impl Iterator<Item = &Group> + Clone {
        self.groups.iter().filter(|group| group.has_budget())
    }

    /// Returns the groups with budgets to change them.
    pub fn servers_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut().filter(|group| group.has_budget())
    }

    /// Returns all processes beside the tasks to change them, in the order of [`processes`](System::processes).
    pub fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.groups.iter_mut().flat_map(|group| &mut group.run).chain(&mut self.load)
    }

    /// Returns all processes beside the tasks: first those of the groups, then the test load.
    pub fn processes(&self) -> impl Iterator<Item = Placed> + '_ {
        let in_groups = self.groups.iter().flat_map(|group| {
            group.run.iter().map(|process| Placed {
                process: process.clone(),
                group: Some(group.name.clone()),
                has_budget: group.has_budget(),
            })
        });
        let beside = |process: &Process| Placed { process: process.clone(), group: None, has_budget: false };
        in_groups.chain(self.load.iter().map(beside))
    }

    /// Returns the group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns the open values of groups as paths such as `groups[1].budget`. A plan has no open values.
    pub fn left_open(&self) -> Vec<String> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(index, group)| group.left_open(&format!("groups[{index}]"))).collect()
    }

    /// Returns the namespace of that name.
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.iter().find(|namespace| namespace.name == name)
    }

    /// Returns the periods of all tasks with windows, then of all pools, then of the sync windows and of the reserve.
    /// Those of the slots and flows of the network come last.
    pub fn periods(&self) -> impl Iterator<Item = Duration> + '_ {
        let pools = self.pools().map(|pool| pool.period);
        let tables = self.windowed().map(|task| task.period).chain(pools).chain(self.sync().map(|sync| sync.period));
        let tables = tables.chain(self.reserve.filter(|_| self.has_windows()).map(|reserve| reserve.period));
        tables.chain(self.network.iter().flat_map(Network::periods))
    }

    /// Whether a task or a group has windows. Otherwise there is no table.
    pub fn has_windows(&self) -> bool {
        self.windowed().next().is_some() || self.pools().next().is_some()
    }

    /// Whether something repeats with the cycle: windows, or slots and flows of the network.
    pub fn has_cycle(&self) -> bool {
        self.has_windows() || self.network.iter().flat_map(Network::periods).next().is_some()
    }

    /// Returns the cycle of a plan: the one in the description, else the hyperperiod, or without a table and a network
    /// the server period. Returns `None` if the hyperperiod exceeds the range.
    pub fn cycle_of_plan(&self) -> Option<Duration> {
        match self.has_cycle() {
            true => self.cycle.or_else(|| self.hyperperiod()),
            false => Some(self.server_period),
        }
    }

    /// Returns the least common multiple of all periods; `None` if it exceeds the range or there is no period.
    pub fn hyperperiod(&self) -> Option<Duration> {
        let mut periods = self.periods();
        let first = periods.next()?;
        periods.try_fold(first, Duration::lcm)
    }
}
