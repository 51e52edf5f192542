//! The judge of gates: it sends the frames of all flows through the gate lists of a plan.
//!
//! `docs/explanation/frames.md` explains the rules. This module makes the ports of the plan's interfaces (`ports`) and
//! the messages of its flows (`messages`), and simulates them over all interfaces on their ways (`course`). It compares
//! each frame with its deadline and with the receiver's window (`arrivals`). Further rules hold for frames that nothing
//! describes: windows that belong to one class (`exclusive`), slots (`slots`), and the windows of the threads that open
//! gates (`thread`).

mod arrivals;
mod course;
mod exclusive;
mod messages;
mod ports;
mod slots;
mod thread;

use std::collections::BTreeMap;

use macrotick_model::{Network, Plan};

use crate::jobs::{Job, Served};
use crate::network::{InterfaceVerdict, NetworkViolation};
use crate::{Verdict, Violation};

pub(crate) use ports::{is_used, sides};

pub(crate) use slots::slots_of;

/// Returns the slots of groups in the gates of a plan, with the interface of each. A slot without a place, or on an
/// interface with gates that cannot be used, is left out.
pub fn placed_slots(plan: &Plan) -> Vec<(String, crate::network::Slot)> {
    let Some(network) = &plan.system.network else { return Vec::new() };
    let sides = ports::sides(plan, network, &mut Vec::new());
    let of_side = |side: &ports::Side| {
        let slots = slots_of(plan, network, side, &mut Vec::new());
        slots.into_iter().map(|slot| (side.interface.name.clone(), slot)).collect::<Vec<_>>()
    };
    sides.iter().flatten().flat_map(of_side).collect()
}

/// Judges the gates and the flows of a plan. `jobs` has the jobs of each task, in the order of the system.
pub(crate) fn check(plan: &Plan, jobs: &[Vec<Job>], served: &BTreeMap<&str, Served>, verdict: &mut Verdict) {
    let mut found = Vec::new();
    match &plan.system.network {
        Some(network) => judge(plan, network, jobs, served, verdict, &mut found),
        None => found.extend(plan.gates.iter().map(ports::unknown)),
    }
    verdict.violations.extend(found.into_iter().map(|violation| Violation::Network { violation }));
}

fn judge(
    plan: &Plan,
    network: &Network,
    jobs: &[Vec<Job>],
    served: &BTreeMap<&str, Served>,
    verdict: &mut Verdict,
    found: &mut Vec<NetworkViolation>,
) {
    let sides = ports::sides(plan, network, found);
    for side in sides.iter().flatten().filter(|side| side.interface.is_planned()) {
        exclusive::check(plan, network, side, found);
        thread::check(plan, side, served, found);
    }
    let mut shares = BTreeMap::new();
    for side in sides.iter().flatten() {
        let slots = slots::check(plan, network, side, found);
        let share = |slot: &crate::network::Slot| slot.length.as_nanos() as f64 / slot.period.as_nanos() as f64;
        shares.insert(side.interface.name.as_str(), slots.iter().map(share).sum::<f64>());
    }
    let flows = messages::flows(plan, network, jobs, served);
    let judged = arrivals::check(plan, &sides, &flows, found);
    verdict.flows = judged.flows;
    verdict.interfaces = judged.interfaces;
    for InterfaceVerdict { name, slots, .. } in &mut verdict.interfaces {
        *slots = shares.get(name.as_str()).copied().unwrap_or(0.0);
    }
}
