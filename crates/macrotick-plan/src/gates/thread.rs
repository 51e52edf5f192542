//! The kernel threads that open the gates of interfaces with a lead, and their windows.
//!
//! Such a thread begins a lead before an interval, holds until its start, and then sends what is queued. In the plan, it
//! is a group with windows around the starts of intervals. At other boundaries it runs under its own policy.

use std::collections::BTreeMap;

use macrotick_model::{CpuTable, Duration, Group, GroupThread, Interface, Plan, PoolOrder, System, Window, Windows};

use super::GateError;
use crate::demand::round_up;
use crate::reserve::{busy, room_for_windows};
use crate::MIN_WINDOW;

/// The time after the start of an interval in which the thread sends the frames that wait. In the lab, a frame takes at
/// most 8 us from the gate to the stack of the receiver.
pub(super) const WORK: Duration = Duration::from_micros(10);

/// A part of the cycle that something else has.
type Span = (Duration, Duration);

/// The thread of one interface.
struct Thread {
    cpu: u32,
    lead: Duration,
    /// Its windows within the cycle, sorted and disjoint. The last one may extend over the end of the cycle.
    windows: Vec<Span>,
}

/// The threads of all interfaces, and the time that the tables leave them.
pub(super) struct Threads {
    cycle: Duration,
    grid: Duration,
    /// The windows of each CPU with their leads, and the sync windows.
    taken: BTreeMap<u32, Vec<Span>>,
    threads: BTreeMap<String, Thread>,
}

impl Threads {
    /// Prepares the threads of these interfaces, each with its CPU. Threads that a group of the description serves need
    /// no windows of their own.
    pub fn new<'a>(plan: &Plan, interfaces: impl Iterator<Item = (&'a Interface, u32)>) -> Threads {
        let thread = |(interface, cpu): (&Interface, u32)| {
            let lead = interface.lead.filter(|_| !is_served(&plan.system, &interface.name))?;
            Some((interface.name.clone(), Thread { cpu, lead, windows: Vec::new() }))
        };
        let threads: BTreeMap<String, Thread> = interfaces.filter_map(thread).collect();
        let cpus = threads.values().map(|thread| thread.cpu);
        let taken = cpus.map(|cpu| (cpu, taken(plan, cpu))).collect();
        Threads { cycle: plan.cycle, grid: plan.system.macrotick, taken, threads }
    }

    /// Returns the earliest instant from `at` on at which the thread of the interface can open a gate, within one cycle.
    /// An interface without such a thread can do this at any time.
    pub fn earliest(&self, interface: &str, at: Duration) -> Option<Duration> {
        let Some(thread) = self.threads.get(interface) else { return Some(at) };
        let mut start = at;
        while start - at <= self.cycle {
            match self.obstacle(interface, thread, start) {
                Some(step) => start += step,
                None => return Some(start),
            }
        }
        None
    }

    /// Returns the times that the thread of the interface needs before and after a gate opens.
    pub fn work(&self, interface: &str) -> Option<(Duration, Duration)> {
        self.threads.get(interface).map(|thread| (thread.lead, WORK))
    }

    fn window(&self, thread: &Thread, at: Duration) -> Span {
        let from = at - thread.lead;
        let below = Duration::from_nanos(from.as_nanos().div_euclid(self.grid.as_nanos()) * self.grid.as_nanos());
        (below, round_up(at + WORK, self.grid))
    }

    /// Returns how much later the gate must open at least.
    fn obstacle(&self, interface: &str, thread: &Thread, at: Duration) -> Option<Duration> {
        let (from, to) = self.window(thread, at);
        let length = to - from;
        let from = Duration::from_nanos(from.as_nanos().rem_euclid(self.cycle.as_nanos()));
        let to_end = self.cycle - from;
        if length > to_end && (to_end < MIN_WINDOW || length - to_end < MIN_WINDOW) {
            return Some(to_end);
        }
        let others = self.threads.iter().filter(|(name, other)| *name != interface && other.cpu == thread.cpu);
        let others = others.flat_map(|(_, other)| &other.windows);
        let spans = self.taken[&thread.cpu].iter().chain(others);
        let turns = [-self.cycle, Duration::ZERO, self.cycle];
        let around = spans.flat_map(|(start, end)| turns.map(|turn| (*start + turn, *end + turn)));
        let meets = around.filter(|(start, end)| *start < from + length && *end > from);
        meets.map(|(_, end)| end - from).max()
    }

    /// Takes the window for a gate that opens at this instant.
    pub fn take(&mut self, interface: &str, at: Duration) {
        let Some(thread) = self.threads.get(interface) else { return };
        let (from, to) = self.window(thread, at);
        let start = Duration::from_nanos(from.as_nanos().rem_euclid(self.cycle.as_nanos()));
        let window = (start, start + (to - from));
        let thread = self.threads.get_mut(interface).expect("just found");
        thread.windows.push(window);
    }
}

/// Checks that the windows of the threads leave each CPU the time that the kernel keeps from windows.
pub(super) fn check(plan: &Plan, threads: &Threads) -> Result<(), GateError> {
    let cycle = plan.cycle;
    for (interface, thread) in &threads.threads {
        let of = |thread: &Thread| joined(thread.windows.clone(), cycle).iter().map(|(from, to)| *to - *from).sum();
        let gates: Duration = threads.threads.values().filter(|other| other.cpu == thread.cpu).map(of).sum();
        let windows = busy(&plan.system, &plan.tables, thread.cpu);
        let most = room_for_windows(&plan.system, thread.cpu, cycle);
        if gates > Duration::ZERO && windows + gates > most {
            return Err(GateError::Thread {
                interface: interface.clone(),
                cpu: thread.cpu,
                gates,
                windows,
                most,
                cycle,
            });
        }
    }
    Ok(())
}

/// Whether a group of the description lists the thread.
pub(super) fn is_served(system: &System, interface: &str) -> bool {
    let is_it = |thread: &GroupThread| matches!(thread, GroupThread::Gate(name) if name == interface);
    system.groups.iter().any(|group| group.kernel_threads.iter().any(is_it))
}

/// Returns the system without the groups that [`add`] has added. The system of a plan has them, and it can be planned
/// again.
pub(super) fn without_added(system: &System) -> System {
    let mut bare = system.clone();
    bare.groups.retain(|group| !is_added(system, group));
    bare
}

/// Whether [`add`] has added the group. One by hand with the same name, keys and thread is as good as added, unless a
/// table by hand has its windows.
fn is_added(system: &System, group: &Group) -> bool {
    let [GroupThread::Gate(interface)] = group.kernel_threads.as_slice() else { return false };
    let others: Vec<Group> = system.groups.iter().filter(|other| other.name != group.name).cloned().collect();
    let (Some(windows), [cpu]) = (&group.windows, group.cpus.as_slice()) else { return false };
    let name = free_name(&System { groups: others, ..system.clone() }, interface);
    let by_hand = system.table.iter().flatten().any(|window| window.task == group.name);
    !by_hand && *group == gate_group(system, name, *cpu, interface, windows.period, windows.length)
}

fn gate_group(system: &System, name: String, cpu: u32, interface: &str, cycle: Duration, length: Duration) -> Group {
    Group {
        host: system.host_of_cpus(&[cpu]).map(|host| host.name.clone()),
        windows: Some(Windows { order: PoolOrder::Fifo, slack: true, ..Windows::new(cycle, length) }),
        kernel_threads: vec![GroupThread::Gate(interface.into())],
        ..Group::named(name, vec![cpu])
    }
}

/// Returns the time of a CPU that its windows, their leads, and sync windows have.
fn taken(plan: &Plan, cpu: u32) -> Vec<Span> {
    let lead = crate::demand::lead(&plan.system);
    let windows = plan.tables.iter().filter(|table| table.cpu == cpu).flat_map(|table| &table.windows);
    let windows = windows.map(|window| {
        let lead = if window.activate { lead } else { Duration::ZERO };
        (window.offset - lead, window.end())
    });
    let sync = plan.system.sync();
    let syncs = sync.iter().flat_map(|sync| sync.starts(plan.cycle).map(|start| (start, start + sync.length)));
    windows.chain(syncs).collect()
}

/// Adds a group for each thread to the plan, with its windows in the table of its CPU.
pub(super) fn add(plan: &mut Plan, threads: Threads) {
    for (interface, Thread { cpu, windows, .. }) in threads.threads {
        let spans = joined(windows, plan.cycle);
        if spans.is_empty() {
            continue;
        }
        let name = free_name(&plan.system, &interface);
        let length = spans.iter().map(|(from, to)| *to - *from).sum();
        let table = match plan.tables.iter().position(|table| table.cpu >= cpu) {
            Some(index) if plan.tables[index].cpu == cpu => index,
            other => {
                let index = other.unwrap_or(plan.tables.len());
                plan.tables.insert(index, CpuTable::new(cpu, Vec::new()));
                index
            }
        };
        let table = &mut plan.tables[table];
        table.windows.extend(spans.into_iter().map(|(from, to)| Window::new(&name, from, to - from)));
        table.windows.sort_by_key(|window| window.offset);
        let group = gate_group(&plan.system, name, cpu, &interface, plan.cycle, length);
        plan.system.groups.push(group);
    }
}

/// Cuts windows at the end of the cycle, and joins those that overlap or touch.
fn joined(windows: Vec<Span>, cycle: Duration) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (from, to) in windows {
        spans.push((from, to.min(cycle)));
        spans.extend((to > cycle).then(|| (Duration::ZERO, to - cycle)));
    }
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

fn free_name(system: &System, interface: &str) -> String {
    let taken = system.names();
    let names = std::iter::successors(Some(format!("gate-{interface}")), |name| Some(format!("{name}-")));
    let mut names = names.map(|name| match name.len() {
        0..=31 => name,
        // The interface has a long name: the end of it is as good as its start.
        length => name[length - 31..].trim_start_matches(['-', '.']).to_owned(),
    });
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}
