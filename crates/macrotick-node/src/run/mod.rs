//! A run from the plan to the observation.
//!
//! ```text
//! runner      lock, measure, install ──── spawn ── … ── epoch, policies ── publish ── … ── release ── sleep ── collect
//! tasks                                   initialise, ready ─────────────────┘ first wait ──┘│         jobs
//! processes                               initialise, ready ────────────────────────────────┘          load
//! ```
//!
//! Processes of groups and load are released only when every task waits for its first job, so that no load can keep a task from
//! getting there; and all of that lies before the epoch, or the run is refused.
//!
//! While it sleeps, the runner begins anew what [`Supervisor`] is there for, if there is anything.
//!
//! Whatever was done is undone by guards in reverse order, whether the run succeeds or fails.

pub mod collect;
pub mod records;
mod spawn;
pub mod start;
pub mod supervisor;
pub mod trace;

use std::os::fd::RawFd;

use macrotick_host::cgroup::Group;
use macrotick_host::clock::Discipline;
use macrotick_host::limits::OpenFiles;
use macrotick_host::lock::Lock;
use macrotick_host::network::Network;
use macrotick_host::settings::{Held, Holder};
use macrotick_host::sys::{self, SchedAttr};
use macrotick_host::trace::Instance;
use macrotick_model::{Backend, Duration, Instant, LeadInForce, Observation, Plan};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::dispatcher::Dispatcher;
use crate::backend::domains::Domains;
use crate::backend::kernel::InstalledTable;
use crate::backend::lead::{self, Found};
use crate::backend::pools::Pools;
use crate::block::abi;
use crate::deployment::options::{HostSettings, Progress, RunOptions};
use crate::deployment::standing::RUNNER;
use crate::deployment::Deployment;
use crate::error::NodeError;
use crate::process::child::{await_phase, Child};
use crate::process::descendants::Descendants;
use crate::process::signals::Signals;
use crate::run::supervisor::Supervisor;
use crate::workload::calibration::Calibration;

/// A host that is not done after this is not given more time.
const MOST_START_DELAY: Duration = Duration::from_secs(10);

/// Deploys a plan on this host, runs it, and returns the raw records. Needs root for all backends but `other`.
///
/// `progress` is called at the stages, and every [`RunOptions::progress_every`] while the tasks run. SIGINT and SIGTERM
/// end a run early: what was observed until then is returned, with a remark.
pub fn run(plan: &Plan, options: &RunOptions, progress: &mut dyn FnMut(Progress)) -> Result<Observation, NodeError> {
    let online = sys::online_cpus()?;
    let deployment = Deployment::decode(plan, options, &online)?;
    progress(Progress::Preparing);
    let _lock = Lock::take(options.lock.as_deref())?;
    let signals = Signals::catch().map_err(NodeError::system("catching signals"))?;
    let (_first, _files) = (First::raise(), OpenFiles::raise());
    let (mut run, epoch) = Run::begin(deployment, options, &signals, &mut || progress(Progress::Starting))?;
    let outcome = run.observe(epoch, &signals, progress)?;
    progress(Progress::Collecting);
    run.collect(epoch, outcome)
}

/// While it lives, the runner comes before all that it starts, or else a busy CPU could keep it from ending the run.
/// It sleeps all the time that is measured. Without the right to it (`--backend other` needs none) it goes without.
pub struct First {
    before: Option<SchedAttr>,
}

impl First {
    /// Puts the calling thread before all others but those of the kernel class.
    pub fn raise() -> First {
        let before = sys::sched_attr(0).ok();
        let raised = sys::set_sched_attr(0, &SchedAttr::new(RUNNER, true));
        First { before: before.filter(|_| raised.is_ok()) }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sys::set_sched_attr(0, before);
        }
    }
}

/// How the observed time ended.
pub struct Outcome {
    /// How long was observed.
    duration: Duration,
    /// The signal that ended it early.
    signal: Option<&'static str>,
}

/// A run's resources. Fields are dropped in this order: first what runs, last what it runs on.
pub struct Run<'a> {
    /// What was decoded.
    pub deployment: Deployment,
    /// What the caller chose.
    pub options: &'a RunOptions,
    /// One per table under the backend `user`.
    dispatchers: Vec<Dispatcher>,
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
    network: Option<Network>,
    /// Under the backend `kernel`, if the system has one.
    pub lead: Option<LeadInForce>,
    /// Under the backend `kernel`, if the table follows `CLOCK_TAI`: who disciplined that at the start.
    discipline: Option<Discipline>,
    /// What those processes start and leave. After them.
    pub descendants: Descendants,
    /// If one is wanted.
    trace: Option<Instance>,
    /// If a task is to be begun anew when its process ends.
    pub supervisor: Option<Supervisor>,
    /// Settings of the host, under the backend `kernel` unless the caller does without. After all that needs them.
    pub settings: Option<Held>,
    /// What this host was found to be while it was prepared. A start that is made anew finds it anew.
    found: Vec<String>,
    calibration: Calibration,
}

impl<'a> Run<'a> {
    /// Prepares and starts; `ready` is called in between. A host that is too busy to set everything before the epoch gets
    /// more time for it, anew. Returns the epoch, too, which is still to come.
    pub fn begin(
        deployment: Deployment,
        options: &'a RunOptions,
        signals: &Signals,
        ready: &mut dyn FnMut(),
    ) -> Result<(Self, Instant), NodeError> {
        let (mut deployment, mut delay) = (deployment, options.start_delay);
        loop {
            let mut run = Run::prepare(deployment, options, signals)?;
            ready();
            match run.start(signals, delay) {
                Err(NodeError::EpochPassed { late, .. }) if delay < MOST_START_DELAY => {
                    delay = (delay + late) * 2;
                    deployment = run.deployment.clone();
                }
                started => return started.map(|epoch| (run, epoch)),
            }
        }
    }

    /// Up to the point where everything is ready and nothing runs.
    fn prepare(deployment: Deployment, options: &'a RunOptions, signals: &Signals) -> Result<Self, NodeError> {
        let held = deployment.backend == Backend::Kernel && options.host_settings == HostSettings::Hold;
        let settings = held.then(|| Held::take(Holder::this_process(&deployment.plan.system.name)));
        let network = Network::prepare(&deployment.plan.system)?;
        let mut run = Run {
            deployment,
            options,
            dispatchers: Vec::new(),
            processes: Vec::new(),
            tasks: Vec::new(),
            table: None,
            pools: None,
            groups: None,
            domains: None,
            network,
            lead: None,
            discipline: None,
            descendants: Descendants::adopt(),
            trace: None,
            supervisor: None,
            settings,
            found: Vec::new(),
            calibration: Calibration::measure(),
        };
        if run.deployment.backend == Backend::Kernel {
            run.install_table()?;
        }
        run.spawn_tasks()?;
        run.spawn_processes()?;
        await_phase(&run.tasks, abi::PHASE_READY, options.ready_limit, signals)?;
        await_phase(&run.processes, abi::PHASE_READY, options.ready_limit, signals)?;
        if options.trace.is_some() {
            run.trace = Some(Instance::prepare().map_err(NodeError::Trace)?);
        }
        run.tasks.iter_mut().for_each(Child::note_program);
        run.supervisor = Supervisor::new(&run)?;
        Ok(run)
    }

    fn install_table(&mut self) -> Result<(), NodeError> {
        let plan = &self.deployment.plan;
        // Before anything else, as a table of its own is installed for it.
        let Found { lead, remarks } = lead::find(plan)?;
        (self.lead, self.found) = (lead, remarks);
        let online = sys::online_cpus()?;
        self.domains = Domains::prepare(&plan.system, &online)?;
        let lead = lead::length(self.lead);
        if plan.system.has_windows() {
            self.table = Some(InstalledTable::install(plan, lead)?);
        }
        if plan.system.sync().is_some() {
            self.discipline = Some(Discipline::read().map_err(NodeError::system("reading the state of the clock"))?);
        }
        self.pools = Pools::prepare(plan, self.domains.as_ref())?;
        self.groups = BudgetGroups::prepare(&plan.system, self.domains.as_ref())?;
        Ok(())
    }

    /// How much later than planned a table that moves with its clock is by now.
    fn moved(&self) -> Result<Duration, NodeError> {
        match (&self.table, self.discipline) {
            (Some(table), Some(_)) => {
                let grid = table.grid()?;
                Ok(Duration::from_nanos(grid.stretched_ns as i64 - grid.shrunk_ns as i64))
            }
            _ => Ok(Duration::ZERO),
        }
    }

    /// Sleeps until the end, and at most at the end of the trace and for progress in between.
    fn observe(
        &mut self,
        epoch: Instant,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, NodeError> {
        let total = self.deployment.duration;
        let mut end = epoch + total;
        let mut trace_end = self.trace.is_some().then(|| epoch + self.trace_length(total)).filter(|at| *at < end);
        let mut tell = self.options.progress_every.filter(|every| *every > Duration::ZERO).map(|every| epoch + every);
        loop {
            let next = [trace_end, tell].into_iter().flatten().fold(end, Instant::min);
            if let Some(signal) = self.sleep_until(next, epoch, signals) {
                let elapsed = (sys::now() - epoch).min(total);
                if elapsed <= Duration::ZERO {
                    return Err(NodeError::Interrupted(signal));
                }
                return Ok(Outcome { duration: elapsed, signal: Some(signal) });
            }
            if next == end {
                // The last jobs are later by so much.
                end = end.max(epoch + total + self.moved()?);
                if next < end {
                    continue;
                }
                return Ok(Outcome { duration: total, signal: None });
            }
            if let (Some(trace), true) = (&self.trace, trace_end == Some(next)) {
                trace.stop().map_err(NodeError::Trace)?;
                trace_end = None;
            }
            if tell == Some(next) {
                progress(Progress::Running { elapsed: next - epoch, total });
                tell = self.options.progress_every.map(|every| next + every);
            }
        }
    }

    /// Sleeps until an instant, or until a signal, whose name it returns; meanwhile begins anew what has ended.
    fn sleep_until(&mut self, at: Instant, epoch: Instant, signals: &Signals) -> Option<&'static str> {
        if self.supervisor.is_none() {
            return signals.sleep_until(at);
        }
        while signals.caught().is_none() && sys::now() < at {
            self.attend(at, epoch, signals, &[]);
        }
        signals.caught()
    }

    /// Sleeps until an instant, a signal, something to read on one of the descriptors or something to begin anew, which
    /// is done; maybe not that long.
    pub fn attend(&mut self, at: Instant, epoch: Instant, signals: &Signals, descriptors: &[RawFd]) {
        let Some(mut supervisor) = self.supervisor.take() else {
            return signals.sleep_until_readable(at, descriptors);
        };
        let all = [&supervisor.descriptors(), descriptors].concat();
        signals.sleep_until_readable(supervisor.next_look().map_or(at, |look| look.min(at)), &all);
        supervisor.look(self, epoch);
        self.supervisor = Some(supervisor);
    }

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
    fn trace_length(&self, duration: Duration) -> Duration {
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
