//! Windows that belong to one class: those of flows, of slots, and of the class `sync`. These rules also hold for frames
//! that nothing describes.

use macrotick_model::{Duration, GateEntry, Network, Plan, SyncClass};

use super::ports::Side;
use crate::network::NetworkViolation as Violation;

/// An uninterrupted time with the gate of one class open, and all others closed. Nanoseconds since the start of the
/// list's cycle; it can reach into the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alone<'a> {
    pub start: i64,
    pub length: i64,
    pub class: &'a str,
}

/// Returns the times in which one class is open alone, in the order of the list.
pub(super) fn alone(entries: &[GateEntry]) -> Vec<Alone<'_>> {
    let mut times: Vec<Alone> = Vec::new();
    let mut start = 0;
    for GateEntry { length, open } in entries {
        let length = length.as_nanos();
        if let [class] = &open[..] {
            match times.last_mut() {
                Some(last) if last.class == class && last.start + last.length == start => last.length += length,
                _ => times.push(Alone { start, length, class }),
            }
        }
        start += length;
    }
    if let [first, .., last] = &mut times[..] {
        if first.start == 0 && last.start + last.length == start && first.class == last.class {
            last.length += first.length;
            times.remove(0);
        }
    }
    times
}

/// Checks the planned gates of an interface.
pub(super) fn check(plan: &Plan, network: &Network, side: &Side, found: &mut Vec<Violation>) {
    let Some(list) = side.list else { return };
    let times = alone(&list.entries);
    shared(network, side, &list.entries, found);
    guards(network, side, &times, found);
    sync(plan, network, side, &times, list.cycle.as_nanos(), found);
}

/// Reports other classes that are open together with one that has a flow or a slot, once for each pair.
fn shared(network: &Network, side: &Side, entries: &[GateEntry], found: &mut Vec<Violation>) {
    let kept = |name: &str| network.class_names().zip(&side.kept).any(|(class, kept)| class == name && *kept);
    let mut seen = Vec::new();
    let mut from = Duration::ZERO;
    for GateEntry { length, open } in entries {
        let until = from + *length;
        let first = open.iter().find(|class| kept(class));
        let other = first.and_then(|first| open.iter().find(|other| *other != first));
        if let (Some(class), Some(other)) = (first, other) {
            if !seen.contains(&(class, other)) {
                seen.push((class, other));
                let (interface, class, other) = (side.interface.name.clone(), class.clone(), other.clone());
                found.push(Violation::NotAlone { interface, class, other, from, until });
            }
        }
        from = until;
    }
}

/// Reports a class without flows and slots that closes too late. Its longest frame, or the gap after it, is then on the
/// link when another class opens. Each pair of classes is reported once. A time of the class `sync` alone has room for its
/// frames, so this rule does not apply to its end.
fn guards(network: &Network, side: &Side, times: &[Alone], found: &mut Vec<Violation>) {
    let Some(gates) = &side.punctual.gates else { return };
    let cycle = gates.cycle().as_nanos();
    let link = &side.punctual.link;
    for (number, other) in network.class_names().enumerate().filter(|(number, _)| !side.kept[*number]) {
        let longest = link.time(link.wire_bytes(network.max_size(other).bytes(), true)).as_nanos();
        let ends_alone = |end: &i64| {
            let mut own = times.iter().filter(|time| time.class == other && other == SyncClass::NAME);
            own.any(|time| (time.start + time.length - end).rem_euclid(cycle) == 0)
        };
        let ends: Vec<i64> = gates.windows(number).map(|(_, end)| end).filter(|end| !ends_alone(end)).collect();
        let mut seen = Vec::new();
        for time in times.iter().filter(|time| time.class != other && is_guarded(network, side, time.class)) {
            let since = ends.iter().map(|end| (time.start - end).rem_euclid(cycle)).min();
            let Some(since) = since.filter(|since| *since < longest && !seen.contains(&time.class)) else { continue };
            seen.push(time.class);
            // The start of the list can lie between the two.
            let opens = if since > time.start { time.start + cycle } else { time.start };
            let [opens, closes, reach] = [opens, opens - since, opens - since + longest].map(Duration::from_nanos);
            let (interface, class, other) = (side.interface.name.clone(), time.class.to_owned(), other.to_owned());
            found.push(Violation::GuardBand { interface, class, opens, other, closes, reach });
        }
    }
}

/// Whether the times in which a class is open alone must be free of frames that started before.
fn is_guarded(network: &Network, side: &Side, class: &str) -> bool {
    class == SyncClass::NAME || network.class_names().zip(&side.kept).any(|(name, kept)| name == class && *kept)
}

/// Checks that each sync window has a time for the frames of the class `sync` alone.
fn sync(plan: &Plan, network: &Network, side: &Side, times: &[Alone], cycle: i64, found: &mut Vec<Violation>) {
    let (Some(class), Some(window)) = (network.sync, plan.system.sync()) else { return };
    let link = &side.punctual.link;
    let frame = link.time(link.wire_bytes(class.size.bytes(), true)).as_nanos();
    let needed = frame.saturating_mul(class.frames.into()).saturating_add(side.interface.opening.as_nanos());
    let needed = needed.min(window.length.as_nanos());
    let (period, length) = (window.period.as_nanos(), window.length.as_nanos());
    for number in 0..plan.cycle.as_nanos() / period {
        let start = window.offset.as_nanos() + number * period;
        // The part of each time that lies in the sync window, around the cycle of the list.
        let part = |time: &Alone| {
            let since = (time.start - start).rem_euclid(cycle);
            let after = length.min(since + time.length) - since;
            let before = (since + time.length - cycle).min(length);
            after.max(before)
        };
        let own = times.iter().filter(|time| time.class == SyncClass::NAME);
        let given = own.map(part).max().unwrap_or(0).max(0);
        if given < needed {
            let [window, needed, given] = [start, needed, given].map(Duration::from_nanos);
            found.push(Violation::SyncTime { interface: side.interface.name.clone(), window, needed, given });
            return;
        }
    }
}
