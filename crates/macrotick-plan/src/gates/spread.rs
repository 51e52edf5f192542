//! Ends of senders at instants at which the links of their frames are free.
//!
//! The windows of tasks are placed first, and many senders can end at the same time. Their frames then wait for each other
//! on every link, however idle the network is. So all flows are planned on the network alone, without queues
//! ([`crate::wire`]). Each sender gets a time that ends when its frame can start, and the windows are placed again.

use std::collections::{BTreeMap, BTreeSet};

use macrotick_model::wire::{ethernet, Link, Node, Wire, WireFlow};
use macrotick_model::{Duration, Flow, Interface, Network, Plan, Size, Speed, System, Task};

use super::limits::Limits;
use super::place::ways;
use super::GateError;
use crate::options::Clock;
use crate::wire::plan_until;

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
            let end = down(last.at - offset, plan.system.macrotick).min(task.deadline);
            let sooner = match task.jitter {
                // Jobs that always start at one instant have no choice.
                Some(Duration::ZERO) => Duration::ZERO,
                _ => Duration::from_nanos(last.slack.as_nanos() / 100 * share),
            };
            let first = down((end - task.wcet - sooner).max(Duration::ZERO), plan.system.macrotick);
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
    let system = &plan.system;
    let ways = ways(plan, network);
    let mut senders = BTreeSet::new();
    let mut all: Vec<(Duration, &Task, WireFlow)> = Vec::new();
    for (flow, way) in network.flows.iter().zip(&ways).filter(|(_, way)| !way.is_empty()) {
        let Some(task) = sender(system, flow) else { continue };
        let cpu = plan.cpus(&task.name).first().filter(|_| senders.insert(&task.name));
        all.push((flow.deadline, task, on_wire(system, network, (flow, way), task, cpu)));
    }
    let flows: Vec<WireFlow> = all.iter().map(|(.., flow)| flow.clone()).chain(slots(plan, network)).collect();
    let wire = wire(system, network, &ways);
    let courses = plan_until(&wire, &flows, clock).ok()?;
    let mut known = OnNetwork::default();
    for ((deadline, task, flow), course) in all.iter().zip(&courses) {
        for (link, start) in &course.hops {
            let Some(interface) = network.interfaces.get(*link) else { continue };
            known.instants.insert((flow.name.clone(), interface.name.clone()), *start + interface.path);
        }
        let Some(job) = flow.job else { continue };
        let at = course.hops[0].1 + job;
        let arrived = wire.arrival(course, flow).expect("a course has hops");
        known.ends.insert(task.name.clone(), End { at, slack: (*deadline - (arrived - at)).max(Duration::ZERO) });
    }
    Some(known)
}

/// Returns the task that sends the frames of a flow at the end of its windows.
fn sender<'a>(system: &'a System, flow: &Flow) -> Option<&'a Task> {
    let task = system.task(&flow.from).filter(|task| task.supply.is_windows())?;
    (flow.after.is_none() && !flow.express).then_some(task)
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

/// Returns a flow that begins with its sender's job on this CPU. Without one, the frame can start after the shortest time
/// of a job.
fn on_wire(
    system: &System,
    network: &Network,
    (flow, way): (&Flow, &[&Interface]),
    task: &Task,
    cpu: Option<u32>,
) -> WireFlow {
    let number = |one: &&Interface| network.interfaces.iter().position(|other| other.name == one.name);
    let cpu = cpu.and_then(|cpu| system.cpus.iter().position(|other| *other == cpu));
    let first = cpu.map(|index| network.interfaces.len() + index);
    let release = task.offset.unwrap_or(Duration::ZERO);
    let lost = if cpu.is_some() { Duration::ZERO } else { task.wcet };
    WireFlow {
        name: flow.name.clone(),
        from: 0,
        to: 0,
        route: Some(first.into_iter().chain(way.iter().filter_map(number)).collect()),
        job: cpu.map(|_| task.wcet),
        frame: ethernet(flow.size),
        period: task.period,
        ready: Some(release + lost),
        deadline: task.deadline + flow.deadline - lost,
    }
}

fn down(time: Duration, grid: Duration) -> Duration {
    time - time % grid
}
