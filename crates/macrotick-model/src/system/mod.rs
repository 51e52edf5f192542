//! The system description in its normal form: every default filled in, every name resolved.
//!
//! Each type stands with the keys that it is written with ([`crate::keys`]).

mod chain;
mod clock;
mod group;
mod load;
mod network;
mod pool;
mod program;
mod run;
mod table;
mod task;

pub use chain::Chain;
pub use clock::{Clock, Lead, SyncWindow};
pub(crate) use group::PRIORITY;
pub use group::{Group, GroupTask, GroupThread};
pub use load::{ContainerLoad, ContainerRoot, Engine, Load, Periodic, PingFlood, Placed, Policy, Process};
pub use network::Namespace;
pub use pool::{KernelThread, Pool, PoolOrder, Windows};
pub use program::Program;
pub use run::{ExecutionTime, Gumbel, UdpReceive, UdpSend, Uniform, Workload};
pub use table::GivenWindow;
pub use task::{OnMiss, Reservation, Supply, Task};

use crate::cpus::CpuSet;
use crate::keys::{object, Field, Kind};
use crate::time::Duration;

/// Longest name: the kernel keeps `MACROTICK_NAME_LEN` bytes with the terminating NUL.
pub const MAX_NAME: usize = 31;
/// Longest name that the kernel does not see: what a file name may be, with room for what files and directories are called
/// besides (`NAME-deadline`, `NAME.999.log.partial`).
pub const MAX_LONG_NAME: usize = 230;

object! {
    /// A whole system, as written in `system.yaml`.
    pub struct System: "the description" {
        "system" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "Its name, shown in reports.";
        "macrotick" macrotick: Duration, or "`1us`" { System::DEFAULT_MACROTICK }
            = "The grid: every window's offset and length is a multiple of it, and so must be every period.";
        "cycle" cycle: Option<Duration> [System::CYCLE], optional "the hyperperiod"
            = "Length after which the tables repeat: a multiple of the hyperperiod.";
        "lead" lead: Option<Lead>, optional "none" = "How early jobs are dispatched, see [The lead](#the-lead).";
        "clock" clock: Clock, or "`monotonic`" { Clock::Monotonic } = "What the tables follow, see [The clock](#the-clock).";
        "cpus" cpus: Vec<u32> [Kind::CPUS], or "`[0]`" { vec![0] } = "CPUs that tables may use, in any order.";
        "tasks" tasks: Vec<Task>, optional "none" = "The [tasks](#tasks); at most 4096 together with the groups that have windows.";
        "server-period" server_period: Duration [System::SERVER_PERIOD], or "`2500us`" { System::DEFAULT_SERVER_PERIOD }
            = "In which the budgets of all groups are refilled, in whole microseconds.";
        "groups" groups: Vec<Group>, optional "none" = "The [groups](#groups).";
        "namespaces" namespaces: Vec<Namespace>, optional "none" = "The [network namespaces](#namespaces).";
        "chains" chains: Vec<Chain>, optional "none" = "The [cause-effect chains](#chains).";
        "load" load: Vec<Process>, optional "none" = "Test [load](#load) that runs beside all that.";
        "table" table: Option<Vec<GivenWindow>>, optional "none" = "[A table by hand](#a-table-by-hand).";
        "experiment" experiment: Experiment, or "as there" { Experiment::default() } = "What a [run](#the-experiment) does.";
        "lab" lab: Lab, or "as there" { Lab::default() } = "What a run in the [lab](#the-lab) needs.";
    }
}

object! {
    /// What a run does.
    #[derive(Eq)]
    pub struct Experiment: "`experiment`" {
        "duration" duration: Duration [Experiment::DURATION], or "`10s`" { System::DEFAULT_DURATION }
            = "How long it observes the system.";
    }
}

impl Experiment {
    /// The longest run; what shall stay is applied.
    pub const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Of a run.
    pub const DURATION: Kind = Kind::Time { least: Duration::from_nanos(1), most: Experiment::MAX_DURATION };
}

impl Default for Experiment {
    fn default() -> Self {
        Experiment { duration: System::DEFAULT_DURATION }
    }
}

object! {
    /// What a run in the lab needs.
    #[derive(Default, Eq)]
    pub struct Lab: "`lab`" {
        "files" files: Vec<String> [Kind::List(&Kind::Text("paths"))], optional "none"
            = "Files, directories and patterns of files that programs need: they are taken along.";
    }
}

impl System {
    /// The macrotick where the description gives none.
    pub const DEFAULT_MACROTICK: Duration = Duration::from_micros(1);
    /// The duration where the description gives none.
    pub const DEFAULT_DURATION: Duration = Duration::from_secs(10);
    /// The server period where the description gives none: the kernel's.
    pub const DEFAULT_SERVER_PERIOD: Duration = Duration::from_micros(2500);
    const CYCLE: Kind = Kind::Time { least: Duration::from_nanos(1), most: crate::validate::MAX_CYCLE };
    /// Shortest and longest server period of the kernel.
    const SERVER_PERIOD: Kind = Kind::Time { least: Duration::from_micros(100), most: Duration::from_secs(1) };

    /// The system as `system.yaml`, in its normal form: a description that parses back to the same system.
    pub fn to_yaml(&self) -> String {
        self.write().to_yaml()
    }

    /// What follows from other values where it was left out.
    pub(crate) fn complete(&mut self) {
        self.tasks.iter_mut().for_each(Task::complete);
        let cpus = &self.cpus;
        self.groups.iter_mut().for_each(|group| group.complete(cpus));
    }

    /// The sync windows of a table that follows `CLOCK_TAI`; `None`: it runs on `CLOCK_MONOTONIC`.
    pub fn sync(&self) -> Option<SyncWindow> {
        match self.clock {
            Clock::Monotonic => None,
            Clock::Tai(sync) => Some(sync),
        }
    }
}

impl System {
    /// The task of that name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// The tasks that have windows, in the order of the system.
    pub fn windowed(&self) -> impl Iterator<Item = &Task> + Clone {
        self.tasks.iter().filter(|task| task.supply.is_windows())
    }

    /// The tasks of `SCHED_DEADLINE` with their reservations, in the order of the system.
    pub fn reserved(&self) -> impl Iterator<Item = (&Task, &Reservation)> + Clone {
        self.tasks.iter().filter_map(|task| Some((task, task.reservation()?)))
    }

    /// The sets of CPUs that tasks of `SCHED_DEADLINE` are scheduled on, each once. They are disjoint, and become root domains:
    /// threads do not move from one to another, and admission is asked for each.
    pub fn domains(&self) -> Vec<CpuSet> {
        let mut domains: Vec<CpuSet> = Vec::new();
        for (_, reservation) in self.reserved().filter(|(_, reservation)| !reservation.cpus.is_empty()) {
            if !domains.contains(&reservation.cpus) {
                domains.push(reservation.cpus.clone());
            }
        }
        domains
    }

    /// The windows of groups as entities, in the order of the system.
    pub fn pools(&self) -> impl Iterator<Item = Pool> + '_ {
        self.groups.iter().filter_map(Group::pool)
    }

    /// The entity of that name, of a group with windows.
    pub fn pool(&self, name: &str) -> Option<Pool> {
        self.pools().find(|pool| pool.name == name)
    }

    /// The groups with budgets, in the order of the system.
    pub fn servers(&self) -> impl Iterator<Item = &Group> + Clone {
        self.groups.iter().filter(|group| group.has_budget())
    }

    /// The same, to change them.
    pub fn servers_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut().filter(|group| group.has_budget())
    }

    /// All processes beside the tasks, in the order of [`processes`](System::processes), to change them.
    pub fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.groups.iter_mut().flat_map(|group| &mut group.run).chain(&mut self.load)
    }

    /// All that runs beside the tasks: what is in groups, then the test load.
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

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// What the description leaves to be found of its groups, as paths such as `groups[1].budget`. A plan leaves nothing.
    pub fn left_open(&self) -> Vec<String> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(index, group)| group.left_open(&format!("groups[{index}]"))).collect()
    }

    /// The namespace of that name.
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.iter().find(|namespace| namespace.name == name)
    }

    /// The periods of all tasks with windows, then of all pools, then of the sync windows.
    pub fn periods(&self) -> impl Iterator<Item = Duration> + '_ {
        let pools = self.pools().map(|pool| pool.period);
        self.windowed().map(|task| task.period).chain(pools).chain(self.sync().map(|sync| sync.period))
    }

    /// Whether anything has windows: else there is no table.
    pub fn has_windows(&self) -> bool {
        self.windowed().next().is_some() || self.pools().next().is_some()
    }

    /// The cycle of a plan: as described, or else the hyperperiod, or, without a table, the server period. `None`: the
    /// hyperperiod exceeds the range.
    pub fn cycle_of_plan(&self) -> Option<Duration> {
        match self.has_windows() {
            true => self.cycle.or_else(|| self.hyperperiod()),
            false => Some(self.server_period),
        }
    }

    /// The least common multiple of all periods; `None` where it exceeds the range or there is none.
    pub fn hyperperiod(&self) -> Option<Duration> {
        let mut periods = self.periods();
        let first = periods.next()?;
        periods.try_fold(first, Duration::lcm)
    }
}
