//! Room for the threads that open gates: time of a CPU behind the windows of a sender.
//!
//! The windows of tasks are placed first, and can leave a thread no time between sender and deadline. The plan is then
//! made again, with a task that stands for the thread. The thread gets its windows in the time of this task.
//!
//! One flow gets a room at a time, and its sender keeps to its windows. If that does not help, all flows have rooms, and
//! the windows of all tasks are placed again.

use macrotick_model::{Chain, CpuSet, Duration, Flow, Interface, Network, Plan, System, Task};

use super::limits::{self, sender, Limits};
use super::place::{cpu, ways};
use super::thread::{is_served, WORK};
use super::GateError;
use crate::demand::{lead, round_down, round_up};
use crate::LEAST_WINDOW;

/// The start of the tasks' names. No name of a description begins with it.
const PREFIX: char = '\u{2}';

/// The room for the frames of a sender on an interface.
struct Room {
    interface: String,
    sender: String,
    flows: Vec<String>,
    receivers: Vec<String>,
    /// The CPU of the thread.
    cpu: u32,
    host: Option<String>,
    /// The time from the end of the sender's windows until the thread is done, with nothing in the way.
    length: Duration,
    limit: Limit,
}

/// The latest end of a room.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Limit {
    /// From the start of a period.
    End(Duration),
    /// From the start of the sender's job.
    Age(Duration),
}

/// The rooms with which a plan is made again.
#[derive(Default)]
pub(super) struct Rooms {
    rooms: Vec<Room>,
    /// The senders that must not go to another CPU: the threads would follow them.
    pinned: Vec<(String, u32)>,
    are_all: bool,
}

impl Rooms {
    /// Adds a room for the flow of this error. Returns whether this can help: the flow has no room yet, and its deadline
    /// leaves time for it. The sender keeps to the windows that it has now.
    pub fn add(&mut self, plan: &Plan, limits: &mut Limits, error: &GateError) -> bool {
        let Some(network) = &plan.system.network else { return false };
        let of_error = |flow: &Flow| Some(flow.name.as_str()) == error.flow();
        let Some(number) = network.flows.iter().position(of_error) else { return false };
        let flow = &network.flows[number];
        if self.are_all || self.rooms.iter().any(|room| room.flows.contains(&flow.name)) {
            return false;
        }
        let Some((mut room, slack)) = self.room(plan, network, &ways(plan, network), number) else { return false };
        let sender = plan.system.task(&flow.from).expect("a room has a sender");
        room.limit = Limit::End(limits.keep(plan, sender) + room.length + slack);
        self.insert(room);
        true
    }

    /// Replaces all rooms by those of all flows. Returns whether this can help: the error is one of a frame, there are
    /// such flows, and this was not done before.
    pub fn add_all(&mut self, plan: &Plan, error: &GateError) -> bool {
        let network = plan.system.network.as_ref().filter(|_| !self.are_all && error.flow().is_some());
        let Some(network) = network else { return false };
        *self = Rooms { are_all: true, ..Rooms::default() };
        let ways = ways(plan, network);
        for number in 0..ways.len() {
            if let Some((room, _)) = self.room(plan, network, &ways, number) {
                self.insert(room);
            }
        }
        !self.rooms.is_empty()
    }

    /// Removes the rooms of a sender, which has other windows from now on.
    pub fn forget(&mut self, sender: &str) {
        self.rooms.retain(|room| room.sender != sender);
    }

    pub fn is_empty(&self) -> bool {
        self.rooms.is_empty()
    }

    /// One window of the thread serves all frames of a sender. The order of the rooms does not depend on that of the flows.
    fn insert(&mut self, room: Room) {
        let same = |other: &&mut Room| (&other.interface, &other.sender) == (&room.interface, &room.sender);
        match self.rooms.iter_mut().find(same) {
            Some(other) => {
                other.length = other.length.max(room.length);
                if room.limit < other.limit {
                    other.limit = room.limit;
                }
                other.flows.extend(room.flows);
                other.receivers.extend(room.receivers);
            }
            None => self.rooms.push(room),
        }
        self.rooms.sort_by(|one, other| (&one.interface, &one.sender).cmp(&(&other.interface, &other.sender)));
    }

    /// Returns the room for the flow with a number: for the first interface with a gate thread on its way. The second value
    /// is how much later it may end than with nothing in the way.
    fn room(
        &mut self,
        plan: &Plan,
        network: &Network,
        ways: &[Vec<&Interface>],
        number: usize,
    ) -> Option<(Room, Duration)> {
        let (system, grid) = (&plan.system, plan.system.macrotick);
        let (flow, own) = (&network.flows[number], &ways[number]);
        let sender = sender(system, flow)?;
        let has_thread = |one: &&Interface| one.is_planned() && one.lead.is_some() && !is_served(system, &one.name);
        let hop = own.iter().position(has_thread)?;
        let first = own[hop];
        let time_over = |hops: &[&Interface]| -> Duration {
            hops.iter().map(|one| until_gate(one) + one.sending_time(flow.size) + one.delay).sum()
        };
        let slack = flow.deadline - time_over(own);
        if slack < Duration::ZERO {
            return None;
        }
        let slack = round_down(slack, grid);
        let (cpu, leader) = cpu(plan, network, ways, first);
        let host_of = |cpu| system.host_of_cpus(&[cpu]).map(|host| host.name.clone());
        // The first interface with a thread can be one of another host, where a task cannot follow the sender.
        let host = host_of(cpu);
        if plan.cpus(&sender.name).as_slice().iter().any(|cpu| host_of(*cpu) != host) {
            return None;
        }
        self.pinned.extend(leader.map(|leader| (leader, cpu)));
        let length = round_up(time_over(&own[..hop]) + until_gate(first) + WORK, grid) + grid;
        let room = Room {
            interface: first.name.clone(),
            sender: sender.name.clone(),
            flows: vec![flow.name.clone()],
            receivers: flow.to.iter().cloned().collect(),
            cpu,
            host,
            length,
            limit: Limit::Age(sender.wcet + length + slack),
        };
        Some((room, slack))
    }

    /// Adds a task for each room. The system has the limits of senders and receivers.
    pub fn apply(&self, mut system: System) -> System {
        for (name, cpu) in &self.pinned {
            if let Some(task) = system.tasks.iter_mut().find(|task| task.name == *name && !task.migrate) {
                (task.cpu, task.cpus) = (None, CpuSet::from_iter([*cpu]));
            }
        }
        // The solver keeps the lead of jobs free before a room, and then takes no time there.
        let spared = lead(&system);
        for (number, room) in self.rooms.iter().enumerate() {
            let Some(sender) = system.task(&room.sender) else { continue };
            let (name, release) = (format!("{PREFIX}{number}"), sender.offset.unwrap_or(Duration::ZERO));
            let deadline = match room.limit {
                Limit::End(end) => (end - release).min(sender.period),
                Limit::Age(_) => sender.period,
            };
            let ends = release + sender.wcet + room.length;
            let task = Task {
                deadline,
                offset: sender.offset,
                after: vec![room.sender.clone()],
                host: room.host.clone(),
                cpus: CpuSet::from_iter([room.cpu]),
                preemptible: Some(false),
                ..Task::named(
                    name.clone(),
                    sender.period,
                    (room.length - spared).max(round_up(LEAST_WINDOW, system.macrotick)),
                )
            };
            let chain = match room.limit {
                Limit::End(_) => None,
                Limit::Age(age) => {
                    let path = vec![room.sender.clone(), name.clone()];
                    Some(Chain { name: name.clone(), path, reaction: None, age: Some(age) })
                }
            };
            // A receiver with another period, or one that reads in the next period, follows no room.
            let follows = |one: &Task| {
                let is_like = one.period == task.period && one.supply.is_windows() && one.host == sender.host;
                is_like && latest_start(one).is_none_or(|start| start >= ends) && !is_after(&system, sender, &one.name)
            };
            let receivers = room.receivers.iter().filter_map(|name| system.task(name)).filter(|one| follows(one));
            let followers: Vec<String> = receivers.map(|one| one.name.clone()).collect();
            for follower in system.tasks.iter_mut().filter(|task| followers.contains(&task.name)) {
                follower.after.push(name.clone());
            }
            system.tasks.push(task);
            system.chains.extend(chain);
        }
        system
    }

    /// Takes the tasks out of a plan.
    pub fn remove(&self, plan: &mut Plan) {
        plan.system.tasks.retain(|task| !task.name.starts_with(PREFIX));
        plan.system.chains.retain(|chain| !chain.name.starts_with(PREFIX));
        for table in &mut plan.tables {
            table.windows.retain(|window| !window.task.starts_with(PREFIX));
        }
        plan.tables.retain(|table| !table.windows.is_empty());
    }
}

/// Returns the time from a frame's arrival at an interface until its gate can open.
fn until_gate(interface: &Interface) -> Duration {
    interface.path.max(interface.lead.unwrap_or(Duration::ZERO))
}

/// Returns the latest start of a job, from the start of a period; `None`: the solver chooses the release.
fn latest_start(task: &Task) -> Option<Duration> {
    let is_given = task.offset.is_some() || task.jitter.is_none();
    is_given.then(|| task.offset.unwrap_or(Duration::ZERO) + limits::latest_start(task))
}

/// Whether a task is another one, or comes after it.
fn is_after(system: &System, task: &Task, other: &str) -> bool {
    let mut before = vec![task];
    let mut seen = Vec::new();
    while let Some(task) = before.pop() {
        if task.name == other {
            return true;
        }
        if !seen.contains(&task.name.as_str()) {
            seen.push(&task.name);
            before.extend(task.after.iter().filter_map(|name| system.task(name)));
        }
    }
    false
}
