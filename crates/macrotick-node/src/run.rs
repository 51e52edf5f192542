//! A run from the plan to the observation.
//!
//! ```text
//! runner      lock, measure, install ──── spawn ── … ── epoch, policies ── publish ── … ── release ── sleep ── collect
//! tasks                                   initialise, ready ─────────────────┘ first wait ──┘│         jobs
//! background                              initialise, ready ────────────────────────────────┘          load
//! ```
//!
//! The background is released only when every task waits for its first job, so that no load can keep a task from
//! getting there; and all of that lies before the epoch, or the run is refused.
//!
//! While it sleeps, the runner begins anew what [`Supervisor`] is there for, if there is anything.
//!
//! Whatever was done is undone by guards in reverse order, whether the run succeeds or fails.

use std::fs::File;
use std::os::fd::RawFd;
use std::path::Path;

use macrotick_host::budgets::next_refill;
use macrotick_host::cgroup::{self, Group};
use macrotick_host::clock::{self, Discipline};
use macrotick_host::limits::OpenFiles;
use macrotick_host::lock::Lock;
use macrotick_host::network::{self, Network};
use macrotick_host::settings::{Held, Holder};
use macrotick_host::sys::{self, SchedAttr, Standing, Tid};
use macrotick_host::trace::Instance;
use macrotick_host::HostFailure;
use macrotick_model::{Backend, Background, CpuSet, Duration, Instant, LeadInForce, Load, Observation, Plan, Workload};

use crate::abi;
use crate::background::{self, BackgroundSpec};
use crate::block::{Block, BlockSpec};
use crate::calibration::Calibration;
use crate::child::{await_phase, Child, Launch, SELF};
use crate::deployment::{background_standing, Deployment, TaskDeployment};
use crate::descendants::Descendants;
use crate::dispatcher::Dispatcher;
use crate::domains::Domains;
use crate::engine::Site;
use crate::error::NodeError;
use crate::groups::Groups;
use crate::keeper::{self, Place};
use crate::kernel::InstalledTable;
use crate::lead;
use crate::options::{HostSettings, Progress, RunOptions};
use crate::pools::Pools;
use crate::signals::Signals;
use crate::supervisor::Supervisor;
use crate::task::{self, TaskSpec};

/// Every epoch is a whole multiple of this, and so of the kernel's tick; with groups, the first refill from one on.
const EPOCH_GRID: Duration = Duration::from_millis(100);
/// So long before the epoch begins what pools and groups receive to count.
const POOL_MARGIN: Duration = Duration::from_millis(5);
/// A host that is not done after this is not given more time.
const MOST_START_DELAY: Duration = Duration::from_secs(10);
/// Between the last task's word that it waits and the release of the background.
const SETTLE: Duration = Duration::from_millis(2);

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
        let raised = sys::set_sched_attr(0, &SchedAttr::new(Standing::Fifo(99), true));
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
    pub duration: Duration,
    /// The signal that ended it early.
    pub signal: Option<&'static str>,
}

/// A run's resources. Fields are dropped in this order: first what runs, last what it runs on.
pub struct Run<'a> {
    /// What was decoded.
    pub deployment: Deployment,
    /// What the caller chose.
    pub options: &'a RunOptions,
    /// One per table under the backend `user`.
    pub dispatchers: Vec<Dispatcher>,
    /// One per process, in the order of the system.
    pub background: Vec<Child>,
    /// In the order of the system.
    pub tasks: Vec<Child>,
    /// Under the backend `kernel`, until the end, if anything has windows.
    pub table: Option<InstalledTable>,
    /// Under the backend `kernel`, if the system has any. After what runs in them.
    pub pools: Option<Pools>,
    /// Under the backend `kernel`, if the system has any. After what runs in them.
    pub groups: Option<Groups>,
    /// Under the backend `kernel`, if tasks of SCHED_DEADLINE need any. After what runs in them.
    pub domains: Option<Domains>,
    /// If the system has namespaces. After what runs in them.
    pub network: Option<Network>,
    /// Under the backend `kernel`, if the system has one.
    pub lead: Option<LeadInForce>,
    /// Under the backend `kernel`, if the table follows `CLOCK_TAI`: who disciplined that at the start.
    pub discipline: Option<Discipline>,
    /// What those processes start and leave. After them.
    pub descendants: Descendants,
    /// If one is wanted.
    pub trace: Option<Instance>,
    /// If a task is to be begun anew when its process ends.
    pub supervisor: Option<Supervisor>,
    /// Settings of the host, under the backend `kernel` unless the caller does without. After all that needs them.
    pub settings: Option<Held>,
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
            background: Vec::new(),
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
            calibration: Calibration::measure(),
        };
        if run.deployment.backend == Backend::Kernel {
            run.install_table()?;
        }
        run.spawn_tasks()?;
        run.spawn_background()?;
        await_phase(&run.tasks, abi::PHASE_READY, options.ready_limit, signals)?;
        await_phase(&run.background, abi::PHASE_READY, options.ready_limit, signals)?;
        if options.trace.is_some() {
            run.trace = Some(Instance::prepare().map_err(NodeError::Trace)?);
        }
        run.tasks.iter_mut().for_each(Child::note_program);
        run.supervisor = Supervisor::new(&run)?;
        Ok(run)
    }

    fn install_table(&mut self) -> Result<(), NodeError> {
        let remarks = lead::check_windows(&self.deployment.plan)?;
        self.deployment.remarks.extend(remarks);
        let plan = &self.deployment.plan;
        let online = sys::online_cpus()?;
        self.domains = Domains::prepare(&plan.system, &online)?;
        self.lead = lead::choose(plan)?;
        let lead = self.lead.map_or(Duration::ZERO, |chosen| chosen.lead);
        if plan.system.has_windows() {
            self.table = Some(InstalledTable::install(plan, lead)?);
        }
        if plan.system.sync().is_some() {
            self.discipline = Some(Discipline::read().map_err(NodeError::system("reading the state of the clock"))?);
        }
        self.pools = Pools::prepare(plan, self.domains.as_ref())?;
        self.groups = Groups::prepare(&plan.system, self.domains.as_ref())?;
        Ok(())
    }

    fn spawn_tasks(&mut self) -> Result<(), NodeError> {
        let tasks = self.deployment.tasks.iter();
        self.tasks =
            tasks.map(|task| self.spawn_task(&self.deployment, task, task.capacity)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Starts a process of a task of a deployment, with room for so many records.
    pub fn spawn_task(
        &self,
        deployment: &Deployment,
        deployed: &TaskDeployment,
        capacity: u32,
    ) -> Result<Child, NodeError> {
        let task = &deployed.task;
        let offsets: Vec<Duration> = deployed.jobs.iter().map(|job| job.nominal).collect();
        let block = new_block(&BlockSpec {
            backend: deployment.block_backend(deployed),
            cycle: deployed.repetition,
            offsets: &offsets,
            capacity,
        })?;
        let spec = TaskSpec {
            name: task.name.clone(),
            workload: task.run.clone(),
            calibration: self.calibration,
            seed: self.options.seed,
            draws: draws(deployed),
            on_miss: task.on_miss,
        };
        let command = match &task.run {
            Workload::Program(command) => command.clone(),
            _ => builtin(task::VERB, &spec)?,
        };
        let group = self.partition(&deployed.cpus)?;
        let namespace = self.namespace(task.namespace.as_deref());
        let output = self.options.output;
        Child::spawn(Launch {
            name: &task.name,
            command: &command,
            block,
            group,
            namespace,
            output,
            grace: Duration::ZERO,
        })
    }

    fn spawn_background(&mut self) -> Result<(), NodeError> {
        for index in 0..self.deployment.plan.system.background.len() {
            let children = self.spawn_load(&self.deployment.plan.system.background[index])?;
            self.background.extend(children);
        }
        Ok(())
    }

    /// Starts the processes of a background load.
    pub fn spawn_load(&self, load: &Background) -> Result<Vec<Child>, NodeError> {
        (0..load.count).map(|index| self.spawn_loader(load, index)).collect()
    }

    fn spawn_loader(&self, load: &Background, index: u32) -> Result<Child, NodeError> {
        let name = load.process_name(index);
        let cycle = self.deployment.plan.cycle;
        let block = new_block(&BlockSpec { backend: abi::BACKEND_SLEEP, cycle, offsets: &[], capacity: 0 })?;
        let place = matches!(load.load, Load::Container(_)).then(|| self.place_of_container(load, &name));
        // Who keeps a container is in neither: the container is.
        let (group, namespace) = match place {
            Some(_) => (None, None),
            None => (self.entrance(load)?, self.namespace(load.namespace.as_deref())),
        };
        let grace = if place.is_some() { keeper::GRACE } else { Duration::ZERO };
        let (calibration, seed) = (self.calibration, self.options.seed);
        let spec = BackgroundSpec { name: name.clone(), load: load.load.clone(), calibration, seed, place };
        let command = builtin(background::VERB, &spec)?;
        let output = self.options.output;
        Child::spawn(Launch { name: &name, command: &command, block, group, namespace, output, grace })
    }

    /// Below the control group of its pool or group; of one that is in none, below one of its own.
    fn place_of_container(&self, load: &Background, name: &str) -> Place {
        let pool = self.pools.as_ref().zip(load.pool.as_ref()).and_then(|(pools, pool)| pools.path(pool));
        let group = self.groups.as_ref().zip(load.group.as_ref()).and_then(|(groups, group)| groups.path(group));
        let shared = pool.or(group).map(Path::to_path_buf);
        let partition = self.domains.as_ref().and_then(|domains| domains.of(&CpuSet::from_iter(load.cpu)));
        let site = Site {
            own_parent: shared.is_none(),
            parent: shared.unwrap_or_else(|| cgroup::path_of(partition, name)),
            network: load.namespace.as_deref().map(network::path_of),
        };
        Place { site, cpu: load.cpu, policy: pool.is_none().then_some(load.policy) }
    }

    /// The namespace of that name, which the system has.
    fn namespace(&self, name: Option<&str>) -> Option<&File> {
        self.network.as_ref().zip(name).and_then(|(network, name)| network.entrance(name))
    }

    /// Where a process that is to run on these CPUs enters their partition, if they are one.
    fn partition(&self, cpus: &CpuSet) -> Result<Option<File>, NodeError> {
        self.domains.as_ref().map_or(Ok(None), |domains| domains.entrance(cpus))
    }

    /// Where a background load enters its pool or group, if it is to be in one and there are any under this backend; or else
    /// the partition of its CPU.
    fn entrance(&self, load: &Background) -> Result<Option<File>, NodeError> {
        match (&self.pools, &load.pool, &self.groups, &load.group) {
            (Some(pools), Some(pool), ..) => pools.entrance(pool),
            (.., Some(groups), Some(group)) => groups.entrance(group),
            _ => self.partition(&CpuSet::from_iter(load.cpu)),
        }
    }

    /// Tables begin with a refill of the groups' budgets, if there are any: the check relies on it.
    fn at_refill(&self, epoch: Instant) -> Result<Instant, NodeError> {
        self.groups.as_ref().map_or(Ok(epoch), |_| Ok(next_refill(epoch)?))
    }

    /// Sets epoch, policies and affinities, and lets everything go. Returns the epoch, which is still to come.
    fn start(&mut self, signals: &Signals, delay: Duration) -> Result<Instant, NodeError> {
        let mut epoch = match self.discipline {
            Some(_) => clock::choose_epoch(self.deployment.plan.cycle, delay),
            None => self.at_refill(choose_epoch(sys::now(), delay))?,
        };
        self.place_tasks()?;
        if let Some(table) = &self.table {
            let each = self.tasks.iter().zip(&self.deployment.tasks).filter(|(_, deployed)| deployed.is_windowed());
            each.map(|(child, _)| child).try_for_each(|child| bind(table, child, self.options.ready_limit))?;
            if let Some(pools) = &mut self.pools {
                pools.bind_kernel_threads(&self.deployment.plan, table, &|_| true)?;
            }
            epoch = self.start_table(table, epoch, delay)?;
        }
        if self.deployment.backend == Backend::User {
            for table in self.deployment.plan.tables.iter().filter(|table| !table.windows.is_empty()) {
                self.dispatchers.push(Dispatcher::start(table, self.deployment.plan.cycle, epoch, &self.tasks)?);
            }
        }
        self.tasks.iter().for_each(|child| child.block.publish(epoch));
        await_phase(&self.tasks, abi::PHASE_WAITING, self.options.ready_limit, signals)?;
        // They tell so right before they wait: let the last one get there.
        sys::sleep(SETTLE);
        if let Some(trace) = &self.trace {
            trace.start().map_err(NodeError::Trace)?;
        }
        self.release_background(epoch)?;
        self.begin_accounts(epoch)?;
        let late = sys::now() - epoch;
        if late >= Duration::ZERO {
            return Err(NodeError::EpochPassed { late, delay });
        }
        Ok(epoch)
    }

    /// Starts the table at an epoch on its clock, and returns it on `CLOCK_MONOTONIC`.
    fn start_table(&self, table: &InstalledTable, epoch: Instant, delay: Duration) -> Result<Instant, NodeError> {
        let in_force = table.start(epoch)?;
        if in_force != epoch {
            return Err(NodeError::EpochPassed { late: in_force - epoch, delay });
        }
        match self.discipline {
            Some(_) => Ok(epoch - Duration::from_nanos(table.grid()?.offset_ns)),
            None => Ok(epoch),
        }
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

    /// What pools and groups receive from now on, shortly before the epoch, counts.
    fn begin_accounts(&mut self, epoch: Instant) -> Result<(), NodeError> {
        if self.pools.is_none() && self.groups.is_none() {
            return Ok(());
        }
        if let Some(pools) = &mut self.pools {
            pools.note_threads(&self.deployment.plan.system, self.groups.as_ref());
        }
        sys::sleep_until(epoch - POOL_MARGIN);
        if let (Some(pools), Some(table)) = (&mut self.pools, &self.table) {
            pools.begin(&self.deployment.plan.system, self.groups.as_ref(), table)?;
        }
        self.groups.as_mut().map_or(Ok(()), Groups::begin)
    }

    fn place_tasks(&self) -> Result<(), NodeError> {
        self.tasks.iter().zip(&self.deployment.tasks).try_for_each(|(child, deployed)| place_task(child, deployed))
    }

    /// Each process is released right after it was placed; one that comes first and never sleeps cannot keep the
    /// runner from releasing the next.
    fn release_background(&self, epoch: Instant) -> Result<(), NodeError> {
        let loads = &self.deployment.plan.system.background;
        let each = loads.iter().flat_map(|load| std::iter::repeat_n(load, load.count as usize));
        for (child, load) in self.background.iter().zip(each) {
            self.place_load(child, load)?;
            child.block.publish(epoch);
        }
        Ok(())
    }

    /// Puts a process of a background load, which is ready, where and how it is to run.
    pub fn place_load(&self, child: &Child, load: &Background) -> Result<(), NodeError> {
        // The pool has a CPU and an order of its own; who keeps a container puts that where it is to be.
        let is_container = matches!(load.load, Load::Container(_));
        if is_container || load.pool.is_some() && self.pools.is_some() {
            return Ok(());
        }
        place(child, child.pid(), &CpuSet::from_iter(load.cpu), background_standing(load.policy))
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

    /// What a reader of the observation should know of pools, groups and the host's settings.
    pub fn remarks(&self) -> Vec<String> {
        let lacking = self.settings.as_ref().map_or(&[][..], Held::lacking);
        let pools = self.pools.as_ref().map_or(&[][..], Pools::remarks);
        let groups = self.groups.as_ref().map_or(&[][..], Groups::remarks);
        [pools, groups, lacking].concat()
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
    pub fn trace_length(&self, duration: Duration) -> Duration {
        self.options.trace.unwrap_or(Duration::ZERO).min(duration)
    }
}

impl Drop for Run<'_> {
    /// After a failure; at its end a run has ended all of it.
    fn drop(&mut self) {
        self.descendants.calm();
        Child::kill_all(self.background.iter_mut().chain(&mut self.tasks));
        self.descendants.end();
    }
}

/// How many execution times a process of a task draws: as many as it can have records, in every process of the task, so
/// that job k is the same in each. Where nothing is recorded they repeat after a while.
fn draws(deployed: &TaskDeployment) -> u32 {
    const UNRECORDED: u32 = 4096;
    match deployed.capacity {
        0 => UNRECORDED,
        capacity => capacity,
    }
}

fn new_block(spec: &BlockSpec) -> Result<Block, NodeError> {
    Block::new(spec).map_err(NodeError::system("making a shared memory block"))
}

/// The command that executes this program again as a built-in workload.
fn builtin(verb: &str, spec: &impl serde::Serialize) -> Result<Vec<String>, NodeError> {
    let spec = serde_json::to_string(spec)
        .map_err(|error| NodeError::System { what: "writing a workload's specification", source: error.into() })?;
    Ok(vec![SELF.into(), verb.into(), spec])
}

/// Binds a task's thread, which is pinned. One that fell asleep on another CPU is woken, to fall asleep where it may
/// run now.
fn bind(table: &InstalledTable, child: &Child, limit: Duration) -> Result<(), NodeError> {
    let give_up = sys::now() + limit;
    loop {
        match table.bind(child) {
            Err(error) if error.errno() == Some(libc::EAGAIN) && sys::now() < give_up => child.block.nudge(),
            result => return result,
        }
        sys::sleep(Duration::from_millis(1));
    }
}

/// Puts the thread of a task, which is ready, where and how it is to run.
pub fn place_task(child: &Child, deployed: &TaskDeployment) -> Result<(), NodeError> {
    let anywhere = CpuSet::default();
    let cpus = if deployed.pinned { &deployed.cpus } else { &anywhere };
    place(child, child.block.tid(), cpus, deployed.standing)
}

/// Without a CPU on any.
fn place(child: &Child, tid: Tid, cpus: &CpuSet, standing: Standing) -> Result<(), NodeError> {
    if !cpus.is_empty() {
        let failed = |source| NodeError::Pin { name: child.name.clone(), cpus: cpus.clone(), source };
        sys::pin(tid, cpus.as_slice()).map_err(failed)?;
    }
    let refused = |source| HostFailure::Policy { name: child.name.clone(), standing, source };
    Ok(sys::set_standing(tid, standing).map_err(refused)?)
}

/// The first whole multiple of the grid that is at least `delay` away.
fn choose_epoch(now: Instant, delay: Duration) -> Instant {
    let (earliest, grid) = ((now + delay).as_nanos(), EPOCH_GRID.as_nanos());
    Instant::from_nanos((earliest + grid - 1) / grid * grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_on_the_grid_and_far_enough() {
        let ms = |ms: i64| Instant::from_nanos(ms * 1_000_000);
        let delay = Duration::from_millis(200);
        assert_eq!(choose_epoch(ms(1000), delay), ms(1200));
        assert_eq!(choose_epoch(ms(1001), delay), ms(1300));
    }
}
