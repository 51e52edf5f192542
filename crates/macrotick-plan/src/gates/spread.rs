//! Ends of senders at instants at which the links of their frames are free.
//!
//! The windows of tasks are placed first, and many senders can end at the same time. Their frames then wait for each other
//! on every link, however idle the network is. So all flows are planned on the network alone, without queues
//! ([`crate::wire`]). Each sender gets a time that ends when its frame can start, and the windows are placed again.

use std::collections::BTreeMap;

use macrotick_model::wire::{ethernet, Course, Link, Node, Wire, WireFlow};
use macrotick_model::{Duration, Flow, Interface, Network, Plan, Size, Speed, System, Task};

use super::limits::{latest_start, sender, Limits};
use super::place::ways;
use super::GateError;
use crate::demand::{round_down, round_up};
use crate::options::Clock;
use crate::wire::{add_to_wire, plan_until};

/// The times of the senders, of different lengths.
#[derive(Default)]
pub(super) struct Spread {
    /// The plan of the network, once it is known.
    on_network: Option<OnNetwork>,
    tried: usize,
}

/// A plan of the network alone.
#[derive(Default)]
struct OnNetwork {
    /// The end of each sender's jobs, by its name.
    ends: BTreeMap<String, End>,
    instants: Instants,
}

/// The instant of a frame at each interface of its way, within the period of its flow. Keys are the names of the flow and
/// of the interface.
pub(super) type Instants = BTreeMap<(String, String), Duration>;

/// The end of a sender's job, and how much sooner it may end.
#[derive(Clone, Copy)]
struct End {
    at: Duration,
    slack: Duration,
}

impl Spread {
    /// The shares of the slack that senders may end sooner, in percent. Without one, no frames meet, but other tasks on the
    /// CPU can be in the way.
    pub const SHARES: [i64; 3] = [0, 10, 50];

    /// Returns the next limits to try. `None` if there are no more, or if they cannot help: the error is none of a frame,
    /// or the network alone has no plan.
    pub fn next(&mut self, plan: &Plan, network: &Network, error: &GateError, clock: &Clock) -> Option<Limits> {
        error.flow()?;
        let share = *Self::SHARES.get(self.tried)?;
        self.tried += 1;
        let on_network = match &self.on_network {
            Some(known) => known,
            None => self.on_network.insert(on_network(plan, network, &clock.part(4))?),
        };
        let mut limits = Limits::default();
        for (name, last) in &on_network.ends {
            let task = plan.system.task(name).expect("a sender is a task");
            let offset = task.offset.unwrap_or(Duration::ZERO);
            let end = round_down(last.at - offset, plan.system.macrotick);
            let sooner = match task.jitter {
                // Jobs that always start at one instant have no choice.
                Some(Duration::ZERO) => Duration::ZERO,
                _ => Duration::from_nanos(last.slack.as_nanos() / 100 * share),
            };
            let first = round_down((end - task.wcet - sooner).max(Duration::ZERO), plan.system.macrotick);
            if end - first >= task.wcet {
                limits.spread(task, first, end);
            }
        }
        Some(limits)
    }

    /// Returns the instants of frames on the network, if the senders end for them.
    pub fn instants(&self) -> Option<&Instants> {
        self.on_network.as_ref().map(|known| &known.instants)
    }
}

/// Plans the network alone, with an end of each sender's job from the start of a period on. `None` if it has no plan.
fn on_network(plan: &Plan, network: &Network, clock: &Clock) -> Option<OnNetwork> {
    let ways = ways(plan, network);
    let wire = wire(&plan.system, network, &ways);
    let (first, later) = sent(&plan.system, network, &ways);
    let flows: Option<Vec<WireFlow>> = first.iter().map(|sent| sent.with_job(plan, network, &wire)).collect();
    let flows: Vec<WireFlow> = flows?.into_iter().chain(slots(plan, network)).collect();
    let courses = plan_until(&wire, &flows, clock).ok()?;
    let mut known = OnNetwork::default();
    for ((sent, flow), course) in first.iter().zip(&flows).zip(&courses) {
        if let Some(job) = flow.job {
            let at = course.hops[0].1 + job;
            known.ends.insert(sent.task.name.clone(), End { at, slack: sent.deadline() });
        }
        known.take(network, sent, &wire, flow, course);
    }
    // Frames with other ways follow the job of their sender, too. Where they have no room, their gates open later.
    let ends = later.iter().filter_map(|sent| Some((sent, known.ends.get(&sent.task.name)?.at)));
    let more: Vec<(&Sent, WireFlow)> = ends.map(|(sent, end)| (sent, sent.after_job(network, end))).collect();
    let added: Vec<WireFlow> = more.iter().map(|(_, flow)| flow.clone()).collect();
    if let Ok(added) = add_to_wire(&wire, (&flows, &courses), &added) {
        for ((sent, flow), course) in more.iter().zip(&added) {
            known.take(network, sent, &wire, flow, course);
        }
    }
    Some(known)
}

/// Returns the flows of senders with windows: for each sender those with the way of its first one, and then the others.
fn sent<'a>(
    system: &'a System,
    network: &'a Network,
    ways: &'a [Vec<&'a Interface>],
) -> (Vec<Sent<'a>>, Vec<Sent<'a>>) {
    let (mut first, mut later): (Vec<Sent>, Vec<Sent>) = (Vec::new(), Vec::new());
    for (flow, way) in network.flows.iter().zip(ways).filter(|(_, way)| !way.is_empty()) {
        let Some(task) = sender(system, flow) else { continue };
        let is_same = |one: &&Interface, other: &&Interface| one.name == other.name;
        match first.iter_mut().find(|sent| sent.task.name == task.name) {
            None => first.push(Sent { flows: vec![flow], way, task }),
            Some(sent)
                if sent.way.len() == way.len() && sent.way.iter().zip(way).all(|(one, other)| is_same(one, other)) =>
            {
                sent.flows.push(flow);
            }
            Some(_) => later.push(Sent { flows: vec![flow], way, task }),
        }
    }
    (first, later)
}

impl OnNetwork {
    /// Takes the instants of flows. Their frames follow each other directly.
    fn take(&mut self, network: &Network, sent: &Sent, wire: &Wire, flow: &WireFlow, course: &Course) {
        for (link, start) in &course.hops {
            let Some(interface) = network.interfaces.get(*link) else { continue };
            let mut at = *start + interface.path;
            for flow in &sent.flows {
                self.instants.insert((flow.name.clone(), interface.name.clone()), at);
                at += interface.sending_time(flow.size);
            }
        }
        let arrived = wire.arrival(course, flow).expect("a course has hops");
        if let Some(end) = self.ends.get_mut(&sent.task.name) {
            end.slack = end.slack.min((sent.deadline() - (arrived - end.at)).max(Duration::ZERO));
        }
    }
}

/// Flows of a sender with windows that have one way.
struct Sent<'a> {
    flows: Vec<&'a Flow>,
    way: &'a [&'a Interface],
    task: &'a Task,
}

impl Sent<'_> {
    fn deadline(&self) -> Duration {
        self.flows.iter().map(|flow| flow.deadline).min().unwrap_or(Duration::ZERO)
    }

    /// Returns the flows with their sender's job. Without a choice of its start, their frames wait at the sender. `None` if
    /// they cannot be in time even on an empty network.
    fn with_job(&self, plan: &Plan, network: &Network, wire: &Wire) -> Option<WireFlow> {
        let (task, frame, own) = (self.task, self.frame(), self.route(network));
        let release = task.offset.unwrap_or(Duration::ZERO);
        let job = round_up(task.wcet, plan.system.macrotick);
        let over: Duration = own.iter().map(|link| wire.hop(*link, frame)).sum();
        let latest = latest_start(task);
        let cpu = plan.cpus(&task.name).first();
        let index = cpu.and_then(|cpu| plan.system.cpus.iter().position(|other| *other == cpu));
        let (waits, index) = (task.offset.is_some() && task.jitter.is_some(), index?);
        let deadline = self.deadline() - if waits { latest } else { Duration::ZERO };
        if over > deadline {
            return None;
        }
        Some(match waits {
            true => WireFlow { route: Some(own), ready: Some(release + latest + job), deadline, ..self.on_wire(frame) },
            false => WireFlow {
                route: Some([network.interfaces.len() + index].into_iter().chain(own).collect()),
                job: Some(job),
                ready: Some(release),
                // No frame waits, so the latest start of a job decides.
                deadline: latest + job + over,
                ..self.on_wire(frame)
            },
        })
    }

    /// Returns the flows after the end of their sender's job.
    fn after_job(&self, network: &Network, end: Duration) -> WireFlow {
        let (route, deadline) = (Some(self.route(network)), self.deadline());
        WireFlow { route, ready: Some(end), deadline, ..self.on_wire(self.frame()) }
    }

    fn on_wire(&self, frame: Size) -> WireFlow {
        WireFlow {
            name: self.flows[0].name.clone(),
            from: 0,
            to: 0,
            route: None,
            job: None,
            frame,
            period: self.task.period,
            ready: None,
            deadline: self.deadline(),
        }
    }

    /// Returns the bytes of all frames. Each gate opens once for each of them.
    fn frame(&self) -> Size {
        let frames: u32 = self.flows.iter().map(|flow| ethernet(flow.size).bytes()).fold(0, u32::saturating_add);
        let opening = |one: &&Interface| {
            let per_byte = one.link_speed().time(1000).as_nanos().max(1);
            (one.opening.as_nanos() * 1000 / per_byte + 1) as u32
        };
        let opening = self.way.iter().map(opening).max().unwrap_or(0);
        Size::from_bytes(frames.saturating_add(opening.saturating_mul(self.flows.len() as u32 - 1)))
    }

    fn route(&self, network: &Network) -> Vec<usize> {
        let number = |one: &&Interface| network.interfaces.iter().position(|other| other.name == one.name);
        self.way.iter().filter_map(number).collect()
    }
}

/// Returns the interfaces as links, and then the CPUs. Each flow has its route, so one node stands for all.
fn wire(system: &System, network: &Network, ways: &[Vec<&Interface>]) -> Wire {
    let link = |speed, opening, gap, propagation| Link { from: 0, to: 0, speed, opening, gap, propagation };
    // A frame can come at any instant of its job, and sooner than a longest time from one interface to the next. Nothing
    // else is in the queue then, so the order of the frames is known.
    let uncertain = |one: &Interface| {
        let of = |(flow, way): (&Flow, &Vec<&Interface>)| {
            let hop = way.iter().position(|other| other.name == one.name)?;
            match hop.checked_sub(1) {
                Some(before) => Some(way[before].opening + way[before].delay),
                None => Some(sender(system, flow)?.wcet),
            }
        };
        network.flows.iter().zip(ways).filter_map(of).max().unwrap_or(Duration::ZERO)
    };
    // Two intervals follow on each other directly, or leave time for a frame.
    let between = |one: &Interface| if one.is_planned() { one.shortest_frame_time() } else { Duration::ZERO };
    let gap = |one: &Interface| uncertain(one).max(between(one));
    let interface = |one: &Interface| link(one.link_speed(), one.opening, gap(one), one.path + one.delay);
    let cpu = |_| link(Speed::VIRTUAL, Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let links = network.interfaces.iter().map(interface).chain(system.cpus.iter().map(cpu)).collect();
    let node = Node { name: "network".into(), forwards: Some(Duration::ZERO) };
    Wire { nodes: vec![node], links, tick: system.macrotick }
}

/// Returns the slots of the class `sync` as flows with fixed instants.
fn slots(plan: &Plan, network: &Network) -> Vec<WireFlow> {
    let (Some(class), Some(window)) = (network.sync, plan.system.sync()) else { return Vec::new() };
    let planned = network.interfaces.iter().enumerate().filter(|(_, one)| one.is_planned());
    let of = |(number, interface): (usize, &Interface)| {
        let length = class.slot(interface, window.length);
        let start = |(index, start)| WireFlow {
            name: format!("sync {} {index}", interface.name),
            from: 0,
            to: 0,
            route: Some(vec![number]),
            job: Some(length),
            frame: Size::from_bytes(0),
            period: plan.cycle,
            ready: Some(start),
            deadline: length + interface.path + interface.delay,
        };
        window.starts(plan.cycle).enumerate().map(start).collect::<Vec<_>>()
    };
    planned.flat_map(of).collect()
}
