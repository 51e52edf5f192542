//! The start of a run's processes: their parameters and their places.

use std::fs::File;
use std::path::Path;

use macrotick_host::{cgroup, network};
use macrotick_model::{CpuSet, Duration, Load, Placed, Program, Workload};

use crate::block::{abi, Block, BlockSpec};
use crate::deployment::network::priority_of;
use crate::deployment::{Deployment, ProcessDeployment, TaskDeployment};
use crate::error::NodeError;
use crate::process::child::{Child, Launch, SELF};
use crate::run::resources::Run;
use crate::workload::engine::Site;
use crate::workload::keeper::{self, Place};
use crate::workload::processes::{self, ProcessSpec};
use crate::workload::task::{self, TaskSpec};

pub fn spawn_tasks(run: &mut Run) -> Result<(), NodeError> {
    run.tasks = run
        .deployment
        .tasks
        .iter()
        .map(|task| spawn_task(run, &run.deployment, task, task.capacity))
        .collect::<Result<_, _>>()?;
    Ok(())
}

/// Starts a process of a task of a deployment, with room for `capacity` records.
pub fn spawn_task(
    run: &Run,
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
        calibration: run.calibration,
        seed: run.options.seed,
        draws: draws(deployed),
        on_miss: task.on_miss,
        priority: priority_of(&deployment.plan.system, &task.name),
    };
    let program = match &task.run {
        Workload::Program(program) => program.clone(),
        _ => builtin(task::VERB, &spec)?,
    };
    let group = partition(run, &deployed.cpus)?;
    let namespace = namespace(run, task.namespace.as_deref());
    let output = run.options.output;
    Child::spawn(Launch {
        name: &task.name,
        program: &program,
        block,
        group,
        namespace,
        owner: deployed.owner.as_ref(),
        output,
        grace: Duration::ZERO,
    })
}

pub fn spawn_processes(run: &mut Run) -> Result<(), NodeError> {
    for deployed in &run.deployment.processes {
        run.processes.extend(spawn_process(run, deployed)?);
    }
    Ok(())
}

/// Starts the processes of one entry of the description: as many as its count.
pub fn spawn_process(run: &Run, deployed: &ProcessDeployment) -> Result<Vec<Child>, NodeError> {
    (0..deployed.process.count).map(|index| spawn_one(run, deployed, index)).collect()
}

fn spawn_one(run: &Run, deployed: &ProcessDeployment, index: u32) -> Result<Child, NodeError> {
    let load = &deployed.process;
    let name = load.process_name(index);
    let cycle = run.deployment.plan.cycle;
    let block = new_block(&BlockSpec { backend: abi::BACKEND_SLEEP, cycle, offsets: &[], capacity: 0 })?;
    let place = matches!(load.run, Load::Container(_)).then(|| place_of_container(run, load, &name));
    // The keeper of a container is in no group or namespace: the container is.
    let (group, namespace) = match place {
        Some(_) => (None, None),
        None => (entrance(run, load)?, namespace(run, load.namespace.as_deref())),
    };
    let grace = if place.is_some() { keeper::GRACE } else { Duration::ZERO };
    let (calibration, seed) = (run.calibration, run.options.seed);
    let owner = deployed.owner.clone();
    let spec = ProcessSpec { name: name.clone(), load: load.run.clone(), owner, calibration, seed, place };
    let program = builtin(processes::VERB, &spec)?;
    let output = run.options.output;
    // It changes to its owner itself when the run starts.
    Child::spawn(Launch { name: &name, program: &program, block, group, namespace, owner: None, output, grace })
}

/// Returns the place of a container: below the control group of its pool or group, or below a control group of its own.
fn place_of_container(run: &Run, load: &Placed, name: &str) -> Place {
    let pool = run.pools.as_ref().zip(load.pool()).and_then(|(pools, pool)| pools.path(pool));
    let group = run.groups.as_ref().zip(load.server()).and_then(|(groups, group)| groups.path(group));
    let shared = pool.or(group).map(Path::to_path_buf);
    let partition = run.domains.as_ref().and_then(|domains| domains.of(&CpuSet::from_iter(load.cpu)));
    let site = Site {
        own_parent: shared.is_none(),
        parent: shared.unwrap_or_else(|| cgroup::path_of(partition, name)),
        network: load.namespace.as_deref().map(network::path_of),
    };
    Place { site, cpu: load.cpu, policy: pool.is_none().then_some(load.policy) }
}

/// Returns the namespace with this name. The system has it.
fn namespace<'r>(run: &'r Run, name: Option<&str>) -> Option<&'r File> {
    run.network.as_ref().zip(name).and_then(|(network, name)| network.entrance(name))
}

/// Returns the file by which a process enters the partition of these CPUs, if they have one.
fn partition(run: &Run, cpus: &CpuSet) -> Result<Option<File>, NodeError> {
    run.domains.as_ref().map_or(Ok(None), |domains| domains.entrance(cpus))
}

/// Returns the file by which a process enters its pool or group, if it has one and the backend makes it. Otherwise
/// returns the file of its CPU's partition.
fn entrance(run: &Run, load: &Placed) -> Result<Option<File>, NodeError> {
    match (&run.pools, load.pool(), &run.groups, load.server()) {
        (Some(pools), Some(pool), ..) => pools.entrance(pool),
        (.., Some(groups), Some(group)) => groups.entrance(group),
        _ => partition(run, &CpuSet::from_iter(load.cpu)),
    }
}

/// Returns how many execution times a process of a task draws: one per record. The number is the same in every process
/// of the task, so job k is the same in each. Without records the times repeat after a while.
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

/// Returns the command of this program as a built-in workload.
fn builtin(verb: &str, spec: &impl serde::Serialize) -> Result<Program, NodeError> {
    let spec = serde_json::to_string(spec)
        .map_err(|error| NodeError::System { what: "writing a workload's specification", source: error.into() })?;
    Ok(Program::new([SELF, verb, &spec]))
}
