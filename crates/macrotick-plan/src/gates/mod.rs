//! Gate lists for the windows of the CPUs.
//!
//! A frame is ready at the end of the windows of the sender's job (`frames.rs`). Each interface with planned gates has a
//! circle of one cycle (`circle.rs`). On it, the synthesis takes, in this order:
//!
//! 1. the slots of the class `sync`, in the sync windows of the tables,
//! 2. the slots of groups with an offset (`slots.rs`),
//! 3. an interval for each frame of a flow, from the instant at which the frame is ready. Frames with the least slack
//!    come first, and frames of one class in the order in which they are ready. A frame that crosses several interfaces
//!    has one interval on each, one after the other,
//! 4. the slots of groups without an offset,
//! 5. the frames of groups with slots: they leave in the slots.
//!
//! A class with intervals of its own on an interface is closed at all other times. The other classes share the rest,
//! and are closed for the time of their longest frame before each interval (`list.rs`).
//!
//! With a lead, a kernel thread opens the gates. It gets a window of the CPU's table around each interval (`thread.rs`).

mod circle;
mod error;
mod frames;
mod list;
mod place;
mod slots;
mod thread;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use macrotick_model::{Duration, GateList, Gates, Network, Plan, System};

pub use error::{GateError, Late};

use crate::demand::round_up;
use crate::error::PlanError;

/// Makes a plan with gate lists. `solve` makes the plan of a system without them.
///
/// If a frame arrives after the start of the receiver's window, the receiver is planned again with a later earliest
/// start. This goes as far as the receiver's deadline allows. Windows that are given do not move: then `may_move` is
/// false.
pub(crate) fn with_gates(
    system: &System,
    may_move: bool,
    solve: impl Fn(&System) -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    let bare = thread::without_added(system);
    let system = &bare;
    let Some(network) = &system.network else { return solve(system) };
    let mut earliest: BTreeMap<String, Duration> = BTreeMap::new();
    let mut refused: Option<GateError> = None;
    // Each turn moves one receiver, so a few turns for each flow are enough; a search without an end is not possible.
    for _ in 0..=4 * network.flows.len() {
        let mut plan = match solve(&moved(system, &earliest)) {
            Ok(plan) => plan,
            // With the receivers moved, there is no table. The reason is the frame that made this necessary.
            Err(error) => return Err(refused.map_or(error, PlanError::Gates)),
        };
        restore(&mut plan.system, system);
        let error = match synthesis(&mut plan, network) {
            Ok(()) => return Ok(plan),
            Err(error) => error,
        };
        let later = error.later().filter(|_| may_move).and_then(|later| put_off(system, &earliest, later));
        let Some((receiver, start)) = later else { return Err(PlanError::Gates(error)) };
        earliest.insert(receiver, start);
        refused = Some(error);
    }
    Err(PlanError::Gates(refused.expect("every turn was refused")))
}

/// Returns the receiver and its next earliest start, counted from its release, if its deadline leaves time for it.
fn put_off(system: &System, earliest: &BTreeMap<String, Duration>, later: error::Later) -> Option<(String, Duration)> {
    let task = system.task(&later.receiver).filter(|task| task.supply.is_windows())?;
    let release = task.offset.unwrap_or(Duration::ZERO);
    let within = Duration::from_nanos((later.at - release).as_nanos().rem_euclid(task.period.as_nanos()));
    let start = round_up(within, system.macrotick);
    let is_later = earliest.get(&task.name).is_none_or(|former| *former < start);
    let latest = match (task.offset, task.jitter) {
        (Some(_), Some(jitter)) => jitter.min(task.deadline - task.wcet),
        // The solver chooses the release, and the deadline counts from there.
        (None, Some(_)) => task.period - task.wcet,
        _ => task.deadline - task.wcet,
    };
    (is_later && start <= latest).then(|| (task.name.clone(), start))
}

/// Returns the system with later releases. Every window that fits there also fits the description.
fn moved(system: &System, earliest: &BTreeMap<String, Duration>) -> System {
    let mut moved = system.clone();
    for task in &mut moved.tasks {
        let Some(&start) = earliest.get(&task.name) else { continue };
        match (task.offset, task.jitter) {
            (None, Some(_)) => task.deadline = task.deadline.min(task.period - start),
            (_, jitter) => {
                task.deadline -= start;
                task.jitter = jitter.map(|jitter| jitter - start);
            }
        }
        task.offset = Some(task.offset.unwrap_or(Duration::ZERO) + start);
    }
    moved
}

/// Takes the later releases back.
fn restore(planned: &mut System, system: &System) {
    for (task, original) in planned.tasks.iter_mut().zip(&system.tasks) {
        task.offset = original.offset;
        task.deadline = original.deadline;
        task.jitter = original.jitter;
    }
}

/// Adds the gate lists to a plan, and the windows of the threads that open the gates.
fn synthesis(plan: &mut Plan, network: &Network) -> Result<(), GateError> {
    let placed = place::place(plan, network)?;
    let mut lists = Vec::new();
    for interface in &network.interfaces {
        match &interface.gates {
            None => {}
            Some(Gates::Given(entries)) => {
                let cycle = entries.iter().map(|entry| entry.length).sum();
                lists.push(GateList { interface: interface.name.clone(), cycle, entries: entries.clone() });
            }
            Some(Gates::Planned) => lists.push(list::list(network, interface, placed.circle(&interface.name))?),
        }
    }
    plan.gates = lists;
    thread::add(plan, placed.threads);
    Ok(())
}
