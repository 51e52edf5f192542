//! The comparison of all messages with their deadlines and with the windows of their receivers.

use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::{Duration, Plan};

use super::course::{run, Case, Course, Early, Network, Outcome, Traffic, AFTER};
use super::messages::{Message, Planned};
use super::ports::Side;
use crate::network::{ClassLoad, Fate, FlowVerdict, InterfaceVerdict, Loss, NetworkViolation as Violation};

/// The most simulated frames: of the cases with all flows, and of those with one flow behind the others.
const LIMIT: i64 = 16_000_000;

/// The cycles before the judged one, in which frames of earlier cycles can still wait. The next number is tried if the
/// results have not become steady.
const WARM_UPS: [i64; 3] = [1, 4, 16];

/// The properties of flows and interfaces.
#[derive(Default)]
pub(super) struct Judged {
    pub flows: Vec<FlowVerdict>,
    pub interfaces: Vec<InterfaceVerdict>,
}

/// Simulates all flows that cross usable interfaces only, and judges their messages.
pub(super) fn check(plan: &Plan, sides: &[Option<Side>], flows: &[Planned], found: &mut Vec<Violation>) -> Judged {
    let usable: Vec<&Side> = sides.iter().flatten().collect();
    let place = |side: usize| sides[..side].iter().flatten().count();
    let flows = flows.iter().filter(|flow| flow.way.iter().all(|side| sides[*side].is_some()));
    let flows: Vec<Planned> = flows
        .map(|flow| Planned {
            way: flow.way.iter().map(|side| place(*side)).collect(),
            messages: flow.messages.clone(),
            ..*flow
        })
        .filter(|flow| is_long_enough(&usable, flow, found))
        .collect();
    let frames = |cycles: i64| {
        let each = flows.iter().map(|flow| (flow.messages.len() * flow.way.len()) as i64).sum::<i64>();
        each.saturating_mul(cycles).saturating_mul(CASES.len() as i64)
    };
    let network = |case, cycles| Network { sides: &usable, flows: &flows, case, cycle: plan.cycle.as_nanos(), cycles };
    let mut courses = None;
    for warm_up in WARM_UPS {
        let cycles = warm_up + AFTER;
        if frames(cycles) > LIMIT {
            break;
        }
        let Some(all) = CASES.iter().map(|case| run(network(*case, cycles))).collect::<Option<Vec<Course>>>() else {
            found.push(Violation::Unsettled);
            return Judged::default();
        };
        let steady = all.iter().all(|course| course.unsteady.is_none());
        courses = Some((warm_up, all));
        if steady {
            break;
        }
    }
    let Some((warm_up, courses)) = courses else {
        found.push(Violation::TooManyFrames { limit: LIMIT });
        return Judged::default();
    };
    let shared = shared(&flows);
    let behind = match behind(network(Case { late: true, early: true }, warm_up + AFTER), &shared) {
        Ok(behind) => behind,
        Err(violation) => {
            found.push(*violation);
            return Judged::default();
        }
    };
    let growing = unsteady(plan, &usable, &flows, &courses, found);
    let verdicts = flows.iter().enumerate().filter_map(|(number, flow)| {
        let all = CASES.iter().zip(&courses);
        let all =
            all.map(|(case, course)| Tried { late: case.late, behind: false, outcomes: &course.outcomes[number] });
        let last = behind.get(&number).map(|outcomes| Tried { late: true, behind: true, outcomes });
        let tried = all.chain(last).collect();
        let before = found.len();
        let verdict = judge(&usable, flow, tried, found);
        // The times of a backlog that grows depend on the number of simulated cycles only.
        found.truncate(if growing == Some(number) { before } else { found.len() });
        verdict
    });
    let flows = verdicts.collect();
    // The second case has late gates and the latest messages.
    let traffic = courses.get(1).map_or(&[][..], |course| &course.traffic);
    let load = |(side, traffic): (&&Side, &Option<Traffic>)| load(plan, side, traffic.as_ref(), warm_up);
    Judged { flows, interfaces: usable.iter().zip(traffic).map(load).collect() }
}

/// The cases with all flows.
const CASES: [Case; 2] = [Case { late: false, early: false }, Case { late: true, early: false }];

/// The results of a flow in a case.
struct Tried<'a> {
    /// Whether gates open as late as possible.
    late: bool,
    /// Whether the flow is behind all others.
    behind: bool,
    outcomes: &'a [Outcome],
}

/// Returns the flows that share a queue with another one. A message can be ready before the end of its sender's windows,
/// and then be before others in the queue of its class.
fn shared(flows: &[Planned]) -> Vec<usize> {
    let mut users: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let queues = |flow: &Planned| flow.way.iter().map(|side| (*side, flow.class)).collect::<BTreeSet<_>>();
    flows.iter().flat_map(queues).for_each(|queue| *users.entry(queue).or_default() += 1);
    (0..flows.len()).filter(|&flow| queues(&flows[flow]).iter().any(|queue| users[queue] > 1)).collect()
}

/// Returns the results of each of these flows behind all others.
fn behind(network: Network, flows: &[usize]) -> Result<BTreeMap<usize, Vec<Outcome>>, Box<Violation>> {
    if flows.is_empty() {
        return Ok(BTreeMap::new());
    }
    let early = Early::new(network).ok_or(Box::new(Violation::Unsettled))?;
    let mut frames = 0;
    let mut all = BTreeMap::new();
    for &flow in flows {
        all.insert(flow, early.behind(flow, &mut frames).ok_or(Box::new(Violation::Unsettled))?);
        if frames > LIMIT {
            return Err(Box::new(Violation::TooManyFrames { limit: LIMIT }));
        }
    }
    Ok(all)
}

/// Checks that each gate on the way is open for long enough at a stretch.
fn is_long_enough(sides: &[&Side], flow: &Planned, found: &mut Vec<Violation>) -> bool {
    let short = flow.way.iter().find_map(|side| {
        let Side { interface, punctual, .. } = sides[*side];
        let gates = punctual.gates.as_ref().filter(|gates| !gates.always(flow.class))?;
        let open = gates.longest(flow.class);
        let link = &punctual.link;
        let frame = link.time(link.wire_bytes(flow.flow.size.bytes(), interface.vlan.is_some()));
        let needed = frame + interface.opening;
        (open < needed.as_nanos()).then(|| Violation::Short {
            flow: flow.flow.name.clone(),
            sender: flow.flow.from.clone(),
            interface: interface.name.clone(),
            class: flow.flow.class.clone(),
            open: Duration::from_nanos(open),
            frame,
            opening: interface.opening,
        })
    });
    let is_long = short.is_none();
    found.extend(short);
    is_long
}

/// Reports a flow with frames that wait longer from cycle to cycle, and returns it.
fn unsteady(
    plan: &Plan,
    sides: &[&Side],
    flows: &[Planned],
    courses: &[Course],
    found: &mut Vec<Violation>,
) -> Option<usize> {
    let number = courses.iter().take(2).find_map(|course| course.unsteady)?;
    let Planned { flow, way, .. } = &flows[number];
    let interface = sides[way[0]].interface.name.clone();
    found.push(Violation::Unsteady { flow: flow.name.clone(), interface, hyperperiod: plan.cycle });
    Some(number)
}

/// The worst message of a flow under one of its limits.
#[derive(Clone, Copy)]
struct Worst<'a> {
    message: &'a Message<'a>,
    end: i64,
    behind: bool,
    count: usize,
}

/// Judges a flow, with its results in each case.
fn judge(sides: &[&Side], planned: &Planned, tried: Vec<Tried>, found: &mut Vec<Violation>) -> Option<FlowVerdict> {
    let Planned { flow, way, messages, .. } = planned;
    let last = &sides[*way.last()?].interface.name;
    let (mut latency, mut slack): (Option<i64>, Option<i64>) = (None, None);
    let mut worst: [Option<Worst>; 2] = [None, None];
    let mut lost: Option<(&Message, usize, &Loss, usize)> = None;
    for Tried { late, behind, outcomes } in &tried {
        let mut counts = [0, 0];
        for (message, outcome) in messages.iter().zip(*outcomes) {
            match outcome {
                Outcome::Sent(end) => {
                    latency = latency.max(Some(end - message.ready));
                    slack = Some(slack.map_or(i64::MAX, |slack| slack).min(message.limit - end));
                    if *end <= message.limit {
                        continue;
                    }
                    let rule = usize::from(message.receiver.is_some());
                    counts[rule] += 1;
                    let over = |worst: &Worst| end - message.limit > worst.end - worst.message.limit;
                    if worst[rule].as_ref().is_none_or(over) {
                        worst[rule] = Some(Worst { message, end: *end, behind: *behind, count: 0 });
                    }
                }
                Outcome::Lost { at, reason } => {
                    let count = lost.map_or(0, |(.., count)| count);
                    let first = lost.map_or((message, *at, reason), |(message, at, reason, _)| (message, at, reason));
                    lost = Some((first.0, first.1, first.2, count + usize::from(!late)));
                }
            }
        }
        for (worst, count) in worst.iter_mut().zip(counts) {
            worst.iter_mut().for_each(|worst| worst.count = worst.count.max(count));
        }
    }
    if let Some((message, at, reason, count)) = lost {
        found.push(Violation::Unsent {
            flow: flow.name.clone(),
            sender: flow.from.clone(),
            interface: sides[way[at]].interface.name.clone(),
            ready: Duration::from_nanos(message.ready),
            reason: reason.clone(),
            count,
        });
    }
    found.extend(worst.into_iter().flatten().map(|worst| too_late(planned, last, worst)));
    let nanos = |time: Option<i64>| time.filter(|_| lost.is_none()).map(Duration::from_nanos);
    Some(FlowVerdict {
        name: flow.name.clone(),
        interface: last.clone(),
        messages: messages.len(),
        frames: 1,
        latency: nanos(latency),
        slack: nanos(slack),
    })
}

fn too_late(planned: &Planned, interface: &str, worst: Worst) -> Violation {
    let Worst { message, end, behind, count } = worst;
    let (flow, sender) = (planned.flow.name.clone(), planned.flow.from.clone());
    let interface = interface.to_owned();
    let [ready, end, limit] = [message.ready, end, message.limit].map(Duration::from_nanos);
    match message.receiver {
        None => Violation::AfterDeadline { flow, sender, interface, ready, end, deadline: limit, behind, count },
        Some(receiver) => {
            let receiver = receiver.to_owned();
            Violation::AfterWindow { flow, sender, receiver, interface, ready, end, window: limit, behind, count }
        }
    }
}

/// Returns the frames of an interface in the judged cycle, by class.
fn load(plan: &Plan, side: &Side, traffic: Option<&Traffic>, warm_up: i64) -> InterfaceVerdict {
    let Side { interface, punctual, .. } = side;
    let cycle = plan.cycle.as_nanos() as f64;
    let class = |(number, class): (usize, &crate::network::Class)| {
        let own = traffic.into_iter().flat_map(|traffic| {
            let frames = traffic.frames.iter().zip(&traffic.turns).zip(&traffic.simulation.fates);
            frames.filter(|((frame, turn), _)| frame.class == number && **turn == warm_up)
        });
        let (mut frames, mut busy, mut waited) = (0, 0, Duration::ZERO);
        for ((frame, _), fate) in own {
            frames += 1;
            if let Fate::Sent { waited: time, .. } = fate {
                waited = waited.max(*time);
                busy += punctual.link.time(punctual.link.wire_bytes(frame.content, frame.tagged)).as_nanos();
            }
        }
        let queued = traffic.map_or(0, |traffic| traffic.simulation.classes[number].queued);
        let open = punctual.open_share(number);
        ClassLoad { name: class.name.clone(), frames, waited, queued, utilisation: busy as f64 / cycle, open }
    };
    let classes = punctual.classes.iter().enumerate().map(class).collect();
    InterfaceVerdict { name: interface.name.clone(), hyperperiod: plan.cycle, classes, slots: 0.0 }
}
