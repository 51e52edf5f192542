//! Two network namespaces with a veth between them, and sockets in both.

use std::cell::RefCell;
use std::fs::File;
use std::net::UdpSocket;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration as WallTime;

use macrotick_host::net::{GateClock, Netlink, Shared, Target, Wanted};
use macrotick_host::sys::in_network_namespace;

/// The port of frames that the classifier gives priority 6.
pub const CONTROL: u16 = 4000;
/// Any other port.
pub const REST: u16 = 5000;

/// The sender's namespace `left`, with `eth1` and 10.0.0.1, and the receiver's, with 10.0.0.2.
pub struct Pair {
    /// The kernel in the sender's namespace.
    pub kernel: Shared,
    sender: UdpSocket,
    control: UdpSocket,
    rest: UdpSocket,
}

/// Runs a program, and returns its output. Panics if it fails.
pub fn run(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap_or_else(|error| panic!("{command}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Opens a namespace.
pub fn namespace(name: &str) -> File {
    File::open(format!("/run/netns/{name}")).expect("a namespace")
}

/// Makes a socket in a namespace, which waits for at most 20 ms.
pub fn bind(namespace: &File, address: &str) -> UdpSocket {
    let socket = in_network_namespace(namespace, || UdpSocket::bind(address)).expect("a namespace").expect("a socket");
    socket.set_read_timeout(Some(WallTime::from_millis(20))).expect("a time limit");
    socket
}

impl Default for Pair {
    fn default() -> Pair {
        Pair::new()
    }
}

impl Pair {
    /// Makes both namespaces again.
    pub fn new() -> Pair {
        for name in ["left", "right"] {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
            run(&format!("ip netns add {name}"));
        }
        run("ip -netns left link add eth1 numtxqueues 4 numrxqueues 4 address 02:00:00:00:00:01 type veth peer name eth1 \
             numtxqueues 4 numrxqueues 4 address 02:00:00:00:00:02 netns right");
        for (name, address) in [("left", "10.0.0.1/24"), ("right", "10.0.0.2/24")] {
            run(&format!("ip -netns {name} addr add {address} dev eth1"));
            run(&format!("ip -netns {name} link set eth1 up"));
        }
        run("ip -netns left neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth1 nud permanent");
        let (left, right) = (namespace("left"), namespace("right"));
        let netlink = Netlink::open_in(&left).expect("netlink");
        Pair {
            kernel: Rc::new(RefCell::new(netlink)),
            sender: bind(&left, "10.0.0.1:0"),
            control: bind(&right, &format!("10.0.0.2:{CONTROL}")),
            rest: bind(&right, &format!("10.0.0.2:{REST}")),
        }
    }

    /// Returns the sender's device with a wanted state.
    pub fn target(&self, wanted: Wanted) -> [Target; 1] {
        [Target { kernel: self.kernel.clone(), namespace: Some("left".into()), wanted }]
    }

    /// Sends one frame of each class. Returns which ones arrive within 20 ms.
    pub fn arrivals(&self) -> (bool, bool) {
        for port in [CONTROL, REST] {
            self.sender.send_to(&[7; 40], ("10.0.0.2", port)).expect("a frame is sent");
        }
        (self.control_arrives(), self.rest.recv(&mut [0; 64]).is_ok())
    }

    /// Returns the instant of `CLOCK_MONOTONIC` at which a frame for a port arrives; `None`: none does within 20 ms.
    pub fn arrival(&self, port: u16) -> Option<i64> {
        let socket = if port == CONTROL { &self.control } else { &self.rest };
        socket.recv(&mut [0; 64]).ok().map(|_| self.kernel.borrow().now(GateClock::Monotonic))
    }

    /// Whether a frame for the control port arrives within 20 ms.
    pub fn control_arrives(&self) -> bool {
        self.control.recv(&mut [0; 64]).is_ok()
    }

    /// Returns the qdiscs and filters of the sender's device, as tc shows them. The numbers of actions are left out: the
    /// kernel gives the next free one.
    pub fn shown(&self) -> String {
        let qdiscs = run("tc -details -netns left qdisc show dev eth1");
        let filters = run("tc -netns left filter show dev eth1 egress");
        let kept = filters.lines().filter(|line| !line.starts_with("\t index "));
        qdiscs + &kept.map(|line| format!("{line}\n")).collect::<String>()
    }
}
