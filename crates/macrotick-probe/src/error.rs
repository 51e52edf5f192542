//! The reasons why a probe failed.

use std::io;
use std::net::SocketAddr;

use macrotick_host::HostFailure;
use macrotick_task::express::ExpressError;
use macrotick_task::JoinError;

/// The reason why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The options contradict each other, or exceed a limit.
    #[error("{0}")]
    Options(String),
    /// The socket cannot be opened.
    #[error("cannot {what} for {address}: {source}")]
    Socket {
        /// The failed step.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A packet does not fit into the device's frames.
    #[error("packets of {size} bytes do not fit into the path's frames, which take {most}: choose a smaller `--size`")]
    TooLarge {
        /// The chosen size.
        size: usize,
        /// The largest one.
        most: usize,
    },
    /// No server answered.
    #[error("no server answers: start `macrotick probe serve` at the destination, and let its port through")]
    NoServer,
    /// The server did not give its records.
    #[error("the server does not answer any more: the records of the one-way packets are lost")]
    NoRecords,
    /// The network failed for good.
    #[error("the network failed: {0}")]
    Network(io::Error),
    /// The express path cannot be opened.
    #[error("{0}: {source}", source = .0.source)]
    Express(ExpressError),
    /// The hardware address of the peer is unknown.
    #[error("no hardware address of {0} on `{1}`: add it with `ip neighbour`, or ping it first")]
    NoNeighbour(std::net::Ipv4Addr, String),
    /// The interface has no such property.
    #[error("cannot read {what} of `{interface}`: {source}")]
    Interface {
        /// The property.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The thread did not become a task of the plan.
    #[error("cannot join the task `{0}`: {1}")]
    Join(String, JoinError),
    /// A wait of the task failed.
    #[error("the task cannot wait for its next job: {0}")]
    Task(io::Error),
    /// The kernel refused the policy or the CPU.
    #[error("cannot set {what}: {source}{remedy}")]
    Standing {
        /// The policy or the CPU, in words.
        what: String,
        /// The kernel's error.
        source: io::Error,
        /// The remedy, behind a colon.
        remedy: &'static str,
    },
    /// The host could not be changed.
    #[error(transparent)]
    Host(#[from] HostFailure),
}

impl ProbeError {
    /// Whether the input is wrong, and not this host or the network.
    pub fn is_about_the_input(&self) -> bool {
        matches!(self, ProbeError::Options(_) | ProbeError::TooLarge { .. })
    }
}
