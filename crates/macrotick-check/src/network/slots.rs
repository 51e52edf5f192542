//! TDMA slots: the sum test, and the gates around each slot.

use std::collections::{BTreeSet, HashSet};

use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::port::{Gating, Guard, Port};
use super::violation::NetworkViolation as Violation;

/// A time in which only the frames of one group leave, again in each period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// The group, for example the one of a container.
    pub group: String,
    /// The traffic class of its frames. Several slots can have the same class.
    pub class: String,
    /// The period. The first one starts at the epoch.
    pub period: Duration,
    /// The start within the period.
    pub offset: Duration,
    /// The length.
    pub length: Duration,
}

/// One occurrence of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub begin: i64,
    pub end: i64,
    /// The place of the slot in the input.
    pub slot: usize,
}

/// An interval `[begin, end)`.
type Span = (i64, i64);

/// Checks the values of the slots and the sum test of the container paper (section 3.2). By this test, the sum of the
/// slots is at most the cycle. Returns whether the slots can be laid out.
pub(crate) fn values(port: &Port, slots: &[Slot], violations: &mut Vec<Violation>) -> bool {
    let before = violations.len();
    for slot in slots {
        let (interface, group) = (port.name.clone(), slot.group.clone());
        let Slot { offset, length, period, .. } = *slot;
        let within = (Duration::ZERO..period).contains(&offset) && length > Duration::ZERO && length <= period;
        if !within {
            violations.push(Violation::SlotRange { interface, group, offset, length, period });
        } else if port.classes.iter().all(|class| class.name != slot.class) {
            violations.push(Violation::SlotClass { interface, group, class: slot.class.clone() });
        }
    }
    violations.len() == before
}

/// Returns the occurrences of all slots that start from the epoch to `span`, a multiple of their periods, in ascending
/// order. A slot that reaches into its next period also has the occurrence before the epoch.
pub(super) fn lay_out(slots: &[Slot], span: i64) -> Vec<Occurrence> {
    let mut occurrences: Vec<Occurrence> = Vec::new();
    for (slot, Slot { period, offset, length, .. }) in slots.iter().enumerate() {
        let (period, offset, length) = (period.as_nanos(), offset.as_nanos(), length.as_nanos());
        let start = |number| number * period + offset;
        let occurrence = |number| Occurrence { begin: start(number), end: start(number) + length, slot };
        let first = if offset + length > period { -1 } else { 0 };
        occurrences.extend((first..span / period).map(occurrence));
    }
    occurrences.sort_by_key(|occurrence| (occurrence.begin, occurrence.slot));
    occurrences
}

/// Checks laid-out slots against each other and against the gates. Each pair of a slot and a class has at most one
/// violation per rule.
pub(super) fn check(
    port: &Port,
    slots: &[Slot],
    occurrences: &[Occurrence],
    span: i64,
    violations: &mut Vec<Violation>,
) {
    sum(port, slots, span, violations);
    overlaps(port, slots, occurrences, violations);
    let mut seen = HashSet::new();
    for (class, named) in port.classes.iter().enumerate() {
        let open = open_spans(port, class, span);
        let reach = reach(port, class);
        for occurrence in occurrences {
            let found = match slots[occurrence.slot].class == named.name {
                true => closed(port, slots, occurrence, &named.name, &open),
                false => foreign(port, slots, occurrence, &named.name, &open, reach),
            };
            let new = |found: &Violation| seen.insert((occurrence.slot, class, std::mem::discriminant(found)));
            violations.extend(found.filter(new));
        }
        if slots.iter().any(|slot| slot.class == named.name) {
            violations.extend(outside(port, slots, occurrences, &named.name, &open, span, 0));
        }
    }
}

/// Checks slots against each other and against the gate of their own class, over a cycle that is a multiple of their
/// periods. The gate may stay open after a slot for less than `spare`.
pub(crate) fn own(port: &Port, slots: &[Slot], cycle: Duration, spare: Duration, violations: &mut Vec<Violation>) {
    let span = cycle.as_nanos();
    let occurrences = lay_out(slots, span);
    sum(port, slots, span, violations);
    overlaps(port, slots, &occurrences, violations);
    let mut seen = HashSet::new();
    let used = |name: &str| slots.iter().any(|slot| slot.class == name);
    for (class, named) in port.classes.iter().enumerate().filter(|(_, class)| used(&class.name)) {
        let open = open_spans(port, class, span);
        for occurrence in occurrences.iter().filter(|occurrence| slots[occurrence.slot].class == named.name) {
            let found = closed(port, slots, occurrence, &named.name, &open);
            violations.extend(found.filter(|_| seen.insert(occurrence.slot)));
        }
        violations.extend(outside(port, slots, &occurrences, &named.name, &open, span, spare.as_nanos()));
    }
}

/// Returns the sum of all slots in `span`, in nanoseconds.
pub(super) fn total(slots: &[Slot], span: i64) -> i128 {
    let each = |slot: &Slot| i128::from(slot.length.as_nanos()) * i128::from(span / slot.period.as_nanos());
    slots.iter().map(each).sum()
}

fn sum(port: &Port, slots: &[Slot], span: i64, violations: &mut Vec<Violation>) {
    let sum = total(slots, span);
    if sum > i128::from(span) {
        // The cycle of the slots divides the span.
        let cycle = slots.iter().try_fold(nanos(1), |cycle, slot| cycle.lcm(slot.period)).unwrap_or(nanos(span));
        let sum = sum / i128::from(span / cycle.as_nanos());
        let sum = nanos(i64::try_from(sum).unwrap_or(i64::MAX));
        violations.push(Violation::SlotSum { interface: port.name.clone(), sum, cycle });
    }
}

fn overlaps(port: &Port, slots: &[Slot], occurrences: &[Occurrence], violations: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    // The occurrence that reaches farthest so far.
    let mut farthest: Option<&Occurrence> = None;
    for next in occurrences {
        let overlap = farthest.filter(|earlier| next.begin < earlier.end);
        if let Some(earlier) = overlap.filter(|earlier| seen.insert((earlier.slot, next.slot))) {
            violations.push(Violation::SlotOverlap {
                interface: port.name.clone(),
                group: slots[earlier.slot].group.clone(),
                begin: nanos(earlier.begin),
                end: nanos(earlier.end),
                other: slots[next.slot].group.clone(),
                start: nanos(next.begin),
            });
        }
        if farthest.is_none_or(|earlier| next.end > earlier.end) {
            farthest = Some(next);
        }
    }
}

/// Reports a slot in which the gate of its own class is not open all the time.
fn closed(port: &Port, slots: &[Slot], slot: &Occurrence, class: &str, open: &[Span]) -> Option<Violation> {
    let before = open.partition_point(|&(begin, _)| begin <= slot.begin);
    let covered = before > 0 && slot.end <= open[before - 1].1;
    (!covered).then(|| Violation::SlotClosed {
        interface: port.name.clone(),
        group: slots[slot.slot].group.clone(),
        cycle: cycle(port, slot.begin),
        begin: nanos(slot.begin),
        end: nanos(slot.end),
        class: class.to_owned(),
    })
}

/// Reports a slot in which another class can start a frame, or into which its frames reach.
fn foreign(
    port: &Port,
    slots: &[Slot],
    slot: &Occurrence,
    class: &str,
    open: &[Span],
    reach: i64,
) -> Option<Violation> {
    let (interface, group, class) = (port.name.clone(), slots[slot.slot].group.clone(), class.to_owned());
    let (number, begin) = (cycle(port, slot.begin), nanos(slot.begin));
    // The first window that ends after the start of the slot.
    let next = open.partition_point(|&(_, end)| end <= slot.begin);
    if let Some(&(start, _)) = open.get(next).filter(|&&(start, _)| start < slot.end) {
        let (end, open) = (nanos(slot.end), nanos(start.max(slot.begin)));
        return Some(Violation::SlotShared { interface, group, cycle: number, begin, end, class, open });
    }
    let &(_, close) = open.get(next.checked_sub(1)?)?;
    (close.saturating_add(reach) > slot.begin).then(|| {
        let (close, reach) = (nanos(close), nanos(close.saturating_add(reach)));
        Violation::SlotReached { interface, group, cycle: number, begin, class, close, reach }
    })
}

/// Reports the first time in which the gate of the class of a slot is open outside the slots. A time after a slot that
/// is shorter than `spare` does not count.
fn outside(
    port: &Port,
    slots: &[Slot],
    occurrences: &[Occurrence],
    class: &str,
    open: &[Span],
    span: i64,
    spare: i64,
) -> Option<Violation> {
    let own = occurrences.iter().filter(|occurrence| slots[occurrence.slot].class == class);
    let mut own = own.peekable();
    let mut last = None;
    for &(begin, end) in open {
        let (mut from, end) = (begin.max(0), end.min(span));
        while from < end {
            while own.peek().is_some_and(|slot| slot.end <= from) {
                last = own.next().map(|slot| slot.end);
            }
            let next = own.peek().map_or(span, |slot| slot.begin);
            let is_spare = last == Some(from) && next.min(end) - from < spare;
            if next > from && !is_spare {
                let until = nanos(next.min(end));
                let (interface, class, cycle) = (port.name.clone(), class.to_owned(), cycle(port, from));
                return Some(Violation::SlotOutside { interface, class, cycle, from: nanos(from), until });
            }
            from = own.peek().map_or(span, |slot| slot.end);
        }
    }
    None
}

/// Returns the times in which the gate of a class is open, from one cycle before the epoch to `span`, in ascending
/// order.
fn open_spans(port: &Port, class: usize, span: i64) -> Vec<Span> {
    let Some(gates) = port.gates.as_ref().filter(|gates| !gates.always(class)) else {
        return vec![(i64::MIN, i64::MAX)];
    };
    let cycle = gates.cycle().as_nanos();
    let starts = (-1..span / cycle).map(|number| number * cycle);
    starts.flat_map(|start| gates.windows(class).map(move |(begin, end)| (start + begin, start + end))).collect()
}

/// Returns how long after the closing of its gate a frame of a class can end, for frames of all lengths that the class
/// allows.
///
/// If the qdisc decides, this is the time of the largest budget. That is the burst of one entry that comes just before
/// the closing, to a device that has no other frames.
fn reach(port: &Port, class: usize) -> i64 {
    let Some(gates) = port.gates.as_ref() else { return 0 };
    let link = &port.link;
    let longest = port.classes[class].max_sdu.unwrap_or(u32::MAX).min(link.mtu);
    let frame = |content| link.time(link.frame_bytes(content, true)).as_nanos();
    let kernel = |content| port.counted_time(link.kernel_bytes(content));
    match (port.gating, port.guard) {
        (Gating::Link, Guard::Wire) => 0,
        // The last start is one nanosecond before the closing, or before the last instant that the guard band allows.
        (Gating::Link, Guard::None) => frame(longest) - 1,
        (Gating::Link, Guard::Kernel) => {
            (0..=longest).map(|content| frame(content) - kernel(content) - 1).max().unwrap_or(0).max(0)
        }
        (Gating::Qdisc, guard) => {
            let budget = port.counted_bytes(gates.longest(class));
            let wire = |content| link.wire_bytes(content, true);
            let bytes = |content: u32| match guard {
                Guard::Kernel => budget / link.kernel_bytes(content).max(1) * wire(content),
                _ => budget,
            };
            (0..=longest).map(|content| link.time(bytes(content)).as_nanos()).max().unwrap_or(0)
        }
    }
}

pub(super) fn cycle(port: &Port, at: i64) -> i64 {
    port.gates.as_ref().map_or(0, |gates| gates.cycle_of(macrotick_model::Instant::from_nanos(at)))
}

fn nanos(nanos: i64) -> Duration {
    Duration::from_nanos(nanos)
}
