//! The express path: a [`Port`] without the network stack.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;

use macrotick_model::Duration;
use macrotick_task::express::{Mode, LONGEST_FRAME};
use macrotick_task::frame::{self, Ends, HEADERS};
use macrotick_task::Express;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::clock::GridClock;
use crate::error::ProbeError;
use crate::packet::{self, ClockName, Kind, Packet};
use crate::port::{Arrival, Port, Receipt, SendFault, Sent};
use crate::stop::{Stop, Wait};

/// How often and how long the client waits for the peer's hardware address.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Where a path begins.
#[derive(Clone, Debug)]
pub struct Place {
    /// The interface.
    pub interface: String,
    /// The receive queue.
    pub queue: u32,
    /// Where the device hands frames over.
    pub mode: Mode,
}

/// A path.
pub struct XdpPort {
    express: Express,
    /// Where the next packet goes; `None` for a server that has received nothing.
    ends: Option<Ends>,
    /// For a server: the last sender gets the next packet.
    follows: bool,
    /// Holds the port: no other program gets it, and the stack refuses nothing that another queue received.
    _reserved: UdpSocket,
    clock: GridClock,
    wait: Wait,
    out: Vec<u8>,
    in_: Vec<u8>,
    most: usize,
}

impl XdpPort {
    /// Opens the path of a client. The server must be reachable without a router.
    pub fn connect(
        to: SocketAddrV4,
        place: &Place,
        clock: ClockName,
        spins: bool,
        stop: Arc<Stop>,
    ) -> Result<XdpPort, ProbeError> {
        let failed = |what, source| ProbeError::Socket { what, address: to.into(), source };
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| failed("open a socket", error))?;
        setsockopt(&socket, sockopt::BindToDevice, &(&place.interface).into())
            .map_err(|errno| failed("bind to the interface", errno.into()))?;
        socket.connect(to).map_err(|error| failed("connect", error))?;
        let from = match socket.local_addr() {
            Ok(SocketAddr::V4(from)) => from,
            _ => return Err(failed("find the own address", io::ErrorKind::AddrNotAvailable.into())),
        };
        let ends = Ends {
            from_hardware: hardware_address(&place.interface)?,
            to_hardware: neighbour(&socket, *to.ip(), &place.interface)?,
            from,
            to,
        };
        let mtu = getsockopt(&socket, sockopt::IpMtu).ok().and_then(|mtu| usize::try_from(mtu).ok());
        let mut port = XdpPort::open(socket, place, from.port(), clock, spins, stop)?;
        port.most = mtu.map_or(port.most, |mtu| port.most.min(mtu.saturating_sub(HEADERS - 14)));
        port.ends = Some(ends);
        Ok(port)
    }

    /// Opens the path of a server.
    pub fn listen(
        at: SocketAddrV4,
        place: &Place,
        clock: ClockName,
        spins: bool,
        stop: Arc<Stop>,
    ) -> Result<XdpPort, ProbeError> {
        let failed = |source| ProbeError::Socket { what: "open a socket", address: at.into(), source };
        let socket = UdpSocket::bind(at).map_err(failed)?;
        let port = socket.local_addr().map_err(failed)?.port();
        let mut port = XdpPort::open(socket, place, port, clock, spins, stop)?;
        port.follows = true;
        Ok(port)
    }

    fn open(
        socket: UdpSocket,
        place: &Place,
        port: u16,
        clock: ClockName,
        spins: bool,
        stop: Arc<Stop>,
    ) -> Result<XdpPort, ProbeError> {
        let express = Express::open(&place.interface, place.queue, port, place.mode).map_err(ProbeError::Express)?;
        Ok(XdpPort {
            express,
            ends: None,
            follows: false,
            _reserved: socket,
            clock: GridClock::new(clock),
            wait: Wait::new(stop, spins),
            out: vec![0; LONGEST_FRAME],
            in_: vec![0; LONGEST_FRAME],
            most: LONGEST_FRAME - HEADERS,
        })
    }

    /// Returns the largest payload of a packet, in bytes.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether the device reads and writes the frames itself.
    pub fn is_zero_copy(&self) -> bool {
        self.express.is_zero_copy()
    }
}

impl Port for XdpPort {
    fn now(&mut self) -> i64 {
        self.clock.now()
    }

    fn on_grid(&self, monotonic: i64) -> i64 {
        self.clock.on_grid(monotonic)
    }

    fn step(&mut self) -> Option<Duration> {
        self.clock.step()
    }

    fn send(&mut self, bytes: &[u8], _launch: Option<i64>) -> Result<(), SendFault> {
        let too_long = || SendFault::Broken(io::Error::from_raw_os_error(libc::EMSGSIZE));
        let ends = self.ends.ok_or(SendFault::Untaken)?;
        self.out.get_mut(HEADERS..HEADERS + bytes.len()).ok_or_else(too_long)?.copy_from_slice(bytes);
        let length = frame::complete(&mut self.out, &ends, bytes.len()).ok_or_else(too_long)?;
        self.express.send(&self.out[..length]).map_err(SendFault::from)
    }

    fn receive(&mut self, bytes: &mut [u8], until: i64) -> io::Result<Receipt> {
        loop {
            if let Some(length) = self.express.receive(&mut self.in_)? {
                let at = self.clock.now();
                // A damaged frame has no packet: it counts as a foreign one.
                let (ends, payload) = match frame::parse(&self.in_[..length]) {
                    Some((ends, payload)) => (Some(ends), payload),
                    None => (None, &[][..]),
                };
                if self.follows {
                    self.ends = ends.map(Ends::back);
                }
                let length = payload.len().min(bytes.len());
                bytes[..length].copy_from_slice(&payload[..length]);
                return Ok(Receipt::Datagram(Arrival { length, at, kernel: None, device: None }));
            }
            let now = self.clock.now();
            if let Some(receipt) = self.wait.input(self.express.as_fd(), until.saturating_sub(now))? {
                // There is no error queue: the device is down. It may come back.
                match receipt {
                    Receipt::Stamps => macrotick_host::sys::sleep(Duration::from_millis(1)),
                    receipt => return Ok(receipt),
                }
            }
        }
    }

    fn stamps(&mut self, _tell: &mut dyn FnMut(Sent)) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the hardware address of an interface.
fn hardware_address(interface: &str) -> Result<[u8; 6], ProbeError> {
    let failed = |source| ProbeError::Interface { what: "the hardware address", interface: interface.into(), source };
    let all = nix::ifaddrs::getifaddrs().map_err(|errno| failed(errno.into()))?;
    let mut addresses = all.filter(|one| one.interface_name == interface).filter_map(|one| one.address);
    addresses.find_map(|address| address.as_link_addr()?.addr()).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

/// Returns the hardware address of a neighbour. Has the kernel ask for it, if it is unknown.
fn neighbour(socket: &UdpSocket, peer: Ipv4Addr, interface: &str) -> Result<[u8; 6], ProbeError> {
    let mut question = packet::blank(0);
    Packet::new(Kind::Hello, ClockName::Monotonic, 0, 0).encode(&mut question);
    for _ in 0..TRIES {
        let table = std::fs::read_to_string("/proc/thread-self/net/arp").unwrap_or_default();
        if let Some(address) = entry(&table, peer, interface) {
            return Ok(address);
        }
        // The answer belongs to no run, and is ignored.
        let _ = socket.send(&question);
        macrotick_host::sys::sleep(PAUSE);
    }
    Err(ProbeError::NoNeighbour(peer, interface.into()))
}

/// Finds a complete entry in the kernel's table of neighbours (`/proc/net/arp`), which is that of the thread's namespace.
fn entry(table: &str, peer: Ipv4Addr, interface: &str) -> Option<[u8; 6]> {
    /// `ATF_COM`: the address is known.
    const COMPLETE: u32 = 2;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (address, _kind, flags, hardware, _mask, device) =
            (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        let is_it = address.parse() == Ok(peer) && device == interface && flags & COMPLETE != 0;
        let bytes: Result<Vec<u8>, _> = hardware.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
        is_it.then(|| bytes.ok()?.try_into().ok())?
    };
    table.lines().find_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_when_they_are_complete() {
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
            10.0.0.2         0x1         0x0         00:00:00:00:00:00     *        eth0\n\
            10.0.0.2         0x1         0x2         02:00:00:00:00:0a     *        eth1\n\
            10.0.0.3         0x1         0x6         02:00:00:00:00:ff     *        eth0\n";
        let find = |last, interface| entry(table, Ipv4Addr::new(10, 0, 0, last), interface);
        assert_eq!(find(2, "eth1"), Some([2, 0, 0, 0, 0, 10]));
        assert_eq!(find(3, "eth0"), Some([2, 0, 0, 0, 0, 255]));
        assert_eq!([find(2, "eth0"), find(4, "eth0")], [None, None]);
    }

    #[test]
    fn a_missing_interface_is_named() {
        let error = hardware_address("nowhere-0").unwrap_err();
        assert!(error.to_string().starts_with("cannot read the hardware address of `nowhere-0`"), "{error}");
    }
}
