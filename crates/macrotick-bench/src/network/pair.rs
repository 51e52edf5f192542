//! The topology of the guest: two network namespaces with a veth of four queues between them, and gates at its near end.
//!
//! ```text
//! namespace near                 namespace far
//! near0 10.0.0.1 ═════ veth ═════ far0 10.0.0.2
//! ```

use std::cell::RefCell;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;

use macrotick_host::net::{Deployment, Netlink, Root, Shared, Taprio, Target, Tree, Wanted};
use macrotick_host::sys;

use super::classes::MICROSECOND;
use crate::kit::netns::{file, ip, set, sleep_until_tai, tai_ns};
use crate::kit::process::last_error;

/// The namespace of the senders, with the gates.
pub const NEAR: &str = "near";
/// The namespace of the receivers.
pub const FAR: &str = "far";
/// The address of the near end.
pub const NEAR_ADDRESS: &str = "10.0.0.1";
/// The address of the far end.
pub const FAR_ADDRESS: &str = "10.0.0.2";
/// The address of a station that is not there. The far end receives its frames and drops them, and a tap of the device
/// still sees them.
pub const BEYOND_ADDRESS: &str = "10.0.0.3";
/// The thread of exact gates.
pub const GATE_THREAD: &str = "gate/near0";
/// The device with the gates, and the one at the other end.
const DEVICES: [&str; 2] = ["near0", "far0"];
/// The time until a swap of gate lists takes effect. It is longer than the swap.
const SWAP: i64 = 100_000 * MICROSECOND;

/// The namespaces with their veth. The guest's end removes them.
pub struct Pair {
    kernel: Shared,
    /// The states of the near device. Each one is on top of the earlier ones.
    deployments: Vec<Deployment>,
}

impl Pair {
    /// Makes the namespaces. The caller must have one thread.
    pub fn make() -> Result<Pair, String> {
        let [near, far] = DEVICES;
        ip(
            None,
            &format!(
                "netns add {NEAR}\nnetns add {FAR}\nlink add {near} netns {NEAR} numtxqueues 4 numrxqueues 4 address \
                 02:00:00:00:00:01 type veth peer name {far} netns {FAR} numtxqueues 4 numrxqueues 4 address \
                 02:00:00:00:00:02\n"
            ),
        )?;
        let ends = [(NEAR, near, NEAR_ADDRESS), (FAR, far, FAR_ADDRESS)];
        for (own, other) in [(0, 1), (1, 0)] {
            let ((namespace, device, address), peer) = (ends[own], ends[other].2);
            let hardware = other + 1;
            ip(
                Some(namespace),
                &format!(
                    "addr add {address}/24 dev {device}\nlink set lo up\nlink set {device} up\n\
                     neigh replace {peer} lladdr 02:00:00:00:00:0{hardware} dev {device} nud permanent\n"
                ),
            )?;
        }
        let [near, _] = DEVICES;
        ip(Some(NEAR), &format!("neigh replace {BEYOND_ADDRESS} lladdr 02:00:00:00:00:03 dev {near} nud permanent\n"))?;
        let kernel = Netlink::open_in(&file(NEAR)?).map_err(|error| format!("netlink: {error}"))?;
        Ok(Pair { kernel: Rc::new(RefCell::new(kernel)), deployments: Vec::new() })
    }

    /// Puts gates on the near device, with other changes to it.
    pub fn deploy(&mut self, gates: Taprio, others: Wanted) -> Result<(), String> {
        let made = Deployment::make(&[self.target(gates, others)]).map_err(|fault| fault.to_string())?;
        self.deployments.push(made);
        Ok(())
    }

    /// Replaces the gate list by one that is earlier by this time on the clock. Returns after it has taken effect.
    pub fn move_earlier(&mut self, gates: &Taprio, by_ns: i64) -> Result<(), String> {
        let cycle = gates.cycle.as_nanos();
        let at = (tai_ns() + SWAP) / cycle * cycle - by_ns;
        let swapped = macrotick_host::net::swap(&[self.target(gates.clone(), near())], at);
        self.deployments.push(swapped.map_err(|fault| fault.to_string())?);
        sleep_until_tai(at + cycle);
        Ok(())
    }

    fn target(&self, taprio: Taprio, others: Wanted) -> Target {
        let tree = Some(Tree::of(Root::Taprio { taprio, else_try: Vec::new() }));
        let wanted = Wanted { tree, ..others };
        Target { kernel: self.kernel.clone(), namespace: Some(NEAR.into()), wanted }
    }
}

/// Returns a socket that receives all frames of the far device. It is bound to the device: otherwise the kernel would copy
/// each frame for it when the near end sends, too.
pub fn tap() -> Result<RawFd, String> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: passes numbers. The socket is open as long as the process lives.
    let socket = match unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) } {
        -1 => return Err(last_error("a tap")),
        socket => socket,
    };
    let name = std::ffi::CString::new(DEVICES[1]).expect("no zero byte");
    // SAFETY: all fields are numbers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, protocol);
    // SAFETY: reads a string, and one address.
    let bound = unsafe {
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        libc::bind(socket, (&raw const address).cast(), size_of_val(&address) as u32)
    };
    match bound {
        0 => Ok(socket),
        _ => Err(last_error("binding a tap")),
    }
}

/// Returns the near device without changes.
pub fn near() -> Wanted {
    Wanted::of(DEVICES[0])
}

/// Returns the processor time of a thread.
pub fn processor_ns(thread: i32) -> Result<i64, String> {
    let mut clock = 0;
    // SAFETY: writes one number.
    match unsafe { libc::clock_getcpuclockid(thread, &mut clock) } {
        0 => Ok(sys::time_of(clock).as_nanos()),
        errno => Err(format!("the processor time of thread {thread}: errno {errno}")),
    }
}

/// Fails if CLOCK_REALTIME, the clock of time stamps, differs from that of the gates. The guest's TAI offset is zero.
pub fn check_clocks() -> Result<(), String> {
    match tai_ns() - sys::time_of(libc::CLOCK_REALTIME).as_nanos() {
        ..500_000_000 => Ok(()),
        offset => Err(format!("CLOCK_TAI is {offset} ns ahead of the clock of time stamps")),
    }
}

/// Returns a socket in the caller's namespace that sends to a port of an address, with a priority.
pub fn sender(to: &str, port: u16, priority: i32) -> Result<UdpSocket, String> {
    let failed = |error: std::io::Error| format!("a sender: {error}");
    let socket = UdpSocket::bind((NEAR_ADDRESS, 0)).map_err(failed)?;
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)?;
    socket.connect((to, port)).map_err(failed)?;
    Ok(socket)
}
