//! The interfaces of a run: gates and traffic classes on their devices, the threads that open the gates, and the change
//! of gate lists.
//!
//! The devices are configured before the table starts, to find out what each can do. Their lists then have the right
//! cycle, but not the epoch, which is unknown at that time. [`Gates::begin`] changes them at the epoch.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use macrotick_host::cgroup::Owner;
use macrotick_host::net::left::Noted;
use macrotick_host::net::{self, Deployment, GateClock, Mode, Netlink, Root, Shared, Target, Wanted};
use macrotick_host::network::{self, Network};
use macrotick_host::sys::{self, Tid};
use macrotick_host::HostFailure;
use macrotick_model::{
    Backend, Duration, GateTier, GatesInForce, GroupThread, InterfaceEnd, Plan, RefusedTier, System,
};

use crate::deployment::network::{is_served, ported, too_late, vlan_priorities, Ported};
use crate::error::NodeError;

/// The attempts to bind a gate thread that sleeps on another CPU.
const ATTEMPTS: u32 = 20;

/// The interfaces of a run. Dropping them restores their devices.
pub struct Gates {
    ports: Vec<Port>,
    clock: GateClock,
    in_force: Vec<GatesInForce>,
    /// The threads of exact gates, by interface.
    threads: BTreeMap<String, Thread>,
    remarks: Vec<String>,
    _deployment: Deployment,
    /// Drops after the devices are restored.
    _noted: Option<Noted>,
}

/// An interface with its device.
struct Port {
    interface: String,
    target: Target,
}

/// The thread of exact gates.
struct Thread {
    tid: Tid,
    device: String,
    kernel: Shared,
}

/// Gate lists that the kernel has, and that are not in force yet. Dropping them brings the former lists back.
pub struct Coming {
    ports: Vec<Port>,
    in_force: Vec<GatesInForce>,
    swapped: Deployment,
    at_ns: i64,
}

impl Coming {
    /// Returns the instant of the change on the clock of the table, in nanoseconds.
    pub fn at_ns(&self) -> i64 {
        self.at_ns
    }
}

/// Returns the clock of the gates: that of the table.
fn clock_of(plan: &Plan, backend: Backend) -> GateClock {
    match plan.system.sync() {
        Some(_) if backend == Backend::Kernel => GateClock::Tai,
        _ => GateClock::Monotonic,
    }
}

fn open(namespace: Option<&std::fs::File>) -> Result<Shared, NodeError> {
    let netlink = namespace.map_or_else(Netlink::open, Netlink::open_in);
    let failed = HostFailure::system("opening a netlink socket");
    Ok(Rc::new(RefCell::new(netlink.map_err(failed)?)))
}

impl Gates {
    /// Configures the devices of all interfaces, or leaves all as they were. The namespaces exist already. Returns `None`
    /// if the system has no interface.
    pub fn deploy(plan: &Plan, namespaces: Option<&Network>, backend: Backend) -> Result<Option<Gates>, NodeError> {
        let system = &plan.system;
        let clock = clock_of(plan, backend);
        let wanted = ported(plan, clock, &net::link_of);
        if wanted.is_empty() {
            return Ok(None);
        }
        check_speeds(plan)?;
        let host = open(None)?;
        let (mut ports, mut vlans, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
        for Ported { interface, namespace, inside, vlan, wanted } in wanted {
            let entrance = namespaces.zip(inside.as_ref()).and_then(|(all, inside)| all.entrance(inside));
            let kernel = entrance.map_or_else(|| Ok(host.clone()), |entrance| open(Some(entrance)))?;
            match vlan {
                Some(vlan) if is_device(system, &interface) => vlans.push(vlan_of(&kernel, system, &wanted, vlan)?),
                Some(_) => remarks.push(format!(
                    "interface `{interface}`: the runner's namespaces have no VLANs, so its frames carry no tag"
                )),
                None => {}
            }
            ports.push(Port { interface, target: Target { kernel, namespace, wanted } });
        }
        let targets: Vec<Target> = ports.iter().map(|port| port.target.clone()).chain(vlans).collect();
        let own: Vec<String> = ports
            .iter()
            .filter(|port| is_device(system, &port.interface))
            .map(|port| port.target.wanted.device.clone())
            .collect();
        let noted = (!own.is_empty()).then(|| Noted::write(own)).transpose()?;
        let deployment = Deployment::make(&targets).map_err(HostFailure::from)?;
        let in_force = in_force(&ports, &deployment);
        let threads = find_threads(&ports, &in_force)?;
        let in_windows = |interface: &str| {
            backend == Backend::Kernel && threads.contains_key(interface) && is_served(system, interface)
        };
        let in_hardware = |interface: &str| {
            in_force.iter().any(|gates| gates.interface == interface && gates.tier == GateTier::Hardware)
        };
        remarks.extend(too_late(plan, &|interface| in_windows(interface) || in_hardware(interface)));
        Ok(Some(Gates { ports, clock, in_force, threads, remarks, _deployment: deployment, _noted: noted }))
    }

    /// Changes the gate lists at the epoch, which is in the future, in nanoseconds on the clock of the table.
    pub fn begin(&self, epoch_ns: i64) -> Result<(), NodeError> {
        let gated: Vec<Target> = self.gated().map(|port| port.target.clone()).collect();
        // The undo of the first deployment restores the devices.
        net::swap(&gated, epoch_ns).map_err(HostFailure::from)?.keep();
        Ok(())
    }

    /// Returns the present instant on the clock of the gates, in nanoseconds.
    pub fn now(&self) -> i64 {
        sys::time_of(self.clock.id()).as_nanos()
    }

    /// Sends the gate lists of another plan with the same interfaces. They take effect at an instant on the clock of the
    /// table.
    pub fn change(&self, plan: &Plan, backend: Backend, at_ns: i64) -> Result<Coming, NodeError> {
        check_speeds(plan)?;
        let wanted = ported(plan, clock_of(plan, backend), &net::link_of);
        let port = |(port, new): (&Port, Ported)| {
            let target = Target { wanted: new.wanted, ..port.target.clone() };
            Port { interface: port.interface.clone(), target }
        };
        let ports: Vec<Port> = self.ports.iter().zip(wanted).map(port).collect();
        let gated: Vec<Target> = ports.iter().filter(|port| is_gated(port)).map(|port| port.target.clone()).collect();
        let swapped = net::swap(&gated, at_ns).map_err(HostFailure::from)?;
        let reports = swapped.reports();
        let each = reports.iter().zip(&self.in_force);
        let in_force =
            each.map(|(report, before)| GatesInForce { lead: lead(report.mode), ..before.clone() }).collect();
        Ok(Coming { ports, in_force, swapped, at_ns })
    }

    /// Takes over gate lists that are in force.
    pub fn commit(&mut self, coming: Coming) {
        coming.swapped.keep();
        (self.ports, self.in_force) = (coming.ports, coming.in_force);
    }

    /// Returns the gates in force.
    pub fn in_force(&self) -> &[GatesInForce] {
        &self.in_force
    }

    /// Returns remarks for the observation.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    fn gated(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().filter(|port| is_gated(port))
    }

    /// Restricts a gate thread to a CPU, and makes it a member with `bind`. A thread that sleeps on another CPU is woken,
    /// and falls asleep on the CPU where it may run.
    fn bind(
        &self,
        thread: &Thread,
        cpu: u32,
        bind: &mut dyn FnMut(Tid) -> Result<(), NodeError>,
    ) -> Result<(), NodeError> {
        let name = || format!("gate/{}", thread.device);
        let pinned = sys::pin(thread.tid, &[cpu]);
        pinned.map_err(|source| NodeError::Pin { name: name(), cpus: [cpu].into_iter().collect(), source })?;
        for attempt in 0.. {
            match bind(thread.tid) {
                Err(error) if error.errno() == Some(libc::EAGAIN) && attempt < ATTEMPTS => {}
                result => return result,
            }
            net::restart(&thread.kernel, &thread.device).map_err(HostFailure::from)?;
            sys::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Makes the gate threads among the kernel threads of a pool members of it. Adds a remark for an interface without such
/// a thread. Call it before the lists change at the epoch.
pub fn bind_threads(
    gates: Option<&Gates>,
    threads: &[GroupThread],
    cpu: u32,
    owner: &Owner,
    remarks: &mut Vec<String>,
    bind: &mut dyn FnMut(Tid, &str) -> Result<(), NodeError>,
) -> Result<(), NodeError> {
    for (interface, found) in wanted_threads(gates, threads, owner, remarks) {
        let Some((gates, thread)) = gates.zip(found) else { continue };
        gates.bind(thread, cpu, &mut |tid| bind(tid, &format!("gate/{interface}")))?;
    }
    Ok(())
}

/// Returns the gate threads among the kernel threads of a group with a budget, with their names in the kernel. Adds a
/// remark for an interface without such a thread.
pub fn threads_of_group(
    gates: Option<&Gates>,
    threads: &[GroupThread],
    owner: &Owner,
    remarks: &mut Vec<String>,
) -> Vec<(Tid, String)> {
    let found = wanted_threads(gates, threads, owner, remarks);
    found.into_iter().filter_map(|(_, thread)| thread.map(|one| (one.tid, format!("gate/{}", one.device)))).collect()
}

fn wanted_threads<'a>(
    gates: Option<&'a Gates>,
    threads: &'a [GroupThread],
    owner: &Owner,
    remarks: &mut Vec<String>,
) -> Vec<(&'a str, Option<&'a Thread>)> {
    let interfaces = threads.iter().filter_map(|thread| match thread {
        GroupThread::Gate(interface) => Some(interface.as_str()),
        _ => None,
    });
    let found: Vec<_> = interfaces.map(|name| (name, gates.and_then(|gates| gates.threads.get(name)))).collect();
    for (interface, _) in found.iter().filter(|(_, thread)| thread.is_none()) {
        remarks.push(format!("{owner}: interface `{interface}` has no gate thread: its gates are not exact here"));
    }
    found
}

/// Returns the commands that do the same as a deployment of the interfaces of a plan, one a line. Changes nothing.
pub fn commands(plan: &Plan, backend: Backend) -> Result<Vec<String>, NodeError> {
    let system = &plan.system;
    let mut commands = Vec::new();
    if system.network.as_ref().is_none_or(|network| network.interfaces.is_empty()) {
        return Ok(commands);
    }
    // The commands may be for later.
    commands.extend(check_speeds(plan).err().map(|error| format!("# {error}")));
    let host = open(None)?;
    let each = system.network.iter().flat_map(|network| &network.interfaces);
    for (port, interface) in ported(plan, clock_of(plan, backend), &net::link_of).into_iter().zip(each) {
        let Ported { namespace, wanted, vlan, .. } = port;
        let proposals = match &interface.end {
            InterfaceEnd::Device(_) => {
                let vlan = vlan.map(|vlan| vlan_of(&host, system, &wanted, vlan)).transpose()?;
                let target = Target { kernel: host.clone(), namespace, wanted };
                net::propose(&[target].into_iter().chain(vlan).collect::<Vec<_>>()).map_err(HostFailure::from)?
            }
            InterfaceEnd::Switch(_) => Vec::new(),
            InterfaceEnd::Namespace(name) | InterfaceEnd::Port(name) => {
                let queues = network::queues_of(system, name);
                vec![net::propose_new(namespace.as_deref(), queues, &wanted).map_err(HostFailure::from)?]
            }
        };
        commands.extend(proposals.into_iter().flat_map(|proposal| proposal.commands));
    }
    if !plan.gates.is_empty() {
        commands.push("# at the epoch of the tables, the gate lists change to it as their base time".into());
    }
    Ok(commands)
}

/// Refuses gates and shapers on a device of the host that is slower than its description.
fn check_speeds(plan: &Plan) -> Result<(), NodeError> {
    let Some(network) = &plan.system.network else { return Ok(()) };
    let is_shaped = network.classes.iter().any(|class| class.rate.is_some());
    for interface in network.interfaces.iter().filter(|interface| interface.gates.is_some() || is_shaped) {
        if let InterfaceEnd::Device(device) = &interface.end {
            net::link_of(device).check(device, interface.link_speed()).map_err(HostFailure::from)?;
        }
    }
    Ok(())
}

fn is_device(system: &System, interface: &str) -> bool {
    let found = system.network.as_ref().and_then(|network| network.interface(interface));
    found.is_some_and(|found| matches!(found.end, InterfaceEnd::Device(_)))
}

/// Returns the target for the device of a VLAN.
fn vlan_of(kernel: &Shared, system: &System, wanted: &Wanted, vlan: u16) -> Result<Target, NodeError> {
    let device = net::vlan_device(kernel, &wanted.device, vlan).map_err(HostFailure::from)?;
    let priorities = system.network.as_ref().map(vlan_priorities).unwrap_or_default();
    let wanted = Wanted { vlan_priorities: priorities, ..Wanted::of(device) };
    Ok(Target { kernel: kernel.clone(), namespace: None, wanted })
}

fn is_gated(port: &Port) -> bool {
    matches!(port.target.wanted.tree.as_ref().map(|tree| &tree.root), Some(Root::Taprio { .. }))
}

fn lead(mode: Option<Mode>) -> Option<Duration> {
    match mode {
        Some(Mode::Exact { lead }) => Some(lead),
        _ => None,
    }
}

fn tier(mode: Mode) -> GateTier {
    match mode {
        Mode::Hardware => GateTier::Hardware,
        Mode::Exact { .. } => GateTier::Exact,
        Mode::Software => GateTier::Software,
        Mode::TxtimeAssist { .. } => GateTier::TxtimeAssist,
    }
}

fn in_force(ports: &[Port], deployment: &Deployment) -> Vec<GatesInForce> {
    let each = ports.iter().zip(deployment.reports()).filter(|(port, _)| is_gated(port));
    let one = |(port, report): (&Port, &net::Report)| {
        let refused = |(mode, reason): &(Mode, String)| RefusedTier { tier: tier(*mode), reason: reason.clone() };
        Some(GatesInForce {
            interface: port.interface.clone(),
            device: report.device.clone(),
            namespace: port.target.namespace.clone(),
            tier: tier(report.mode?),
            lead: lead(report.mode),
            refused: report.refused.iter().map(refused).collect(),
            closed: report.closed.map(|(length, _)| length),
            dropped: report.closed.map_or(0, |(_, frames)| frames),
        })
    };
    each.filter_map(one).collect()
}

fn find_threads(ports: &[Port], in_force: &[GatesInForce]) -> Result<BTreeMap<String, Thread>, NodeError> {
    let exact =
        |port: &&Port| in_force.iter().any(|gates| gates.interface == port.interface && gates.tier == GateTier::Exact);
    let mut threads = BTreeMap::new();
    for port in ports.iter().filter(exact) {
        let Target { kernel, wanted, .. } = &port.target;
        let found = net::gate_thread(kernel, &wanted.device).map_err(HostFailure::from)?;
        let thread = found.map(|tid| Thread { tid, device: wanted.device.clone(), kernel: kernel.clone() });
        threads.extend(thread.map(|thread| (port.interface.clone(), thread)));
    }
    Ok(threads)
}
