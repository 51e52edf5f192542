//! The socket: a [`Port`] through the network stack.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use macrotick_model::Duration;
use nix::sys::socket::{
    recvmsg, sendmsg, setsockopt, sockopt, ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage,
    TimestampingFlag, Timestamps,
};
use nix::sys::time::TimeSpec;

use crate::clock::GridClock;
use crate::error::ProbeError;
use crate::packet::{ClockName, Packet, HEADER, LARGEST};
use crate::port::{Arrival, Port, Receipt, SendFault, Sent, Station};
use crate::stop::{Stop, Wait};

/// Options of a socket that the crate nix lacks.
mod options {
    use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// How long the kernel polls the device in a receive, in us.
        BusyPoll,
        Both,
        libc::SOL_SOCKET,
        libc::SO_BUSY_POLL,
        libc::c_int
    );
    sockopt_impl!(
        /// Whether large packets are refused instead of fragmented.
        MtuDiscover,
        Both,
        libc::IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        libc::c_int
    );
}

/// The most bytes before a packet in the error queue: the headers of Ethernet with tags, IPv6 and UDP.
const HEADERS: usize = 128;
/// The memory for packets in a socket, for bursts.
const BUFFER: usize = 4 << 20;
/// How long the kernel polls the device for a socket that spins, in us.
const BUSY_US: i32 = 50;

/// The options of a socket.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// `SO_PRIORITY`.
    pub priority: Option<u8>,
    /// The interface of all packets.
    pub interface: Option<String>,
    /// Whether the kernel stamps packets where they arrive.
    pub stamps: bool,
    /// Whether the kernel stamps packets at the queueing discipline and at the driver as well.
    pub stamps_out: bool,
    /// Whether the device stamps packets, too.
    pub device_stamps: bool,
    /// Whether a wait spins instead of sleeping.
    pub busy_poll: bool,
    /// The clock of launch times.
    pub launch: Option<ClockName>,
}

/// A socket.
pub struct UdpPort {
    socket: UdpSocket,
    /// The sender of the last datagram; `None` for a connected socket.
    peer: Option<SockaddrStorage>,
    connected: bool,
    /// The clock of launch times: that of the grid.
    launch: Option<ClockName>,
    clock: GridClock,
    wait: Wait,
    control: Vec<u8>,
    looped: Vec<u8>,
}

impl UdpPort {
    /// Opens the socket of a client.
    pub fn connect(
        to: SocketAddr,
        clock: ClockName,
        options: &SocketOptions,
        stop: Arc<Stop>,
    ) -> Result<UdpPort, ProbeError> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = open(any, options)?;
        socket.connect(to).map_err(failed("connect", to))?;
        // A packet that is too large is refused: fragments would measure something else.
        if to.is_ipv4() {
            setsockopt(&socket, options::MtuDiscover, &libc::IP_PMTUDISC_DO)
                .map_err(|errno| failed("refuse fragments", to)(errno.into()))?;
        }
        Ok(UdpPort::new(socket, true, clock, options, stop))
    }

    /// Opens the socket of a server.
    pub fn listen(
        at: SocketAddr,
        clock: ClockName,
        options: &SocketOptions,
        stop: Arc<Stop>,
    ) -> Result<UdpPort, ProbeError> {
        let socket = open(at, options)?;
        Ok(UdpPort::new(socket, false, clock, options, stop))
    }

    fn new(socket: UdpSocket, connected: bool, clock: ClockName, options: &SocketOptions, stop: Arc<Stop>) -> UdpPort {
        UdpPort {
            socket,
            peer: None,
            connected,
            launch: options.launch,
            clock: GridClock::new(clock),
            wait: Wait::new(stop, options.busy_poll),
            control: nix::cmsg_space!(Timestamps, [u8; 64]),
            looped: vec![0; LARGEST + HEADERS],
        }
    }

    /// Returns the address of this end.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the payload that a packet of a connected socket can have without fragments, in bytes.
    pub fn most(&self) -> usize {
        let headers = match self.socket.peer_addr() {
            Ok(SocketAddr::V6(_)) => 48,
            _ => 28,
        };
        let mtu = nix::sys::socket::getsockopt(&self.socket, sockopt::IpMtu).ok();
        mtu.and_then(|mtu| usize::try_from(mtu).ok()).map_or(LARGEST, |mtu| mtu.saturating_sub(headers).min(LARGEST))
    }

    /// Receives what is there.
    fn take(&mut self, bytes: &mut [u8]) -> nix::Result<Arrival> {
        let mut parts = [IoSliceMut::new(bytes)];
        let message = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let at = self.clock.now();
        if !self.connected {
            self.peer = message.address;
        }
        let stamps = message.cmsgs().into_iter().flatten().find_map(|part| match part {
            ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps),
            _ => None,
        });
        let kernel = stamps.and_then(|stamps| self.clock.stamp(ns(stamps.system)?));
        let device = stamps.and_then(|stamps| ns(stamps.hw_raw));
        Ok(Arrival { length: message.bytes, at, kernel, device })
    }

    /// Reads one message of the error queue: a copy of a sent packet, with the reason.
    fn looped(&mut self) -> nix::Result<Option<Sent>> {
        let mut parts = [IoSliceMut::new(&mut self.looped)];
        let message = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT,
        )?;
        let (mut stamps, mut error) = (None, None);
        for part in message.cmsgs().into_iter().flatten() {
            match part {
                ControlMessageOwned::ScmTimestampsns(times) => stamps = Some(times),
                ControlMessageOwned::Ipv4RecvErr(reason, _) | ControlMessageOwned::Ipv6RecvErr(reason, _) => {
                    error = Some(reason)
                }
                _ => {}
            }
        }
        let length = message.bytes;
        let Some(error) = error else { return Ok(None) };
        if error.ee_origin == LAUNCH_TIME {
            return Ok(Some(Sent::LaunchMissed));
        }
        let (Some(stamps), Some(sequence)) = (stamps, sequence(&self.looped[..length])) else { return Ok(None) };
        let software = ns(stamps.system).and_then(|at| self.clock.stamp(at));
        let station = if error.ee_info == SCHEDULED { Station::Queue } else { Station::Driver };
        let stamp = match ns(stamps.hw_raw) {
            Some(at) => Some((Station::Device, at)),
            None => software.map(|at| (station, at)),
        };
        Ok(stamp.map(|(station, at)| Sent::Stamp(sequence, station, at)))
    }
}

/// `SO_EE_ORIGIN_TXTIME`: the queueing discipline dropped the packet.
const LAUNCH_TIME: u8 = 6;
/// `SCM_TSTAMP_SCHED`: the stamp of the queueing discipline.
const SCHEDULED: u32 = 1;

/// Returns the number of the packet in a copy. Headers of lower layers may stand before it.
fn sequence(copy: &[u8]) -> Option<u64> {
    let starts = 0..copy.len().saturating_sub(HEADER - 1).min(HEADERS);
    starts.into_iter().find_map(|start| Packet::decode(&copy[start..])).map(|packet| packet.sequence)
}

/// Returns a kernel stamp in ns; zero means that there is none.
fn ns(time: TimeSpec) -> Option<i64> {
    // The types of the fields differ between targets.
    #[allow(clippy::unnecessary_cast)]
    let ns = time.tv_sec() as i64 * 1_000_000_000 + time.tv_nsec() as i64;
    (ns != 0).then_some(ns)
}

fn failed(what: &'static str, address: SocketAddr) -> impl Fn(io::Error) -> ProbeError {
    move |source| ProbeError::Socket { what, address, source }
}

/// Opens a socket with its options.
fn open(at: SocketAddr, options: &SocketOptions) -> Result<UdpSocket, ProbeError> {
    let socket = UdpSocket::bind(at).map_err(failed("open a socket", at))?;
    let failed = |what| move |errno: nix::Error| failed(what, at)(errno.into());
    // More room than the limit of the system is granted up to that limit.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
    let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER);
    if let Some(priority) = options.priority {
        setsockopt(&socket, sockopt::Priority, &priority.into())
            .map_err(failed("set SO_PRIORITY (above 6 it needs CAP_NET_ADMIN)"))?;
    }
    if let Some(interface) = &options.interface {
        setsockopt(&socket, sockopt::BindToDevice, &interface.into())
            .map_err(failed("bind to the interface (it must exist, and may need CAP_NET_RAW)"))?;
    }
    if options.busy_poll {
        // It needs CAP_NET_ADMIN, and a device with NAPI. Without it only this program spins.
        let _ = setsockopt(&socket, options::BusyPoll, &BUSY_US);
    }
    if let Some(clock) = options.launch {
        let clockid = match clock {
            ClockName::Monotonic => libc::CLOCK_MONOTONIC,
            ClockName::Tai => libc::CLOCK_TAI,
        };
        let launch = libc::sock_txtime { clockid, flags: libc::SOF_TXTIME_REPORT_ERRORS };
        setsockopt(&socket, sockopt::TxTime, &launch)
            .map_err(failed("set SO_TXTIME (other clocks than CLOCK_MONOTONIC may need CAP_NET_ADMIN)"))?;
    }
    if options.stamps || options.stamps_out || options.device_stamps {
        setsockopt(&socket, sockopt::Timestamping, &stamping(options)).map_err(failed("set SO_TIMESTAMPING"))?;
    }
    Ok(socket)
}

/// Returns the flags of `SO_TIMESTAMPING`. A stamp comes with a copy of its packet, which names the packet beyond doubt.
fn stamping(options: &SocketOptions) -> TimestampingFlag {
    let mut flags = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    if options.stamps_out {
        flags |= libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_SCHED;
    }
    if options.device_stamps {
        flags |= libc::SOF_TIMESTAMPING_RAW_HARDWARE
            | libc::SOF_TIMESTAMPING_TX_HARDWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    }
    TimestampingFlag::from_bits_retain(flags)
}

impl Port for UdpPort {
    fn now(&mut self) -> i64 {
        self.clock.now()
    }

    fn on_grid(&self, monotonic: i64) -> i64 {
        self.clock.on_grid(monotonic)
    }

    fn step(&mut self) -> Option<Duration> {
        self.clock.step()
    }

    fn send(&mut self, bytes: &[u8], launch: Option<i64>) -> Result<(), SendFault> {
        let launch = launch.filter(|_| self.launch.is_some()).map(|at| at as u64);
        let control: Vec<ControlMessage> = launch.iter().map(ControlMessage::TxTime).collect();
        let peer = if self.connected { None } else { self.peer.as_ref() };
        let parts = [IoSlice::new(bytes)];
        match sendmsg(self.socket.as_raw_fd(), &parts, &control, MsgFlags::MSG_DONTWAIT, peer) {
            Ok(_) => Ok(()),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    fn receive(&mut self, bytes: &mut [u8], until: i64) -> io::Result<Receipt> {
        loop {
            match self.take(bytes) {
                Ok(arrival) => return Ok(Receipt::Datagram(arrival)),
                Err(nix::Error::EAGAIN | nix::Error::EINTR) => {}
                Err(nix::Error::ECONNREFUSED) => return Ok(Receipt::Refused),
                // An error that the device or a router told about an earlier packet.
                Err(
                    nix::Error::ENETDOWN
                    | nix::Error::ENETUNREACH
                    | nix::Error::EHOSTUNREACH
                    | nix::Error::EHOSTDOWN
                    | nix::Error::ENOMSG
                    | nix::Error::EMSGSIZE,
                ) => {}
                Err(errno) => return Err(errno.into()),
            }
            let now = self.clock.now();
            if let Some(receipt) = self.wait.input(self.socket.as_fd(), until.saturating_sub(now))? {
                return Ok(receipt);
            }
        }
    }

    fn stamps(&mut self, tell: &mut dyn FnMut(Sent)) -> io::Result<()> {
        loop {
            match self.looped() {
                Ok(sent) => sent.into_iter().for_each(&mut *tell),
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(nix::Error::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{blank, Kind};

    #[test]
    fn a_copy_is_found_behind_its_headers() {
        let mut packet = blank(100);
        Packet::new(Kind::Request, ClockName::Tai, 1, 77).encode(&mut packet);
        for headers in [0, 28, 42, 66] {
            assert_eq!(sequence(&[vec![0x45; headers], packet.clone()].concat()), Some(77), "{headers}");
        }
        assert_eq!((sequence(&packet[1..]), sequence(&[])), (None, None));
    }

    #[test]
    fn a_stamp_of_zero_is_none() {
        assert_eq!(ns(TimeSpec::new(0, 0)), None);
        assert_eq!(ns(TimeSpec::new(2, 5)), Some(2_000_000_005));
    }
}
