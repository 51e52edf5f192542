//! The slots of groups: their places in the gate list, the sum test, and the gate of their class.
//!
//! A plan has no offset for a slot that leaves it to the planner. The gate list shows it: the class of a slot is open in
//! its slots only.

use std::collections::BTreeSet;

use macrotick_model::{Duration, Network, Plan};

use super::ports::Side;
use crate::network::{Gates, NetworkViolation as Violation, Slot};

/// The most offsets that the search for the slots of a class tries.
const TRIES: usize = 100_000;

/// Checks the slots of an interface, and returns those with a place.
pub(super) fn check(plan: &Plan, network: &Network, side: &Side, found: &mut Vec<Violation>) -> Vec<Slot> {
    let slots = slots_of(plan, network, side, found);
    if !slots.is_empty() && crate::network::slot_values(&side.punctual, &slots, found) {
        let shortest = side.interface.shortest_frame_time();
        crate::network::own_slots(&side.punctual, &slots, plan.cycle, shortest, found);
    }
    slots
}

/// Returns the slots of an interface with their offsets.
pub(crate) fn slots_of(plan: &Plan, network: &Network, side: &Side, found: &mut Vec<Violation>) -> Vec<Slot> {
    let here = |slot: &&macrotick_model::Slot| {
        let valid = slot.period > Duration::ZERO && plan.cycle.is_multiple_of(slot.period);
        valid && network.interface_of(slot).is_some_and(|one| one.name == side.interface.name)
    };
    let described: Vec<&macrotick_model::Slot> = network.slots.iter().filter(here).collect();
    let classes: BTreeSet<&str> = described.iter().map(|slot| slot.class.as_str()).collect();
    let mut slots = Vec::new();
    for class in classes {
        let own: Vec<&macrotick_model::Slot> = described.iter().filter(|slot| slot.class == class).copied().collect();
        match placed(network, side, class, &own) {
            Some(placed) => slots.extend(placed),
            None => found.extend(own.iter().filter(|slot| slot.offset.is_none()).map(|slot| Violation::SlotUnplaced {
                interface: side.interface.name.clone(),
                group: slot.group.clone(),
                class: slot.class.clone(),
                period: slot.period,
                length: slot.length,
            })),
        }
    }
    slots
}

/// Finds offsets for the slots of one class, so that its gate is open in all of them and they do not overlap. Returns
/// slots with offsets as they are.
fn placed(network: &Network, side: &Side, class: &str, slots: &[&macrotick_model::Slot]) -> Option<Vec<Slot>> {
    let number = network.class_names().position(|name| name == class)?;
    let gates = side.punctual.gates.as_ref()?;
    let slot = |slot: &macrotick_model::Slot, offset| Slot {
        group: slot.group.clone(),
        class: slot.class.clone(),
        period: slot.period,
        offset,
        length: slot.length,
    };
    let given = slots.iter().filter_map(|one| Some(slot(one, one.offset?)));
    let mut placed: Vec<Slot> = given.collect();
    let mut open: Vec<Slot> =
        slots.iter().filter(|one| one.offset.is_none()).map(|one| slot(one, Duration::ZERO)).collect();
    // The ones with the fewest possible places come first.
    open.sort_by_key(|slot| (slot.period, std::cmp::Reverse(slot.length)));
    let mut tries = TRIES;
    search(gates, number, &mut placed, &open, &mut tries).then_some(placed)
}

/// Places the rest of the slots, one after the other.
fn search(gates: &Gates, class: usize, placed: &mut Vec<Slot>, rest: &[Slot], tries: &mut usize) -> bool {
    let Some((next, rest)) = rest.split_first() else { return true };
    for offset in candidates(gates, class, placed, next.period.as_nanos()) {
        if *tries == 0 {
            return false;
        }
        *tries -= 1;
        let slot = Slot { offset: Duration::from_nanos(offset), ..next.clone() };
        if !is_open(gates, class, &slot) || placed.iter().any(|other| overlap(other, &slot)) {
            continue;
        }
        placed.push(slot);
        if search(gates, class, placed, rest, tries) {
            return true;
        }
        placed.pop();
    }
    false
}

/// Returns the offsets that a slot can have: where a window starts, or where another slot ends.
fn candidates(gates: &Gates, class: usize, placed: &[Slot], period: i64) -> BTreeSet<i64> {
    // Something that repeats after `step` has this many different places in the period.
    let shifts = |step: Duration| {
        let places = Duration::from_nanos(period) / step.gcd(Duration::from_nanos(period));
        (0..places).map(move |number| number * step.as_nanos())
    };
    let starts = gates.windows(class).flat_map(|(start, _)| shifts(gates.cycle()).map(move |shift| start + shift));
    let ends = placed.iter().flat_map(|slot| {
        let end = slot.offset.as_nanos() + slot.length.as_nanos();
        shifts(slot.period).map(move |shift| end + shift)
    });
    starts.chain(ends).map(|at| at.rem_euclid(period)).collect()
}

/// Whether the gate is open in all occurrences of the slot. Their places in the list repeat.
fn is_open(gates: &Gates, class: usize, slot: &Slot) -> bool {
    let (cycle, period) = (gates.cycle(), slot.period);
    let Some(span) = cycle.lcm(period) else { return false };
    let within = |at: i64| {
        let inside = |(start, end): (i64, i64)| {
            (at - start).rem_euclid(cycle.as_nanos()) + slot.length.as_nanos() <= end - start
        };
        gates.always(class) || gates.windows(class).any(inside)
    };
    (0..span / period).all(|number| within(slot.offset.as_nanos() + number * period.as_nanos()))
}

/// Whether two slots ever overlap: their distance takes all values of one remainder modulo the common divisor.
fn overlap(one: &Slot, other: &Slot) -> bool {
    let divisor = one.period.gcd(other.period).as_nanos();
    let after = |from: &Slot, to: &Slot| (to.offset.as_nanos() - from.offset.as_nanos()).rem_euclid(divisor);
    after(one, other) < one.length.as_nanos() || after(other, one) < other.length.as_nanos()
}
