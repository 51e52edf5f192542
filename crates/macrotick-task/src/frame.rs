//! Frames of the express path: UDP over IPv4 over Ethernet, without options, tags and fragments.

use std::net::{Ipv4Addr, SocketAddrV4};

/// The length of the headers of Ethernet, IPv4 and UDP.
pub const HEADERS: usize = ETHERNET + IPV4 + UDP;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
/// Where the IPv4 header has its sum, and the UDP header its own.
const IPV4_SUM: usize = ETHERNET + 10;
const UDP_SUM: usize = ETHERNET + IPV4 + 6;

/// The ends of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The hardware address of the sender.
    pub from_hardware: [u8; 6],
    /// The hardware address of the receiver, or of the next hop.
    pub to_hardware: [u8; 6],
    /// Address and port of the sender.
    pub from: SocketAddrV4,
    /// Address and port of the receiver.
    pub to: SocketAddrV4,
}

impl Ends {
    /// Returns the ends of an answer.
    pub fn back(self) -> Ends {
        Ends { from_hardware: self.to_hardware, to_hardware: self.from_hardware, from: self.to, to: self.from }
    }
}

/// Writes the headers of a frame before its payload, which is there already, and returns the frame's length. `None`: the
/// buffer or a datagram has no room for the payload.
pub fn complete(frame: &mut [u8], ends: &Ends, payload: usize) -> Option<usize> {
    let length = HEADERS.checked_add(payload)?;
    let (udp, ip) = (u16::try_from(UDP + payload).ok()?, u16::try_from(IPV4 + UDP + payload).ok()?);
    let frame = frame.get_mut(..length)?;
    frame[..6].copy_from_slice(&ends.to_hardware);
    frame[6..12].copy_from_slice(&ends.from_hardware);
    frame[12..14].copy_from_slice(&TYPE_IPV4);
    // Version and length, service, total length, identification, do not fragment, time to live, protocol, sum.
    let [ip_high, ip_low] = ip.to_be_bytes();
    let fixed = [0x45, 0, ip_high, ip_low, 0, 0, 0x40, 0, TIME_TO_LIVE, PROTOCOL_UDP, 0, 0];
    frame[14..26].copy_from_slice(&fixed);
    frame[26..30].copy_from_slice(&ends.from.ip().octets());
    frame[30..34].copy_from_slice(&ends.to.ip().octets());
    frame[34..36].copy_from_slice(&ends.from.port().to_be_bytes());
    frame[36..38].copy_from_slice(&ends.to.port().to_be_bytes());
    frame[38..40].copy_from_slice(&udp.to_be_bytes());
    frame[40..42].copy_from_slice(&[0, 0]);
    let sum = checksum(sum(&frame[ETHERNET..ETHERNET + IPV4], 0));
    frame[IPV4_SUM..IPV4_SUM + 2].copy_from_slice(&sum.to_be_bytes());
    // Zero means that there is no sum; a sum of zero is written as its other form.
    let sum = match checksum(udp_sum(frame, udp)) {
        0 => u16::MAX,
        sum => sum,
    };
    frame[UDP_SUM..UDP_SUM + 2].copy_from_slice(&sum.to_be_bytes());
    Some(length)
}

/// Returns the ends and the payload of a frame. `None`: it is no whole UDP datagram over IPv4, or the sum of its IPv4
/// header is wrong. The sum of UDP is not judged: for a virtual interface, the kernel does not finish it.
pub fn parse(frame: &[u8]) -> Option<(Ends, &[u8])> {
    let headers = frame.get(..HEADERS)?;
    let is_fragment = u16::from_be_bytes([headers[20], headers[21]]) & 0x3fff != 0;
    if headers[12..14] != TYPE_IPV4 || headers[14] != 0x45 || headers[23] != PROTOCOL_UDP || is_fragment {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([headers[16], headers[17]]));
    let udp = u16::from_be_bytes([headers[38], headers[39]]);
    // A short frame is padded to 60 bytes.
    let whole = frame.get(..ETHERNET + total)?;
    if total != IPV4 + usize::from(udp) || total < IPV4 + UDP {
        return None;
    }
    if checksum(sum(&headers[ETHERNET..ETHERNET + IPV4], 0)) != 0 {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(headers[at], headers[at + 1], headers[at + 2], headers[at + 3]);
    let port = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let hardware = |at: usize| headers[at..at + 6].try_into().ok();
    let ends = Ends {
        from_hardware: hardware(6)?,
        to_hardware: hardware(0)?,
        from: SocketAddrV4::new(address(26), port(34)),
        to: SocketAddrV4::new(address(30), port(36)),
    };
    Some((ends, &whole[HEADERS..]))
}

/// Adds the 16-bit words of `bytes` (RFC 1071). A last single byte counts as the upper half of a word.
fn sum(bytes: &[u8], start: u32) -> u32 {
    bytes.chunks(2).fold(start, |sum, word| sum + u32::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)])))
}

/// Adds the words that the sum of a UDP datagram covers: the addresses, the protocol, its length, and the datagram.
fn udp_sum(frame: &[u8], udp: u16) -> u32 {
    let pseudo = sum(&frame[26..34], u32::from(PROTOCOL_UDP) + u32::from(udp));
    sum(&frame[ETHERNET + IPV4..], pseudo)
}

fn checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        Ends {
            from_hardware: [2, 0, 0, 0, 0, 1],
            to_hardware: [2, 0, 0, 0, 0, 2],
            from: SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, 1), 1000),
            to: SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, 199), 7600),
        }
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = [vec![0; HEADERS], payload.to_vec()].concat();
        assert_eq!(complete(&mut frame, &ends(), payload.len()), Some(HEADERS + payload.len()));
        frame
    }

    #[test]
    fn a_frame_has_these_bytes() {
        let expected = [
            2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
            0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0xb8, 0xb5, 192, 168, 0, 1, 192, 168, 0, 199, // IPv4
            0x03, 0xe8, 0x1d, 0xb0, 0, 11, 0x97, 0xc4, // UDP
            b'a', b'b', b'c',
        ];
        assert_eq!(frame(b"abc"), expected);
    }

    #[test]
    fn a_built_frame_is_parsed() {
        for payload in [&b""[..], b"a", b"ab", &[255; 1400]] {
            let frame = frame(payload);
            assert_eq!(parse(&frame), Some((ends(), payload)));
            // Padding of a short frame is no payload.
            assert_eq!(parse(&[frame, vec![9; 18]].concat()), Some((ends(), payload)));
        }
        assert_eq!(ends().back().back(), ends());
        assert_eq!((ends().back().from.port(), ends().back().to_hardware[5]), (7600, 1));
    }

    #[test]
    fn a_payload_beyond_the_buffer_or_a_datagram_is_refused() {
        assert_eq!(complete(&mut [0; HEADERS + 3], &ends(), 4), None);
        assert_eq!(complete(&mut vec![0; 70_000], &ends(), 65_508), None);
        assert_eq!(complete(&mut vec![0; 70_000], &ends(), 65_507), Some(65_549));
        assert_eq!(complete(&mut [0; 64], &ends(), usize::MAX), None);
    }

    #[test]
    fn a_damaged_header_is_noticed() {
        let whole = frame(b"abcd");
        // Type, the whole IPv4 header, and the length of the datagram.
        for at in (12..34).chain(38..40) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(parse(&damaged), None, "byte {at}");
        }
        (0..whole.len()).for_each(|length| assert_eq!(parse(&whole[..length]), None, "{length} bytes"));
    }

    #[test]
    fn options_tags_and_fragments_are_left_to_the_stack() {
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut frame = frame(b"abcd");
            change(&mut frame);
            // The sum fits again: only the field itself can be the reason.
            frame[IPV4_SUM..IPV4_SUM + 2].fill(0);
            let sum = checksum(sum(&frame[ETHERNET..ETHERNET + IPV4], 0));
            frame[IPV4_SUM..IPV4_SUM + 2].copy_from_slice(&sum.to_be_bytes());
            parse(&frame).is_none()
        };
        assert!(!refused(|_| ()));
        assert!(refused(|frame| frame[14] = 0x46));
        assert!(refused(|frame| frame[20] = 0x20));
        assert!(refused(|frame| frame[21] = 1));
        assert!(refused(|frame| frame[23] = 6));
        assert!(refused(|frame| frame[12] = 0x81));
    }

    #[test]
    fn an_unfinished_sum_is_accepted() {
        let mut frame = frame(b"abc");
        frame[UDP_SUM..UDP_SUM + 2].fill(7);
        assert_eq!(parse(&frame), Some((ends(), &b"abc"[..])));
    }
}
