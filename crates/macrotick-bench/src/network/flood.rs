//! A flood of pings: the next request is sent as soon as the last one is answered.

use std::os::fd::RawFd;

use crate::kit::netns::set;
use crate::kit::process::{last_error, set_policy};

/// The bytes of a ping after its header.
const BYTES: usize = 6000;
const HEADER: usize = 8;
/// The largest IPv4 header. A raw socket receives it, too.
const IP_HEADER: usize = 60;
const ECHO_REQUEST: u8 = 8;
/// The time without an answer after which the next request is sent, in microseconds.
const PATIENCE_US: i64 = 10_000;
const PRIORITY: u32 = 40;

/// Floods an address from the caller's namespace, under SCHED_FIFO, without end.
pub fn run(to: std::net::Ipv4Addr) -> Result<(), String> {
    set_policy(libc::SCHED_FIFO as u32, PRIORITY)?;
    let socket = open()?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from(to).to_be() },
        sin_zero: [0; 8],
    };
    let (mut request, mut answer) = ([0u8; HEADER + BYTES], [0u8; IP_HEADER + HEADER + BYTES]);
    for sequence in (0..=u16::MAX).cycle() {
        fill(&mut request, sequence);
        // Without room, or without an answer, the socket's time passes.
        // SAFETY: reads the request and one address, and writes within the answer.
        unsafe {
            let size = size_of_val(&address) as u32;
            libc::sendto(socket, request.as_ptr().cast(), request.len(), 0, (&raw const address).cast(), size);
            libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0);
        }
    }
    Ok(())
}

fn open() -> Result<RawFd, String> {
    // SAFETY: passes numbers. The socket is open as long as the process lives.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    if socket < 0 {
        return Err(last_error("a socket for pings"));
    }
    set(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &libc::timeval { tv_sec: 0, tv_usec: PATIENCE_US })?;
    Ok(socket)
}

/// Makes an echo request.
fn fill(packet: &mut [u8], sequence: u16) {
    packet[..4].copy_from_slice(&[ECHO_REQUEST, 0, 0, 0]);
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u64 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_its_checksum_sums_up_to_zero() {
        let mut packet = [3u8; HEADER + BYTES];
        for sequence in [0, 1, u16::MAX] {
            fill(&mut packet, sequence);
            assert_eq!(checksum(&packet), 0);
        }
    }
}
