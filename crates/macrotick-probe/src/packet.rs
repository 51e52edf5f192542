//! The packet of the probe.
//!
//! ```text
//!  0  "MTP"    4  version  (1)
//!  4  kind     5  clock    6  zero (16 bits)
//!  8  run id, random
//! 16  sequence number, from 0
//! 24  nominal instant
//! 32  the client called send
//! 40  the packet arrived at the server's kernel, 0 if unknown
//! 48  the server received it
//! 56  the server called send
//! 64  zeros up to the chosen size
//! ```
//!
//! Numbers are in network byte order. Instants are nanoseconds of the clock that byte 5 names.

use macrotick_model::SplitMix64;

/// The first bytes: the magic and the version.
pub const MAGIC: [u8; 4] = *b"MTP\x01";
/// The smallest size of a packet, in bytes.
pub const HEADER: usize = 64;
/// The largest payload of UDP over IPv4, in bytes.
pub const LARGEST: usize = 65_507;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A client asks the server for its [`crate::hello::Hello`].
    Hello = 1,
    /// The server's answer to it.
    Welcome = 2,
    /// A packet that the server answers.
    Request = 3,
    /// The answer.
    Answer = 4,
    /// A packet that the server records and does not answer.
    OneWay = 5,
    /// A client asks for records of one-way packets; the sequence number is the first one.
    Fetch = 6,
    /// Records.
    Records = 7,
}

/// The clock of the instants of a packet, and of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// `CLOCK_MONOTONIC`: common to the programs of one host only.
    #[default]
    Monotonic,
    /// `CLOCK_TAI`: common to hosts that synchronise their clocks.
    Tai,
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The kind.
    pub kind: Kind,
    /// The clock of its instants.
    pub clock: ClockName,
    /// The random number of the run.
    pub run: u64,
    /// The number of the packet in its run.
    pub sequence: u64,
    /// The nominal instant, in ns.
    pub nominal: i64,
    /// When the client called send, in ns.
    pub sent: i64,
    /// When the packet arrived at the server's kernel, in ns; 0 if that is unknown.
    pub arrived: i64,
    /// When the server received it, in ns.
    pub received: i64,
    /// When the server called send, in ns.
    pub answered: i64,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Hello, Kind::Welcome, Kind::Request, Kind::Answer, Kind::OneWay, Kind::Fetch, Kind::Records];
}

impl Packet {
    /// Makes a packet of a kind without instants.
    pub fn new(kind: Kind, clock: ClockName, run: u64, sequence: u64) -> Packet {
        Packet { kind, clock, run, sequence, nominal: 0, sent: 0, arrived: 0, received: 0, answered: 0 }
    }

    /// Decodes the header. `None`: the bytes are no packet of this version of the probe.
    pub fn decode(bytes: &[u8]) -> Option<Packet> {
        let header = bytes.get(..HEADER)?;
        let number = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let instant = |at: usize| number(at) as i64;
        if header[..4] != MAGIC || header[6..8] != [0, 0] {
            return None;
        }
        let clock = match header[5] {
            0 => ClockName::Monotonic,
            1 => ClockName::Tai,
            _ => return None,
        };
        Some(Packet {
            kind: Kind::ALL.into_iter().find(|kind| *kind as u8 == header[4])?,
            clock,
            run: number(8),
            sequence: number(16),
            nominal: instant(24),
            sent: instant(32),
            arrived: instant(40),
            received: instant(48),
            answered: instant(56),
        })
    }

    /// Writes the header over the first [`HEADER`] bytes.
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5] = self.clock as u8;
        let numbers = [self.run, self.sequence];
        let instants = [self.nominal, self.sent, self.arrived, self.received, self.answered].map(|at| at as u64);
        for (number, field) in numbers.iter().chain(&instants).zip(bytes[8..HEADER].chunks_exact_mut(8)) {
            field.copy_from_slice(&number.to_be_bytes());
        }
    }
}

/// Returns the bytes of a packet of at least this size, all of them zero.
pub fn blank(size: usize) -> Vec<u8> {
    vec![0; size.max(HEADER)]
}

/// Returns a number for a run that other runs hardly have: from the instant and the process.
pub fn run_id(now: i64) -> u64 {
    SplitMix64::new(now as u64 ^ u64::from(std::process::id()) << 32).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Packet {
        Packet {
            kind: Kind::Answer,
            clock: ClockName::Tai,
            run: 0x0102_0304_0506_0708,
            sequence: 9,
            nominal: 10,
            sent: -11,
            arrived: 12,
            received: 13,
            answered: 14,
        }
    }

    #[test]
    fn a_packet_has_this_layout() {
        let mut bytes = blank(0);
        packet().encode(&mut bytes);
        assert_eq!(bytes[..24], [77, 84, 80, 1, 4, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(bytes[32..40], [255, 255, 255, 255, 255, 255, 255, 245]);
        assert_eq!((bytes.len(), bytes[63]), (64, 14));
        assert_eq!(Packet::decode(&bytes), Some(packet()));
    }

    #[test]
    fn other_bytes_are_no_packet() {
        let mut bytes = blank(100);
        packet().encode(&mut bytes);
        assert!(Packet::decode(&bytes).is_some());
        for (at, value) in [(0, b'm'), (3, 2), (4, 0), (4, 8), (5, 2), (6, 1), (7, 1)] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(Packet::decode(&other), None, "byte {at}");
        }
        assert_eq!(Packet::decode(&bytes[..63]), None);
        assert_eq!(Packet::decode(&[]), None);
    }

    #[test]
    fn runs_differ() {
        assert_ne!(run_id(1), run_id(2));
    }
}
