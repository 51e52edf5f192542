//! The course of all messages over their interfaces, from one to the next.

use macrotick_model::Instant;

use super::messages::Planned;
use super::ports::Side;
use crate::network::{simulate, Fate, Frame, Loss, Port, Simulation};

/// The most simulations of one interface until the arrivals of all frames have settled. Two flows that cross two
/// interfaces in opposite order can depend on each other.
const ROUNDS: usize = 64;

/// The cycles from the judged one to the last one. The next one is compared with it, and the last one contains frames
/// that can delay those of the next one.
pub(super) const AFTER: i64 = 3;

/// One set of assumptions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// Whether gates open as late as the description allows.
    pub late: bool,
    /// The flow with messages at their latest instants, behind those of all others at their earliest ones. `None`: all
    /// messages are ready at their latest instants.
    pub last: Option<usize>,
}

/// The result for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The last interface has sent it at this instant, in nanoseconds since the start of the message's cycle.
    Sent(i64),
    /// An interface does not send it. `at` is the place of the interface on the way.
    Lost { at: usize, reason: Loss },
}

/// The frames of one interface, and their fates.
pub(super) struct Traffic {
    pub frames: Vec<Frame>,
    /// The cycle of each frame.
    pub turns: Vec<i64>,
    pub simulation: Simulation,
}

/// The result of a case.
pub(super) struct Course {
    /// Per flow and message, the result in the judged cycle. Two more cycles follow it.
    pub outcomes: Vec<Vec<Outcome>>,
    /// The first flow with another result in the cycle after it.
    pub unsteady: Option<usize>,
    /// Per interface, its frames of all cycles.
    pub traffic: Vec<Option<Traffic>>,
}

/// A message of one cycle, on its way.
struct Item<'a> {
    flow: usize,
    number: usize,
    turn: i64,
    way: &'a [usize],
    /// The arrival at the queue of each interface, as far as it is known.
    arrivals: Vec<Option<i64>>,
    fates: Vec<Option<Fate>>,
}

/// Sends the messages of `cycles` cycles. `None` if the arrivals do not settle.
pub(super) fn run(sides: &[&Side], flows: &[Planned], case: Case, cycle: i64, cycles: i64) -> Option<Course> {
    let mut items = items(sides, flows, case, cycle, cycles);
    let mut crossings: Vec<Vec<(usize, usize)>> = vec![Vec::new(); sides.len()];
    for (item, one) in items.iter().enumerate() {
        one.way.iter().enumerate().for_each(|(hop, side)| crossings[*side].push((item, hop)));
    }
    let mut traffic: Vec<Option<Traffic>> = sides.iter().map(|_| None).collect();
    let mut waiting: Vec<bool> = crossings.iter().map(|crossing| !crossing.is_empty()).collect();
    for _ in 0..ROUNDS {
        let Some(side) = waiting.iter().position(|waits| *waits) else {
            return Some(summary(sides, flows, &items, traffic, cycle, cycles));
        };
        for side in side..sides.len() {
            if std::mem::take(&mut waiting[side]) {
                let sent = send(sides, side, flows, case, &crossings[side], &mut items, &mut waiting)?;
                traffic[side] = Some(sent);
            }
        }
    }
    None
}

fn items<'a>(sides: &[&Side], flows: &'a [Planned], case: Case, cycle: i64, cycles: i64) -> Vec<Item<'a>> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
    // Of messages that are ready at the same instant, the last ones in this order are the last ones in the queue.
    order.sort_by_key(|flow| case.last == Some(*flow));
    let mut items = Vec::new();
    for flow in order {
        let Planned { way, messages, .. } = &flows[flow];
        let early = case.last.is_some_and(|last| last != flow);
        let path = sides[way[0]].interface.path.as_nanos();
        for (turn, (number, message)) in
            (0..cycles).flat_map(|turn| messages.iter().enumerate().map(move |m| (turn, m)))
        {
            let ready = if early { message.earliest } else { message.ready };
            let mut arrivals = vec![None; way.len()];
            arrivals[0] = Some(ready + path + turn * cycle);
            items.push(Item { flow, number, turn, way, arrivals, fates: vec![None; way.len()] });
        }
    }
    items
}

/// Simulates one interface, and notes the arrivals at the next ones. `None` if it cannot be simulated.
fn send(
    sides: &[&Side],
    side: usize,
    flows: &[Planned],
    case: Case,
    crossings: &[(usize, usize)],
    items: &mut [Item],
    waiting: &mut [bool],
) -> Option<Traffic> {
    let here = sides[side];
    let port: &Port = if case.late { &here.late } else { &here.punctual };
    let there: Vec<(usize, usize, i64)> =
        crossings.iter().filter_map(|&(item, hop)| Some((item, hop, items[item].arrivals[hop]?))).collect();
    let frame = |&(item, _, at): &(usize, usize, i64)| {
        let Planned { flow, class, .. } = flows[items[item].flow];
        let (content, tagged) = (flow.size.bytes(), here.interface.vlan.is_some());
        Frame { class, content, tagged, at: Instant::from_nanos(at) }
    };
    let frames: Vec<Frame> = there.iter().map(frame).collect();
    let simulation = simulate(port, &frames).ok()?;
    for (&(item, hop, _), fate) in there.iter().zip(&simulation.fates) {
        let item = &mut items[item];
        item.fates[hop] = Some(fate.clone());
        let Some(&next) = item.way.get(hop + 1) else { continue };
        let arrival = match fate {
            Fate::Sent { end, .. } => Some((*end + here.interface.delay + sides[next].interface.path).as_nanos()),
            Fate::Lost { .. } => None,
        };
        if arrival != item.arrivals[hop + 1] {
            (item.arrivals[hop + 1], item.fates[hop + 1]) = (arrival, None);
            waiting[next] = true;
        }
    }
    let turns = there.iter().map(|(item, ..)| items[*item].turn).collect();
    Some(Traffic { frames, turns, simulation })
}

fn summary(
    sides: &[&Side],
    flows: &[Planned],
    items: &[Item],
    traffic: Vec<Option<Traffic>>,
    cycle: i64,
    cycles: i64,
) -> Course {
    let outcomes = |turn: i64| {
        let mut outcomes: Vec<Vec<Option<Outcome>>> =
            flows.iter().map(|flow| vec![None; flow.messages.len()]).collect();
        for item in items.iter().filter(|item| item.turn == turn) {
            outcomes[item.flow][item.number] = Some(outcome(sides, item, cycle));
        }
        let each = outcomes.into_iter().map(|flow| flow.into_iter().flatten().collect::<Vec<Outcome>>());
        each.collect::<Vec<_>>()
    };
    let (judged, next) = (outcomes(cycles - AFTER), outcomes(cycles - AFTER + 1));
    let unsteady = judged.iter().zip(&next).position(|(one, other)| one != other);
    Course { outcomes: judged, unsteady, traffic }
}

/// Returns the result of a message: the first loss on its way, or the end of its last frame.
fn outcome(sides: &[&Side], item: &Item, cycle: i64) -> Outcome {
    for (at, fate) in item.fates.iter().enumerate() {
        match fate {
            Some(Fate::Lost { reason }) => return Outcome::Lost { at, reason: reason.clone() },
            Some(Fate::Sent { end, .. }) if at + 1 == item.way.len() => {
                let arrived = *end + sides[item.way[at]].interface.delay;
                return Outcome::Sent(arrived.as_nanos() - item.turn * cycle);
            }
            _ => {}
        }
    }
    Outcome::Lost { at: item.way.len() - 1, reason: Loss::Blocked }
}
