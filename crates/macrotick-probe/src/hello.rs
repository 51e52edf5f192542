//! The greeting of client and server: whether their clocks are one.

use std::os::unix::fs::MetadataExt;

use macrotick_host::clock::Discipline;
use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::packet::{ClockName, Kind, Packet};

/// The host and the clock of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// A number of the running kernel and of the time namespace: equal for programs with one `CLOCK_MONOTONIC`.
    pub host: u64,
    /// A random number of the program: another one after its restart.
    pub instance: u64,
    /// Whether a program synchronises this host's clock.
    pub synchronised: bool,
    /// The clock's error, as the program that synchronises it has estimated it; zero if it does not.
    pub error: Duration,
    /// `CLOCK_TAI` minus `CLOCK_REALTIME` in seconds; 0 before a program sets it.
    pub tai_offset: i64,
}

/// Why instants of the server can be compared with those of the client, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Common {
    /// Both run on one kernel.
    SameHost,
    /// Both hosts synchronise `CLOCK_TAI`. One-way times have the error of that.
    Synchronised,
    /// The user said so.
    Assumed,
    /// The hosts differ, and `CLOCK_MONOTONIC` is different on each.
    OtherHost,
    /// A host does not synchronise its clock.
    Unsynchronised,
    /// The hosts have different offsets of `CLOCK_TAI`, or none.
    TaiOffset,
}

impl Common {
    /// Judges the clocks of two programs.
    pub fn of(clock: ClockName, client: &Hello, server: &Hello, assumed: bool) -> Common {
        if client.host == server.host {
            return Common::SameHost;
        }
        if assumed {
            return Common::Assumed;
        }
        match clock {
            ClockName::Monotonic => Common::OtherHost,
            ClockName::Tai if !(client.synchronised && server.synchronised) => Common::Unsynchronised,
            ClockName::Tai if client.tai_offset != server.tai_offset || client.tai_offset == 0 => Common::TaiOffset,
            ClockName::Tai => Common::Synchronised,
        }
    }

    /// Whether one-way times are known.
    pub fn holds(self) -> bool {
        matches!(self, Common::SameHost | Common::Synchronised | Common::Assumed)
    }

    /// Returns the reason in words, with a remedy where there is one.
    pub fn words(self) -> &'static str {
        match self {
            Common::SameHost => "one clock: client and server run on the same host",
            Common::Synchronised => "CLOCK_TAI of two hosts, both synchronised",
            Common::Assumed => "assumed to be one clock, because the command line says so: nothing checks it",
            Common::OtherHost => {
                "no common clock, no one-way times: the hosts differ, and each has its own CLOCK_MONOTONIC; \
                 synchronise them and use `--clock tai`"
            }
            Common::Unsynchronised => {
                "no common clock, no one-way times: a host does not synchronise its clock; start linuxptp or chrony \
                 on both"
            }
            Common::TaiOffset => {
                "no common clock, no one-way times: the hosts differ in the offset of CLOCK_TAI, or have none; \
                 set it on both, as `ptp4l` and `phc2sys` do"
            }
        }
    }
}

impl Hello {
    /// Reads this host. `instance` is a random number of this program.
    pub fn of_this_host(instance: u64) -> Hello {
        let discipline = Discipline::read().ok();
        let tai = macrotick_host::sys::time_of(libc::CLOCK_TAI) - macrotick_host::sys::time_of(libc::CLOCK_REALTIME);
        Hello {
            host: host(),
            instance,
            synchronised: discipline.is_some_and(|clock| clock.is_synchronised()),
            error: discipline.and_then(|clock| clock.estimated_error()).unwrap_or(Duration::ZERO),
            // The two clocks are not read at one instant; the offset is whole seconds.
            tai_offset: (tai.as_nanos() + 500_000_000).div_euclid(1_000_000_000),
        }
    }

    /// Makes the packet of the server.
    pub fn packet(&self, clock: ClockName, run: u64, sequence: u64) -> Packet {
        Packet {
            nominal: self.host as i64,
            sent: self.instance as i64,
            arrived: self.error.as_nanos(),
            received: self.tai_offset,
            answered: i64::from(self.synchronised),
            ..Packet::new(Kind::Welcome, clock, run, sequence)
        }
    }

    /// Reads it back.
    pub fn of_packet(packet: &Packet) -> Hello {
        Hello {
            host: packet.nominal as u64,
            instance: packet.sent as u64,
            error: Duration::from_nanos(packet.arrived),
            tai_offset: packet.received,
            synchronised: packet.answered == 1,
        }
    }
}

/// Returns a number of the running kernel and of this program's time namespace.
fn host() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::metadata("/proc/thread-self/ns/time").map_or(0, |file| file.ino());
    fnv1a(boot.into_iter().chain(namespace.to_be_bytes()))
}

/// Hashes bytes: equal in all versions of this program.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Hello =
        Hello { host: 1, instance: 2, synchronised: true, error: Duration::from_micros(3), tai_offset: 37 };

    #[test]
    fn a_greeting_survives_its_packet() {
        let packet = HERE.packet(ClockName::Tai, 9, 0);
        assert_eq!((packet.kind, packet.run), (Kind::Welcome, 9));
        assert_eq!(Hello::of_packet(&packet), HERE);
        let other = Hello { host: u64::MAX, synchronised: false, ..HERE };
        assert_eq!(Hello::of_packet(&other.packet(ClockName::Tai, 9, 0)), other);
    }

    #[test]
    fn clocks_are_one_on_one_host_or_when_both_follow_tai() {
        let there = Hello { host: 5, ..HERE };
        let judge = |clock, server: &Hello, assumed| Common::of(clock, &HERE, server, assumed);
        let (monotonic, tai) = (ClockName::Monotonic, ClockName::Tai);
        assert_eq!(judge(monotonic, &HERE, false), Common::SameHost);
        assert_eq!(judge(monotonic, &there, false), Common::OtherHost);
        assert_eq!(judge(monotonic, &there, true), Common::Assumed);
        assert_eq!(judge(tai, &there, false), Common::Synchronised);
        assert_eq!(judge(tai, &Hello { synchronised: false, ..there }, false), Common::Unsynchronised);
        assert_eq!(judge(tai, &Hello { tai_offset: 36, ..there }, false), Common::TaiOffset);
        let zero = Hello { tai_offset: 0, ..there };
        assert_eq!(Common::of(tai, &Hello { host: 1, ..zero }, &zero, false), Common::TaiOffset);
        assert!(Common::SameHost.holds() && !Common::OtherHost.holds() && !Common::TaiOffset.holds());
    }

    #[test]
    fn the_hash_is_that_of_its_definition() {
        assert_eq!(fnv1a([].into_iter()), 0xcbf29ce484222325);
        assert_eq!(fnv1a(b"a".iter().copied()), 0xaf63dc4c8601ec8c);
        assert_eq!(host(), host());
    }
}
