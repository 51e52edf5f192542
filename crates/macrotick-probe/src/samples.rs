//! The record of each packet of a run.

use crate::packet::ClockName;

/// A value that a record does not have.
const NONE: i32 = i32::MIN;
/// The most packets of a run. A record has 48 bytes.
pub const MOST: u64 = 1 << 24;

/// A length in nanoseconds that may be unknown. Beyond two seconds it is cut to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(i32);

impl Offset {
    /// The unknown length.
    pub const UNKNOWN: Offset = Offset(NONE);

    /// Makes a known length.
    pub fn new(ns: i64) -> Offset {
        Offset(ns.clamp(i64::from(-i32::MAX), i64::from(i32::MAX)) as i32)
    }

    /// Returns the length in nanoseconds.
    pub fn ns(self) -> Option<i64> {
        (self.0 != NONE).then_some(i64::from(self.0))
    }
}

/// A packet that was sent. The instants are relative to the nominal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The nominal instant on the grid's clock, in ns.
    pub nominal: i64,
    /// The client called send.
    pub sent: Offset,
    /// The queueing discipline got the packet.
    pub queued: Offset,
    /// The driver got the packet.
    pub driver: Offset,
    /// The packet arrived at the server's kernel. Known if the clock is common.
    pub there: Offset,
    /// The server received it. Known if the clock is common.
    pub there_received: Offset,
    /// From the server's receive to its send.
    pub turnaround: Offset,
    /// The answer arrived at the client's kernel.
    pub arrived: Offset,
    /// The client received the answer.
    pub received: Offset,
    /// From the device's stamp of the packet to its stamp of the answer.
    pub wire: Offset,
    /// The answers, or for one way the arrivals, that came.
    pub copies: u16,
}

impl Sample {
    /// Makes the record of a packet that was just sent.
    pub fn sent(nominal: i64, sent: i64) -> Sample {
        let unknown = Offset::UNKNOWN;
        Sample {
            nominal,
            sent: Offset::new(sent - nominal),
            queued: unknown,
            driver: unknown,
            there: unknown,
            there_received: unknown,
            turnaround: unknown,
            arrived: unknown,
            received: unknown,
            wire: unknown,
            copies: 0,
        }
    }

    /// Whether the packet was ahead of its nominal instant: it left the driver, or arrived at the server, before it.
    pub fn is_premature(&self) -> bool {
        let before = |at: Offset| at.ns().is_some_and(|ns| ns < 0);
        before(self.driver) || before(self.there) || before(self.there_received)
    }

    /// Returns the end of its way after the nominal instant, in ns. That is the receipt of the answer, or for one way
    /// the receipt by the server.
    pub fn end(&self, one_way: bool) -> Option<i64> {
        if one_way { self.there_received } else { self.received }.ns()
    }

    /// Returns the records as CSV, with one line per packet. Times are in ns after the nominal instant, and empty if
    /// they are unknown.
    pub fn csv(samples: &[Sample], clock: ClockName) -> String {
        let clock = match clock {
            ClockName::Monotonic => "monotonic",
            ClockName::Tai => "tai",
        };
        let mut text = format!(
            "sequence,nominal_{clock}_ns,sent,queued,driver,there,there_received,turnaround,arrived,received,wire,copies\n"
        );
        for (sequence, sample) in samples.iter().enumerate() {
            text += &format!("{sequence},{}", sample.nominal);
            for offset in sample.offsets() {
                text += &offset.ns().map_or_else(|| ",".into(), |ns| format!(",{ns}"));
            }
            text += &format!(",{}\n", sample.copies);
        }
        text
    }

    fn offsets(&self) -> [Offset; 9] {
        [
            self.sent,
            self.queued,
            self.driver,
            self.there,
            self.there_received,
            self.turnaround,
            self.arrived,
            self.received,
            self.wire,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_cut_and_never_unknown_by_accident() {
        assert_eq!(Offset::new(i64::MIN).ns(), Some(-2_147_483_647));
        assert_eq!(Offset::new(i64::MAX).ns(), Some(2_147_483_647));
        assert_eq!((Offset::new(-5).ns(), Offset::UNKNOWN.ns()), (Some(-5), None));
        assert_eq!(size_of::<Sample>(), 48);
    }

    #[test]
    fn records_become_lines() {
        let mut one = Sample::sent(1_000, 1_007);
        one.received = Offset::new(70_000);
        one.turnaround = Offset::new(20);
        one.copies = 2;
        let expected = "sequence,nominal_tai_ns,sent,queued,driver,there,there_received,turnaround,arrived,received,\
            wire,copies\n0,1000,7,,,,,20,,70000,,2\n1,2000,-9,,,,,,,,,0\n";
        assert_eq!(Sample::csv(&[one, Sample::sent(2_000, 1_991)], ClockName::Tai), expected);
    }

    #[test]
    fn premature_is_what_leaves_or_arrives_early() {
        let sample = Sample::sent(1_000, 900);
        assert!(!sample.is_premature(), "to call send early is the purpose of a launch time");
        assert!(Sample { driver: Offset::new(-1), ..sample }.is_premature());
        assert!(Sample { there: Offset::new(-1), ..sample }.is_premature());
        assert!(!Sample { driver: Offset::new(0), there: Offset::new(1), ..sample }.is_premature());
    }
}
