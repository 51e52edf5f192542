//! Gate lists for the windows of the CPUs.
//!
//! A frame is ready at the end of the windows of the sender's job (`frames.rs`). Each interface with planned gates has a
//! circle of one cycle (`circle.rs`). On it, the synthesis takes, in this order:
//!
//! 1. the slots of the class `sync`, in the sync windows of the tables,
//! 2. the slots of groups with an offset (`slots.rs`),
//! 3. an interval for each frame of a flow, from the instant at which the frame is ready. Frames with the least slack
//!    come first. An interval has time for all frames of its class that can be in the queue then (`queues.rs`). It serves
//!    all of them that are ready when it begins. A frame that crosses several interfaces has one interval on each, one
//!    after the other,
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
mod joins;
mod limits;
mod list;
mod place;
mod queues;
mod rooms;
mod slots;
mod spread;
mod thread;

#[cfg(test)]
mod tests;

use macrotick_model::{GateList, Gates, Interface, Network, Plan, System};

pub use error::{GateError, Late, LateFrame};

use crate::error::PlanError;
use crate::options::Clock;
use joins::Joins;
use limits::Limits;
use place::Placement;
use rooms::Rooms;
use spread::{Instants, Spread};

/// Makes a plan with gate lists. `solve` makes the plan of a system without them.
///
/// A receiver must not start before its frame arrives. If it would, it is planned again with a later earliest start, as
/// far as its deadline allows. The sender keeps its windows meanwhile (`limits.rs`). If that is not enough, other windows
/// leave room for the thread that opens the gate (`rooms.rs`). At last, all senders end before instants at which the links
/// of their frames are free (`spread.rs`). Windows that are given do not move: then `may_move` is false.
pub(crate) fn with_gates(
    system: &System,
    may_move: bool,
    clock: &Clock,
    solve: impl Fn(&System) -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    let bare = thread::without_added(system);
    let system = &bare;
    let Some(network) = &system.network else { return solve(system) };
    let (mut limits, mut rooms) = (Limits::default(), Rooms::default());
    let mut spread = Spread::default();
    let mut refused: Option<(Plan, GateError)> = None;
    // Each turn moves one receiver or makes one room, so a few turns for each flow are enough. They begin again when all
    // flows have rooms, and when their senders are spread. This ends every search.
    for _ in 0..=(9 + 3 * Spread::SHARES.len()) * network.flows.len() + 1 {
        if refused.is_some() && clock.is_over() {
            break;
        }
        match solve(&rooms.apply(limits.apply(system))) {
            Ok(mut plan) => {
                rooms.remove(&mut plan);
                limits::restore(&mut plan.system, system);
                let error = match synthesis(&mut plan, network, spread.instants()) {
                    Ok(()) => return Ok(plan),
                    Err(error) if !may_move => return Err(PlanError::Gates(error)),
                    Err(error) => error,
                };
                let is_free = rooms.is_empty() && spread.instants().is_none();
                let put_off = error.later().filter(|later| limits.put_off(&plan, later));
                if let Some(later) = &put_off {
                    rooms.forget(&later.receiver);
                }
                let goes_on = put_off.is_some() || rooms.add(&plan, &mut limits, &error);
                // The reason to state is one without rooms or other ends of senders, which the user does not see.
                if is_free || refused.is_none() {
                    refused = Some((plan, error));
                }
                if goes_on {
                    continue;
                }
            }
            Err(error) if refused.is_none() => return Err(error),
            // With the receivers moved, or with rooms, there is no table.
            Err(_) => {}
        }
        let Some((plan, error)) = &refused else { break };
        if rooms.add_all(plan, error) {
            limits = Limits::default();
            continue;
        }
        match spread.next(plan, network, error, clock) {
            Some(next) => limits = next,
            None => break,
        }
    }
    Err(PlanError::Gates(refused.expect("every turn was refused").1))
}

/// Adds the gate lists to a plan, and the windows of the threads that open the gates.
fn synthesis(plan: &mut Plan, network: &Network, instants: Option<&Instants>) -> Result<(), GateError> {
    let mut joins = Joins::default();
    let (lists, placed) = loop {
        let placed = place::place(plan, network, instants, &joins)?;
        let lists = lists(network, &placed, &joins);
        // Longer gaps between intervals stay open, until no more can.
        let longer =
            lists.iter().filter_map(|list| list.as_ref().err()).filter(|error| joins.lengthen(&placed, error)).count();
        if longer == 0 {
            break (lists.into_iter().collect::<Result<Vec<GateList>, _>>()?, placed);
        }
    };
    thread::check(plan, &placed.threads)?;
    plan.gates = lists;
    thread::add(plan, placed.threads);
    Ok(())
}

/// Returns the gate lists of all interfaces with gates.
fn lists(network: &Network, placed: &Placement, joins: &Joins) -> Vec<Result<GateList, GateError>> {
    let of = |interface: &Interface| match interface.gates.as_ref()? {
        Gates::Given(entries) => {
            let cycle = entries.iter().map(|entry| entry.length).sum();
            Some(Ok(GateList { interface: interface.name.clone(), cycle, entries: entries.clone() }))
        }
        Gates::Planned => {
            let (circle, join) = (placed.circle(&interface.name), joins.of(&interface.name));
            Some(list::list(network, interface, circle, join))
        }
    };
    network.interfaces.iter().filter_map(of).collect()
}
