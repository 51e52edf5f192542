//! A link: its speed, and the bytes of a frame on it.

use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bytes that Ethernet adds to the content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overheads {
    /// Preamble and start frame delimiter.
    pub preamble: u32,
    /// Destination, source and EtherType.
    pub header: u32,
    /// A VLAN tag; only tagged frames have it.
    pub tag: u32,
    /// The frame check sequence.
    pub fcs: u32,
    /// The gap before the next frame can start.
    pub gap: u32,
    /// The shortest frame from the destination to the frame check sequence, without a tag. Shorter ones are padded.
    pub least: u32,
}

impl Default for Overheads {
    fn default() -> Overheads {
        Overheads { preamble: 8, header: 14, tag: 4, fcs: 4, gap: 12, least: 64 }
    }
}

/// A link that sends one frame at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The speed in bits per second.
    pub speed: u64,
    /// The bytes beside the content.
    #[serde(default)]
    pub overheads: Overheads,
    /// The most bytes of content in a frame.
    pub mtu: u32,
}

/// The headers between a message and the content of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The message is the content of a frame, as with a packet socket or AF_XDP. It cannot be split.
    Ethernet,
    /// UDP over IPv4 without options: 8 bytes per message, and 20 bytes per fragment.
    #[default]
    Udp4,
}

const UDP: u64 = 8;
const IPV4: u32 = 20;

impl Protocol {
    /// Returns the bytes of content of each frame of a message; `None` if the link cannot carry the message.
    ///
    /// IPv4 splits a message that is longer than the MTU. All fragments but the last one carry a multiple of 8 bytes.
    pub fn contents(self, size: u32, mtu: u32) -> Option<Vec<u32>> {
        match self {
            Protocol::Ethernet => (size <= mtu).then(|| vec![size]),
            Protocol::Udp4 => udp(size, mtu),
        }
    }
}

fn udp(size: u32, mtu: u32) -> Option<Vec<u32>> {
    // The length in the UDP header has 16 bits, and so has that of the IPv4 packet, which includes its own header.
    let total = u64::from(size) + UDP;
    if total > u64::from(u16::MAX) - u64::from(IPV4) {
        return None;
    }
    let mut rest = total as u32;
    let whole = mtu.checked_sub(IPV4)?;
    let each = whole / 8 * 8;
    if rest > whole && each == 0 {
        return None;
    }
    let mut contents = Vec::new();
    while rest > whole {
        contents.push(each + IPV4);
        rest -= each;
    }
    contents.push(rest + IPV4);
    Some(contents)
}

impl Link {
    /// Makes an Ethernet link with an MTU of 1500 bytes.
    pub fn ethernet(speed: u64) -> Link {
        Link { speed, overheads: Overheads::default(), mtu: 1500 }
    }

    /// Returns the bytes of a frame from the preamble to the frame check sequence, with padding.
    pub fn frame_bytes(&self, content: u32, tagged: bool) -> u64 {
        let Overheads { preamble, header, tag, fcs, least, .. } = self.overheads;
        let frame = (u64::from(header) + u64::from(content) + u64::from(fcs)).max(u64::from(least));
        u64::from(preamble) + frame + if tagged { u64::from(tag) } else { 0 }
    }

    /// Returns the bytes of time that a frame occupies: those of [`frame_bytes`](Link::frame_bytes) and the gap.
    pub fn wire_bytes(&self, content: u32, tagged: bool) -> u64 {
        self.frame_bytes(content, tagged) + u64::from(self.overheads.gap)
    }

    /// Returns the bytes that the kernel knows without a size table: the header and the content. A device inserts tag,
    /// padding and frame check sequence later.
    pub fn kernel_bytes(&self, content: u32) -> u64 {
        u64::from(self.overheads.header) + u64::from(content)
    }

    /// Returns the time that so many bytes take, rounded up to whole nanoseconds.
    ///
    /// # Panics
    ///
    /// Panics if the speed is zero.
    pub fn time(&self, bytes: u64) -> Duration {
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.speed));
        Duration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// Returns the picoseconds per byte as `taprio_set_picos_per_byte()` does: from whole Mb/s, rounded down, and at
    /// least 17. A link below 1 Mb/s counts as 10 Mb/s, like one of unknown speed.
    pub(crate) fn picos_per_byte(&self) -> u64 {
        let megabits = match self.speed / 1_000_000 {
            0 => 10,
            megabits => megabits,
        };
        (8_000_000 / megabits).max(17)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_times_of_a_frame() {
        let link = Link::ethernet(100_000_000);
        // 8 + 14 + 1500 + 4, and 12 of gap.
        assert_eq!((link.frame_bytes(1500, false), link.wire_bytes(1500, false)), (1526, 1538));
        assert_eq!(link.wire_bytes(1500, true), 1542);
        // A short frame is padded to 64 bytes; the tag comes on top.
        assert_eq!((link.wire_bytes(1, false), link.wire_bytes(1, true)), (84, 88));
        assert_eq!((link.wire_bytes(46, false), link.wire_bytes(47, false)), (84, 85));
        assert_eq!(link.time(1538).as_nanos(), 123_040);
        // 84 bytes at 10 Gb/s are 67.2 ns.
        assert_eq!(Link::ethernet(10_000_000_000).time(84).as_nanos(), 68);
    }

    #[test]
    fn picoseconds_as_in_the_kernel() {
        for (speed, picos) in [
            (10_000_000, 800_000),
            (100_000_000, 80_000),
            (1_000_000_000, 8_000),
            (2_500_000_000, 3_200),
            (10_000_000_000, 800),
            (400_000_000_000, 20),
            (800_000_000_000, 17),
            (9_600, 800_000),
        ] {
            assert_eq!(Link::ethernet(speed).picos_per_byte(), picos, "{speed}");
        }
    }

    #[test]
    fn a_long_message_becomes_fragments() {
        let contents = |size, mtu| Protocol::Udp4.contents(size, mtu);
        assert_eq!(contents(64, 1500), Some(vec![92]));
        assert_eq!(contents(1472, 1500), Some(vec![1500]));
        assert_eq!(contents(1473, 1500), Some(vec![1500, 21]));
        // 6008 bytes: four fragments of 1480 bytes, and 88.
        assert_eq!(contents(6000, 1500), Some(vec![1500, 1500, 1500, 1500, 108]));
        // With an MTU of 1499, a fragment carries 1472 bytes.
        assert_eq!(contents(1472, 1499), Some(vec![1492, 28]));
        assert_eq!(contents(65_507, 65_535), Some(vec![65_535]));
        assert_eq!((contents(65_508, 1500), contents(1, 19), contents(1, 24)), (None, None, None));
        assert_eq!(Protocol::Ethernet.contents(1500, 1500), Some(vec![1500]));
        assert_eq!(Protocol::Ethernet.contents(1501, 1500), None);
    }
}
