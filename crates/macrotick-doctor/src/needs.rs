//! The needs of a description: which checks its plan depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use macrotick_host::network::device_of;
use macrotick_model::{
    Backend, Clock, Duration, Flow, Host, Interface, InterfaceEnd, Network, Policy, System, Task, Workload,
};

use crate::host;

/// The needs of a description. The default is the need of no particular one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The name of the system. `None`: there is no description.
    pub system: Option<String>,
    /// The CPUs of the plan; without a description, the isolated CPUs of the host.
    pub cpus: BTreeSet<u32>,
    /// Whether the kernel class dispatches it: windows or budgets, and not the user-space dispatcher.
    pub class: bool,
    /// Whether it has windows.
    pub windows: bool,
    /// Whether it has groups with budgets.
    pub budgets: bool,
    /// Whether it has reservations of `SCHED_DEADLINE`.
    pub reservations: bool,
    /// Whether its table follows `CLOCK_TAI`; the most by which a sync window changes.
    pub tai: Option<Duration>,
    /// Whether it uses the network: gates, or tasks that send and receive.
    pub network: bool,
    /// The interfaces with gates: their devices, or the names of those in namespaces, which a capture lacks.
    pub gated: BTreeSet<String>,
    /// The VLANs of its interfaces.
    pub vlans: Vec<Vlan>,
    /// The priorities that frames get again on a device of the host, because they left the namespace of their sender.
    pub classified: BTreeMap<String, BTreeSet<u8>>,
    /// The addresses outside of this host to which its tasks send, without those of a namespace.
    pub receivers: BTreeSet<Ipv4Addr>,
    /// The highest priority of a thread under `SCHED_FIFO`, or 0.
    pub fifo: u8,
}

/// A VLAN of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// The device below it.
    pub below: String,
    /// Its number.
    pub number: u16,
    /// The priority code points of the priorities that classes of the plan have.
    pub code_points: BTreeMap<u8, u8>,
}

/// The highest priority of a task under the backend `fifo`.
const TASKS: u8 = 90;

impl Needs {
    /// Returns the needs of a description under a backend, on one of its hosts if it has several.
    pub fn of(system: &System, backend: Backend, host: Option<&Host>) -> Needs {
        let network = system.network.as_ref();
        let is_here = |name: Option<&str>| host.is_none_or(|host| name.is_none_or(|name| name == host.name));
        let gated = network.iter().flat_map(|network| &network.interfaces);
        let gated = gated.filter(|interface| is_here(system.host_of_interface(interface)));
        let cpus: BTreeSet<u32> = match host {
            Some(host) => host.cpus.iter().filter_map(|cpu| host.own_number(*cpu)).collect(),
            None => system.cpus.iter().copied().collect(),
        };
        let talks = |work: &Workload| matches!(work, Workload::UdpSend(_) | Workload::UdpReceive(_));
        // Tasks under SCHED_FIFO have priorities up to that of the runner's own thread.
        let tasks = (backend == Backend::Fifo).then_some(TASKS);
        let priorities = system.processes().filter_map(|placed| match placed.process.policy {
            Policy::Fifo(priority) => Some(priority),
            Policy::Other(_) => None,
        });
        let class = backend == Backend::Kernel;
        Needs {
            system: Some(system.name.clone()),
            cpus,
            class: class && (system.has_windows() || system.servers().next().is_some()),
            windows: system.has_windows(),
            budgets: system.servers().next().is_some(),
            reservations: system.reserved().next().is_some(),
            tai: match system.clock {
                Clock::Monotonic => None,
                Clock::Tai(sync) => Some(sync.bound),
            },
            network: network.is_some() || system.tasks.iter().any(|task| talks(&task.run)),
            vlans: network.map_or_else(Vec::new, |network| vlans(network, gated.clone())),
            classified: network.map_or_else(BTreeMap::new, |network| classified(system, network, gated.clone())),
            receivers: receivers(system, host),
            gated: gated.map(|interface| captured_name(system, interface)).collect(),
            fifo: priorities.chain(tasks).max().unwrap_or(0),
        }
    }

    /// Returns the needs of a host without a description: its isolated CPUs are those of some plan.
    pub fn here(host: &host::Host) -> Needs {
        let isolated = host.text("/sys/devices/system/cpu/isolated").and_then(crate::host::cpus_of);
        Needs { cpus: isolated.unwrap_or_default(), ..Needs::default() }
    }

    /// Whether a description is given.
    pub fn is_described(&self) -> bool {
        self.system.is_some()
    }

    /// Returns the online CPUs of the host that the plan does not use.
    pub fn others(&self, host: &host::Host) -> BTreeSet<u32> {
        host.online().difference(&self.cpus).copied().collect()
    }
}

/// Returns the device of an interface, or its name in the description if the device is in a namespace.
fn captured_name(system: &System, interface: &Interface) -> String {
    match device_of(system, &interface.end) {
        (None, device) => device,
        (Some(_), _) => interface.name.clone(),
    }
}

fn vlans<'s>(network: &Network, interfaces: impl Iterator<Item = &'s Interface>) -> Vec<Vlan> {
    let vlan = |interface: &Interface| {
        let InterfaceEnd::Device(below) = &interface.end else { return None };
        let number = interface.vlan.and_then(|vlan| u16::try_from(vlan).ok())?;
        Some(Vlan { below: below.clone(), number, code_points: network.code_points() })
    };
    interfaces.filter_map(vlan).collect()
}

/// Returns the priorities that the classifiers of a deployment give, by device. Devices in namespaces are not captured.
fn classified<'s>(
    system: &System,
    network: &Network,
    interfaces: impl Iterator<Item = &'s Interface>,
) -> BTreeMap<String, BTreeSet<u8>> {
    let mut all: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
    for interface in interfaces {
        let (None, device) = device_of(system, &interface.end) else { continue };
        let crosses = |flow: &&Flow| system.way(network, flow).iter().any(|one| one.name == interface.name);
        let leaves = |flow: &&Flow| system.namespaces_of(&flow.from).iter().any(Option::is_some);
        let flows = network.flows.iter().filter(crosses).filter(leaves).map(|flow| &flow.class);
        let is_on_it = |of: Option<&Interface>| of.is_some_and(|one| one.name == interface.name);
        let slots = network.slots.iter().filter(|slot| is_on_it(network.interface_of(slot))).map(|slot| &slot.class);
        let priorities: BTreeSet<u8> = flows.chain(slots).map(|class| network.priority(class)).collect();
        if !priorities.is_empty() {
            all.entry(device).or_default().extend(priorities);
        }
    }
    all
}

/// Returns the addresses to which tasks of a host send from its own namespace, and which no task of it receives at.
fn receivers(system: &System, host: Option<&Host>) -> BTreeSet<Ipv4Addr> {
    let here = |task: &&Task| host.is_none_or(|host| task.host.as_ref().is_none_or(|name| *name == host.name));
    let address = |at: &str| at.parse::<SocketAddrV4>().ok().map(|address| *address.ip());
    let own = system.tasks.iter().filter(here).filter_map(|task| match &task.run {
        Workload::UdpReceive(receive) => address(&receive.at),
        _ => None,
    });
    let own: BTreeSet<Ipv4Addr> = own.collect();
    let sent = system.tasks.iter().filter(here).filter(|task| task.namespace.is_none());
    let sent = sent.filter_map(|task| match &task.run {
        Workload::UdpSend(send) => address(&send.to),
        _ => None,
    });
    let is_asked_for =
        |address: &Ipv4Addr| !(address.is_loopback() || address.is_multicast() || address.is_broadcast());
    sent.filter(|address| is_asked_for(address) && !own.contains(address)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_needs_the_ways_of_its_frames() {
        let text = "system: s
tasks:
  - {name: s, period: 1ms, wcet: 100us, namespace: left, run: {udp-send: {to: \"10.0.0.2:5000\"}}}
  - {name: r, period: 1ms, wcet: 100us, namespace: right, run: {udp-receive: {at: \"10.0.0.2:5000\"}}}
  - {name: out, period: 1ms, wcet: 100us, run: {udp-send: {to: \"192.168.7.2:5000\"}}}
  - {name: all, period: 1ms, wcet: 100us, run: {udp-send: {to: \"239.0.0.1:5000\"}}}
  - {name: loop, period: 1ms, wcet: 100us, run: {udp-send: {to: \"192.168.7.1:6000\"}}}
  - {name: end, period: 1ms, wcet: 100us, run: {udp-receive: {at: \"192.168.7.1:6000\"}}}
namespaces:
  - {name: left, address: 10.0.0.1/24}
  - {name: right, address: 10.0.0.2/24}
network:
  classes:
    - {name: high, priority: 6, pcp: 5}
    - {name: rest}
  interfaces:
    - {name: left, namespace: left, gates: planned, lead: 20us}
    - {name: port, port: right, gates: planned}
    - {name: wire, device: eth9, speed: 1Gb/s, vlan: 7}
  flows:
    - {name: f, from: s, to: r, size: 64B, class: high, deadline: 900us}
";
        let system = System::parse(text, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        let needs = Needs::of(&system, Backend::Kernel, None);
        let vlan = Vlan { below: "eth9".into(), number: 7, code_points: BTreeMap::from([(6, 5)]) };
        assert_eq!(needs.gated, ["eth9", "left", "mtick-1"].map(String::from).into());
        assert_eq!(needs.vlans, [vlan]);
        // Inside the namespace of its sender, a frame still has its priority.
        assert_eq!(needs.classified, BTreeMap::from([("mtick-1".to_owned(), BTreeSet::from([6]))]));
        assert_eq!(needs.receivers, BTreeSet::from(["192.168.7.2".parse().unwrap()]));
    }
}
