//! The server: answers requests, and records one-way packets.
//!
//! It answers well-formed packets of the probe only, and an answer is never longer than what it answers. Therefore a
//! forged sender address gains nothing. A limit on the rate is possible on top.

use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ProbeError;
use crate::hello::Hello;
use crate::limit::RateLimit;
use crate::packet::{ClockName, Kind, Packet, HEADER, LARGEST};
use crate::port::{Arrival, Port, Receipt, SendFault};
use crate::records::{Record, Records};

/// The counts of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Served {
    /// Requests that were answered.
    pub answered: u64,
    /// One-way packets that were recorded.
    pub recorded: u64,
    /// One-way packets for which there was no room.
    pub unrecorded: u64,
    /// Greetings and questions for records that were answered.
    pub greeted: u64,
    /// Datagrams that are no packets of the probe. They are ignored.
    pub foreign: u64,
    /// Packets that the limit on the rate left without an answer.
    pub limited: u64,
    /// Answers that the kernel did not take.
    pub unsent: u64,
}

/// A server: its records and counts.
#[derive(Debug)]
pub struct Server {
    own: Hello,
    /// `CLOCK_TAI` minus the port's clock, `CLOCK_MONOTONIC`, in ns.
    tai: i64,
    records: Records,
    limit: Option<RateLimit>,
    served: Served,
}

impl Server {
    /// Makes a server. It keeps at most `records` records of each one-way run, and answers at most `rate` packets in a
    /// second, if there is a limit.
    pub fn new(own: Hello, records: usize, rate: Option<u32>) -> Server {
        Server {
            own,
            tai: 0,
            records: Records::new(records),
            limit: rate.map(RateLimit::new),
            served: Served::default(),
        }
    }

    /// Takes over the present distance of `CLOCK_TAI` from `CLOCK_MONOTONIC`, in ns.
    pub fn set_tai(&mut self, tai: i64) {
        self.tai = tai;
    }

    /// Returns an instant of the port's clock on the clock of a packet.
    fn on_clock(&self, at: i64, clock: ClockName) -> i64 {
        match clock {
            ClockName::Monotonic => at,
            ClockName::Tai => at + self.tai,
        }
    }

    /// Returns the counts.
    pub fn served(&self) -> Served {
        Served { unrecorded: self.records.unrecorded(), ..self.served }
    }

    /// Handles a datagram. Returns the length of its answer, which replaces the datagram in `bytes`. The instant of
    /// its sending is still missing: [`Server::stamp`] writes it.
    fn handle(&mut self, bytes: &mut [u8], arrival: &Arrival) -> Option<usize> {
        let length = arrival.length.min(bytes.len());
        let Some(packet) = Packet::decode(&bytes[..length]) else {
            self.served.foreign += 1;
            return None;
        };
        let received = self.on_clock(arrival.at, packet.clock);
        let arrived = arrival.kernel.map_or(0, |at| self.on_clock(at, packet.clock));
        match packet.kind {
            Kind::OneWay => {
                self.records.add(packet.run, Record { sequence: packet.sequence, arrived, received });
                self.served.recorded += 1;
                return None;
            }
            Kind::Hello | Kind::Request | Kind::Fetch => {}
            // Answers of a server: two servers would answer each other for ever.
            Kind::Welcome | Kind::Answer | Kind::Records => {
                self.served.foreign += 1;
                return None;
            }
        }
        if self.limit.as_mut().is_some_and(|limit| !limit.allows(arrival.at)) {
            self.served.limited += 1;
            return None;
        }
        let answer = match packet.kind {
            Kind::Fetch => return Some(self.records.answer(&packet, self.own.instance, bytes, length)),
            Kind::Hello => self.own.packet(packet.clock, packet.run, packet.sequence),
            _ => Packet { kind: Kind::Answer, arrived, received, ..packet },
        };
        answer.encode(bytes);
        Some(if packet.kind == Kind::Hello { HEADER } else { length })
    }

    /// Writes the instant of its sending into an answer to a request, and returns its kind.
    fn stamp(&self, bytes: &mut [u8], now: i64) -> Option<Kind> {
        let packet = Packet::decode(bytes)?;
        if packet.kind == Kind::Answer {
            bytes[ANSWERED].copy_from_slice(&self.on_clock(now, packet.clock).to_be_bytes());
        }
        Some(packet.kind)
    }

    fn count(&mut self, kind: Option<Kind>, result: Result<(), SendFault>) -> Result<(), ProbeError> {
        match (result, kind) {
            (Ok(()), Some(Kind::Answer)) => self.served.answered += 1,
            (Ok(()), _) => self.served.greeted += 1,
            // The client has ended, or its queue is full: the next answer may pass.
            (Err(SendFault::Refused | SendFault::Untaken), _) => self.served.unsent += 1,
            (Err(SendFault::Broken(error)), _) => return Err(ProbeError::Network(error)),
        }
        Ok(())
    }

    /// Serves until an instant of the grid's clock, or until the run is stopped. Returns whether it was stopped.
    pub fn serve(&mut self, port: &mut dyn Port, bytes: &mut [u8], until: i64) -> Result<bool, ProbeError> {
        loop {
            match port.receive(bytes, until).map_err(ProbeError::Network)? {
                Receipt::Datagram(arrival) => {
                    let Some(length) = self.handle(bytes, &arrival) else { continue };
                    let kind = self.stamp(&mut bytes[..length], port.now());
                    let result = port.send(&bytes[..length], None);
                    self.count(kind, result)?;
                }
                Receipt::Stamps => port.stamps(&mut |_| ()).map_err(ProbeError::Network)?,
                Receipt::Refused => {}
                Receipt::Timeout => return Ok(false),
                Receipt::Stopped => return Ok(true),
            }
        }
    }
}

/// Where an answer has the instant of its sending.
const ANSWERED: std::ops::Range<usize> = 56..64;

/// Returns a buffer for any datagram.
pub fn buffer() -> Vec<u8> {
    vec![0; LARGEST]
}

/// How often a server looks at its clocks when nothing comes.
pub const LOOK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::blank;

    fn server(rate: Option<u32>) -> Server {
        let error = Duration::ZERO;
        Server::new(Hello { host: 1, instance: 2, synchronised: false, error, tai_offset: 0 }, 10, rate)
    }

    fn request(kind: Kind, size: usize) -> Vec<u8> {
        let mut bytes = blank(size);
        let packet = Packet { nominal: 100, sent: 110, ..Packet::new(kind, ClockName::Tai, 7, 3) };
        packet.encode(&mut bytes);
        bytes
    }

    fn handle(server: &mut Server, bytes: &mut [u8], kernel: Option<i64>) -> Option<usize> {
        server.handle(bytes, &Arrival { length: bytes.len(), at: 150, kernel, device: None })
    }

    #[test]
    fn a_request_comes_back_with_its_instants() {
        let mut bytes = request(Kind::Request, 500);
        bytes[400] = 9;
        let mut server = server(None);
        server.set_tai(1_000);
        assert_eq!(handle(&mut server, &mut bytes, Some(140)), Some(500));
        assert_eq!(server.stamp(&mut bytes, 155), Some(Kind::Answer));
        let answer = Packet::new(Kind::Answer, ClockName::Tai, 7, 3);
        let instants = Packet { nominal: 100, sent: 110, arrived: 1_140, received: 1_150, answered: 1_155, ..answer };
        assert_eq!((Packet::decode(&bytes), bytes[400]), (Some(instants), 9));
    }

    #[test]
    fn nothing_else_is_answered() {
        let mut server = server(None);
        for kind in [Kind::Welcome, Kind::Answer, Kind::Records] {
            assert_eq!(handle(&mut server, &mut request(kind, 64), None), None);
        }
        let mut other = request(Kind::Request, 64);
        other[0] = 0;
        assert_eq!(handle(&mut server, &mut other, None), None);
        assert_eq!(handle(&mut server, &mut request(Kind::Request, 64)[..63], None), None);
        assert_eq!(handle(&mut server, &mut [], None), None);
        assert_eq!((server.served().foreign, server.served().answered), (6, 0));
    }

    #[test]
    fn an_answer_is_never_longer_than_its_question() {
        let mut server = server(None);
        (0..10).for_each(|_| assert_eq!(handle(&mut server, &mut request(Kind::OneWay, 64), None), None));
        for kind in [Kind::Hello, Kind::Request, Kind::Fetch] {
            for size in [64, 65, 100, 1400] {
                let length = handle(&mut server, &mut request(kind, size), None).unwrap();
                assert!(length <= size, "{kind:?} of {size}");
            }
        }
    }

    #[test]
    fn one_way_packets_are_recorded() {
        let mut server = server(None);
        (0..11).for_each(|_| assert_eq!(handle(&mut server, &mut request(Kind::OneWay, 64), Some(140)), None));
        let mut question = request(Kind::Fetch, 1400);
        question[16..24].fill(0);
        let length = handle(&mut server, &mut question, None).unwrap();
        let page = crate::records::page(&Packet::decode(&question).unwrap(), &question[..length]).unwrap();
        assert_eq!((page.total, page.instance), (10, 2));
        assert_eq!(page.records[0], Record { sequence: 3, arrived: 140, received: 150 });
        assert_eq!((server.served().recorded, server.served().unrecorded), (11, 1));
    }

    #[test]
    fn the_rate_is_limited() {
        let mut server = server(Some(1));
        let answered = (0..20).filter(|_| handle(&mut server, &mut request(Kind::Request, 64), None).is_some());
        assert_eq!(answered.count(), 1);
        assert_eq!(server.served().limited, 19);
    }
}
