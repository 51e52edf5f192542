//! The resources of a run: its processes, the objects that they run in, and the remarks of the preparation.

use macrotick_host::cgroup::Group;
use macrotick_host::clock::Discipline;
use macrotick_host::network::Network;
use macrotick_host::profile::InForce;
use macrotick_host::settings::Held;
use macrotick_host::trace::Instance;
use macrotick_model::{Duration, LeadInForce};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::dispatcher::Dispatcher;
use crate::backend::domains::Domains;
use crate::backend::gates::Gates;
use crate::backend::kernel::InstalledTable;
use crate::backend::pools::Pools;
use crate::deployment::options::RunOptions;
use crate::deployment::Deployment;
use crate::process::child::Child;
use crate::process::descendants::Descendants;
use crate::run::supervisor::Supervisor;
use crate::workload::calibration::Calibration;

/// The end of the observed time.
pub struct Outcome {
    /// The observed time.
    pub(super) duration: Duration,
    /// The signal that ended it early.
    pub(super) signal: Option<&'static str>,
}

/// The resources of a run. Fields drop in this order: first the processes, last the objects that they run in.
pub struct Run<'a> {
    /// The decoded plan.
    pub deployment: Deployment,
    /// The options of the caller.
    pub options: &'a RunOptions,
    /// One dispatcher per table under the backend `user`.
    pub(super) dispatchers: Vec<Dispatcher>,
    /// One process per process of the system, in the order of the system.
    pub processes: Vec<Child>,
    /// The processes of the tasks, in the order of the system.
    pub tasks: Vec<Child>,
    /// The table under the backend `kernel`, until the end, if the system has windows.
    pub table: Option<InstalledTable>,
    /// The pools under the backend `kernel`, if the system has any. Drops after the processes in them.
    pub pools: Option<Pools>,
    /// The groups under the backend `kernel`, if the system has any. Drops after the processes in them.
    pub groups: Option<BudgetGroups>,
    /// The domains under the backend `kernel`, if tasks of SCHED_DEADLINE need any. Drops after the processes in them.
    pub domains: Option<Domains>,
    /// The gates and traffic classes of interfaces, if the system has any. Drops after the processes and the table, and
    /// before the profile and the namespaces.
    pub gates: Option<Gates>,
    /// The set-up of the host, if the system has a profile. Drops after the processes, and before the network devices.
    pub profile: Option<InForce>,
    /// The network namespaces, if the system has any. Drops after the processes in them.
    pub(super) network: Option<Network>,
    /// The lead under the backend `kernel`, if the system has one.
    pub lead: Option<LeadInForce>,
    /// The discipline of `CLOCK_TAI` at the start, under the backend `kernel`, if the table follows this clock.
    pub discipline: Option<Discipline>,
    /// The processes that the run's processes start and leave behind. Drops after the run's processes.
    pub descendants: Descendants,
    /// The trace, if the caller wants one.
    pub(super) trace: Option<Instance>,
    /// The supervisor, if a task restarts when its process ends.
    pub supervisor: Option<Supervisor>,
    /// The settings of the host, under the backend `kernel`, unless the caller leaves them unchanged. Drops after all
    /// parts that need them.
    pub settings: Option<Held>,
    /// The remarks about this host from the preparation. A second attempt of the start makes new ones.
    pub(super) found: Vec<String>,
    pub(super) calibration: Calibration,
}

impl Run<'_> {
    /// Returns the remarks for the observation on this host, its settings, pools and groups.
    pub fn remarks(&self) -> Vec<String> {
        let lacking = self.settings.as_ref().map_or(&[][..], Held::lacking);
        let pools = self.pools.as_ref().map_or(&[][..], Pools::remarks);
        let groups = self.groups.as_ref().map_or(&[][..], BudgetGroups::remarks);
        let profile = self.profile.as_ref().map_or(&[][..], InForce::remarks);
        let gates = self.gates.as_ref().map_or(&[][..], Gates::remarks);
        [&self.found, profile, gates, pools, groups, lacking].concat()
    }

    /// Calls `keep` for each control group, to look after its settings.
    pub fn look_after_promises(&mut self, keep: &mut dyn FnMut(&mut Group) -> bool) {
        if let Some(pools) = &mut self.pools {
            pools.look_after(keep);
        }
        if let Some(groups) = &mut self.groups {
            groups.look_after(keep);
        }
    }

    /// Returns the traced time of a run.
    pub(super) fn trace_length(&self, duration: Duration) -> Duration {
        self.options.trace.unwrap_or(Duration::ZERO).min(duration)
    }
}

impl Drop for Run<'_> {
    /// Acts after a failure only: a run that reaches its end has ended all processes.
    fn drop(&mut self) {
        self.descendants.calm();
        Child::kill_all(self.processes.iter_mut().chain(&mut self.tasks));
        self.descendants.end();
    }
}
