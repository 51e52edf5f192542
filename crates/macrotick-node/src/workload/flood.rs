//! A flood of pings. The next ICMP echo request is sent as soon as the last one is answered, or after 10 ms without an
//! answer, like `ping -f`.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use macrotick_host::sys;
use macrotick_model::Duration;

/// The time without an answer after which the next request is sent.
const PATIENCE: Duration = Duration::from_millis(10);
/// The size of an IPv4 header with all options. A raw socket receives it before the packet.
const MOST_HEADER: usize = 60;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// The fields type, code, checksum, identifier and sequence.
const ICMP_HEADER: usize = 8;

/// A socket for pings to one address. Needs root.
pub struct Flood {
    socket: OwnedFd,
    to: SocketAddrV4,
    request: Vec<u8>,
    answer: Vec<u8>,
    identifier: u16,
    sequence: u16,
}

impl Flood {
    /// Opens the socket. It sends nothing.
    pub fn new(to: Ipv4Addr, bytes: usize) -> io::Result<Flood> {
        // SAFETY: no memory is passed; the returned descriptor is ours.
        let socket = unsafe {
            match libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) {
                fd if fd < 0 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let patience = libc::timeval { tv_sec: 0, tv_usec: PATIENCE.as_nanos() / 1000 };
        // SAFETY: reads one timeval.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const patience).cast(),
                size_of_val(&patience) as libc::socklen_t,
            )
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Flood {
            socket,
            to: SocketAddrV4::new(to, 0),
            request: vec![0; ICMP_HEADER + bytes],
            answer: vec![0; MOST_HEADER + ICMP_HEADER + bytes],
            identifier: std::process::id() as u16,
            sequence: 0,
        })
    }

    /// Sends a request and waits for its answer.
    pub fn ping(&mut self) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        fill(&mut self.request, self.identifier, self.sequence);
        match self.send() {
            // No host answers, or the send buffer is full: wait as for a missing answer.
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EHOSTUNREACH | libc::ENOBUFS)) => Err(error),
            _ => self.await_answer(),
        }
    }

    fn send(&self) -> io::Result<()> {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from(*self.to.ip()).to_be() },
            sin_zero: [0; 8],
        };
        // SAFETY: reads the request and one address.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                self.request.as_ptr().cast(),
                self.request.len(),
                0,
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    fn await_answer(&mut self) -> io::Result<()> {
        let give_up = sys::now() + PATIENCE;
        while sys::now() < give_up {
            // SAFETY: writes within the buffer.
            let received =
                unsafe { libc::recv(self.socket.as_raw_fd(), self.answer.as_mut_ptr().cast(), self.answer.len(), 0) };
            if received < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => continue,
                    _ => return Err(error),
                }
            }
            if answers(&self.answer[..received as usize], self.identifier, self.sequence) {
                break;
            }
        }
        Ok(())
    }
}

/// Makes an echo request of a packet. The data stays unchanged.
fn fill(packet: &mut [u8], identifier: u16, sequence: u16) {
    packet[..4].copy_from_slice(&[ECHO_REQUEST, 0, 0, 0]);
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Computes the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns whether a packet, with its IPv4 header, answers a request.
fn answers(packet: &[u8], identifier: u16, sequence: u16) -> bool {
    let header = packet.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    let Some(icmp) = packet.get(header..header + ICMP_HEADER) else { return false };
    icmp[0] == ECHO_REPLY && icmp[4..6] == identifier.to_be_bytes() && icmp[6..8] == sequence.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_checks_to_zero() {
        let mut packet = vec![7; ICMP_HEADER + 5];
        fill(&mut packet, 0x1234, 0x00ff);
        assert_eq!(packet[..2], [8, 0]);
        assert_eq!(packet[4..8], [0x12, 0x34, 0x00, 0xff]);
        assert_eq!(checksum(&packet), 0);
    }

    #[test]
    fn only_the_answer_to_the_request_counts() {
        let packet = |kind: u8, sequence: u8| {
            let mut packet = vec![0; 28];
            packet[0] = 0x45;
            packet[20] = kind;
            packet[25] = 9;
            packet[27] = sequence;
            packet
        };
        assert!(answers(&packet(ECHO_REPLY, 3), 9, 3));
        assert!(!answers(&packet(ECHO_REQUEST, 3), 9, 3));
        assert!(!answers(&packet(ECHO_REPLY, 2), 9, 3));
        assert!(!answers(&packet(ECHO_REPLY, 3)[..24], 9, 3));
        assert!(!answers(&[], 9, 3));
    }

    /// Needs the privilege for raw sockets, or else checks the error.
    #[test]
    fn the_loopback_interface_answers() {
        match Flood::new(Ipv4Addr::LOCALHOST, 6000) {
            Ok(mut flood) => (0..3).for_each(|_| flood.ping().unwrap()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
    }
}
