//! The instants of one flow on one route.

use macrotick_model::wire::{Wire, WireFlow};
use macrotick_model::Duration;

use super::line::Line;
use crate::demand::{round_down, round_up};

/// A link of a route. `since` is the time from the start at the sender until the start here. The flow occupies the link
/// for `length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub link: usize,
    pub since: Duration,
    pub length: Duration,
}

/// Returns the hops of a frame that never waits, and the time from its start until it has arrived.
pub(super) fn hops(wire: &Wire, flow: &WireFlow, route: &[usize]) -> (Vec<Hop>, Duration) {
    let (mut since, mut arrived) = (Duration::ZERO, Duration::ZERO);
    let mut all = Vec::with_capacity(route.len());
    for &link in route {
        let time = flow.time(wire, link);
        all.push(Hop { link, since, length: flow.occupies(wire, link) });
        arrived = since + time + wire.links[link].propagation;
        since += time + wire.onwards(link);
    }
    (all, arrived)
}

/// Returns the first and the last instant at which a frame may start at its sender, both multiples of `tick`. It takes
/// `arrived` from there on. `None` if it would always be late.
pub(super) fn range(flow: &WireFlow, arrived: Duration, tick: Duration) -> Option<(Duration, Duration)> {
    let slack = flow.deadline - arrived;
    if slack < Duration::ZERO {
        return None;
    }
    let (first, last) = match flow.ready {
        // Later instants than one period are the same instants again.
        Some(ready) => (ready, ready + slack.min(flow.period - NS)),
        None => (Duration::ZERO, flow.period - NS),
    };
    let (first, last) = (round_up(first, tick), round_down(last, tick));
    (first <= last).then_some((first, last))
}

const NS: Duration = Duration::from_nanos(1);

/// Returns the earliest multiple of `tick`, within the range of starts at the sender, at which all links are free in
/// every period.
pub(super) fn earliest(
    lines: &[Line],
    every: Duration,
    hops: &[Hop],
    (first, last): (Duration, Duration),
    tick: Duration,
) -> Option<Duration> {
    let mut start = first;
    let mut free = 0;
    // All hops must be free for the same start: after each step, the others are asked again.
    for hop in hops.iter().cycle() {
        if free == hops.len() {
            return Some(start);
        }
        let at = start + hop.since;
        let found = lines[hop.link].earliest(every, at, hop.length)?;
        if found == at {
            free += 1;
            continue;
        }
        let exact = start + (found - at);
        start = round_up(exact, tick);
        free = usize::from(start == exact);
        if start > last {
            return None;
        }
    }
    None
}
