//! The hosts of a system with several machines.

use super::{InterfaceEnd, Supply, System, MAX_NAME};
use crate::cpus::CpuSet;
use crate::keys::{object, Kind};
use crate::system::Interface;

object! {
    /// A machine of a system with several ones.
    #[derive(Eq)]
    pub struct Host: "a host" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required = "The unique name of the host.";
        "cpus" cpus: Vec<u32> [Kind::CPUS], required
            = "Its CPUs. A description numbers the CPUs of all hosts together, so each number belongs to one host.";
        "own" own: Vec<u32> [Kind::CPUS], or "0, 1 and so on" { (0..cpus.len() as u32).collect() }
            = "The numbers that the host itself gives to these CPUs, in the same order.";
    }
}

impl Host {
    /// Returns the number that the host gives to a CPU; `None` if it is not one of its CPUs.
    pub fn own_number(&self, cpu: u32) -> Option<u32> {
        let place = self.cpus.iter().position(|&other| other == cpu)?;
        self.own.get(place).copied()
    }
}

impl System {
    /// Returns the host of that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Returns the CPUs of a host, or of the whole system for `None` and for an unknown host.
    pub fn cpus_on(&self, host: Option<&str>) -> CpuSet {
        let cpus = host.and_then(|name| self.host(name)).map_or(&self.cpus, |host| &host.cpus);
        cpus.iter().copied().collect()
    }

    /// Returns the host that has all of these CPUs; `None` if there are none or if no host has all of them.
    pub fn host_of_cpus(&self, cpus: &[u32]) -> Option<&Host> {
        self.hosts.iter().find(|host| !cpus.is_empty() && cpus.iter().all(|cpu| host.cpus.contains(cpu)))
    }

    /// Returns the name of the host of an interface; `None` for the port of a switch, and without hosts.
    pub fn host_of_interface<'a>(&'a self, interface: &'a Interface) -> Option<&'a str> {
        match &interface.end {
            InterfaceEnd::Device(_) => interface.host.as_deref(),
            InterfaceEnd::Namespace(name) | InterfaceEnd::Port(name) => self.namespace(name)?.host.as_deref(),
            InterfaceEnd::Switch(_) => None,
        }
    }

    /// Returns the name of the host of a task or a group; `None` if the solver chooses it, and without hosts.
    pub fn host_of(&self, name: &str) -> Option<&str> {
        let task = self.task(name).map(|task| &task.host);
        task.or_else(|| self.group(name).map(|group| &group.host))?.as_deref()
    }

    /// Fills in the CPUs of a system with hosts, and the hosts that follow from CPUs and namespaces.
    pub(super) fn complete_hosts(&mut self) {
        if self.hosts.is_empty() {
            return;
        }
        if self.cpus == [0] {
            self.cpus = self.hosts.iter().flat_map(|host| host.cpus.iter().copied()).collect();
            self.cpus.sort_unstable();
            self.cpus.dedup();
        }
        let known = self.clone();
        let only = known.hosts.first().filter(|_| known.hosts.len() == 1).map(|host| host.name.clone());
        let found = |host: Option<String>, cpus: &[u32], namespace: Option<&str>| {
            let of_cpus = || known.host_of_cpus(cpus).map(|host| host.name.clone());
            let of_namespace = || known.namespace(namespace?)?.host.clone();
            host.or_else(of_cpus).or_else(of_namespace).or_else(|| only.clone())
        };
        self.namespaces.iter_mut().for_each(|namespace| namespace.host = found(namespace.host.take(), &[], None));
        for task in &mut self.tasks {
            let cpus = match &task.supply {
                Supply::Deadline(reservation) => reservation.cpus.clone(),
                Supply::Windows => task.cpu.map_or_else(|| task.cpus.clone(), |cpu| CpuSet::from_iter([cpu])),
            };
            task.host = found(task.host.take(), cpus.as_slice(), task.namespace.as_deref());
        }
        for group in &mut self.groups {
            let namespace = group.run.iter().find_map(|process| process.namespace.as_deref());
            group.host = found(group.host.take(), &group.cpus, namespace);
        }
        for process in &mut self.load {
            let cpu: Vec<u32> = process.cpu.into_iter().collect();
            process.host = found(process.host.take(), &cpu, process.namespace.as_deref());
        }
        let interfaces = self.network.iter_mut().flat_map(|network| &mut network.interfaces);
        for interface in interfaces.filter(|one| matches!(one.end, InterfaceEnd::Device(_))) {
            let cpu: Vec<u32> = interface.cpu.into_iter().collect();
            interface.host = found(interface.host.take(), &cpu, None);
        }
    }
}
