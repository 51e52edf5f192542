//! The network namespaces of a run, each with one interface at a bridge that joins all of them.
//!
//! ```text
//! namespace macrotick-left          the host               namespace macrotick-right
//! eth0 10.0.0.1 ═════ veth ═════ mtick-0 ─ macrotick ─ mtick-1 ═════ veth ═════ eth0 10.0.0.2
//! ```
//!
//! Hardware addresses are fixed, and every namespace knows all of them. Therefore no datagram of a task waits for
//! address resolution, and the kernel itself sends none.

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
    }
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
        network.make(&system.namespaces).map_err(HostFailure::Network)?;
        Ok(Some(network))
    }

    fn make(&mut self, namespaces: &[Namespace]) -> Result<(), NetworkFault> {
        let ends: Vec<End> =
            namespaces.iter().enumerate().map(|(index, namespace)| End::new(index, namespace)).collect();
        ip(None, &format!("link add {BRIDGE} type bridge stp_state 0 forward_delay 0\nlink set {BRIDGE} up\n"))?;
        for end in &ends {
            ip(None, &end.outside())?;
            ip(Some(&end.namespace), &end.inside(&ends))?;
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
}

impl End {
    /// Makes the end of a namespace. The address was validated with the system.
    fn new(index: usize, namespace: &Namespace) -> End {
        End {
            name: namespace.name.clone(),
            namespace: full_name(&namespace.name),
            index,
            network: namespace.address.clone(),
            address: namespace.decode().map_or(Ipv4Addr::UNSPECIFIED, |(address, _)| address),
        }
    }

    /// Returns a locally administered address.
    fn hardware_address(&self) -> String {
        format!("02:00:00:00:{:02x}:{:02x}", self.index >> 8 & 0xff, self.index & 0xff)
    }

    fn outside(&self) -> String {
        let (namespace, port, hardware) = (&self.namespace, self.index, self.hardware_address());
        format!(
            "netns add {namespace}\n\
             link add {PORT}{port} type veth peer name {INTERFACE} address {hardware} netns {namespace}\n\
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
    use macrotick_fixtures::namespace;

    use super::*;

    fn ends() -> Vec<End> {
        let all = [namespace("left", "10.0.0.1/24"), namespace("right", "10.0.0.2/24")];
        all.iter().enumerate().map(|(index, namespace)| End::new(index, namespace)).collect()
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
