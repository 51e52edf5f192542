//! The other traffic: datagrams as iperf sends them, at a rate or without a pause, and the process that receives them.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hub::{address, SERVER};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::netns::enter;
use crate::kit::process;

/// The bytes of a datagram, as those of iperf.
pub const BYTES: usize = 1470;
const PORT: u16 = 5001;

/// The count of the sink, which shares it with its parent.
pub struct Counts {
    /// Datagrams that the sink received.
    pub received: AtomicU64,
}

/// Sends to a namespace without end, at a rate in Mb/s if there is one, under SCHED_OTHER.
pub fn send(from: &'static str, to: &'static str, rate: Option<u64>) -> Result<i32, String> {
    process::fork(move || {
        enter(from)?;
        let failed = |error: std::io::Error| format!("the traffic: {error}");
        let socket = UdpSocket::bind((address(from), 0)).map_err(failed)?;
        socket.connect((address(to), PORT)).map_err(failed)?;
        let pause = rate.map(|rate| BYTES as u64 * 8 * 1000 / rate);
        let mut next = now_ns();
        loop {
            // A full queue drops the datagram, as a switch would.
            let _ = socket.send(&[0; BYTES]);
            if let Some(pause) = pause {
                next += pause;
                if next > now_ns() {
                    sleep_until(next);
                }
            }
        }
    })
}

/// Receives at the server without end, under SCHED_OTHER.
pub fn sink(counts: &'static Counts) -> Result<i32, String> {
    process::fork(move || {
        enter(SERVER)?;
        let socket = UdpSocket::bind((address(SERVER), PORT)).map_err(|error| format!("the sink: {error}"))?;
        let mut bytes = [0; 2 * BYTES];
        loop {
            if socket.recv(&mut bytes).is_ok() {
                counts.received.fetch_add(1, Ordering::Relaxed);
            }
        }
    })
}
