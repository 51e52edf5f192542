//! A plan decoded for one host and one backend. All checks are here, before anything on the host changes.

pub mod network;
pub mod options;
pub mod program;
#[cfg(test)]
pub mod samples;
pub mod standing;
pub mod urgent;
pub mod user;

use std::path::Path;

use macrotick_host::lock::ROOT;
use macrotick_host::sys::{self, Standing};
use macrotick_model::plan::PlannedJob;
use macrotick_model::{
    Backend, ContainerLoad, ContainerRoot, CpuSet, Duration, Load, Placed, Plan, Policy, Pool, Task, TaskObservation,
    Workload,
};

use crate::block::abi;
use crate::deployment::options::RunOptions;
use crate::deployment::standing::{fifo_priorities, standing};
use crate::deployment::user::Owner;
use crate::error::NodeError;

/// The longest cycle or duration, a hundred years. Instants on a host with that uptime may be two of them later, and
/// must not overflow.
const MOST: Duration = Duration::from_secs(100 * 365 * 86_400);
/// The intervals of readings for which a task has room. A busy supervisor may be late by some of them.
const ROOM: i64 = 4;

/// A plan that is ready for its deployment.
#[derive(Clone)]
pub struct Deployment {
    /// The plan.
    pub plan: Plan,
    /// The backend that dispatches the jobs.
    pub backend: Backend,
    /// The observed time.
    pub duration: Duration,
    /// The tasks, in the order of the system.
    pub tasks: Vec<TaskDeployment>,
    /// The processes, in the order of the system.
    pub processes: Vec<ProcessDeployment>,
    /// Remarks for the observation.
    pub remarks: Vec<String>,
}

/// One task of a deployment.
#[derive(Clone)]
pub struct TaskDeployment {
    /// The task.
    pub task: Task,
    /// The CPUs of its windows or of its reservation: one CPU, unless it migrates.
    pub cpus: CpuSet,
    /// Whether it is pinned to them.
    pub pinned: bool,
    /// Its jobs in one repetition.
    pub jobs: Vec<PlannedJob>,
    /// The time after which the jobs repeat.
    pub repetition: Duration,
    /// Its policy and parameters.
    pub standing: Standing,
    /// The number of its records.
    pub capacity: u32,
    /// The user that it becomes before it executes its program, if that is another user.
    pub owner: Option<Owner>,
}

/// One process of a deployment, in a group or as load.
#[derive(Clone)]
pub struct ProcessDeployment {
    /// The process and its place.
    pub process: Placed,
    /// The user that it becomes before it executes its program, if that is another user.
    pub owner: Option<Owner>,
}

impl TaskDeployment {
    /// Returns whether it has windows.
    pub fn is_windowed(&self) -> bool {
        self.task.supply.is_windows()
    }
}

impl Deployment {
    /// Decodes a plan. `online` are the host's online CPUs.
    pub fn decode(plan: &Plan, options: &RunOptions, online: &[u32]) -> Result<Self, NodeError> {
        if plan.version != Plan::VERSION {
            return Err(NodeError::PlanVersion(plan.version));
        }
        let duration = options.duration.unwrap_or(plan.system.experiment.duration);
        for (what, value) in [("cycle", plan.cycle), ("duration", duration)] {
            if value <= Duration::ZERO {
                return Err(NodeError::NotPositive { what, value });
            }
            if value > MOST {
                return Err(NodeError::TooLong { what, value, most: MOST });
            }
        }
        if plan.system.sync().is_some() && options.backend == Backend::User {
            return Err(NodeError::ClockBackend(options.backend));
        }
        decode_windows(plan)?;
        let processes =
            plan.system.processes().map(|process| decode_process(process, online)).collect::<Result<_, _>>()?;
        decode_groups(plan, options.backend)?;
        decode_domains(plan, options.backend)?;
        decode_partition(plan, options.backend)?;
        plan.system.pools().try_for_each(|pool| decode_pool(plan, &pool, options.backend, online))?;
        let priorities = fifo_priorities(&plan.system.tasks);
        let (mut tasks, mut remarks) = (Vec::new(), Vec::new());
        for (task, priority) in plan.system.tasks.iter().zip(priorities) {
            let (cpus, jobs, owner) = decode_task(plan, task, online)?;
            remarks.extend(decode_migration(task, &cpus, options.backend)?);
            let repetition = plan.repetition(&task.name);
            let recorded = options.reading.map_or(duration, |every| every * ROOM);
            let capacity = capacity(repetition, recorded, jobs.len(), options.record_limit);
            let standing = standing(options.backend, task, priority);
            let pinned = options.backend != Backend::Deadline;
            let task = task.clone();
            tasks.push(TaskDeployment { task, cpus, pinned, jobs, repetition, standing, capacity, owner });
        }
        if options.backend == Backend::Deadline && online.len() > 1 {
            remarks.push("SCHED_DEADLINE cannot be pinned: tasks may run on any CPU".into());
        }
        Ok(Deployment { plan: plan.clone(), backend: options.backend, duration, tasks, processes, remarks })
    }

    /// Returns the name of the backend in a task's block.
    pub fn block_backend(&self, task: &TaskDeployment) -> u32 {
        match self.backend {
            _ if !task.is_windowed() => abi::BACKEND_SLEEP,
            Backend::Kernel => abi::BACKEND_KERNEL,
            Backend::User => abi::BACKEND_USER,
            Backend::Fifo | Backend::Deadline | Backend::Other => abi::BACKEND_SLEEP,
        }
    }
}

/// Checks that each window belongs to a task or a pool.
fn decode_windows(plan: &Plan) -> Result<(), NodeError> {
    let is_known = |name: &str| plan.system.task(name).is_some() || plan.system.pools().any(|pool| pool.name == name);
    let mut named = plan.tables.iter().flat_map(|table| &table.windows).map(|window| &window.task);
    named.find(|name| !is_known(name)).map_or(Ok(()), |name| Err(NodeError::NoEntity(name.clone())))
}

type DecodedTask = (CpuSet, Vec<PlannedJob>, Option<Owner>);

fn decode_task(plan: &Plan, task: &Task, online: &[u32]) -> Result<DecodedTask, NodeError> {
    let name = || task.name.clone();
    if task.name.len() >= macrotick_uapi::NAME_LEN {
        return Err(NodeError::NameTooLong(name()));
    }
    let cpus = cpus_of(plan, &task.name, task.migrate, online)?;
    let jobs = plan.jobs(&task.name);
    if cpus.is_empty() || jobs.is_empty() {
        return Err(NodeError::NoActivation(name()));
    }
    let owner = match &task.run {
        Workload::Program(program) => program::decode(&task.name, program)?,
        _ => None,
    };
    Ok((cpus, jobs, owner))
}

/// Checks the domains. The kernel class keeps windows beside reservations. A dispatcher in user space would have to
/// wait for the reservations. No task or group may have CPUs on both sides of a domain's border.
fn decode_domains(plan: &Plan, backend: Backend) -> Result<(), NodeError> {
    match (plan.system.reserved().next(), backend) {
        (Some((task, _)), Backend::User) => {
            return Err(NodeError::SupplyBackend { task: task.name.clone(), backend });
        }
        (Some(_), Backend::Kernel) => {}
        _ => return Ok(()),
    }
    let domains = plan.system.domains();
    let tasks = plan.system.windowed().map(|task| (&task.name, plan.cpus(&task.name)));
    let groups = plan.system.servers().map(|group| (&group.name, group.cpus.iter().copied().collect::<CpuSet>()));
    for (name, cpus) in tasks.chain(groups) {
        if let Some(domain) = domains.iter().find(|domain| cpus.straddles(domain)) {
            return Err(NodeError::Straddles { name: name.clone(), cpus, domain: domain.clone() });
        }
    }
    Ok(())
}

/// Checks the isolated CPUs of a profile. The dispatchers of the backend `user` are threads of the runner, which is
/// outside. The backend `deadline` needs a scheduling domain.
fn decode_partition(plan: &Plan, backend: Backend) -> Result<(), NodeError> {
    let system = &plan.system;
    let Some(profile) = system.profile.as_ref().filter(|profile| profile.has_partition()) else { return Ok(()) };
    if matches!(backend, Backend::User | Backend::Deadline) {
        return Err(NodeError::PartitionBackend(backend));
    }
    let all = || system.cpus.iter().copied().collect();
    let isolated: CpuSet = if profile.cpus.is_empty() { all() } else { profile.cpus.clone() };
    let tasks = system.windowed().map(|task| (&task.name, plan.cpus(&task.name)));
    let groups = system.groups.iter().map(|group| (&group.name, group.cpus.iter().copied().collect::<CpuSet>()));
    match tasks.chain(groups).find(|(_, cpus)| cpus.straddles(&isolated)) {
        Some((name, cpus)) => Err(NodeError::StraddlesPartition { name: name.clone(), cpus, isolated }),
        None => Ok(()),
    }
}

/// Checks that the backend can serve a task on several CPUs. Under the stock policies the task may run on any of them,
/// and a remark reports this.
fn decode_migration(task: &Task, cpus: &CpuSet, backend: Backend) -> Result<Option<String>, NodeError> {
    if !cpus.is_several() || !task.supply.is_windows() {
        return Ok(None);
    }
    match backend {
        Backend::Kernel | Backend::Deadline => Ok(None),
        Backend::User => Err(NodeError::MigrateBackend { task: task.name.clone(), cpus: cpus.clone(), backend }),
        Backend::Fifo | Backend::Other => Ok(Some(format!("task `{}` may run on any of the CPUs {cpus}", task.name))),
    }
}

/// Returns the CPUs of all windows of a task or pool: none, one, or several if it may migrate.
fn cpus_of(plan: &Plan, name: &str, migrate: bool, online: &[u32]) -> Result<CpuSet, NodeError> {
    let cpus = plan.cpus(name);
    let global = plan.system.task(name).is_some_and(|task| !task.supply.is_windows());
    if cpus.is_several() && !migrate && !global {
        return Err(NodeError::Migrates(name.into()));
    }
    match cpus.as_slice().iter().find(|cpu| !online.contains(cpu)) {
        Some(&cpu) => Err(NodeError::CpuOffline { name: name.into(), cpu }),
        None => Ok(cpus),
    }
}

/// Checks the groups. Only runs of the kernel class make groups. A load that has SCHED_FIFO because its group has a
/// budget must not run without the budget.
fn decode_groups(plan: &Plan, backend: Backend) -> Result<(), NodeError> {
    if let Some(path) = plan.system.left_open().into_iter().next() {
        return Err(NodeError::LeftOpen(path));
    }
    let held = |load: &Placed| load.server().is_some() && matches!(load.policy, Policy::Fifo(_));
    match plan.system.processes().find(held) {
        Some(load) if backend != Backend::Kernel => {
            let group = load.group.clone().unwrap_or_default();
            Err(NodeError::GroupBackend { group, load: load.name.clone(), backend })
        }
        _ => Ok(()),
    }
}

/// Checks a pool. The stock policies have no pools: the load of a pool runs like any other.
fn decode_pool(plan: &Plan, pool: &Pool, backend: Backend, online: &[u32]) -> Result<(), NodeError> {
    let name = || pool.name.clone();
    match backend {
        Backend::User => return Err(NodeError::PoolBackend { pool: name(), backend }),
        Backend::Fifo | Backend::Deadline | Backend::Other => return Ok(()),
        Backend::Kernel => {}
    }
    if pool.name.len() >= macrotick_uapi::NAME_LEN {
        return Err(NodeError::NameTooLong(name()));
    }
    match cpus_of(plan, &pool.name, false, online)?.is_empty() {
        true => Err(NodeError::NoWindow(name())),
        false => Ok(()),
    }
}

fn decode_process(process: Placed, online: &[u32]) -> Result<ProcessDeployment, NodeError> {
    if let Some(cpu) = process.cpu.filter(|cpu| !online.contains(cpu)) {
        return Err(NodeError::CpuOffline { name: process.name.clone(), cpu });
    }
    let owner = match &process.run {
        Load::Program(program) => program::decode(&process.name, program)?,
        Load::Container(container) => decode_container(&process.name, container).map(|()| None)?,
        _ => None,
    };
    Ok(ProcessDeployment { process, owner })
}

fn decode_container(name: &str, container: &ContainerLoad) -> Result<(), NodeError> {
    let fault = |fault| NodeError::Container { name: name.into(), fault };
    let engine = container.engine.name();
    if !program::is_there(engine) {
        return Err(fault(format!("{engine} was not found, or is not executable")));
    }
    if sys::user() != ROOT {
        return Err(fault(format!("{engine} needs root to put it into a control group")));
    }
    missing(container).map_or(Ok(()), |missing| Err(fault(missing)))
}

/// Returns a missing part of the host that the runner can find out.
fn missing(load: &ContainerLoad) -> Option<String> {
    match &load.root {
        ContainerRoot::Rootfs(path) if !Path::new(path).is_dir() => Some(format!("there is no directory {path}")),
        _ => None,
    }
}

/// Returns the number of records: one for every job that can start, and some more for jobs that start while the run
/// ends.
pub fn capacity(cycle: Duration, duration: Duration, per_cycle: usize, limit: Option<u32>) -> u32 {
    let cycles = duration / cycle + 2;
    let jobs = cycles.saturating_mul(per_cycle as i64).min(TaskObservation::MOST_JOBS as i64) as u32;
    limit.map_or(jobs, |limit| jobs.min(limit))
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{self as fixtures, ms, reserved, table, us};
    use macrotick_model::{Clock, ContainerRoot, CpuTable, Engine, Group, Process, Profile, Program, SetUp};

    use super::samples::{plan, task, window};
    use super::*;

    fn decode(plan: &Plan) -> Result<Deployment, NodeError> {
        Deployment::decode(plan, &RunOptions::new(Backend::Other), &[0])
    }

    #[test]
    fn a_reservation_stands_beside_windows() {
        let supply = |cpu| reserved(us(150), &[cpu]);
        let reserved = Task { supply: supply(1), deadline: ms(2), ..task("d", ms(3), Some(7)) };
        let mut plan = plan(vec![task("w", ms(1), None), reserved], vec![window("w", 0, 200, true, true)]);
        let under = |plan: &Plan, backend| Deployment::decode(plan, &RunOptions::new(backend), &[0, 1]);
        let kernel = under(&plan, Backend::Kernel).unwrap();
        let deployed = &kernel.tasks[1];
        let standing = Standing::Deadline { runtime: us(150), deadline: ms(2), period: ms(3) };
        assert_eq!((deployed.standing, deployed.pinned, &deployed.cpus), (standing, true, &CpuSet::from_iter([1])));
        assert_eq!((deployed.repetition, kernel.block_backend(deployed)), (ms(3), abi::BACKEND_SLEEP));
        assert_eq!(kernel.block_backend(&kernel.tasks[0]), abi::BACKEND_KERNEL);
        // Three whole periods in 10 ms, and two more.
        assert_eq!(deployed.capacity, 5);
        assert_eq!(under(&plan, Backend::Deadline).unwrap().tasks[1].standing, standing);
        assert_eq!(under(&plan, Backend::Fifo).unwrap().tasks[1].standing, Standing::Fifo(7));
        let refused = |plan: &Plan, backend| under(plan, backend).map(drop).unwrap_err().to_string();
        assert!(refused(&plan, Backend::User).starts_with("task `d` has `supply: deadline`, which needs the backend"));

        plan.system.profile = Some(Profile { cpus: CpuSet::from_iter([1]), ..Profile::like(SetUp::Isolation) });
        let text = "the profile isolates CPUs, which the backend `deadline` cannot use: run it with `--backend kernel` or `fifo`, or \
                    add `partition: false` to the profile";
        assert_eq!(refused(&plan, Backend::Deadline), text);
        plan.system.groups = vec![Group { cpus: vec![0, 1], ..fixtures::group("g", 1, us(100)) }];
        let text = "`g` has the CPUs 0, 1, and the profile isolates CPU 1: threads do not move between them";
        assert_eq!(refused(&plan, Backend::Fifo), text);
        plan.system.groups.clear();
        assert!(under(&plan, Backend::Fifo).is_ok());
        plan.system.profile = None;

        plan.system.tasks[1].supply = supply(7);
        assert_eq!(refused(&plan, Backend::Kernel), "`d` is for CPU 7, which is not online");
        plan.system.tasks[1].supply = supply(1);
        plan.system.tasks[0].migrate = true;
        plan.tables.push(table(1, [window("w", 500, 100, false, false)]));
        let fault =
            "`w` has the CPUs 0, 1, and tasks of SCHED_DEADLINE have CPU 1 to themselves: threads do not move between \
                     them";
        assert_eq!(refused(&plan, Backend::Kernel), fault);
        assert!(under(&plan, Backend::Other).is_ok());
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        let one = || vec![task("a", Duration::from_millis(1), None)];
        let good = plan(one(), vec![window("a", 0, 200, true, true)]);
        assert_eq!(decode(&good).map(|deployment| deployment.tasks[0].capacity).ok(), Some(12));

        let never = plan(one(), vec![window("a", 0, 200, false, true)]);
        assert!(matches!(decode(&never), Err(NodeError::NoActivation(name)) if name == "a"));
        let nowhere = plan(one(), Vec::new());
        assert!(matches!(decode(&nowhere), Err(NodeError::NoActivation(name)) if name == "a"));

        let mut offline = good.clone();
        offline.tables[0].cpu = 7;
        assert!(matches!(decode(&offline), Err(NodeError::CpuOffline { cpu: 7, .. })));

        let mut moving = good.clone();
        moving.tables.push(CpuTable { cpu: 1, ..moving.tables[0].clone() });
        assert!(matches!(decode(&moving), Err(NodeError::Migrates(name)) if name == "a"));

        moving.system.tasks[0].migrate = true;
        let both: CpuSet = [0, 1].into_iter().collect();
        let under = |backend| Deployment::decode(&moving, &RunOptions::new(backend), &[0, 1]);
        let fault =
            "task `a` has windows on the CPUs 0, 1, which needs the backend `kernel`: the backend `user` has a \
                     dispatcher for each CPU, and a dispatcher cannot hand a task over";
        assert_eq!(under(Backend::User).map(drop).unwrap_err().to_string(), fault);
        let kernel = under(Backend::Kernel).unwrap();
        assert_eq!((&kernel.tasks[0].cpus, kernel.remarks.len()), (&both, 0));
        assert_eq!(under(Backend::Fifo).unwrap().remarks, ["task `a` may run on any of the CPUs 0, 1"]);
        assert!(matches!(decode(&moving), Err(NodeError::CpuOffline { cpu: 1, .. })));

        let mut newer = good.clone();
        newer.version += 1;
        assert!(matches!(decode(&newer), Err(NodeError::PlanVersion(version)) if version == good.version + 1));

        let mut missing = good.clone();
        missing.system.tasks[0].run = Workload::Program(Program::new(["/no/such/program"]));
        assert!(matches!(decode(&missing), Err(NodeError::NoProgram { .. })));

        let mut pooled = good.clone();
        pooled.system.groups = vec![fixtures::pool("p", us(1000), us(100))];
        let under = |backend| Deployment::decode(&pooled, &RunOptions::new(backend), &[0]).map(drop);
        assert!(matches!(under(Backend::User), Err(NodeError::PoolBackend { pool, .. }) if pool == "p"));
        assert!(matches!(under(Backend::Kernel), Err(NodeError::NoWindow(name)) if name == "p"));
        assert!(under(Backend::Other).is_ok());

        let load = |rootfs: &str, engine| {
            let root = ContainerRoot::Rootfs(rootfs.into());
            Process::named("c", Load::Container(ContainerLoad { root, program: Some(Program::new(["x"])), engine }))
        };
        let mut contained = good.clone();
        contained.system.load = vec![load("/no/such", Engine::Runc)];
        let told = decode(&contained).map(drop).unwrap_err().to_string();
        // The message depends on this host.
        let lacks = ["runc was not found", "runc needs root", "there is no directory /no/such"];
        assert!(lacks.iter().any(|lack| told.starts_with(&format!("container `c`: {lack}"))), "{told}");

        let mut following = good.clone();
        following.system.clock = Clock::Tai(fixtures::sync(us(1000), us(900), us(100), us(50)));
        let under = |backend| Deployment::decode(&following, &RunOptions::new(backend), &[0]).map(drop);
        assert!(matches!(under(Backend::User), Err(NodeError::ClockBackend(Backend::User))));
        assert!(under(Backend::Kernel).is_ok() && under(Backend::Fifo).is_ok());

        let mut endless = good.clone();
        endless.system.experiment.duration = Duration::ZERO;
        assert!(matches!(decode(&endless), Err(NodeError::NotPositive { what: "duration", .. })));
        endless.system.experiment.duration = Duration::from_nanos(i64::MAX);
        assert!(matches!(decode(&endless), Err(NodeError::TooLong { what: "duration", .. })));
        endless.system.experiment.duration = MOST;
        assert_eq!(
            decode(&endless).map(|deployment| deployment.tasks[0].capacity).ok(),
            Some(TaskObservation::MOST_JOBS as u32)
        );
        endless.cycle = MOST + us(1);
        assert!(matches!(decode(&endless), Err(NodeError::TooLong { what: "cycle", .. })));
    }

    #[test]
    fn a_root_file_system_that_is_not_there_is_named() {
        let load = |path: &str| {
            let root = ContainerRoot::Rootfs(path.into());
            ContainerLoad { root, program: Some(Program::new(["x"])), engine: Engine::Runc }
        };
        assert_eq!(missing(&load("/no/such")).unwrap(), "there is no directory /no/such");
        assert_eq!(missing(&load("/tmp")), None);
    }
}
