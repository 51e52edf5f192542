//! The frames of a capture file: pcapng, and pcap with time stamps in microseconds or nanoseconds.
//!
//! The crate pcap-parser decodes headers and blocks. This module computes the time stamps, because version 0.17 of the
//! crate reads `if_tsoffset` in one byte order only. That version also refuses resolutions that are powers of two, and
//! cuts seconds to 32 bits. This module also knows the extent of each block, so that an error can name the place in the
//! file.

use macrotick_model::Instant;
use pcap_parser::nom::{Err, IResult};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    parse_enhancedpacketblock_be, parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header, parse_simplepacketblock_be, parse_simplepacketblock_le, InterfaceDescriptionBlock, OptionCode,
    PcapError, BOM_MAGIC, EPB_MAGIC, IDB_MAGIC, SHB_MAGIC, SPB_MAGIC,
};

/// The type of the packet block that pcapng had before the enhanced one.
const OBSOLETE_PACKET: u32 = 2;

/// The farthest instant from the zero of the clock, in nanoseconds. Sums with a cycle cannot overflow below it.
const FARTHEST: i128 = 1 << 62;

/// The reason why a capture cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The file has another format.
    #[error("the capture is neither pcapng nor pcap: it starts with {start:02x?}")]
    Unknown {
        /// The first bytes, at most four.
        start: Vec<u8>,
    },
    /// The file ends within a header, a block or a frame.
    #[error(
        "byte {offset}: the capture ends within what starts here: the last write is incomplete; stop the capture \
             before you copy the file"
    )]
    Truncated {
        /// The offset of the incomplete part in the file.
        offset: usize,
    },
    /// The bytes contradict the format.
    #[error("byte {offset}: {reason}")]
    Damaged {
        /// The offset in the file.
        offset: usize,
        /// The contradiction.
        reason: &'static str,
    },
    /// A frame belongs to an interface that the file has not described before it.
    #[error("byte {offset}: a frame of interface {interface}, but the section describes {known} before it")]
    Interface {
        /// The offset in the file.
        offset: usize,
        /// The number of the interface.
        interface: u32,
        /// The number of described interfaces.
        known: usize,
    },
    /// A time stamp is more than 146 years from the zero of the clock.
    #[error("byte {offset}: the time stamp is out of range")]
    Time {
        /// The offset in the file.
        offset: usize,
    },
}

/// A frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedFrame<'a> {
    /// The number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// The offset of the frame's record or block in the file.
    pub offset: usize,
    /// The number of the interface in its section, from 0.
    pub interface: u32,
    /// The link type, for example 1 for Ethernet.
    pub link_type: u32,
    /// The time stamp, rounded down to whole nanoseconds. `None` for a simple packet block, which has none.
    pub at: Option<Instant>,
    /// The bytes that the frame had. The capture can have fewer.
    pub length: u32,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// The frames of a capture, in the order of the file. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Capture<'a> {
    bytes: &'a [u8],
    offset: usize,
    number: u64,
    format: Format,
    failed: bool,
}

#[derive(Clone, Debug)]
enum Format {
    Pcap { big: bool, modified: bool, nanos: bool, link_type: u32 },
    Pcapng { big: bool, interfaces: Vec<Interface> },
}

/// An interface of a section of a pcapng file.
#[derive(Clone, Debug)]
struct Interface {
    name: Option<String>,
    link_type: u32,
    snaplen: u32,
    units: Units,
    /// The seconds that all time stamps lack.
    offset: i64,
}

/// The units of a time stamp per second: a power of ten or of two.
#[derive(Clone, Copy, Debug)]
enum Units {
    Ten(u32),
    Two(u32),
}

impl<'a> Capture<'a> {
    /// Starts to read a capture.
    ///
    /// # Errors
    ///
    /// Refuses other formats and an incomplete file header.
    pub fn new(bytes: &'a [u8]) -> Result<Capture<'a>, CaptureError> {
        let start = bytes.get(..4).ok_or_else(|| match bytes {
            [] => CaptureError::Truncated { offset: 0 },
            _ => CaptureError::Unknown { start: bytes.to_vec() },
        })?;
        if start == SHB_MAGIC.to_be_bytes() {
            // The section header sets byte order and interfaces.
            let format = Format::Pcapng { big: false, interfaces: Vec::new() };
            return Ok(Capture { bytes, offset: 0, number: 0, format, failed: false });
        }
        let (rest, header) = parse_pcap_header(bytes).map_err(|error| match error {
            Err::Incomplete(_) => CaptureError::Truncated { offset: 0 },
            _ => CaptureError::Unknown { start: start.to_vec() },
        })?;
        // The upper four bits tell about frame check sequences.
        let link_type = header.network.0 as u32 & 0x0fff_ffff;
        let (big, modified) = (header.is_bigendian(), header.is_modified_format());
        let format = Format::Pcap { big, modified, nanos: header.is_nanosecond_precision(), link_type };
        Ok(Capture { bytes, offset: bytes.len() - rest.len(), number: 0, format, failed: false })
    }

    /// Returns the name of an interface of the section that is being read, if the file has it.
    pub fn interface(&self, number: u32) -> Option<&str> {
        match &self.format {
            Format::Pcapng { interfaces, .. } => interfaces.get(number as usize)?.name.as_deref(),
            Format::Pcap { .. } => None,
        }
    }

    /// Returns the names of all interfaces that the section has described so far. A pcap file has none.
    pub fn interfaces(&self) -> Vec<Option<&str>> {
        match &self.format {
            Format::Pcapng { interfaces, .. } => interfaces.iter().map(|one| one.name.as_deref()).collect(),
            Format::Pcap { .. } => Vec::new(),
        }
    }

    fn advance(&mut self) -> Result<Option<CapturedFrame<'a>>, CaptureError> {
        while self.offset < self.bytes.len() {
            let frame = match self.format {
                Format::Pcap { big, modified, nanos, link_type } => self.record(big, modified, nanos, link_type)?,
                Format::Pcapng { .. } => self.block()?,
            };
            if let Some(frame) = frame {
                self.number += 1;
                return Ok(Some(CapturedFrame { number: self.number, ..frame }));
            }
        }
        Ok(None)
    }

    /// Reads a record of a pcap file.
    fn record(
        &mut self,
        big: bool,
        modified: bool,
        nanos: bool,
        link_type: u32,
    ) -> Result<Option<CapturedFrame<'a>>, CaptureError> {
        let offset = self.offset;
        let parse = match (modified, big) {
            (true, _) => parse_pcap_frame_modified,
            (false, true) => parse_pcap_frame_be,
            (false, false) => parse_pcap_frame,
        };
        let (rest, record) = parse(&self.bytes[offset..]).map_err(|_| CaptureError::Truncated { offset })?;
        self.offset = self.bytes.len() - rest.len();
        let (scale, limit) = if nanos { (1, 1_000_000_000) } else { (1_000, 1_000_000) };
        if record.ts_usec >= limit {
            let reason = "the fraction of the time stamp is a second or more";
            return Err(CaptureError::Damaged { offset, reason });
        }
        let at = i64::from(record.ts_sec) * 1_000_000_000 + i64::from(record.ts_usec) * scale;
        let (length, data) = (record.origlen, record.data);
        let at = Some(instant(at.into(), offset)?);
        Ok(Some(CapturedFrame { number: 0, offset, interface: 0, link_type, at, length, data }))
    }

    /// Reads a block of a pcapng file, and returns the frame in it, if it has one.
    fn block(&mut self) -> Result<Option<CapturedFrame<'a>>, CaptureError> {
        let offset = self.offset;
        let (kind, block) = self.extent()?;
        self.offset += block.len();
        let Format::Pcapng { big, ref mut interfaces } = self.format else { return Ok(None) };
        let damaged = |reason| CaptureError::Damaged { offset, reason };
        match kind {
            IDB_MAGIC => {
                let parse = if big { parse_interfacedescriptionblock_be } else { parse_interfacedescriptionblock_le };
                let block = whole(parse(block)).ok_or(damaged("the interface description block is damaged"))?;
                interfaces.push(Interface::new(&block, big).map_err(damaged)?);
                Ok(None)
            }
            EPB_MAGIC => {
                let parse = if big { parse_enhancedpacketblock_be } else { parse_enhancedpacketblock_le };
                let packet = whole(parse(block)).ok_or(damaged("the enhanced packet block is damaged"))?;
                let (known, number) = (interfaces.len(), packet.if_id);
                let interface = interfaces.get(number as usize);
                let interface = interface.ok_or(CaptureError::Interface { offset, interface: number, known })?;
                let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let at = Some(instant(interface.nanos(stamp), offset)?);
                // The content of a block starts after type and length, and the frame after 20 more bytes.
                let data = &block[28..28 + packet.packet_data().len()];
                let (link_type, length) = (interface.link_type, packet.origlen);
                Ok(Some(CapturedFrame { number: 0, offset, interface: number, link_type, at, length, data }))
            }
            SPB_MAGIC => {
                let parse = if big { parse_simplepacketblock_be } else { parse_simplepacketblock_le };
                let packet = whole(parse(block)).ok_or(damaged("the simple packet block is damaged"))?;
                let none = CaptureError::Interface { offset, interface: 0, known: 0 };
                let interface = interfaces.first().ok_or(none)?;
                let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
                let captured = packet.origlen.min(limit) as usize;
                let data = block[12..block.len() - 4].get(..captured);
                let data = data.ok_or(damaged("the simple packet block is shorter than its frame"))?;
                let (link_type, length) = (interface.link_type, packet.origlen);
                Ok(Some(CapturedFrame { number: 0, offset, interface: 0, link_type, at: None, length, data }))
            }
            OBSOLETE_PACKET => {
                Err(damaged("obsolete packet block: convert the capture with `editcap -F pcapng IN OUT`"))
            }
            _ => Ok(None),
        }
    }

    /// Returns type and bytes of the next block. A section header starts a section without interfaces.
    fn extent(&mut self) -> Result<(u32, &'a [u8]), CaptureError> {
        let offset = self.offset;
        let rest = &self.bytes[offset..];
        let word = |at: usize| rest.get(at..at + 4).map(|word| [word[0], word[1], word[2], word[3]]);
        let truncated = CaptureError::Truncated { offset };
        let damaged = |reason| CaptureError::Damaged { offset, reason };
        // No block has less than 12 bytes.
        let (Some(kind), Some(length), Some(third)) = (word(0), word(4), word(8)) else { return Err(truncated) };
        let Format::Pcapng { big, interfaces } = &mut self.format else { return Err(truncated) };
        let section = u32::from_le_bytes(kind) == SHB_MAGIC;
        if section {
            *big = match third {
                third if third == BOM_MAGIC.to_be_bytes() => true,
                third if third == BOM_MAGIC.to_le_bytes() => false,
                _ => return Err(damaged("the section header has no byte order")),
            };
            interfaces.clear();
        }
        let number = |word| if *big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
        let bytes = number(length) as usize;
        let least = if section { 28 } else { 12 };
        if bytes < least || bytes % 4 != 0 {
            return Err(damaged("the length of the block is impossible"));
        }
        let block = rest.get(..bytes).ok_or(truncated)?;
        if word(bytes - 4) != Some(length) {
            return Err(damaged("the two lengths of the block differ"));
        }
        if section {
            // The major version follows the byte order.
            let version = [block[12], block[13]];
            let version = if *big { u16::from_be_bytes(version) } else { u16::from_le_bytes(version) };
            if version != 1 {
                return Err(damaged("the section has an unknown version of pcapng: only 1 is known"));
            }
        }
        Ok((number(kind), block))
    }
}

impl<'a> Iterator for Capture<'a> {
    type Item = Result<CapturedFrame<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance().transpose();
        self.failed = !matches!(next, Some(Ok(_)));
        next
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock, big: bool) -> Result<Interface, &'static str> {
        let option = |code| block.options.iter().find(|option| option.code == code);
        let offset = match option(OptionCode::IfTsoffset).map(|option| option.as_bytes().unwrap_or(&[])) {
            None => 0,
            Some(&[a, b, c, d, e, f, g, h]) => {
                let bytes = [a, b, c, d, e, f, g, h];
                if big {
                    i64::from_be_bytes(bytes)
                } else {
                    i64::from_le_bytes(bytes)
                }
            }
            Some(_) => return Err("if_tsoffset does not have 8 bytes"),
        };
        // Without the option, the crate has the default: 6, for microseconds.
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let units = if block.if_tsresol & 0x80 == 0 { Units::Ten(exponent) } else { Units::Two(exponent) };
        if matches!(units, Units::Ten(39..)) {
            return Err("if_tsresol is finer than 10^-38 s");
        }
        let name = block.if_name().and_then(Result::ok).map(str::to_owned);
        let link_type = block.linktype.0 as u32;
        Ok(Interface { name, link_type, snaplen: block.snaplen, units, offset })
    }

    /// Returns the nanoseconds of a time stamp, rounded down.
    fn nanos(&self, stamp: u64) -> i128 {
        let stamp = u128::from(stamp) * 1_000_000_000;
        let nanos = match self.units {
            Units::Ten(exponent) => stamp / 10_u128.pow(exponent),
            Units::Two(exponent) => stamp >> exponent,
        };
        // A stamp has 64 bits, so the product has at most 94.
        nanos as i128 + i128::from(self.offset) * 1_000_000_000
    }
}

fn instant(nanos: i128, offset: usize) -> Result<Instant, CaptureError> {
    match nanos.abs() <= FARTHEST {
        true => Ok(Instant::from_nanos(nanos as i64)),
        false => Err(CaptureError::Time { offset }),
    }
}

/// Returns the block, if it could be decoded. Its extent is known to be complete.
fn whole<'a, T>(result: IResult<&'a [u8], T, PcapError<&'a [u8]>>) -> Option<T> {
    result.ok().map(|(_, block)| block)
}
