//! A run from the plan to the observation.
//!
//! ```text
//! runner      lock, measure, install ──── spawn ── … ── epoch, policies ── publish ── … ── release ── sleep ── collect
//! tasks                                   initialise, ready ─────────────────┘ first wait ──┘│         jobs
//! processes                               initialise, ready ────────────────────────────────┘          load
//! ```
//!
//! Processes of groups and load start only after every task waits for its first job. Therefore no load can keep a task
//! from this point. All of this happens before the epoch; otherwise the start fails.
//!
//! While it sleeps, the runner restarts tasks with the [`Supervisor`], if it has one.
//!
//! Guards undo all changes in reverse order, whether the run succeeds or fails.

pub mod collect;
pub mod profile;
pub mod records;
pub mod resources;
pub mod spawn;
pub mod start;
pub mod supervisor;
pub mod trace;

use macrotick_host::clock::Discipline;
use macrotick_host::limits::OpenFiles;
use macrotick_host::lock::Lock;
use macrotick_host::network::Network;
use macrotick_host::profile::InForce;
use macrotick_host::settings::{Held, Holder};
use macrotick_host::sys::{self, SchedAttr};
use macrotick_host::trace::Instance;
use macrotick_model::{Backend, CpuSet, Duration, Instant, Observation, Plan, System};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::domains::Domains;
use crate::backend::gates::Gates;
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
use crate::process::rescuer::Rescuer;
use crate::process::signals::Signals;
use crate::run::resources::{Outcome, Run};
use crate::run::spawn::{spawn_processes, spawn_tasks};
use crate::run::supervisor::Supervisor;
use crate::workload::calibration::Calibration;

/// A host that is not ready after this delay gets no more time.
const MOST_START_DELAY: Duration = Duration::from_secs(10);

/// Deploys a plan on this host, runs it, and returns the raw records. Needs root for all backends except `other`.
///
/// `progress` is called at the stages, and every [`RunOptions::progress_every`] while the tasks run. SIGINT, SIGTERM,
/// SIGHUP and SIGQUIT end a run early. The result is then the observation up to this instant, with a remark.
pub fn run(plan: &Plan, options: &RunOptions, progress: &mut dyn FnMut(Progress)) -> Result<Observation, NodeError> {
    let online = sys::online_cpus()?;
    let deployment = Deployment::decode(plan, options, &online)?;
    progress(Progress::Preparing);
    let lock = Lock::take(options.lock.as_deref())?;
    profile::restore_left(&lock);
    let signals = Signals::catch().map_err(NodeError::system("catching signals"))?;
    let (first, _files) = (First::raise(), OpenFiles::raise());
    let rescuer = first.rescuer()?;
    let (mut run, epoch) = begin(deployment, options, &signals, &mut || progress(Progress::Starting))?;
    let end = epoch + run.deployment.duration;
    rescuer.iter().for_each(|rescuer| rescuer.rest_until(end));
    let outcome = observe(&mut run, epoch, &signals, progress)?;
    rescuer.iter().for_each(Rescuer::look);
    progress(Progress::Collecting);
    let mut observation = collect::collect(run, epoch, outcome)?;
    observation.remarks.extend(rescuer.iter().flat_map(Rescuer::remarks));
    Ok(observation)
}

/// A guard: while it exists, the runner comes before all processes that it starts. Otherwise a busy CPU could keep it
/// from ending the run. The runner sleeps during the measured time. Without the privilege (`--backend other` needs
/// none) the runner keeps its policy.
pub struct First {
    before: Option<SchedAttr>,
}

impl First {
    /// Puts the calling thread before all others except those of the kernel class.
    pub fn raise() -> First {
        let before = sys::sched_attr(0).ok();
        let raised = sys::set_sched_attr(0, &SchedAttr::new(RUNNER, true));
        First { before: before.filter(|_| raised.is_ok()) }
    }

    /// Starts the rescuer, which lets the runner run beside threads of the same priority. Returns `None` if the runner
    /// has no real-time priority.
    pub fn rescuer(&self) -> Result<Option<Rescuer>, NodeError> {
        let start = || Rescuer::start().map_err(NodeError::system("starting a thread"));
        self.before.as_ref().map(|_| start()).transpose()
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sys::set_sched_attr(0, before);
        }
    }
}

/// Prepares and starts a run, and calls `ready` in between. If a busy host is not ready before the epoch, the function
/// starts again with a longer delay. Also returns the epoch, which is in the future.
pub fn begin<'a>(
    deployment: Deployment,
    options: &'a RunOptions,
    signals: &Signals,
    ready: &mut dyn FnMut(),
) -> Result<(Run<'a>, Instant), NodeError> {
    let (mut deployment, mut delay) = (deployment, options.start_delay);
    loop {
        let mut run = prepare(deployment, options, signals)?;
        ready();
        match start::start(&mut run, signals, delay) {
            Err(NodeError::EpochPassed { late, .. }) if delay < MOST_START_DELAY => {
                delay = (delay + late) * 2;
                deployment = run.deployment.clone();
            }
            started => return started.map(|epoch| (run, epoch)),
        }
    }
}

/// Prepares a run up to the point where all processes are ready and none runs.
fn prepare<'a>(deployment: Deployment, options: &'a RunOptions, signals: &Signals) -> Result<Run<'a>, NodeError> {
    let held = deployment.backend == Backend::Kernel && options.host_settings == HostSettings::Hold;
    let settings = held.then(|| Held::take(Holder::this_process(&deployment.plan.system.name)));
    let network = Network::prepare(&deployment.plan.system)?;
    let mut found = Vec::new();
    let profile = profile::take(&deployment, options, &mut found)?;
    let gates = Gates::deploy(&deployment.plan, network.as_ref(), deployment.backend)?;
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
        gates,
        network,
        lead: None,
        discipline: None,
        descendants: Descendants::adopt(),
        trace: None,
        supervisor: None,
        profile,
        settings,
        found,
        calibration: Calibration::measure(),
    };
    match run.deployment.backend {
        Backend::Kernel => install_table(&mut run)?,
        _ => run.domains = isolated_domain(&run)?,
    }
    spawn_tasks(&mut run)?;
    spawn_processes(&mut run)?;
    await_phase(&run.tasks, abi::PHASE_READY, options.ready_limit, signals)?;
    await_phase(&run.processes, abi::PHASE_READY, options.ready_limit, signals)?;
    if options.trace.is_some() {
        run.trace = Some(Instance::prepare().map_err(NodeError::Trace)?);
    }
    run.tasks.iter_mut().for_each(Child::note_program);
    run.supervisor = Supervisor::new(&run)?;
    Ok(run)
}

fn install_table(run: &mut Run) -> Result<(), NodeError> {
    let plan = &run.deployment.plan;
    // Called first: it installs a table of its own.
    let Found { lead, remarks } = lead::find(plan)?;
    run.lead = lead;
    run.found.extend(remarks);
    let online = sys::online_cpus()?;
    run.domains = Domains::prepare(&plan.system, &online, isolated(run))?;
    let lead = lead::length(run.lead);
    if plan.system.has_windows() {
        run.table = Some(InstalledTable::install(plan, lead)?);
    }
    if plan.system.sync().is_some() {
        run.discipline = Some(Discipline::read().map_err(NodeError::system("reading the state of the clock"))?);
    }
    run.pools = Pools::prepare(plan, run.domains.as_ref())?;
    run.groups = BudgetGroups::prepare(&plan.system, run.domains.as_ref(), run.gates.as_ref())?;
    Ok(())
}

/// Returns the CPUs that the profile isolates.
fn isolated<'r>(run: &'r Run) -> Option<&'r CpuSet> {
    run.profile.as_ref().and_then(InForce::partition)
}

/// Makes the partition of the isolated CPUs under a backend without other partitions.
fn isolated_domain(run: &Run) -> Result<Option<Domains>, NodeError> {
    match isolated(run) {
        None => Ok(None),
        isolated => {
            let none = System { tasks: Vec::new(), ..run.deployment.plan.system.clone() };
            Domains::prepare(&none, &sys::online_cpus()?, isolated)
        }
    }
}

/// Returns how much later than planned a table is that moves with its clock.
pub fn moved(run: &Run) -> Result<Duration, NodeError> {
    match (&run.table, run.discipline) {
        (Some(table), Some(_)) => {
            let grid = table.grid()?;
            Ok(Duration::from_nanos(grid.stretched_ns as i64 - grid.shrunk_ns as i64))
        }
        _ => Ok(Duration::ZERO),
    }
}

/// Sleeps until the end. Wakes up at most at the end of the trace and for progress reports.
fn observe(
    run: &mut Run,
    epoch: Instant,
    signals: &Signals,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, NodeError> {
    let total = run.deployment.duration;
    let mut end = epoch + total;
    let mut trace_end = run.trace.is_some().then(|| epoch + run.trace_length(total)).filter(|at| *at < end);
    let mut tell = run.options.progress_every.filter(|every| *every > Duration::ZERO).map(|every| epoch + every);
    loop {
        let next = [trace_end, tell].into_iter().flatten().fold(end, Instant::min);
        if let Some(signal) = sleep_until(run, next, epoch, signals) {
            let elapsed = (sys::now() - epoch).min(total);
            if elapsed <= Duration::ZERO {
                return Err(NodeError::Interrupted(signal));
            }
            return Ok(Outcome { duration: elapsed, signal: Some(signal) });
        }
        if next == end {
            // The last jobs are later by this time.
            end = end.max(epoch + total + moved(run)?);
            if next < end {
                continue;
            }
            return Ok(Outcome { duration: total, signal: None });
        }
        if let (Some(trace), true) = (&run.trace, trace_end == Some(next)) {
            trace.stop().map_err(NodeError::Trace)?;
            trace_end = None;
        }
        if tell == Some(next) {
            progress(Progress::Running { elapsed: next - epoch, total });
            tell = run.options.progress_every.map(|every| next + every);
        }
    }
}

/// Sleeps until an instant, or until a signal. Returns the name of the signal. Restarts tasks in the meantime.
fn sleep_until(run: &mut Run, at: Instant, epoch: Instant, signals: &Signals) -> Option<&'static str> {
    if run.supervisor.is_none() {
        return signals.sleep_until(at);
    }
    while signals.caught().is_none() && sys::now() < at {
        supervisor::attend(run, at, epoch, signals, &[]);
    }
    signals.caught()
}
