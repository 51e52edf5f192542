//! The network namespaces of a run, each with one interface at a bridge that joins all of them.
//!
//! ```text
//! namespace macrotick-left          the host               namespace macrotick-right
//! eth0 10.0.0.1 ═════ veth ═════ mtick-0 ─ macrotick ─ mtick-1 ═════ veth ═════ eth0 10.0.0.2
//! ```
//!
//! Hardware addresses are fixed, and every namespace knows all of them. Therefore no datagram of a task waits for
//! address resolution, and the kernel itself sends none.
//!
//! If the system's `network` names one end of a veth, both ends have the transmit queues of all traffic classes. The
//! kernel lets both use as many as the host's end has.

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use macrotick_model::{InterfaceEnd, Namespace, System};

use crate::error::HostFailure;

/// The directory in which iproute2 keeps the names of namespaces.
const NAMES: &str = "/run/netns";
/// The prefix of the namespaces that the runner makes; the namespace's own name follows.
const PREFIX: &str = "macrotick-";
const BRIDGE: &str = "macrotick";
/// The prefix of the bridge's ends of the interfaces; a number follows.
const PORT: &str = "mtick-";
const INTERFACE: &str = "eth0";

/// The reason why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkFault {
    /// iproute2 is not installed.
    #[error("cannot execute `ip` (Debian package iproute2): {0}")]
    NoIproute(io::Error),
    /// A command of iproute2 failed.
    #[error("`{command}` failed: {output}")]
    Command {
        /// The command, or the batch of commands.
        command: String,
        /// The output.
        output: String,
    },
    /// A namespace cannot be opened.
    #[error("cannot open the namespace {path}: {source}")]
    Open {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The namespaces of a system, in its order. Dropping it removes them.
pub struct Network {
    namespaces: Vec<(String, File)>,
}

/// Returns the name of a namespace for iproute2.
fn full_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the device of an interface, and the name of its namespace for iproute2. The system has the namespace.
pub fn device_of(system: &System, end: &InterfaceEnd) -> (Option<String>, String) {
    let index = |name: &str| system.namespaces.iter().position(|namespace| namespace.name == name).unwrap_or(0);
    match end {
        InterfaceEnd::Namespace(name) => (Some(full_name(name)), INTERFACE.into()),
        InterfaceEnd::Port(name) => (None, format!("{PORT}{}", index(name))),
        InterfaceEnd::Device(device) => (None, device.clone()),
        // The part of a plan for a host has no switches.
        InterfaceEnd::Switch(name) => (None, name.clone()),
    }
}

/// Returns the number of transmit queues of both ends of the veth of a namespace.
pub fn queues_of(system: &System, namespace: &str) -> u32 {
    let is_end = |end: &InterfaceEnd| matches!(end, InterfaceEnd::Namespace(name) | InterfaceEnd::Port(name) if name == namespace);
    let network = system.network.as_ref();
    let named = network.filter(|network| network.interfaces.iter().any(|interface| is_end(&interface.end)));
    named.map_or(1, |network| network.queues().max(1))
}

/// Returns the commands that make the namespaces of a system, one a line.
pub fn commands(system: &System) -> Vec<String> {
    let ends = ends(system);
    let mut commands = Vec::new();
    let mut add = |namespace: Option<&str>, batch: &str| {
        let inside = namespace.map_or(String::new(), |namespace| format!("-netns {namespace} "));
        commands.extend(batch.lines().map(|line| format!("ip {inside}{line}")));
    };
    if !ends.is_empty() {
        add(None, &bridge());
    }
    for end in &ends {
        add(None, &end.outside());
        add(Some(&end.namespace), &end.inside(&ends));
    }
    commands
}

/// Returns the file of the namespace of that name.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(full_name(name))
}

impl Network {
    /// Makes the namespaces. Needs root. Returns `None` if the system has no namespaces.
    pub fn prepare(system: &System) -> Result<Option<Network>, HostFailure> {
        if system.namespaces.is_empty() {
            return Ok(None);
        }
        // A killed run may have left some. The lock ensures that no other run uses them.
        remove_left();
        let mut network = Network { namespaces: Vec::new() };
        network.make(&ends(system)).map_err(HostFailure::Network)?;
        Ok(Some(network))
    }

    fn make(&mut self, ends: &[End]) -> Result<(), NetworkFault> {
        ip(None, &bridge())?;
        for end in ends {
            ip(None, &end.outside())?;
            ip(Some(&end.namespace), &end.inside(ends))?;
            self.namespaces.push((end.name.clone(), open(&end.namespace)?));
        }
        Ok(())
    }

    /// Returns the file of a namespace. A process enters it before it executes its program.
    pub fn entrance(&self, name: &str) -> Option<&File> {
        self.namespaces.iter().find(|(other, _)| other == name).map(|(_, file)| file)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove_left();
    }
}

/// Removes the bridge and all namespaces that a run made. Ignores failures.
pub fn remove_left() {
    for entry in std::fs::read_dir(NAMES).into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str().filter(|name| name.starts_with(PREFIX)) {
            let _ = ip(None, &format!("netns delete {name}\n"));
        }
    }
    if PathBuf::from(format!("/sys/class/net/{BRIDGE}/bridge")).exists() {
        let _ = ip(None, &format!("link delete {BRIDGE}\n"));
    }
}

fn ends(system: &System) -> Vec<End> {
    system.namespaces.iter().enumerate().map(|(index, namespace)| End::new(system, index, namespace)).collect()
}

fn bridge() -> String {
    format!("link add {BRIDGE} type bridge stp_state 0 forward_delay 0\nlink set {BRIDGE} up\n")
}

/// One namespace with its interface.
struct End {
    /// The name in the description.
    name: String,
    /// The name for iproute2.
    namespace: String,
    index: usize,
    /// The address with the prefix length, as in the description.
    network: String,
    address: Ipv4Addr,
    /// The transmit queues of each end.
    queues: u32,
}

impl End {
    /// Makes the end of a namespace. The address was validated with the system.
    fn new(system: &System, index: usize, namespace: &Namespace) -> End {
        End {
            name: namespace.name.clone(),
            namespace: full_name(&namespace.name),
            index,
            network: namespace.address.clone(),
            address: namespace.decode().map_or(Ipv4Addr::UNSPECIFIED, |(address, _)| address),
            queues: queues_of(system, &namespace.name),
        }
    }

    /// Returns a locally administered address.
    fn hardware_address(&self) -> String {
        format!("02:00:00:00:{:02x}:{:02x}", self.index >> 8 & 0xff, self.index & 0xff)
    }

    fn outside(&self) -> String {
        let (namespace, port, hardware) = (&self.namespace, self.index, self.hardware_address());
        let queues = match self.queues {
            1 => String::new(),
            queues => format!("numtxqueues {queues} numrxqueues {queues} "),
        };
        format!(
            "netns add {namespace}\n\
             link add {PORT}{port} {queues}type veth peer name {INTERFACE} {queues}address {hardware} netns {namespace}\n\
             link set {PORT}{port} master {BRIDGE} up\n"
        )
    }

    fn inside(&self, all: &[End]) -> String {
        let mut text =
            format!("link set lo up\nlink set {INTERFACE} up\naddress add {} dev {INTERFACE}\n", self.network);
        for other in all.iter().filter(|other| other.index != self.index) {
            let (address, hardware) = (other.address, other.hardware_address());
            text += &format!("neighbour add {address} lladdr {hardware} dev {INTERFACE} nud permanent\n");
        }
        text
    }
}

fn open(namespace: &str) -> Result<File, NetworkFault> {
    let path = PathBuf::from(NAMES).join(namespace);
    File::open(&path).map_err(|source| NetworkFault::Open { path, source })
}

/// Makes iproute2 execute a batch of commands, in a namespace with iproute2's name or on the host.
fn ip(namespace: Option<&str>, batch: &str) -> Result<(), NetworkFault> {
    let mut command = Command::new("ip");
    if let Some(namespace) = namespace {
        command.args(["-netns", namespace]);
    }
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(NetworkFault::NoIproute)?;
    let fed = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(batch.as_bytes()));
    let output = child.wait_with_output().map_err(NetworkFault::NoIproute)?;
    if output.status.success() && fed.is_ok() {
        return Ok(());
    }
    let inside = namespace.map_or(String::new(), |namespace| format!("-netns {namespace} "));
    let command = format!("ip {inside}{}", batch.trim_end().replace('\n', "; ip "));
    Err(NetworkFault::Command { command, output: String::from_utf8_lossy(&output.stderr).trim().into() })
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{namespace, system};

    use super::*;

    fn described() -> System {
        let namespaces = vec![namespace("left", "10.0.0.1/24"), namespace("right", "10.0.0.2/24")];
        System { namespaces, ..system("s", Vec::new()) }
    }

    fn ends() -> Vec<End> {
        super::ends(&described())
    }

    #[test]
    fn an_interface_of_the_network_has_the_queues_of_all_classes() {
        let text = "system: s\ntasks: [{name: t, period: 1ms, wcet: 100us}]\nnamespaces: [{name: left, address: 10.0.0.1/24}]\nnetwork:\n  classes: [{name: high, \
                    priority: 6}, {name: low, priority: 5}, {name: rest}]\n  interfaces: [{name: here, namespace: left}]\n";
        let system = System::parse(text, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        let added = super::ends(&system)[0].outside();
        let veth = "link add mtick-0 numtxqueues 3 numrxqueues 3 type veth peer name eth0 numtxqueues 3 numrxqueues 3 \
                    address 02:00:00:00:00:00 netns macrotick-left\n";
        assert!(added.contains(veth), "{added}");
        let end = |end| device_of(&system, &end);
        assert_eq!(end(InterfaceEnd::Namespace("left".into())), (Some("macrotick-left".into()), "eth0".into()));
        assert_eq!(end(InterfaceEnd::Port("left".into())), (None, "mtick-0".into()));
        let commands = commands(&system);
        assert_eq!(commands[1..3], ["ip link set macrotick up", "ip netns add macrotick-left"]);
        assert!(commands.contains(&"ip -netns macrotick-left link set eth0 up".to_owned()), "{commands:?}");
    }

    #[test]
    fn every_end_knows_the_others() {
        let ends = ends();
        assert_eq!(
            ends[1].inside(&ends),
            "link set lo up\nlink set eth0 up\naddress add 10.0.0.2/24 dev eth0\n\
             neighbour add 10.0.0.1 lladdr 02:00:00:00:00:00 dev eth0 nud permanent\n"
        );
    }

    #[test]
    fn every_end_is_at_the_bridge() {
        assert_eq!(
            ends()[1].outside(),
            "netns add macrotick-right\n\
             link add mtick-1 type veth peer name eth0 address 02:00:00:00:00:01 netns macrotick-right\n\
             link set mtick-1 master macrotick up\n"
        );
    }
}
