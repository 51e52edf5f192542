//! What a run has: its processes, what they run in, and what was found while it was prepared.

use macrotick_host::cgroup::Group;
use macrotick_host::clock::Discipline;
use macrotick_host::network::Network;
use macrotick_host::settings::Held;
use macrotick_host::trace::Instance;
use macrotick_model::{Duration, LeadInForce};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::dispatcher::Dispatcher;
use crate::backend::domains::Domains;
use crate::backend::kernel::InstalledTable;
use crate::backend::pools::Pools;
use crate::deployment::options::RunOptions;
use crate::deployment::Deployment;
use crate::process::child::Child;
use crate::process::descendants::Descendants;
use crate::run::supervisor::Supervisor;
use crate::workload::calibration::Calibration;

/// How the observed time ended.
pub struct Outcome {
    /// How long was observed.
    pub(super) duration: Duration,
    /// The signal that ended it early.
    pub(super) signal: Option<&'static str>,
}

/// A run's resources. Fields are dropped in this order: first what runs, last what it runs on.
pub struct Run<'a> {
    /// What was decoded.
    pub deployment: Deployment,
    /// What the caller chose.
    pub options: &'a RunOptions,
    /// One per table under the backend `user`.
    pub(super) dispatchers: Vec<Dispatcher>,
    /// One per process, in the order of the system.
    pub processes: Vec<Child>,
    /// In the order of the system.
    pub tasks: Vec<Child>,
    /// Under the backend `kernel`, until the end, if anything has windows.
    pub table: Option<InstalledTable>,
    /// Under the backend `kernel`, if the system has any. After what runs in them.
    pub pools: Option<Pools>,
    /// Under the backend `kernel`, if the system has any. After what runs in them.
    pub groups: Option<BudgetGroups>,
    /// Under the backend `kernel`, if tasks of SCHED_DEADLINE need any. After what runs in them.
    pub domains: Option<Domains>,
    /// If the system has namespaces. After what runs in them.
    pub(super) network: Option<Network>,
    /// Under the backend `kernel`, if the system has one.
    pub lead: Option<LeadInForce>,
    /// Under the backend `kernel`, if the table follows `CLOCK_TAI`: who disciplined that at the start.
    pub(super) discipline: Option<Discipline>,
    /// What those processes start and leave. After them.
    pub descendants: Descendants,
    /// If one is wanted.
    pub(super) trace: Option<Instance>,
    /// If a task is to be begun anew when its process ends.
    pub supervisor: Option<Supervisor>,
    /// Settings of the host, under the backend `kernel` unless the caller does without. After all that needs them.
    pub settings: Option<Held>,
    /// What this host was found to be while it was prepared. A start that is made anew finds it anew.
    pub(super) found: Vec<String>,
    pub(super) calibration: Calibration,
}

impl Run<'_> {
    /// What a reader of the observation should know of this host, its settings, pools and groups.
    pub fn remarks(&self) -> Vec<String> {
        let lacking = self.settings.as_ref().map_or(&[][..], Held::lacking);
        let pools = self.pools.as_ref().map_or(&[][..], Pools::remarks);
        let groups = self.groups.as_ref().map_or(&[][..], BudgetGroups::remarks);
        [&self.found, pools, groups, lacking].concat()
    }

    /// Lets somebody look after what control groups were promised.
    pub fn look_after_promises(&mut self, keep: &mut dyn FnMut(&mut Group) -> bool) {
        if let Some(pools) = &mut self.pools {
            pools.look_after(keep);
        }
        if let Some(groups) = &mut self.groups {
            groups.look_after(keep);
        }
    }

    /// How much of a run is traced.
    pub(super) fn trace_length(&self, duration: Duration) -> Duration {
        self.options.trace.unwrap_or(Duration::ZERO).min(duration)
    }
}

impl Drop for Run<'_> {
    /// After a failure; at its end a run has ended all of it.
    fn drop(&mut self) {
        self.descendants.calm();
        Child::kill_all(self.processes.iter_mut().chain(&mut self.tasks));
        self.descendants.end();
    }
}
