//! The part of a plan that one of several hosts has.

use std::collections::BTreeSet;

use crate::cpus::CpuSet;
use crate::plan::Plan;
use crate::system::{Clock, Flow, Host, Network, Process, Profile, Supply, System, Task};

/// A plan without a part for a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The system has several hosts, and none is named.
    #[error("the plan is for the hosts {}: name one of them", .0.join(", "))]
    Unnamed(Vec<String>),
    /// The system has no host of that name.
    #[error("the plan has no host `{name}`{}", known(.hosts))]
    Unknown {
        /// The name.
        name: String,
        /// The hosts of the system.
        hosts: Vec<String>,
    },
    /// No task and no group is on the host.
    #[error("the plan has no task and no group for host `{0}`")]
    Empty(String),
}

fn known(hosts: &[String]) -> String {
    match hosts {
        [] => ", it is for one host without a name".into(),
        hosts => format!(": its hosts are {}", hosts.join(", ")),
    }
}

impl Plan {
    /// Returns the plan as one host deploys it: with its tasks, groups, tables and gate lists, and with its own numbers
    /// of CPUs. A plan without hosts is its own part. `host` can be `None` if the system has at most one host.
    ///
    /// Flows and slots stay as far as the host sends their frames. A chain stays if all its tasks are on the host. The
    /// profile applies to each host that has CPUs of it.
    pub fn part(&self, host: Option<&str>) -> Result<Plan, PartError> {
        let hosts: Vec<String> = self.system.hosts.iter().map(|host| host.name.clone()).collect();
        let host = match (host, &self.system.hosts[..]) {
            (None, []) => return Ok(self.clone()),
            (None, [only]) => only,
            (None, _) => return Err(PartError::Unnamed(hosts)),
            (Some(name), _) => self.system.host(name).ok_or_else(|| PartError::Unknown { name: name.into(), hosts })?,
        };
        let mut part = self.clone();
        part.tables.retain_mut(|table| renumber(host, &mut table.cpu));
        part.tables.sort_by_key(|table| table.cpu);
        part.system = self.system_of(host);
        if part.system.tasks.is_empty() && part.system.groups.is_empty() {
            return Err(PartError::Empty(host.name.clone()));
        }
        let network = part.system.network.as_ref();
        part.gates.retain(|list| network.is_some_and(|network| network.interface(&list.interface).is_some()));
        Ok(part)
    }

    fn system_of(&self, host: &Host) -> System {
        let mut system = self.system.clone();
        let here = self.tables.iter().filter(|table| host.cpus.contains(&table.cpu));
        let served: BTreeSet<&str> = here.flat_map(|table| &table.windows).map(|window| window.task.as_str()).collect();
        let is_here = |task: &Task| match (&task.host, task.reservation()) {
            (Some(name), _) => *name == host.name,
            (None, Some(reservation)) => reservation.cpus.as_slice().iter().all(|cpu| host.cpus.contains(cpu)),
            (None, None) => served.contains(task.name.as_str()),
        };
        let on_host = |name: &Option<String>| name.as_ref().is_none_or(|name| *name == host.name);
        system.hosts.clear();
        system.cpus = host.cpus.iter().filter_map(|cpu| host.own_number(*cpu)).collect();
        system.cpus.sort_unstable();
        system.tasks.retain(is_here);
        system.groups.retain(|group| on_host(&group.host));
        system.namespaces.retain(|namespace| on_host(&namespace.host));
        system.load.retain(|process| on_host(&process.host));
        let tasks: Vec<String> = system.tasks.iter().map(|task| task.name.clone()).collect();
        let shared = system.resources().filter(|(_, tasks)| tasks.len() > 1);
        let shared: BTreeSet<String> = shared.map(|(name, _)| name.into()).collect();
        for task in &mut system.tasks {
            (task.host, task.cpus) = (None, own_numbers(host, &task.cpus));
            task.cpu = task.cpu.and_then(|cpu| host.own_number(cpu));
            task.after.retain(|name| tasks.contains(name));
            task.apart.retain(|name| tasks.contains(name));
            task.exclusive.retain(|resource| shared.contains(resource));
            if let Supply::Deadline(reservation) = &mut task.supply {
                reservation.cpus = own_numbers(host, &reservation.cpus);
            }
        }
        for group in &mut system.groups {
            (group.host, group.cpus) =
                (None, own_numbers(host, &group.cpus.iter().copied().collect()).as_slice().to_vec());
            group.tasks.iter_mut().for_each(|task| _ = renumber(host, &mut task.cpu));
            group.run.iter_mut().for_each(|process| process.move_to(host));
        }
        system.namespaces.iter_mut().for_each(|namespace| namespace.host = None);
        system.load.iter_mut().for_each(|process| process.move_to(host));
        system.profile = system.profile.take().and_then(|profile| {
            let cpus = own_numbers(host, &profile.cpus);
            (profile.cpus.is_empty() || !cpus.is_empty()).then_some(Profile { cpus, ..profile })
        });
        system.chains.retain(|chain| chain.path.iter().all(|name| tasks.contains(name)));
        if let Some(table) = &mut system.table {
            table.retain_mut(|window| renumber(host, &mut window.cpu));
        }
        system.network = system.network.take().and_then(|network| self.network_of(host, network, &system));
        if !system.has_windows() {
            (system.lead, system.reserve) = (None, None);
        }
        if !system.has_cycle() {
            (system.cycle, system.clock) = (None, Clock::Monotonic);
        }
        system
    }

    /// Returns the network of a host. `part` is the rest of its system.
    fn network_of(&self, host: &Host, mut network: Network, part: &System) -> Option<Network> {
        let here = |name: &str| part.task(name).is_some() || part.group(name).is_some();
        let whole = network.clone();
        let is_here = |name: &str| {
            let interface = whole.interface(name);
            interface.is_some_and(|interface| self.system.host_of_interface(interface) == Some(&host.name))
        };
        network.interfaces.retain(|interface| is_here(&interface.name));
        for interface in &mut network.interfaces {
            (interface.host, interface.cpu) = (None, interface.cpu.and_then(|cpu| host.own_number(cpu)));
        }
        network.slots.retain_mut(|slot| {
            slot.interface = whole.interface_of(slot).map(|interface| interface.name.clone());
            here(&slot.group) && slot.interface.as_deref().is_some_and(is_here)
        });
        let keep = |flow: &mut Flow| {
            let way = self.system.way(&whole, flow);
            let own = way.iter().map(|interface| interface.name.clone()).take_while(|name| is_here(name));
            // The last interfaces of the way can be those of other hosts, or ports of switches.
            flow.via = own.collect();
            flow.to = flow.to.take().filter(|to| here(to));
            here(&flow.from) && !flow.via.is_empty()
        };
        network.flows.retain_mut(keep);
        (!network.interfaces.is_empty()).then_some(network)
    }
}

impl Process {
    fn move_to(&mut self, host: &Host) {
        (self.host, self.cpu) = (None, self.cpu.and_then(|cpu| host.own_number(cpu)));
    }
}

/// Changes the number of a CPU to that of the host, and returns whether the host has the CPU.
fn renumber(host: &Host, cpu: &mut u32) -> bool {
    let own = host.own_number(*cpu);
    *cpu = own.unwrap_or(*cpu);
    own.is_some()
}

fn own_numbers(host: &Host, cpus: &CpuSet) -> CpuSet {
    cpus.as_slice().iter().filter_map(|cpu| host.own_number(*cpu)).collect()
}
