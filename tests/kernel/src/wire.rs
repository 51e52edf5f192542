//! Two network namespaces, `a` and `b`, with a veth of four queues between them, and datagrams with time stamps.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use crate::check::{Check, Explain};
use crate::sys::done;

/// The interface of namespace `a`, which sends.
pub const SENDER: &str = "va";
/// The priority of frames in traffic class 1.
pub const CRITICAL: i32 = 6;
const TO: &str = "10.0.0.2:5000";

/// The namespaces and their veth. They disappear with the value.
pub struct Wire(());

impl Wire {
    /// Makes namespaces and veth.
    pub fn new() -> Check<Wire> {
        let wire = Wire(());
        ip(
            "netns add a\nnetns add b\nlink add va netns a numtxqueues 4 numrxqueues 4 address 02:00:00:00:00:01 type \
            veth peer name vb netns b numtxqueues 4 numrxqueues 4 address 02:00:00:00:00:02\n",
        )?;
        for (end, address, other, peer) in [("a", 1, 2, 2), ("b", 2, 1, 1)] {
            enter_batch(
                end,
                &format!(
                    "addr add 10.0.0.{address}/24 dev v{end}\nlink set lo up\nlink set v{end} up\n\
                 neigh replace 10.0.0.{other} lladdr 02:00:00:00:00:0{peer} dev v{end} nud permanent\n"
                ),
            )?;
        }
        Ok(wire)
    }

    /// Takes the sender's interface down, or up again.
    pub fn switch(&self, up: bool) -> Check {
        enter_batch("a", &format!("link set va {}\n", if up { "up" } else { "down" }))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = ip("netns del a\n");
        let _ = ip("netns del b\n");
    }
}

/// Makes a veth of four queues with both ends in the caller's namespace.
pub fn make_pair() -> Check {
    ip("link add va numtxqueues 4 numrxqueues 4 type veth peer name vb numtxqueues 4 numrxqueues 4\n")
}

/// Runs iproute2 on a batch of commands.
fn ip(batch: &str) -> Check {
    run(&["-batch", "-"], batch)
}

fn enter_batch(namespace: &str, batch: &str) -> Check {
    run(&["-n", namespace, "-batch", "-"], batch)
}

fn run(arguments: &[&str], batch: &str) -> Check {
    use std::io::Write;
    let failed = |error: std::io::Error| format!("/sbin/ip: {error}");
    let mut child = Command::new("/sbin/ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(batch.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip: {}: {}", batch.trim(), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Enters a namespace for the rest of this process.
pub fn enter(namespace: &str) -> Check {
    let path = format!("/run/netns/{namespace}");
    let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
    // SAFETY: a descriptor of our own.
    done(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop).explain("enter a namespace")
}

/// Returns a socket in namespace `a` that sends its frames with a priority.
pub fn sender(priority: i32) -> Check<UdpSocket> {
    let socket = UdpSocket::bind("10.0.0.1:0").map_err(|error| format!("bind: {error}"))?;
    set(&socket, libc::SO_PRIORITY, priority)?;
    socket.connect(TO).map_err(|error| format!("connect: {error}"))?;
    Ok(socket)
}

/// Returns a socket in namespace `b` that knows when frames came. It waits for at most a second.
pub fn receiver() -> Check<UdpSocket> {
    let socket = UdpSocket::bind(TO).map_err(|error| format!("bind: {error}"))?;
    set(&socket, libc::SO_TIMESTAMPNS, 1)?;
    set(&socket, libc::SO_RCVBUFFORCE, 4 << 20)?;
    socket.set_read_timeout(Some(std::time::Duration::from_secs(1))).map_err(|error| format!("timeout: {error}"))?;
    Ok(socket)
}

fn set(socket: &UdpSocket, option: i32, value: i32) -> Check {
    let length = size_of::<i32>() as u32;
    // SAFETY: reads one number.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, std::ptr::from_ref(&value).cast(), length)
    };
    done(result).map(drop).explain("setsockopt")
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The kernel's time stamp, in ns of `CLOCK_REALTIME`.
    pub at_ns: u64,
    /// The first 8 bytes.
    pub number: u64,
    /// Its length.
    pub length: usize,
}

/// Waits for a datagram; none within the socket's limit.
pub fn receive(socket: &UdpSocket) -> Option<Arrival> {
    let mut data = [0u8; 2048];
    let mut control = [0u64; 16];
    // SAFETY: the message points to both buffers, which outlive the call; the header is checked before it is read.
    unsafe {
        let mut vector = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let length = libc::recvmsg(socket.as_raw_fd(), &mut message, 0);
        if length < 8 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        if header.is_null() || (*header).cmsg_type != libc::SO_TIMESTAMPNS {
            return None;
        }
        let stamp = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
        let number = u64::from_ne_bytes(data[..8].try_into().unwrap_or_default());
        let at_ns = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
        Some(Arrival { at_ns, number, length: length as usize })
    }
}
