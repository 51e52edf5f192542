//! From the intervals of a circle to the entries of a gate list.

use macrotick_model::{Duration, GateEntry, GateList, Interface, Network, SyncClass};

use super::circle::Circle;
use super::GateError;

/// The open gates of a part of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open<'a> {
    /// That of one class.
    Only(&'a str),
    /// Those of the classes without intervals.
    Shared,
    /// None.
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    length: Duration,
    open: Open<'a>,
}

/// Returns the gate list of an interface. Intervals of one class with at most `join` between them are one.
pub(super) fn list(
    network: &Network,
    interface: &Interface,
    circle: &Circle,
    join: Duration,
) -> Result<GateList, GateError> {
    let circle = circle.joined(join).folded(GateList::MAX_CYCLE);
    let (name, cycle) = (interface.name.clone(), circle.cycle);
    if cycle > GateList::MAX_CYCLE {
        return Err(GateError::Cycle { interface: name, cycle });
    }
    let has_intervals = |class: &str| circle.intervals().iter().any(|interval| interval.class == class);
    // The class `sync` also has the rest of the link: its frames do not wait for its slots.
    let shared = |class: &&str| *class == SyncClass::NAME || !has_intervals(class);
    let shared: Vec<&str> = network.class_names().filter(shared).collect();
    let guard = |class: &str| {
        let others = shared.iter().filter(|other| **other != class);
        let longest = others.map(|other| interface.longest_frame_time(network.max_size(other))).max();
        longest.unwrap_or(Duration::ZERO)
    };
    let mut parts = parts(&circle, guard);
    settle(&mut parts, circle.shortest);
    shorten(&mut parts, (interface.most_entries(), cycle), circle.shortest);
    let entries = entries(&parts, &shared);
    let (count, most) = (entries.len(), interface.most_entries());
    match count > most {
        true => Err(GateError::Entries { interface: name, entries: count, most }),
        false => Ok(GateList { interface: name, cycle, entries }),
    }
}

/// Returns the parts of one cycle from its start on. Before each interval, all gates are closed for the guard time.
fn parts(circle: &Circle, guard: impl Fn(&str) -> Duration) -> Vec<Part<'_>> {
    let intervals = circle.intervals();
    let Some(first) = intervals.first() else { return vec![Part { length: circle.cycle, open: Open::Shared }] };
    // The parts from the start of the first interval on, around the circle.
    let mut around = Vec::new();
    let nexts = intervals.iter().skip(1).map(|next| (next.start, next)).chain([(first.start + circle.cycle, first)]);
    for (interval, (next_start, next)) in intervals.iter().zip(nexts) {
        let gap = next_start - interval.start - interval.length;
        let closed = guard(&next.class).min(gap);
        around.push(Part { length: interval.length, open: Open::Only(&interval.class) });
        around.push(Part { length: gap - closed, open: Open::Shared });
        around.push(Part { length: closed, open: Open::Closed });
    }
    // Turns them so that they start with the cycle.
    let mut until = circle.cycle - first.start;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for Part { length, open } in around {
        let head = length.min(until);
        until -= head;
        before.push(Part { length: head, open });
        after.push(Part { length: length - head, open });
    }
    after.into_iter().chain(before).collect()
}

/// Joins equal parts, and closes parts that are too short for an entry. Intervals and the guard times stay: the gates
/// are closed for longer.
fn settle(parts: &mut Vec<Part>, shortest: Duration) {
    loop {
        parts.retain(|part| part.length > Duration::ZERO);
        parts.dedup_by(|part, before| {
            let same = part.open == before.open;
            before.length += if same { part.length } else { Duration::ZERO };
            same
        });
        let is_short = |part: &Part| part.length < shortest && !matches!(part.open, Open::Only(_));
        let shared = parts.iter().position(|part| is_short(part) && part.open == Open::Shared);
        if let Some(index) = shared {
            parts[index].open = Open::Closed;
            continue;
        }
        let beside = |index: usize| index.checked_sub(1).into_iter().chain([index + 1]);
        let is_shared = |index: &usize| parts.get(*index).is_some_and(|part| part.open == Open::Shared);
        let closed = parts.iter().enumerate().filter(|(_, part)| is_short(part));
        let Some((index, from)) = closed.filter_map(|(index, _)| Some((index, beside(index).find(is_shared)?))).next()
        else {
            return;
        };
        let missing = (shortest - parts[index].length).min(parts[from].length);
        parts[from].length -= missing;
        parts[index].length += missing;
    }
}

/// Closes the shortest parts of the other classes, if there are too many entries. At least nine tenths of the cycle's time
/// stay as they are.
fn shorten(parts: &mut Vec<Part>, (most, cycle): (usize, Duration), shortest: Duration) {
    let mut left = Duration::from_nanos(cycle.as_nanos() / 10);
    while parts.len() > most {
        let mut shared: Vec<usize> = (0..parts.len()).filter(|index| parts[*index].open == Open::Shared).collect();
        shared.sort_by_key(|index| parts[*index].length);
        shared.truncate(parts.len() - most);
        let mut closed = false;
        for index in shared {
            let length = parts[index].length;
            if length <= left {
                left -= length;
                parts[index].open = Open::Closed;
                closed = true;
            }
        }
        if !closed {
            return;
        }
        settle(parts, shortest);
    }
}

fn entries(parts: &[Part], shared: &[&str]) -> Vec<GateEntry> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut entries: Vec<GateEntry> = Vec::new();
    for part in parts {
        let open: Vec<String> = match part.open {
            Open::Only(class) => names(&[class]),
            Open::Shared => names(shared),
            Open::Closed => Vec::new(),
        };
        match entries.last_mut() {
            Some(last) if last.open == open => last.length += part.length,
            _ => entries.push(GateEntry { length: part.length, open }),
        }
    }
    entries
}
