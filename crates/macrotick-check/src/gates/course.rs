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
    /// Whether all messages are ready at their earliest instants, and not at their latest ones.
    pub early: bool,
}

/// The network of one case.
#[derive(Clone, Copy)]
pub(super) struct Network<'a> {
    pub sides: &'a [&'a Side<'a>],
    pub flows: &'a [Planned<'a>],
    pub case: Case,
    /// The cycle, in nanoseconds.
    pub cycle: i64,
    /// The number of simulated cycles.
    pub cycles: i64,
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
#[derive(Clone)]
struct Item<'a> {
    flow: usize,
    number: usize,
    turn: i64,
    way: &'a [usize],
    /// The arrival at the queue of each interface, as far as it is known.
    arrivals: Vec<Option<i64>>,
    fates: Vec<Option<Fate>>,
}

/// The messages of all cycles, on their way.
#[derive(Clone)]
struct Messages<'a> {
    network: Network<'a>,
    items: Vec<Item<'a>>,
    /// The item and the place on its way of each crossing, by interface.
    crossings: Vec<Vec<(usize, usize)>>,
    /// The interfaces with other arrivals than in their last simulation.
    waiting: Vec<bool>,
    /// The flow behind all others that are ready at the same instant.
    last: Option<usize>,
}

/// Sends all messages. `None` if the arrivals do not settle.
pub(super) fn run(network: Network) -> Option<Course> {
    let mut messages = Messages::new(network);
    let mut traffic: Vec<Option<Traffic>> = network.sides.iter().map(|_| None).collect();
    messages.settle(&mut |side, sent| traffic[side] = Some(sent))?;
    Some(summary(network, &messages.items, traffic))
}

/// The messages of all flows at their earliest instants, from which each flow in turn comes last.
pub(super) struct Early<'a>(Messages<'a>);

impl<'a> Early<'a> {
    /// Sends all messages. `None` if the arrivals do not settle.
    pub fn new(network: Network<'a>) -> Option<Early<'a>> {
        let mut messages = Messages::new(network);
        messages.settle(&mut |_, _| {})?;
        Some(Early(messages))
    }

    /// Returns the results of a flow with messages at their latest instants, behind those of all others. Only interfaces
    /// that they cross are simulated again, and those with other arrivals then. `None` if the arrivals do not settle.
    /// `frames` counts the simulated frames, and all others once.
    pub fn behind(&self, flow: usize, frames: &mut i64) -> Option<Vec<Outcome>> {
        let mut messages = self.0.clone();
        *frames += messages.items.len() as i64;
        messages.put_last(flow);
        messages.settle(&mut |_, sent| *frames += sent.frames.len() as i64)?;
        let Network { sides, cycle, cycles, .. } = messages.network;
        let judged = messages.items.iter().filter(|item| item.flow == flow && item.turn == cycles - AFTER);
        let mut judged: Vec<&Item> = judged.collect();
        judged.sort_by_key(|item| item.number);
        Some(judged.into_iter().map(|item| outcome(sides, item, cycle)).collect())
    }
}

impl<'a> Messages<'a> {
    fn new(network: Network<'a>) -> Messages<'a> {
        let items = items(network);
        let mut crossings: Vec<Vec<(usize, usize)>> = vec![Vec::new(); network.sides.len()];
        for (item, one) in items.iter().enumerate() {
            one.way.iter().enumerate().for_each(|(hop, side)| crossings[*side].push((item, hop)));
        }
        let waiting = crossings.iter().map(|crossing| !crossing.is_empty()).collect();
        Messages { network, items, crossings, waiting, last: None }
    }

    /// Makes the messages of a flow ready at their latest instants.
    fn put_last(&mut self, flow: usize) {
        let Planned { way, messages, .. } = &self.network.flows[flow];
        for item in self.items.iter_mut().filter(|item| item.flow == flow) {
            let message = &messages[item.number];
            let later = message.ready - message.earliest;
            item.arrivals[0] = item.arrivals[0].map(|arrival| arrival + later);
        }
        way.iter().for_each(|side| self.waiting[*side] = true);
        self.last = Some(flow);
    }

    /// Simulates interfaces until no arrival changes. `None` if that does not end.
    fn settle(&mut self, take: &mut dyn FnMut(usize, Traffic)) -> Option<()> {
        for _ in 0..ROUNDS {
            let Some(first) = self.waiting.iter().position(|waits| *waits) else { return Some(()) };
            for side in first..self.waiting.len() {
                if std::mem::take(&mut self.waiting[side]) {
                    let sent = self.send(side)?;
                    take(side, sent);
                }
            }
        }
        None
    }

    /// Simulates one interface, and notes the arrivals at the next ones. `None` if it cannot be simulated.
    fn send(&mut self, side: usize) -> Option<Traffic> {
        let Network { sides, flows, case, .. } = self.network;
        let here = sides[side];
        let port: &Port = if case.late { &here.late } else { &here.punctual };
        let arrived = |&(item, hop): &(usize, usize)| Some((item, hop, self.items[item].arrivals[hop]?));
        let mut there: Vec<(usize, usize, i64)> = self.crossings[side].iter().filter_map(arrived).collect();
        // Of messages that are ready at the same instant, the last ones in this order are the last ones in the queue.
        there.sort_by_key(|(item, ..)| self.last == Some(self.items[*item].flow));
        let frame = |&(item, _, at): &(usize, usize, i64)| {
            let Planned { flow, class, .. } = flows[self.items[item].flow];
            let (content, tagged) = (flow.size.bytes(), here.interface.vlan.is_some());
            Frame { class, content, tagged, at: Instant::from_nanos(at) }
        };
        let frames: Vec<Frame> = there.iter().map(frame).collect();
        let simulation = simulate(port, &frames).ok()?;
        for (&(item, hop, _), fate) in there.iter().zip(&simulation.fates) {
            let item = &mut self.items[item];
            item.fates[hop] = Some(fate.clone());
            let Some(&next) = item.way.get(hop + 1) else { continue };
            let arrival = match fate {
                Fate::Sent { end, .. } => Some((*end + here.interface.delay + sides[next].interface.path).as_nanos()),
                Fate::Lost { .. } => None,
            };
            if arrival != item.arrivals[hop + 1] {
                (item.arrivals[hop + 1], item.fates[hop + 1]) = (arrival, None);
                self.waiting[next] = true;
            }
            // A lost frame comes to no later interface either.
            for later in hop + 2..if arrival.is_none() { item.way.len() } else { 0 } {
                if item.arrivals[later].take().is_some() {
                    item.fates[later] = None;
                    self.waiting[item.way[later]] = true;
                }
            }
        }
        let turns = there.iter().map(|(item, ..)| self.items[*item].turn).collect();
        Some(Traffic { frames, turns, simulation })
    }
}

fn items<'a>(network: Network<'a>) -> Vec<Item<'a>> {
    let Network { sides, flows, case, cycle, cycles } = network;
    let mut items = Vec::new();
    for (flow, Planned { way, messages, .. }) in flows.iter().enumerate() {
        let path = sides[way[0]].interface.path.as_nanos();
        for (turn, (number, message)) in
            (0..cycles).flat_map(|turn| messages.iter().enumerate().map(move |m| (turn, m)))
        {
            let ready = if case.early { message.earliest } else { message.ready };
            let mut arrivals = vec![None; way.len()];
            arrivals[0] = Some(ready + path + turn * cycle);
            items.push(Item { flow, number, turn, way, arrivals, fates: vec![None; way.len()] });
        }
    }
    items
}

fn summary(network: Network, items: &[Item], traffic: Vec<Option<Traffic>>) -> Course {
    let Network { sides, flows, cycle, cycles, .. } = network;
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
