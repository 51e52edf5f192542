//! Rules of systems with several hosts.

use super::{Rules, CPUS, GROUP_NAMES, HOST_NAMES, INTERFACE_NAMES, NAMESPACE_NAMES, TASK_NAMES};
use crate::parse::nearest_name;
use crate::system::{Chain, Flow, Group, GroupThread, Interface, InterfaceEnd, Network, Process, Task};

const HOSTS: &str = "hosts";

impl Rules<'_> {
    pub(super) fn hosts(&mut self) {
        let system = self.system;
        for index in 0..system.hosts.len() {
            self.host(index);
        }
        if system.hosts.len() > 1 && system.sync().is_none() && system.has_cycle() {
            self.add(HOSTS, &["clock"], "tables of several hosts need a clock that the hosts share").hint =
                Some("add `clock: {tai: {period: TIME, length: TIME, bound: TIME}}`".into());
        }
        for (index, cpu) in system.cpus.iter().enumerate().filter(|_| !system.hosts.is_empty()) {
            if system.host_of_cpus(&[*cpu]).is_none() {
                self.add(format!("{CPUS}[{index}]"), &[HOSTS], format!("CPU {cpu} belongs to no host")).hint =
                    Some("list it in `cpus` of a host, or leave out `cpus` of the system".into());
            }
        }
        for (index, task) in system.tasks.iter().enumerate() {
            self.host_of_task(&format!("tasks[{index}]"), task);
        }
        for (index, group) in system.groups.iter().enumerate() {
            let path = format!("groups[{index}]");
            self.on_host(&path, &group.host, &group.cpus, ("group", &group.name));
            self.gate_threads_on_host(&path, group);
            for (number, process) in group.run.iter().enumerate() {
                let cpus: Vec<u32> = process.cpu.into_iter().collect();
                let host = process.host.as_ref().or(group.host.as_ref()).cloned();
                self.same_host(&format!("{path}.run[{number}]"), &host, process.namespace.as_deref(), &process.name);
                self.host_in_group(&format!("{path}.run[{number}]"), group, process);
                self.cpus_on_host(&format!("{path}.run[{number}].cpu"), &host, &cpus, ("process", &process.name));
            }
        }
        for (index, process) in system.load.iter().enumerate() {
            let (path, cpus): (_, Vec<u32>) = (format!("load[{index}]"), process.cpu.into_iter().collect());
            self.on_host(&path, &process.host, &cpus, ("process", &process.name));
            self.same_host(&path, &process.host, process.namespace.as_deref(), &process.name);
            self.has_more(&path, &process.host, ("process", &process.name));
        }
        for (index, namespace) in system.namespaces.iter().enumerate() {
            self.on_host(&format!("namespaces[{index}]"), &namespace.host, &[], ("namespace", &namespace.name));
        }
        for (index, chain) in system.chains.iter().enumerate() {
            self.hosts_of_chain(&format!("chains[{index}]"), chain);
        }
        if let Some(network) = &system.network {
            self.hosts_of_network(network);
        }
    }

    fn host(&mut self, index: usize) {
        let (all, path) = (&self.system.hosts, format!("{HOSTS}[{index}]"));
        let host = &all[index];
        for (number, cpu) in host.cpus.iter().enumerate() {
            let at = format!("{path}.cpus[{number}]");
            if host.cpus[..number].contains(cpu) {
                self.add(at, &[], format!("CPU {cpu} is listed twice"));
            } else if let Some(other) = all[..index].iter().find(|other| other.cpus.contains(cpu)) {
                let text = format!("CPU {cpu} already belongs to host `{}`", other.name);
                self.add(at, &[HOST_NAMES], text).hint =
                    Some("the description numbers the CPUs of all hosts together: `own` has the host's numbers".into());
            } else {
                self.cpu(&at, *cpu);
            }
        }
        if host.own.len() != host.cpus.len() {
            let (name, count) = (&host.name, host.cpus.len());
            let noun = if count == 1 { "CPU" } else { "CPUs" };
            let text = format!("host `{name}` has {count} {noun}, but {} in `own`", host.own.len());
            self.add(format!("{path}.own"), &[&format!("{path}.cpus")], text);
        }
        if let Some(twice) = host.own.iter().enumerate().find(|(at, cpu)| host.own[..*at].contains(cpu)) {
            self.add(format!("{path}.own"), &[], format!("CPU {} is listed twice", twice.1));
        }
    }

    fn host_of_task(&mut self, path: &str, task: &Task) {
        let cpus: Vec<u32> = match task.reservation() {
            Some(reservation) => reservation.cpus.as_slice().to_vec(),
            None => task.cpu.map_or_else(|| task.cpus.as_slice().to_vec(), |cpu| vec![cpu]),
        };
        let what = ("task", task.name.as_str());
        self.known_host(path, &task.host);
        self.cpus_on_host(&format!("{path}.host"), &task.host, &cpus, what);
        self.same_host(path, &task.host, task.namespace.as_deref(), &task.name);
        let several = self.system.hosts.len() > 1 && task.host.is_none();
        let reason = match task.reservation() {
            _ if !several => None,
            Some(reservation) if reservation.cpus.is_several() => Some("migrates between its CPUs"),
            None if task.migrate => Some("may migrate"),
            _ => None,
        };
        if let Some(reason) = reason {
            let lacks = if cpus.is_empty() { "it has no `host`" } else { "its CPUs are on several hosts" };
            let text = format!("task `{}` {reason}, and {lacks}", task.name);
            self.add(path, &[&format!("{path}.host"), HOSTS], text).hint = Some(match cpus.is_empty() {
                true => "add `host: NAME`".into(),
                false => "list CPUs of one host only".into(),
            });
        }
    }

    /// Checks that a group serves only gate threads of its host.
    fn gate_threads_on_host(&mut self, path: &str, group: &Group) {
        let system = self.system;
        for (index, thread) in group.kernel_threads.iter().enumerate() {
            let GroupThread::Gate(name) = thread else { continue };
            let interface = system.network.as_ref().and_then(|network| network.interface(name));
            let there = interface.and_then(|interface| system.host_of_interface(interface));
            if let (Some(there), Some(host)) = (there, group.host.as_deref().filter(|host| Some(*host) != there)) {
                let text = format!("group `{}` is on host `{host}`, and interface `{name}` on `{there}`", group.name);
                self.add(format!("{path}.kernel-threads[{index}]"), &[GROUP_NAMES, INTERFACE_NAMES, HOSTS], text);
            }
        }
    }

    /// Checks something that is on exactly one host.
    fn on_host(&mut self, path: &str, host: &Option<String>, cpus: &[u32], what: (&str, &str)) {
        self.known_host(path, host);
        self.cpus_on_host(&format!("{path}.cpus"), host, cpus, what);
        if self.system.hosts.len() > 1 && host.is_none() {
            // Without `cpus`, a group has got all CPUs.
            let is_unsaid = cpus.is_empty() || *cpus == self.system.cpus;
            let (reason, hint) = match cpus {
                _ if is_unsaid => ("no `host`".into(), "add `host: NAME`"),
                [cpu] => (format!("CPU {cpu}, which belongs to no host"), "list the CPU in `cpus` of a host"),
                _ => ("CPUs of several hosts".into(), "list CPUs of one host only"),
            };
            self.add(path, &[&format!("{path}.host"), HOSTS], format!("{} `{}` has {reason}", what.0, what.1)).hint =
                Some(hint.into());
        }
    }

    fn host_in_group(&mut self, path: &str, group: &Group, process: &Process) {
        self.known_host(path, &process.host);
        let (Some(host), Some(own)) = (&group.host, &process.host) else { return };
        if host != own && self.system.host(own).is_some() {
            let text = format!("`{}` is on host `{own}`, and its group `{}` on `{host}`", process.name, group.name);
            self.add(format!("{path}.host"), &[GROUP_NAMES, HOST_NAMES], text).hint = Some("leave out `host`".into());
        }
    }

    /// Checks that a host deploys something: a plan without tasks and groups is none.
    fn has_more(&mut self, path: &str, host: &Option<String>, (kind, name): (&str, &str)) {
        let system = self.system;
        let is_here = |other: &Option<String>| other.is_none() || other == host;
        let some = system.tasks.iter().any(|task| is_here(&task.host))
            || system.groups.iter().any(|group| is_here(&group.host));
        if let Some(host) = host.as_ref().filter(|host| !some && system.host(host).is_some()) {
            let text = format!("{kind} `{name}` is on host `{host}`, which has neither a task nor a group");
            self.add(path, &[TASK_NAMES, GROUP_NAMES, HOST_NAMES, "tasks", "groups"], text).hint =
                Some("give the host a task, or leave the host out".into());
        }
    }

    fn known_host(&mut self, path: &str, host: &Option<String>) {
        let Some(name) = host.as_ref().filter(|name| self.system.host(name).is_none()) else { return };
        let near = nearest_name(name, self.system.hosts.iter().map(|host| host.name.as_str()));
        let hint = match self.system.hosts.is_empty() {
            true => Some("the description has no `hosts`".into()),
            false => near.map(|near| format!("did you mean `{near}`?")),
        };
        self.add(format!("{path}.host"), &[HOST_NAMES, HOSTS], format!("no host is named `{name}`")).hint = hint;
    }

    fn cpus_on_host(&mut self, path: &str, host: &Option<String>, cpus: &[u32], (kind, name): (&str, &str)) {
        let Some(host) = host.as_deref().and_then(|name| self.system.host(name)) else { return };
        if let Some(cpu) = cpus.iter().find(|cpu| !host.cpus.contains(cpu)) {
            let text = format!("CPU {cpu} of {kind} `{name}` is not a CPU of host `{}`", host.name);
            self.add(path, &[HOST_NAMES, HOSTS, CPUS], text);
        }
    }

    /// Checks that a process is on the host of its namespace.
    fn same_host(&mut self, path: &str, host: &Option<String>, namespace: Option<&str>, name: &str) {
        let Some(namespace) = namespace.and_then(|name| self.system.namespace(name)) else { return };
        if let (Some(host), Some(other)) = (host, namespace.host.as_ref().filter(|other| Some(*other) != host.as_ref()))
        {
            let text = format!("`{name}` is on host `{host}`, and its namespace `{}` on `{other}`", namespace.name);
            self.add(format!("{path}.namespace"), &[NAMESPACE_NAMES, HOST_NAMES], text);
        }
    }

    /// Checks that something carries a value from one host to the next.
    fn hosts_of_chain(&mut self, path: &str, chain: &Chain) {
        let system = self.system;
        let flows = system.network.iter().flat_map(|network| &network.flows);
        for (number, pair) in chain.path.windows(2).enumerate() {
            let [from, to] = [&pair[0], &pair[1]];
            let (one, other) = (system.host_of(from), system.host_of(to));
            let is_sent = flows.clone().any(|flow| flow.from == *from && flow.to.as_ref() == Some(to));
            if system.hosts.len() < 2 || is_sent || (one.is_some() && one == other) {
                continue;
            }
            let at = format!("{path}.path[{}]", number + 1);
            let needs = [TASK_NAMES, "tasks", "network.flows", HOSTS];
            if let (Some(one), Some(other)) = (one, other) {
                let text =
                    format!("`{from}` is on host `{one}` and `{to}` on `{other}`, and no flow takes the value there");
                self.add(at, &needs, text).hint = Some(format!("add a flow from `{from}` to `{to}`"));
            } else {
                let text = format!("chain `{}`: the hosts of `{from}` and `{to}` may differ", chain.name);
                self.add(at, &needs, text).hint = Some("set `host` of both, or add a flow between them".into());
            }
        }
    }

    fn hosts_of_network(&mut self, network: &Network) {
        let several = self.system.hosts.len() > 1;
        for (index, interface) in network.interfaces.iter().enumerate() {
            let path = format!("network.interfaces[{index}]");
            match interface.end {
                InterfaceEnd::Device(_) => {
                    let cpus: Vec<u32> = interface.cpu.into_iter().collect();
                    self.on_host(&path, &interface.host, &cpus, ("interface", &interface.name));
                    if interface.gates.is_some() {
                        self.has_more(&path, &interface.host, ("interface", &interface.name));
                    }
                }
                _ => self.no_host(&path, interface),
            }
        }
        for (index, slot) in network.slots.iter().enumerate() {
            let there = network.interface_of(slot).and_then(|interface| self.system.host_of_interface(interface));
            let group = self.system.host_of(&slot.group);
            if let (Some(there), Some(group)) = (there, group.filter(|group| Some(*group) != there)) {
                let text =
                    format!("group `{}` is on host `{group}`, and the interface of its slot on `{there}`", slot.group);
                self.add(format!("network.slots[{index}]"), &[GROUP_NAMES, INTERFACE_NAMES, "groups", HOSTS], text);
            }
        }
        for (index, flow) in network.flows.iter().enumerate().filter(|_| several) {
            self.hosts_of_flow(&format!("network.flows[{index}]"), network, flow);
        }
    }

    fn no_host(&mut self, path: &str, interface: &Interface) {
        if matches!(interface.end, InterfaceEnd::Switch(_)) && self.system.hosts.is_empty() {
            let text = format!("interface `{}` is on a switch, but the description has no `hosts`", interface.name);
            self.add(path, &[HOSTS, INTERFACE_NAMES], text).hint =
                Some("add `hosts: [{name: NAME, cpus: [...]}]`".into());
        }
        let given = [("host", interface.host.is_some()), ("lead", interface.lead.is_some())];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let text = match (&interface.end, key) {
                (InterfaceEnd::Switch(_), "host") => "a switch is not on a host",
                (InterfaceEnd::Switch(_), _) => "a switch has no gate thread",
                (_, "host") => "a namespace has its host",
                _ => continue,
            };
            self.add(format!("{path}.{key}"), &[INTERFACE_NAMES], text).hint = Some(format!("leave out `{key}`"));
        }
    }

    fn hosts_of_flow(&mut self, path: &str, network: &Network, flow: &Flow) {
        let system = self.system;
        let needs = [TASK_NAMES, INTERFACE_NAMES, "tasks", "groups", HOSTS];
        let ends = [("from", Some(&flow.from)), ("to", flow.to.as_ref())];
        for (key, name) in ends.into_iter().filter_map(|(key, name)| Some((key, name?))) {
            if system.task(name).is_some() && system.host_of(name).is_none() {
                self.add(format!("{path}.{key}"), &needs, format!("task `{name}` has no `host`")).hint =
                    Some("set it: the way of a flow begins and ends on a host".into());
            }
        }
        let first = system.way(network, flow).first().copied();
        let there = first.and_then(|interface| system.host_of_interface(interface));
        if let (Some(first), Some(from)) = (first, system.host_of(&flow.from)) {
            if there != Some(from) {
                let text = format!(
                    "flow `{}` starts at interface `{}`, but `{}` is on host `{from}`",
                    flow.name, first.name, flow.from
                );
                self.add(format!("{path}.via"), &needs, text).hint =
                    Some(format!("list an interface of `{from}` first"));
            }
        }
    }
}
