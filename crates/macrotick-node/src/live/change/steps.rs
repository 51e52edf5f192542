//! The steps of a change: wait until new processes are ready, until the kernel has the table, and until all CPUs have
//! changed to it. Each call returns at once.

use macrotick_host::sys;
use macrotick_model::{Duration, Instant, Placed};
use macrotick_uapi::state;

use super::exchange;
use super::state::{Change, Stage, Step};
use crate::backend::kernel::InstalledTable;
use crate::backend::lead::length;
use crate::block::abi;
use crate::error::{ChangeFault, NodeError};
use crate::live::difference::{Fate, Kind};
use crate::live::leaving::Leaving;
use crate::process::child::{find_late, not_ready, Child};
use crate::run::resources::Run;
use crate::run::start::{place_process, place_task};

/// The shortest interval between two checks of a state that no event reports.
const LOOK_LEAST: Duration = Duration::from_micros(100);
/// The longest interval.
const LOOK_MOST: Duration = Duration::from_millis(10);
/// The time from placing a new thread until it sleeps on its CPU.
const SETTLE: Duration = Duration::from_millis(2);
/// The least time between staging the table and the end of a cycle: time to bind new threads. In a short cycle it is
/// half the cycle.
const MARGIN: Duration = Duration::from_millis(5);
/// The time to send new gate lists to the kernel.
const SENDING: Duration = Duration::from_millis(10);
/// The offset in the next cycle, if the margin of this cycle is over.
const INTO_CYCLE: Duration = Duration::from_micros(50);

pub fn await_ready(change: &mut Change, run: &Run, epoch: Instant, since: Instant) -> Result<Step, NodeError> {
    let late = match find_late(&change.tasks, abi::PHASE_READY)? {
        None => find_late(&change.processes, abi::PHASE_READY)?,
        late => late,
    };
    let now = sys::now();
    match late {
        Some(late) if now - since > run.options.ready_limit => {
            Err(not_ready(late, abi::PHASE_READY, run.options.ready_limit))
        }
        Some(_) => Ok(Step::Wait(next_look(now, since))),
        None => {
            place(change, run)?;
            let staging = staging_instant(run, now + SETTLE)?;
            change.stage = Stage::Settling { until: send_gates(change, run, epoch, staging)? };
            Ok(Step::Wait(now))
        }
    }
}

/// Sends the new gate lists, if there are any. They change at the end of the cycle in which the table is staged, as the
/// table does. Returns the instant of the staging, at `from` or later.
fn send_gates(change: &mut Change, run: &Run, epoch: Instant, from: Instant) -> Result<Instant, NodeError> {
    let Some(gates) = run.gates.as_ref().filter(|_| !change.difference.gates.is_empty()) else { return Ok(from) };
    let (start, offset_ns) = match &run.table {
        Some(table) => {
            let grid = table.grid()?;
            (Instant::from_nanos(grid.epoch_ns as i64 - grid.offset_ns), grid.offset_ns)
        }
        None => (epoch, 0),
    };
    let cycle = run.deployment.plan.cycle;
    let staging = early_in_cycle(from.max(sys::now() + SENDING), start, cycle);
    let at_ns = end_of_cycle(staging, start, cycle).as_nanos() + offset_ns;
    change.gates = Some(gates.change(&change.other.plan, run.deployment.backend, at_ns)?);
    Ok(staging)
}

/// Returns the end of the cycle that contains an instant.
fn end_of_cycle(at: Instant, epoch: Instant, cycle: Duration) -> Instant {
    at + cycle - Duration::from_nanos((at - epoch).as_nanos().rem_euclid(cycle.as_nanos()))
}

/// Places the new processes. A sleeping thread is woken, and falls asleep on the CPU where it may run. It can be bound
/// only there.
fn place(change: &Change, run: &Run) -> Result<(), NodeError> {
    for child in &change.tasks {
        let deployed = change.other.tasks.iter().find(|deployed| deployed.task.name == child.name);
        deployed.map_or(Ok(()), |deployed| place_task(child, deployed))?;
        child.block.nudge();
    }
    let mut children = change.processes.iter();
    for load in fresh_processes(change) {
        children.by_ref().take(load.count as usize).try_for_each(|child| place_process(run, child, load))?;
    }
    Ok(())
}

fn fresh_processes(change: &Change) -> impl Iterator<Item = &Placed> {
    let loads = change.other.processes.iter().map(|deployed| &deployed.process);
    loads.filter(|load| change.difference.is_fresh(Kind::Process, &load.name))
}

/// Gives the table to the kernel; from here on the change is certain. If the kernel needs no new table, the change is
/// made at once.
pub fn stage_table(
    change: &mut Change,
    run: &mut Run,
    epoch: Instant,
    leaving: &mut Leaving,
) -> Result<Step, NodeError> {
    // A process may have ended since.
    find_late(&change.tasks, abi::PHASE_READY).and(find_late(&change.processes, abi::PHASE_READY))?;
    if !run.deployment.plan.system.has_windows() {
        exchange::commit(change, run, epoch, leaving);
        return Ok(Step::Made(epoch));
    }
    let gone = || NodeError::Change(ChangeFault::TableGone);
    let table = run.table.as_ref().ok_or_else(gone)?;
    let grid = table.grid()?;
    if grid.state != state::RUNNING {
        return Err(gone());
    }
    if !change.difference.swaps && length(change.lead) == length(run.lead) {
        exchange::commit(change, run, epoch, leaving);
        return Ok(Step::Made(epoch));
    }
    let switch = table.swap(&change.other.plan, length(change.lead))?;
    let at = switch - Duration::from_nanos(grid.offset_ns);
    change.switch = Some(switch);
    if let Some(gates) = change.gates.as_ref().filter(|gates| gates.at_ns() != switch.as_nanos()) {
        let apart = Duration::from_nanos(switch.as_nanos() - gates.at_ns());
        change.remarks.push(format!("this host is too busy: the gate lists change {apart} before the table"));
    }
    change.stage = Stage::Staged { since: sys::now(), at, former_ns: grid.epoch_ns };
    // This binds the threads first: the instant is near.
    change.unbound = change.difference.names(Kind::Task, Fate::Added).map(str::to_string).collect();
    bind_new(table, &change.tasks, &mut change.unbound, at, &mut change.remarks);
    if let Some(pools) = &mut run.pools {
        let is_new = |name: &str| change.difference.fate(Kind::Pool, name) == Some(Fate::Added);
        let told = pools.remarks().len();
        let bound =
            pools.bind_kernel_threads(&change.other.plan, table, run.gates.as_ref(), &|pool| is_new(&pool.name));
        change.remarks.extend_from_slice(&pools.remarks()[told..]);
        change.remarks.extend(bound.err().map(|error| error.with_reason()));
    }
    Ok(Step::Staged)
}

/// Waits for the switch. A kernel thread confirms it soon after its instant.
pub fn await_switch(
    change: &mut Change,
    run: &mut Run,
    since: Instant,
    at: Instant,
    former_ns: u64,
    leaving: &mut Leaving,
) -> Result<Step, NodeError> {
    let gone = || NodeError::Change(ChangeFault::TableGone);
    let table = run.table.as_ref().ok_or_else(gone)?;
    bind_new(table, &change.tasks, &mut change.unbound, at, &mut change.remarks);
    let now = sys::now();
    if now < at {
        return Ok(Step::Wait(if change.unbound.is_empty() { at } else { at.min(next_look(now, since)) }));
    }
    let grid = table.grid()?;
    match grid.state == state::RUNNING {
        true if change.switch == Some(Instant::from_nanos(grid.epoch_ns as i64)) => {
            exchange::commit(change, run, at, leaving);
            Ok(Step::Made(at))
        }
        true if grid.epoch_ns == former_ns => Ok(Step::Wait(next_look(now, at))),
        _ => Err(gone()),
    }
}

pub fn bind_the_rest(change: &mut Change, run: &Run, epoch: Instant, since: Instant) -> Step {
    if let Some(table) = &run.table {
        bind_new(table, &run.tasks, &mut change.unbound, epoch, &mut change.remarks);
    }
    let now = sys::now();
    if change.unbound.is_empty() {
        return Step::Done;
    }
    if now - since < run.options.ready_limit {
        return Step::Wait(next_look(now, since));
    }
    let late = change.unbound.drain(..).map(|name| format!("task `{name}`: its thread could not be bound in time"));
    change.remarks.extend(late);
    Step::Done
}

/// Returns the instant of the next check of a state that is awaited since an instant. The supervisor has priority over
/// the processes that it waits for. If they, or a check, are slow, the intervals become longer.
fn next_look(now: Instant, since: Instant) -> Instant {
    let waited = Duration::from_nanos((now - since).as_nanos() / 4);
    now + waited.clamp(LOOK_LEAST, LOOK_MOST)
}

/// Binds the threads of the named children, and starts them. The names that must be tried again stay in the list. A
/// thread that cannot be bound gives a remark, and its process counts as ended.
fn bind_new(
    table: &InstalledTable,
    children: &[Child],
    unbound: &mut Vec<String>,
    epoch: Instant,
    remarks: &mut Vec<String>,
) {
    unbound.retain(|name| {
        let Some(child) = children.iter().find(|child| child.name == *name) else { return false };
        if child.block.phase() < abi::PHASE_READY {
            // The supervisor restarts it.
            return true;
        }
        match table.bind(child) {
            Ok(()) => {
                child.block.publish(epoch);
                false
            }
            // The supervisor restarted and bound it.
            Err(error) if error.errno() == Some(libc::EBUSY) => false,
            // Its thread fell asleep on another CPU, and falls asleep on its own CPU after this.
            Err(error) if error.errno() == Some(libc::EAGAIN) => {
                child.block.nudge();
                true
            }
            Err(error) => {
                remarks.push(error.with_reason());
                false
            }
        }
    });
}

/// Returns the first instant from `from` on at which enough of the running cycle is left.
fn staging_instant(run: &Run, from: Instant) -> Result<Instant, NodeError> {
    let Some(table) = &run.table else { return Ok(from) };
    let grid = table.grid()?;
    let epoch = Instant::from_nanos(grid.epoch_ns as i64 - grid.offset_ns);
    Ok(early_in_cycle(from, epoch, run.deployment.plan.cycle))
}

fn early_in_cycle(from: Instant, epoch: Instant, cycle: Duration) -> Instant {
    let since = (from - epoch).as_nanos().rem_euclid(cycle.as_nanos());
    let left = cycle - Duration::from_nanos(since);
    let margin = MARGIN.min(Duration::from_nanos(cycle.as_nanos() / 2));
    if left >= margin {
        return from;
    }
    from + left + INTO_CYCLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_staged_early_in_a_cycle() {
        let us = Duration::from_micros;
        let at = |since: i64, cycle: i64| {
            let epoch = Instant::from_nanos(1_000_000_000);
            (early_in_cycle(epoch + us(since), epoch, us(cycle)) - epoch).as_nanos() / 1000
        };
        assert_eq!([at(0, 20_000), at(15_000, 20_000), at(15_001, 20_000)], [0, 15_000, 20_050]);
        assert_eq!([at(2500, 1000), at(2501, 1000)], [2500, 3050]);
        // The instant is before the first cycle.
        assert_eq!([at(-4000, 20_000), at(-15_000, 20_000)], [50, -15_000]);
    }

    #[test]
    fn a_cycle_ends_after_each_of_its_instants() {
        let us = Duration::from_micros;
        let epoch = Instant::from_nanos(1_000_000_000);
        let end = |since: i64| (end_of_cycle(epoch + us(since), epoch, us(1000)) - epoch).as_nanos() / 1000;
        assert_eq!([end(0), end(999), end(1000), end(-1)], [1000, 1000, 2000, 0]);
    }

    #[test]
    fn looks_become_rarer() {
        let at = |us: i64| Instant::from_nanos(us * 1000);
        let looks = [at(1000), at(5000), at(1_001_000)].map(|now| (next_look(now, at(1000)) - now).as_nanos() / 1000);
        assert_eq!(looks, [100, 1000, 10_000]);
    }
}
