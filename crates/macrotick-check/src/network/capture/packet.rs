//! The headers of a captured frame, as far as they tell its class.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::reader::CapturedFrame;

/// Link types (<https://www.tcpdump.org/linktypes.html>).
const ETHERNET: u32 = 1;
const LINUX_SLL: u32 = 113;
const LINUX_SLL2: u32 = 276;

/// EtherTypes.
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

const UDP: u8 = 17;

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// The priority code point.
    pub pcp: u8,
    /// The identifier of the VLAN.
    pub id: u16,
}

/// The headers of a frame. A field that is not in the frame, or was not captured, is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The outer VLAN tag.
    pub vlan: Option<Vlan>,
    /// The EtherType after the VLAN tags.
    pub ether_type: Option<u16>,
    /// The source of the IP packet.
    pub source: Option<IpAddr>,
    /// The destination of the IP packet.
    pub destination: Option<IpAddr>,
    /// The source port of the UDP datagram. Only the first fragment has ports.
    pub source_port: Option<u16>,
    /// The destination port of the UDP datagram.
    pub destination_port: Option<u16>,
    /// The bytes after the last known header: of the UDP datagram, or of another IP packet or frame.
    pub payload: &'a [u8],
    /// The bytes that the frame had between its Ethernet header and the frame check sequence, without VLAN tags.
    pub content: u32,
}

impl<'a> Packet<'a> {
    /// Decodes the headers of a frame of an Ethernet link, or of the pseudo-device `any`. Other links have no headers
    /// that this code knows.
    pub fn new(frame: &CapturedFrame<'a>) -> Packet<'a> {
        let data = frame.data;
        let mut packet = Packet {
            vlan: None,
            ether_type: None,
            source: None,
            destination: None,
            source_port: None,
            destination_port: None,
            payload: data,
            content: frame.length,
        };
        let (header, place) = match frame.link_type {
            ETHERNET => (14, 12),
            LINUX_SLL => (16, 14),
            LINUX_SLL2 => (20, 0),
            _ => return packet,
        };
        let mut kind = word(data, place);
        let mut rest = data.get(header..).unwrap_or(&[]);
        packet.content = frame.length.saturating_sub(header as u32);
        while let Some(VLAN | SERVICE_VLAN) = kind {
            let Some(tag) = word(rest, 0) else { break };
            packet.vlan.get_or_insert(Vlan { pcp: (tag >> 13) as u8, id: tag & 0xfff });
            kind = word(rest, 2);
            rest = rest.get(4..).unwrap_or(&[]);
            packet.content = packet.content.saturating_sub(4);
        }
        (packet.ether_type, packet.payload) = (kind, rest);
        match kind {
            Some(IPV4) => packet.ipv4(rest),
            Some(IPV6) => packet.ipv6(rest),
            _ => None,
        };
        packet
    }

    /// Decodes an IPv4 header as far as it goes.
    fn ipv4(&mut self, data: &'a [u8]) -> Option<()> {
        let header = data.get(..20)?;
        let length = usize::from(header[0] & 0xf) * 4;
        if header[0] >> 4 != 4 || length < 20 {
            return None;
        }
        self.source = Some(Ipv4Addr::from(array(header, 12)?).into());
        self.destination = Some(Ipv4Addr::from(array(header, 16)?).into());
        // The padding of a short frame is no part of the packet.
        let total = usize::from(word(header, 2)?).min(data.len());
        self.payload = data.get(length..total.max(length))?;
        let first = word(header, 6)? & 0x1fff == 0;
        (header[9] == UDP && first).then(|| self.udp(self.payload))?
    }

    /// Decodes an IPv6 header. A datagram after extension headers has no ports here.
    fn ipv6(&mut self, data: &'a [u8]) -> Option<()> {
        let header = data.get(..40)?;
        if header[0] >> 4 != 6 {
            return None;
        }
        self.source = Some(Ipv6Addr::from(array::<16>(header, 8)?).into());
        self.destination = Some(Ipv6Addr::from(array::<16>(header, 24)?).into());
        let end = (40 + usize::from(word(header, 4)?)).min(data.len());
        self.payload = &data[40..end];
        (header[6] == UDP).then(|| self.udp(self.payload))?
    }

    fn udp(&mut self, data: &'a [u8]) -> Option<()> {
        let (source, destination, length) = (word(data, 0)?, word(data, 2)?, word(data, 4)?);
        (self.source_port, self.destination_port) = (Some(source), Some(destination));
        let end = usize::from(length).min(data.len()).max(8);
        self.payload = data.get(8..end)?;
        Some(())
    }
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    array(data, at).map(u16::from_be_bytes)
}

fn array<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at + N)?.try_into().ok()
}
