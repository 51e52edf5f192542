//! The steps of a change, each of which waits for nothing: until new processes are ready, until the kernel has the table, and
//! until all CPUs have changed to it.

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

/// Something that tells nobody when it is done is looked at again after at least so long.
const LOOK_LEAST: Duration = Duration::from_micros(100);
/// And after at most so long.
const LOOK_MOST: Duration = Duration::from_millis(10);
/// From the placing of a new thread until it sleeps where it was placed.
const SETTLE: Duration = Duration::from_millis(2);
/// The table is staged at least so long before the end of a cycle, or half a cycle: time to bind new threads.
const MARGIN: Duration = Duration::from_millis(5);
/// Into the next cycle, where that margin is over.
const INTO_CYCLE: Duration = Duration::from_micros(50);

pub fn await_ready(change: &mut Change, run: &Run, since: Instant) -> Result<Step, NodeError> {
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
            change.stage = Stage::Settling { until: staging_instant(run, now + SETTLE)? };
            Ok(Step::Wait(now))
        }
    }
}

/// Who sleeps is woken, to fall asleep where it may run now: only there it can be bound.
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

/// Hands the table to the kernel; from here on the change is made. Where it needs none, it is made at once.
pub fn stage_table(
    change: &mut Change,
    run: &mut Run,
    epoch: Instant,
    leaving: &mut Leaving,
) -> Result<Step, NodeError> {
    // They may have ended since.
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
    change.stage = Stage::Staged { since: sys::now(), at, former_ns: grid.epoch_ns };
    // Nothing comes first: the instant is near.
    change.unbound = change.difference.names(Kind::Task, Fate::Added).map(str::to_string).collect();
    bind_new(table, &change.tasks, &mut change.unbound, at, &mut change.remarks);
    if let Some(pools) = &mut run.pools {
        let is_new = |name: &str| change.difference.fate(Kind::Pool, name) == Some(Fate::Added);
        let told = pools.remarks().len();
        let bound = pools.bind_kernel_threads(&change.other.plan, table, &|pool| is_new(&pool.name));
        change.remarks.extend_from_slice(&pools.remarks()[told..]);
        change.remarks.extend(bound.err().map(|error| error.with_reason()));
    }
    Ok(Step::Staged)
}

/// A thread of the kernel confirms the change soon after its instant.
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

/// When to look again at something that is awaited since an instant. The supervisor comes before those that it waits
/// for: where they are slow, or a look is, it leaves them ever more time.
fn next_look(now: Instant, since: Instant) -> Instant {
    let waited = Duration::from_nanos((now - since).as_nanos() / 4);
    now + waited.clamp(LOOK_LEAST, LOOK_MOST)
}

/// Binds the threads of those of the children that are named, and lets them go. Named stay those that have to be tried
/// again; that one cannot be bound is remarked, and is as if it had ended.
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
            // It is begun anew.
            return true;
        }
        match table.bind(child) {
            Ok(()) => {
                child.block.publish(epoch);
                false
            }
            // Whoever began it anew did it.
            Err(error) if error.errno() == Some(libc::EBUSY) => false,
            // It fell asleep on another CPU, and will do so on its own after this.
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

/// The first instant from one on at which enough of the running cycle is left.
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
        // Before its first cycle.
        assert_eq!([at(-4000, 20_000), at(-15_000, 20_000)], [50, -15_000]);
    }

    #[test]
    fn looks_become_rarer() {
        let at = |us: i64| Instant::from_nanos(us * 1000);
        let looks = [at(1000), at(5000), at(1_001_000)].map(|now| (next_look(now, at(1000)) - now).as_nanos() / 1000);
        assert_eq!(looks, [100, 1000, 10_000]);
    }
}
