//! Room for the threads that open gates: time of a CPU behind the windows of a sender.
//!
//! The windows of tasks are placed first, and can leave a thread no time between sender and deadline. The plan is then
//! made again, with a task that stands for the thread. The thread gets its windows in the time of this task.
//!
//! One flow gets a room at a time, and its sender keeps to its windows. If that does not help, all flows have rooms, and
//! the windows of all tasks are placed again.

use macrotick_model::{Chain, CpuSet, Duration, Flow, Network, Plan, System, Task};

use super::limits::Limits;
use super::place::{cpu, way};
use super::thread::WORK;
use super::GateError;
use crate::demand::round_up;

/// The start of the tasks' names. No name of a description begins with it.
const PREFIX: char = '\u{2}';

/// The room for the frames of a flow.
struct Room {
    flow: String,
    sender: String,
    receiver: Option<String>,
    /// The CPU of the thread.
    cpu: u32,
    host: Option<String>,
    /// The time from the end of the sender's windows until the thread is done, with nothing in the way.
    length: Duration,
    limit: Limit,
}

/// The latest end of a room.
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
        let (GateError::Late(_) | GateError::NoInterval { .. }) = error else { return false };
        let Some(network) = &plan.system.network else { return false };
        let Some(flow) = network.flows.iter().find(|flow| Some(flow.name.as_str()) == error.flow()) else {
            return false;
        };
        if self.are_all || self.rooms.iter().any(|room| room.flow == flow.name) {
            return false;
        }
        let Some((mut room, slack)) = self.room(plan, network, flow) else { return false };
        let sender = plan.system.task(&flow.from).expect("a room has a sender");
        room.limit = Limit::End(limits.keep(plan, sender) + room.length + slack);
        self.rooms.push(room);
        true
    }

    /// Replaces all rooms by one for each flow. Returns whether there is one at all, and this was not done before.
    pub fn add_all(&mut self, plan: &Plan) -> bool {
        let network = plan.system.network.as_ref().filter(|_| !self.are_all);
        let Some(network) = network else { return false };
        *self = Rooms { are_all: true, ..Rooms::default() };
        for flow in &network.flows {
            let room = self.room(plan, network, flow);
            self.rooms.extend(room.map(|(room, _)| room));
        }
        !self.rooms.is_empty()
    }

    /// Whether all flows have rooms.
    pub fn are_all(&self) -> bool {
        self.are_all
    }

    /// Returns the room for a flow: for the first interface with a lead on its way. The second value is how much later it
    /// may end than with nothing in the way.
    fn room(&mut self, plan: &Plan, network: &Network, flow: &Flow) -> Option<(Room, Duration)> {
        let (system, grid) = (&plan.system, plan.system.macrotick);
        let sender = system.task(&flow.from).filter(|task| task.supply.is_windows())?;
        let ways: Vec<_> = network.flows.iter().map(|flow| way(plan, network, flow)).collect();
        let own = way(plan, network, flow);
        let first = own.iter().find(|one| one.is_planned() && one.lead.is_some())?;
        if flow.after.is_some() || flow.express {
            return None;
        }
        let (lead, sending) = (first.lead?, first.sending_time(flow.size));
        let slack = flow.deadline - (first.path + lead + WORK.max(first.opening + sending) + first.delay);
        if slack < Duration::ZERO {
            return None;
        }
        let slack = Duration::from_nanos(slack.as_nanos() / grid.as_nanos() * grid.as_nanos());
        let (cpu, leader) = cpu(plan, network, &ways, first);
        let host_of = |cpu| system.host_of_cpus(&[cpu]).map(|host| host.name.clone());
        // The first interface with a lead can be one of another host, where a task cannot follow the sender.
        let host = host_of(cpu);
        if plan.cpus(&sender.name).as_slice().iter().any(|cpu| host_of(*cpu) != host) {
            return None;
        }
        self.pinned.extend(leader.map(|leader| (leader, cpu)));
        let length = round_up(first.path + lead + WORK, grid) + grid;
        let limit = Limit::Age(sender.wcet + length + slack);
        let (flow, receiver) = (flow.name.clone(), flow.to.clone());
        Some((Room { flow, sender: sender.name.clone(), receiver, cpu, host, length, limit }, slack))
    }

    /// Adds a task for each room. The system has the limits of senders and receivers.
    pub fn apply(&self, mut system: System) -> System {
        for (name, cpu) in &self.pinned {
            if let Some(task) = system.tasks.iter_mut().find(|task| task.name == *name && !task.migrate) {
                (task.cpu, task.cpus) = (None, CpuSet::from_iter([*cpu]));
            }
        }
        for room in &self.rooms {
            let Some(sender) = system.task(&room.sender) else { continue };
            let name = format!("{PREFIX}{}", room.flow);
            let deadline = match room.limit {
                Limit::End(end) => (end - sender.offset.unwrap_or(Duration::ZERO)).min(sender.period),
                Limit::Age(_) => sender.period,
            };
            let task = Task {
                deadline,
                offset: sender.offset,
                after: vec![room.sender.clone()],
                host: room.host.clone(),
                cpus: CpuSet::from_iter([room.cpu]),
                preemptible: Some(false),
                ..Task::named(name.clone(), sender.period, room.length)
            };
            let chain = |age| {
                let path = vec![room.sender.clone(), name.clone()];
                Chain { name: name.clone(), path, reaction: None, age: Some(age) }
            };
            let chain = if let Limit::Age(age) = room.limit { Some(chain(age)) } else { None };
            let receiver = room.receiver.as_ref().and_then(|receiver| system.task(receiver));
            let can_follow = |one: &&Task| {
                let is_like = one.period == task.period && one.supply.is_windows() && one.host == sender.host;
                is_like && !is_after(&system, sender, &one.name)
            };
            if let Some(receiver) = receiver.filter(can_follow).map(|receiver| receiver.name.clone()) {
                let follower = system.tasks.iter_mut().find(|task| task.name == receiver);
                follower.expect("just found").after.push(name);
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
    }
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
