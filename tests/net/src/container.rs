//! Network namespaces of containers, each with a veth to the sender's namespace of a pair, which is the host of the
//! containers.

use std::cell::RefCell;
use std::fs::File;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;

use macrotick_host::net::{host_ends, Netlink, NoEnds};
use macrotick_host::settings::Holder;
use macrotick_host::sys::{in_network_namespace, set_priority};

use crate::pair::{bind, namespace, run, Pair};

/// The way of the frames from the containers to the interface of the pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The ends of all veths and `eth1` are ports of one bridge.
    Bridge,
    /// The host routes the frames.
    Route,
}

/// A container.
pub struct Container {
    name: String,
    namespace: File,
    socket: UdpSocket,
}

/// Makes the bridge, or lets the host route.
pub fn prepare(way: Way) {
    match way {
        Way::Bridge => {
            run("ip -netns left link add br0 type bridge stp_state 0 forward_delay 0");
            run("ip -netns left link set br0 up");
            run("ip -netns left link set eth1 master br0");
        }
        Way::Route => {
            sysctl("ip_forward", "1");
            // Otherwise the kernel gives routed frames a priority by their type of service.
            sysctl("ip_forward_update_priority", "0");
        }
    }
}

/// Sets a number of `net.ipv4` of the host.
fn sysctl(name: &str, value: &str) {
    let path = format!("/proc/sys/net/ipv4/{name}");
    let written = in_network_namespace(&namespace("left"), || std::fs::write(&path, value));
    written.expect("a namespace").unwrap_or_else(|error| panic!("{path}: {error}"));
}

impl Container {
    /// Makes a container; `number` is unique among all of the same host. Its frames have a priority of their own choice,
    /// which they lose on their way.
    pub fn new(name: &str, number: u8, way: Way) -> Container {
        let _ = Command::new("ip").args(["netns", "del", name]).output();
        run(&format!("ip netns add {name}"));
        run(&format!("ip -netns left link add v{name} type veth peer name eth0 netns {name}"));
        run(&format!("ip -netns left link set v{name} up"));
        run(&format!("ip -netns {name} link set eth0 up"));
        let address = match way {
            Way::Bridge => {
                run(&format!("ip -netns left link set v{name} master br0"));
                run(&format!("ip -netns {name} addr add 10.0.0.{number}/24 dev eth0"));
                run(&format!(
                    "ip -netns {name} neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent"
                ));
                format!("10.0.0.{number}:0")
            }
            Way::Route => {
                run(&format!("ip -netns left addr add 10.0.{number}.1/24 dev v{name}"));
                run(&format!("ip -netns {name} addr add 10.0.{number}.2/24 dev eth0"));
                run(&format!("ip -netns {name} route add default via 10.0.{number}.1"));
                format!("10.0.{number}.2:0")
            }
        };
        let namespace = namespace(name);
        let socket = bind(&namespace, &address);
        set_priority(&socket, 6).expect("a priority");
        Container { name: name.into(), namespace, socket }
    }

    /// Sends a frame to a port of the receiver.
    pub fn send(&self, port: u16) {
        self.socket.send_to(&[7; 40], ("10.0.0.2", port)).expect("a frame is sent");
    }

    /// Returns the host's ends of its veths.
    pub fn ends(&self, pair: &Pair) -> Result<Vec<String>, NoEnds> {
        let inside = Netlink::open_in(&self.namespace).expect("netlink");
        let inside: macrotick_host::net::Shared = Rc::new(RefCell::new(inside));
        host_ends(&pair.kernel, &inside, &self.namespace)
    }

    /// Returns a holder of settings. A directory stands for the control group, in which no process is left.
    pub fn holder(&self) -> Holder {
        let path = PathBuf::from(format!("/run/macrotick-net-{}", self.name));
        let _ = std::fs::create_dir(&path);
        std::fs::write(path.join("cgroup.events"), "populated 0\n").expect("a file");
        Holder::group(&self.name, &path).expect("a directory")
    }

    /// Returns the qdiscs and the filters at ingress of the host's end, as tc shows them.
    pub fn shown(&self) -> String {
        let qdiscs = run(&format!("tc -netns left qdisc show dev v{}", self.name));
        qdiscs + &run(&format!("tc -netns left filter show dev v{} ingress", self.name))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}
