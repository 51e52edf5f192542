//! The interface of client and server to a network: sending, receiving, and time stamps.

use std::io;

use macrotick_model::Duration;

/// A datagram that came. Instants are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its length in bytes.
    pub length: usize,
    /// When the program received it, on the grid's clock.
    pub at: i64,
    /// When it arrived at the kernel, on the grid's clock.
    pub kernel: Option<i64>,
    /// When it arrived at the device, on the device's clock.
    pub device: Option<i64>,
}

/// The end of a wait for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// A datagram.
    Datagram(Arrival),
    /// The given instant.
    Timeout,
    /// Time stamps of sent packets: [`Port::stamps`] has them.
    Stamps,
    /// The message that no program listens at the port.
    Refused,
    /// The end of the run was asked for.
    Stopped,
}

/// Where a packet was stamped on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    /// At the queueing discipline; on the grid's clock.
    Queue,
    /// At the driver; on the grid's clock.
    Driver,
    /// At the device; on the device's clock.
    Device,
}

/// A message of the kernel about a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A time stamp of the packet with this number, in ns.
    Stamp(u64, Station, i64),
    /// The queueing discipline dropped a packet because of its launch time.
    LaunchMissed,
}

/// The reason why a packet was not sent.
#[derive(Debug)]
pub enum SendFault {
    /// No program listened at the port before.
    Refused,
    /// The kernel did not take it: a queue is full, or the interface is down. The next one may pass.
    Untaken,
    /// Another reason, which ends the run.
    Broken(io::Error),
}

impl From<io::Error> for SendFault {
    fn from(error: io::Error) -> SendFault {
        match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => SendFault::Refused,
            Some(
                libc::EAGAIN
                | libc::ENOBUFS
                | libc::ENOMEM
                | libc::ENETDOWN
                | libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::EHOSTDOWN
                | libc::ENXIO
                | libc::ENODEV,
            ) => SendFault::Untaken,
            _ => SendFault::Broken(error),
        }
    }
}

/// A way to exchange packets with one peer, or for a server with the sender of the last one.
pub trait Port {
    /// Returns the present instant on the grid's clock, in ns.
    fn now(&mut self) -> i64;

    /// Returns an instant of `CLOCK_MONOTONIC` on the grid's clock, in ns.
    fn on_grid(&self, monotonic: i64) -> i64;

    /// Reads the clocks again. Returns the steps of the grid's clock and of the clock of kernel stamps since the last
    /// call, if there was one.
    fn step(&mut self) -> Option<Duration>;

    /// Sends a packet. `launch` is the instant on the grid's clock at which it shall leave; only a port that was opened
    /// for launch times takes one.
    fn send(&mut self, bytes: &[u8], launch: Option<i64>) -> Result<(), SendFault>;

    /// Waits for a datagram until an instant of the grid's clock, in ns. It fails if the network is broken for good.
    fn receive(&mut self, bytes: &mut [u8], until: i64) -> io::Result<Receipt>;

    /// Passes on the messages of the kernel about sent packets since the last call.
    fn stamps(&mut self, tell: &mut dyn FnMut(Sent)) -> io::Result<()>;
}
