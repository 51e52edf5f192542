//! The start of a run: epoch, policies and affinities. All processes start before the epoch.

use macrotick_host::budgets::next_refill;
use macrotick_host::sys::{self, Standing, Tid};
use macrotick_host::{clock, HostFailure};
use macrotick_model::{Backend, CpuSet, Duration, Instant, Load, Observation, Placed};

use crate::backend::budget_groups::BudgetGroups;
use crate::backend::dispatcher::Dispatcher;
use crate::backend::kernel::InstalledTable;
use crate::block::abi;
use crate::deployment::standing::process_standing;
use crate::deployment::TaskDeployment;
use crate::error::NodeError;
use crate::process::child::{await_phase, Child};
use crate::process::signals::Signals;
use crate::run::resources::Run;

/// Every epoch is a whole multiple of this time, and therefore of the kernel's tick. With groups it is the first refill
/// from such an instant on.
const EPOCH_GRID: Duration = Duration::from_millis(100);
/// The time between the last task's report that it waits and the release of the processes of groups and load.
const SETTLE: Duration = Duration::from_millis(2);

/// Returns the first refill from an instant on, if there are groups. Tables start with a refill of the groups' budgets:
/// the admission relies on it.
fn at_refill(run: &Run, epoch: Instant) -> Result<Instant, NodeError> {
    run.groups.as_ref().map_or(Ok(epoch), |_| Ok(next_refill(epoch)?))
}

/// Sets epoch, policies and affinities, and releases all processes. Returns the epoch, which is in the future.
pub fn start(run: &mut Run, signals: &Signals, delay: Duration) -> Result<Instant, NodeError> {
    let mut epoch = match run.discipline {
        Some(_) => clock::choose_epoch(run.deployment.plan.cycle, delay),
        None => at_refill(run, choose_epoch(sys::now(), delay))?,
    };
    place_tasks(run)?;
    if let Some(table) = &run.table {
        let each = run.tasks.iter().zip(&run.deployment.tasks).filter(|(_, deployed)| deployed.is_windowed());
        each.map(|(child, _)| child).try_for_each(|child| bind(table, child, run.options.ready_limit))?;
        if let Some(pools) = &mut run.pools {
            pools.bind_kernel_threads(&run.deployment.plan, table, run.gates.as_ref(), &|_| true)?;
        }
    }
    begin_gates(run, epoch, delay)?;
    if let Some(table) = &run.table {
        epoch = start_table(run, table, epoch, delay)?;
    }
    if run.deployment.backend == Backend::User {
        for table in run.deployment.plan.tables.iter().filter(|table| !table.windows.is_empty()) {
            run.dispatchers.push(Dispatcher::start(table, run.deployment.plan.cycle, epoch, &run.tasks)?);
        }
    }
    run.tasks.iter().for_each(|child| child.block.publish(epoch));
    await_phase(&run.tasks, abi::PHASE_WAITING, run.options.ready_limit, signals)?;
    // The tasks report it right before they wait: let the last one fall asleep.
    sys::sleep(SETTLE);
    if let Some(trace) = &run.trace {
        trace.start().map_err(NodeError::Trace)?;
    }
    release_processes(run, epoch)?;
    begin_accounts(run, epoch)?;
    let late = sys::now() - epoch;
    if late >= Duration::ZERO {
        return Err(NodeError::EpochPassed { late, delay });
    }
    Ok(epoch)
}

/// Lets the gate lists start at the epoch, which is on the clock of the table.
fn begin_gates(run: &Run, epoch: Instant, delay: Duration) -> Result<(), NodeError> {
    let Some(gates) = &run.gates else { return Ok(()) };
    let begun = gates.begin(epoch.as_nanos());
    match Duration::from_nanos(gates.now() - epoch.as_nanos()) {
        late if begun.is_err() && late >= Duration::ZERO => Err(NodeError::EpochPassed { late, delay }),
        _ => begun,
    }
}

/// Starts the table at an epoch on its clock. Returns the epoch on `CLOCK_MONOTONIC`.
fn start_table(run: &Run, table: &InstalledTable, epoch: Instant, delay: Duration) -> Result<Instant, NodeError> {
    let in_force = table.start(epoch)?;
    if in_force != epoch {
        return Err(NodeError::EpochPassed { late: in_force - epoch, delay });
    }
    match run.discipline {
        Some(_) => Ok(epoch - Duration::from_nanos(table.grid()?.offset_ns)),
        None => Ok(epoch),
    }
}

/// Starts the counters of pools and groups, shortly before the epoch.
fn begin_accounts(run: &mut Run, epoch: Instant) -> Result<(), NodeError> {
    if run.pools.is_none() && run.groups.is_none() {
        return Ok(());
    }
    if let Some(pools) = &mut run.pools {
        pools.note_threads(&run.deployment.plan.system, run.groups.as_ref());
    }
    sys::sleep_until(epoch - Observation::COUNTED_BEFORE);
    if let (Some(pools), Some(table)) = (&mut run.pools, &run.table) {
        pools.begin(&run.deployment.plan.system, run.groups.as_ref(), table)?;
    }
    run.groups.as_mut().map_or(Ok(()), BudgetGroups::begin)
}

fn place_tasks(run: &Run) -> Result<(), NodeError> {
    run.tasks.iter().zip(&run.deployment.tasks).try_for_each(|(child, deployed)| place_task(child, deployed))
}

/// Places and releases the processes one after the other. A process with a high priority that never sleeps cannot keep
/// the runner from releasing the next one.
fn release_processes(run: &Run, epoch: Instant) -> Result<(), NodeError> {
    let loads = run.deployment.processes.iter().map(|deployed| &deployed.process);
    let each = loads.flat_map(|load| std::iter::repeat_n(load, load.count as usize));
    for (child, load) in run.processes.iter().zip(each) {
        place_process(run, child, load)?;
        child.block.publish(epoch);
    }
    Ok(())
}

/// Sets the CPUs and the policy of a process that is ready.
pub fn place_process(run: &Run, child: &Child, load: &Placed) -> Result<(), NodeError> {
    // A pool has a CPU and an order of its own. The keeper of a container sets the CPU and the policy of the container.
    let is_container = matches!(load.run, Load::Container(_));
    if is_container || load.pool().is_some() && run.pools.is_some() {
        return Ok(());
    }
    place(child, child.pid(), &CpuSet::from_iter(load.cpu), process_standing(load.policy))
}

/// Binds a task's thread, which is pinned. A thread that fell asleep on another CPU is woken, and falls asleep again on
/// the CPU where it may run.
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

/// Sets the CPUs and the policy of a task's thread, which is ready.
pub fn place_task(child: &Child, deployed: &TaskDeployment) -> Result<(), NodeError> {
    let anywhere = CpuSet::default();
    let cpus = if deployed.pinned { &deployed.cpus } else { &anywhere };
    place(child, child.joined_thread()?, cpus, deployed.standing)
}

/// Sets the CPUs and the policy of a thread. Without CPUs, the affinity stays unchanged.
fn place(child: &Child, tid: Tid, cpus: &CpuSet, standing: Standing) -> Result<(), NodeError> {
    if !cpus.is_empty() {
        let failed = |source| NodeError::Pin { name: child.name.clone(), cpus: cpus.clone(), source };
        sys::pin(tid, cpus.as_slice()).map_err(failed)?;
    }
    let refused = |source| HostFailure::Policy { name: child.name.clone(), standing, source };
    Ok(sys::set_standing(tid, standing).map_err(refused)?)
}

/// Returns the first whole multiple of the grid that is at least `delay` away.
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
