//! The judge of planned flows: it sends their messages through the gates, and compares each with its deadline and with
//! the slots.

use std::collections::BTreeMap;
use std::ops::Range;

use macrotick_model::{Duration, GateList, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gates::Gates;
use super::link::{Link, Protocol};
use super::port::{Class, Frame, Gating, Guard, Port};
use super::simulate::{simulate, Fate, Loss, Simulation};
use super::slots::{self, Occurrence, Slot};
use super::violation::NetworkViolation as Violation;

/// The most frames of one simulation, and the most windows and slots of a hyperperiod.
const LIMIT: usize = 4_000_000;

/// The longest hyperperiod in nanoseconds. All that are simulated together stay within the range of the clock.
const MAX_SPAN: i64 = 1 << 56;

/// The hyperperiods before the one that is judged, so that frames of earlier ones can still wait. The judge tries the
/// next number if the waiting times have not become steady.
const WARM_UPS: [i64; 3] = [1, 4, 16];

/// The network of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The cycle of the plan.
    pub cycle: Duration,
    /// The interfaces.
    pub interfaces: Vec<NetworkInterface>,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// An interface that sends frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkInterface {
    /// The name.
    pub name: String,
    /// The link.
    pub link: Link,
    /// The traffic classes, the most important one first.
    pub classes: Vec<Class>,
    /// The gate list. Without it, all gates are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateList>,
    /// The guard band.
    #[serde(default)]
    pub guard: Guard,
    /// The instant at which the gates decide.
    #[serde(default)]
    pub gating: Gating,
    /// The TDMA slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
}

/// A periodic message that leaves through an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The name.
    pub name: String,
    /// The interface.
    pub interface: String,
    /// The traffic class.
    pub class: String,
    /// The bytes of a message at the socket.
    pub size: u32,
    /// The headers between the message and the content of its frames.
    #[serde(default)]
    pub protocol: Protocol,
    /// Whether the frames have a VLAN tag.
    #[serde(default)]
    pub tagged: bool,
    /// The period.
    pub period: Duration,
    /// The latest instant at which the first message reaches the queue, since the epoch.
    pub ready: Duration,
    /// The time from there until the last byte of the message must be on the wire.
    pub deadline: Duration,
}

/// The verdict on the network of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkVerdict {
    /// All broken rules; empty for a feasible network.
    pub violations: Vec<Violation>,
    /// One entry per interface that can be judged, in the order of the input.
    pub interfaces: Vec<InterfaceVerdict>,
    /// One entry per flow that an interface sends, by interface, in the order of the input.
    pub flows: Vec<FlowVerdict>,
}

/// The properties of an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceVerdict {
    /// The interface.
    pub name: String,
    /// The time after which gates, slots and flows repeat.
    pub hyperperiod: Duration,
    /// One entry per class, the most important one first.
    pub classes: Vec<ClassLoad>,
    /// The share of the hyperperiod that the slots take, 0 to 1. It is more than 1 if they cannot fit.
    pub slots: f64,
}

/// The frames of a class in one hyperperiod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassLoad {
    /// The class.
    pub name: String,
    /// The number of frames.
    pub frames: usize,
    /// The longest time that one waits.
    pub waited: Duration,
    /// The most frames that wait at the same time.
    pub queued: usize,
    /// The time on the wire, with preamble and gap, as a share of the hyperperiod, 0 to 1.
    pub utilisation: f64,
    /// The share of the hyperperiod for which the gate is open, 0 to 1.
    pub open: f64,
}

/// The properties of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowVerdict {
    /// The flow.
    pub name: String,
    /// The interface.
    pub interface: String,
    /// The number of messages in one hyperperiod.
    pub messages: usize,
    /// The number of frames of each message.
    pub frames: usize,
    /// The longest time from the ready instant to the end of the message on the wire. `None` if all are lost.
    pub latency: Option<Duration>,
    /// The shortest time from there to the deadline. It is negative for a late message.
    pub slack: Option<Duration>,
}

impl NetworkVerdict {
    /// Whether the network keeps every rule.
    pub fn is_feasible(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Judges the network of a plan, over one hyperperiod of gates, slots and flows. Each message must be on the wire
/// before its deadline, and each slot must belong to its group alone.
///
/// The simulation contains the given flows and no other frames. In a window that several classes share, a frame of
/// lower importance that is not described can add its own length to each waiting time. The rules on slots hold for
/// frames that are not described, too.
pub fn judge(network: &Network) -> NetworkVerdict {
    let mut verdict = NetworkVerdict::default();
    for flow in &network.flows {
        if network.interfaces.iter().all(|interface| interface.name != flow.interface) {
            let (flow, interface) = (flow.name.clone(), flow.interface.clone());
            verdict.violations.push(Violation::UnknownInterface { flow, interface });
        }
    }
    for interface in &network.interfaces {
        let flows: Vec<&Flow> = network.flows.iter().filter(|flow| flow.interface == interface.name).collect();
        if let Some(port) = port(network, interface, &mut verdict.violations) {
            one(&port, interface, &flows, &mut verdict);
        }
    }
    verdict
}

/// Makes the port of an interface, with its gates on an epoch of zero.
fn port(network: &Network, interface: &NetworkInterface, violations: &mut Vec<Violation>) -> Option<Port> {
    let NetworkInterface { name, link, classes, guard, gating, .. } = interface.clone();
    let names: Vec<&str> = interface.classes.iter().map(|class| class.name.as_str()).collect();
    let mut port = Port { guard, gating, ..Port::new(name.clone(), link, classes) };
    // An empty simulation fails for a link or for classes that no simulation can have.
    let refused = simulate(&port, &[]).err().map(|error| error.to_string());
    let gates = interface.gates.as_ref().map(|list| Gates::new(&names, list, Instant::default())).transpose();
    match (refused, gates) {
        (Some(error), _) => violations.push(Violation::Gates { interface: name, error }),
        (_, Err(error)) => violations.push(Violation::Gates { interface: name, error: error.to_string() }),
        (None, Ok(gates)) => {
            let cycle = gates.as_ref().map_or(network.cycle, Gates::cycle);
            if network.cycle <= Duration::ZERO || !network.cycle.is_multiple_of(cycle) {
                violations.push(Violation::Cycle { interface: name, cycle, plan: network.cycle });
                return None;
            }
            port.gates = gates;
            return Some(port);
        }
    }
    None
}

/// A flow that the port can send, and the frames of each message.
struct Sender<'a> {
    flow: &'a Flow,
    class: usize,
    contents: Vec<u32>,
}

/// One message of a simulation, and its frames there.
struct Message {
    sender: usize,
    ready: i64,
    frames: Range<usize>,
}

fn one(port: &Port, interface: &NetworkInterface, flows: &[&Flow], verdict: &mut NetworkVerdict) {
    let senders: Vec<Sender> = flows.iter().filter_map(|flow| sender(port, flow, &mut verdict.violations)).collect();
    if !slots::values(port, &interface.slots, &mut verdict.violations) {
        return;
    }
    let Some(span) = hyperperiod(port, &interface.slots, &senders) else {
        verdict.violations.push(Violation::TooMany { interface: port.name.clone(), limit: LIMIT });
        return;
    };
    let occurrences = slots::lay_out(&interface.slots, span);
    slots::check(port, &interface.slots, &occurrences, span, &mut verdict.violations);
    match settle(port, &senders, span) {
        Ok(settled) => {
            let Settled { messages, frames, simulation, unsteady } = settled;
            if let Some(sender) = unsteady {
                let (flow, interface) = (senders[sender].flow.name.clone(), port.name.clone());
                let hyperperiod = Duration::from_nanos(span);
                verdict.violations.push(Violation::Unsteady { flow, interface, hyperperiod });
            }
            for (number, sender) in senders.iter().enumerate() {
                let own: Vec<&Message> = messages.iter().filter(|message| message.sender == number).collect();
                let flow = flow(port, sender, &own, &simulation, &mut verdict.violations);
                verdict.flows.push(flow);
                let frames = sent(&own, &simulation);
                verdict.violations.extend(foreign(port, sender, frames, &interface.slots, &occurrences, span));
            }
            let sum = slots::total(&interface.slots, span) as f64;
            let classes = loads(port, &messages, &frames, &simulation, span);
            let (name, hyperperiod, slots) = (port.name.clone(), Duration::from_nanos(span), sum / span as f64);
            verdict.interfaces.push(InterfaceVerdict { name, hyperperiod, classes, slots });
        }
        Err(violation) => verdict.violations.push(*violation),
    }
}

fn sender<'a>(port: &Port, flow: &'a Flow, violations: &mut Vec<Violation>) -> Option<Sender<'a>> {
    let (name, interface) = (flow.name.clone(), port.name.clone());
    let Flow { size, period, ready, deadline, .. } = *flow;
    let Some(class) = port.classes.iter().position(|class| class.name == flow.class) else {
        let class = flow.class.clone();
        violations.push(Violation::UnknownClass { flow: name, interface, class });
        return None;
    };
    if period <= Duration::ZERO || deadline <= Duration::ZERO || ready < Duration::ZERO {
        violations.push(Violation::Times { flow: name, interface, period, ready, deadline });
        return None;
    }
    let Some(contents) = flow.protocol.contents(size, port.link.mtu) else {
        violations.push(Violation::TooLarge { flow: name, interface, size, mtu: port.link.mtu });
        return None;
    };
    Some(Sender { flow, class, contents })
}

/// Returns the time after which gates, slots and flows repeat. `None` if there is too much in it.
fn hyperperiod(port: &Port, slots: &[Slot], senders: &[Sender]) -> Option<i64> {
    let cycle = port.gates.as_ref().map(Gates::cycle);
    let periods = senders.iter().map(|sender| sender.flow.period).chain(slots.iter().map(|slot| slot.period));
    let span = periods.chain(cycle).try_fold(Duration::from_nanos(1), Duration::lcm)?;
    let entries = port.gates.as_ref().map_or(0, |gates| gates.entries() as i64 * (span / gates.cycle()));
    let frames = senders.iter().map(|sender| (span / sender.flow.period).saturating_mul(sender.contents.len() as i64));
    let slots = slots.iter().map(|slot| span / slot.period);
    let all = frames.chain(slots).fold(entries, i64::saturating_add);
    // The first hyperperiod, the judged one and the next one are simulated at least.
    let few = all.saturating_mul(3) <= LIMIT as i64;
    (few && span.as_nanos() <= MAX_SPAN).then_some(span.as_nanos())
}

/// A hyperperiod with waiting times that repeat. Its instants are those of the simulation, minus the warm-up.
struct Settled {
    messages: Vec<Message>,
    frames: Vec<Frame>,
    simulation: Simulation,
    /// The first sender that waits differently in the next hyperperiod.
    unsteady: Option<usize>,
}

fn settle(port: &Port, senders: &[Sender], span: i64) -> Result<Settled, Box<Violation>> {
    let mut last = None;
    for warm_up in WARM_UPS {
        let (messages, frames) = release(senders, span, warm_up + 2);
        if last.is_some() && frames.len() > LIMIT {
            break;
        }
        let simulation = simulate(port, &frames)
            .map_err(|error| Box::new(Violation::Gates { interface: port.name.clone(), error: error.to_string() }))?;
        let in_span = |number: i64| {
            let range = number * span..(number + 1) * span;
            messages.iter().filter(move |message| range.contains(&message.ready))
        };
        let differs = |(one, other): (&Message, &Message)| {
            let waits = |message: &Message| message.frames.clone().map(|frame| waited(&simulation.fates[frame]));
            (!waits(one).eq(waits(other))).then_some(one.sender)
        };
        let unsteady = in_span(warm_up).zip(in_span(warm_up + 1)).find_map(differs);
        let messages = in_span(warm_up).map(|message| Message { frames: message.frames.clone(), ..*message }).collect();
        let settled = shift(messages, frames, simulation, warm_up * span, unsteady);
        if unsteady.is_none() {
            return Ok(settled);
        }
        last = Some(settled);
    }
    last.ok_or_else(|| Box::new(Violation::TooMany { interface: port.name.clone(), limit: LIMIT }))
}

/// Makes the instants of the judged messages those of the first hyperperiod.
fn shift(
    mut messages: Vec<Message>,
    frames: Vec<Frame>,
    mut simulation: Simulation,
    by: i64,
    unsteady: Option<usize>,
) -> Settled {
    let by = Duration::from_nanos(by);
    for message in &mut messages {
        message.ready -= by.as_nanos();
        for fate in &mut simulation.fates[message.frames.clone()] {
            if let Fate::Sent { start, end, .. } = fate {
                (*start, *end) = (*start - by, *end - by);
            }
        }
    }
    Settled { messages, frames, simulation, unsteady }
}

/// Releases the messages of so many hyperperiods. Flows that are ready at the same instant queue in the order of the
/// input.
fn release(senders: &[Sender], span: i64, hyperperiods: i64) -> (Vec<Message>, Vec<Frame>) {
    let (mut messages, mut frames) = (Vec::new(), Vec::new());
    for (number, sender) in senders.iter().enumerate() {
        let (period, class, tagged) = (sender.flow.period.as_nanos(), sender.class, sender.flow.tagged);
        let first = sender.flow.ready.as_nanos() % period;
        for ready in (0..span / period * hyperperiods).map(|job| first + job * period) {
            let begin = frames.len();
            let at = Instant::from_nanos(ready);
            frames.extend(sender.contents.iter().map(|&content| Frame { class, content, tagged, at }));
            messages.push(Message { sender: number, ready, frames: begin..frames.len() });
        }
    }
    (messages, frames)
}

fn waited(fate: &Fate) -> Option<Duration> {
    match fate {
        Fate::Sent { waited, .. } => Some(*waited),
        Fate::Lost { .. } => None,
    }
}

/// Judges the messages of a flow.
fn flow(
    port: &Port,
    sender: &Sender,
    messages: &[&Message],
    simulation: &Simulation,
    violations: &mut Vec<Violation>,
) -> FlowVerdict {
    let (name, interface) = (sender.flow.name.clone(), port.name.clone());
    let deadline = sender.flow.deadline;
    // The worst message, the number of late ones, and the first lost one with the number of lost ones.
    let (mut worst, mut late): (Option<(Duration, &Message)>, usize) = (None, 0);
    let (mut lost, mut count): (Option<(&Message, &Loss)>, usize) = (None, 0);
    for &message in messages {
        match outcome(&simulation.fates[message.frames.clone()]) {
            Ok(end) => {
                let latency = end - Instant::from_nanos(message.ready);
                late += usize::from(latency > deadline);
                if worst.is_none_or(|(other, _)| latency > other) {
                    worst = Some((latency, message));
                }
            }
            Err(reason) => {
                count += 1;
                lost.get_or_insert((message, reason));
            }
        }
    }
    let at = |message: &Message| (slots::cycle(port, message.ready), Duration::from_nanos(message.ready));
    if let Some((message, reason)) = lost {
        let ((cycle, ready), reason) = (at(message), reason.clone());
        let (flow, interface) = (name.clone(), interface.clone());
        violations.push(Violation::Lost { flow, interface, cycle, ready, count, reason });
    }
    if let Some((latency, message)) = worst.filter(|&(latency, _)| latency > deadline) {
        let (cycle, ready) = at(message);
        let (end, deadline, count) = (ready + latency, ready + deadline, late);
        let (flow, interface) = (name.clone(), interface.clone());
        violations.push(Violation::Late { flow, interface, cycle, ready, end, deadline, count });
    }
    violations.extend(overrun(port, sender, messages, simulation));
    let latency = worst.map(|(latency, _)| latency);
    let slack = latency.map(|latency| deadline - latency);
    FlowVerdict { name, interface, messages: messages.len(), frames: sender.contents.len(), latency, slack }
}

/// Returns the end of a message, or the reason why a frame of it is lost.
fn outcome(fates: &[Fate]) -> Result<Instant, &Loss> {
    let mut last = Instant::from_nanos(i64::MIN);
    for fate in fates {
        match fate {
            Fate::Sent { end, .. } => last = last.max(*end),
            Fate::Lost { reason } => return Err(reason),
        }
    }
    Ok(last)
}

/// Returns the frames of a flow that the port sends, as start, end and overrun.
fn sent<'a>(messages: &'a [&Message], simulation: &'a Simulation) -> impl Iterator<Item = (i64, i64, Duration)> + 'a {
    let fates = messages.iter().flat_map(|message| &simulation.fates[message.frames.clone()]);
    fates.filter_map(|fate| match fate {
        Fate::Sent { start, end, overrun, .. } => Some((start.as_nanos(), end.as_nanos(), *overrun)),
        Fate::Lost { .. } => None,
    })
}

/// Reports the frame of a flow that ends longest after its gate has closed.
fn overrun(port: &Port, sender: &Sender, messages: &[&Message], simulation: &Simulation) -> Option<Violation> {
    let late = sent(messages, simulation).filter(|&(_, _, overrun)| overrun > Duration::ZERO);
    let (start, end, overrun) = late.max_by_key(|&(start, _, overrun)| (overrun, std::cmp::Reverse(start)))?;
    let (flow, interface, cycle) = (sender.flow.name.clone(), port.name.clone(), slots::cycle(port, start));
    let (start, end) = (Duration::from_nanos(start), Duration::from_nanos(end));
    Some(Violation::Overrun { flow, interface, cycle, start, end, close: end - overrun })
}

/// Reports the first frame of a flow in each slot of another class. The slots repeat after the hyperperiod.
fn foreign(
    port: &Port,
    sender: &Sender,
    frames: impl Iterator<Item = (i64, i64, Duration)>,
    slots: &[Slot],
    occurrences: &[Occurrence],
    span: i64,
) -> Vec<Violation> {
    let mut found: BTreeMap<usize, Violation> = BTreeMap::new();
    let longest = slots.iter().map(|slot| slot.length.as_nanos()).max().unwrap_or(0);
    for (start, end, _) in frames {
        let this = start.div_euclid(span) * span;
        // A frame at the end of a hyperperiod can reach into the next one.
        for shift in [this, this + span] {
            let after = occurrences.partition_point(|slot| slot.begin + shift < end);
            let near = occurrences[..after].iter().rev().take_while(|slot| slot.begin + shift + longest > start);
            let near = near.filter(|slot| start < slot.end + shift && slots[slot.slot].class != sender.flow.class);
            for slot in near {
                found.entry(slot.slot).or_insert_with(|| Violation::SlotForeign {
                    flow: sender.flow.name.clone(),
                    interface: port.name.clone(),
                    group: slots[slot.slot].group.clone(),
                    cycle: slots::cycle(port, start),
                    begin: Duration::from_nanos(slot.begin + shift),
                    start: Duration::from_nanos(start),
                    end: Duration::from_nanos(end),
                });
            }
        }
    }
    found.into_values().collect()
}

fn loads(port: &Port, messages: &[Message], frames: &[Frame], simulation: &Simulation, span: i64) -> Vec<ClassLoad> {
    let load = |(class, result): (usize, &super::ClassResult)| {
        let judged = messages.iter().flat_map(|message| message.frames.clone());
        let own: Vec<usize> = judged.filter(|&frame| frames[frame].class == class).collect();
        let waited = own.iter().filter_map(|&frame| waited(&simulation.fates[frame])).max().unwrap_or_default();
        let wire = |frame: &Frame| port.link.time(port.link.wire_bytes(frame.content, frame.tagged)).as_nanos();
        let is_sent = |frame: &&usize| matches!(simulation.fates[**frame], Fate::Sent { .. });
        let busy: i64 = own.iter().filter(is_sent).map(|&frame| wire(&frames[frame])).sum();
        let (name, utilisation) = (result.name.clone(), busy as f64 / span as f64);
        ClassLoad { name, frames: own.len(), waited, queued: result.queued, utilisation, open: port.open_share(class) }
    };
    simulation.classes.iter().enumerate().map(load).collect()
}
