//! The account of a run: which packets came, when, and how often.

use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::packet::{Kind, Packet};
use crate::port::{Arrival, Station};
use crate::samples::{Offset, Sample};

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Counts {
    /// Packets that the kernel took.
    pub sent: u64,
    /// Packets that came at least once: their answers, or for one way they themselves.
    pub received: u64,
    /// Packets that did not come until the end of the run.
    pub lost: u64,
    /// Further copies of packets.
    pub duplicate: u64,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// Packets that left the driver, or arrived, before their nominal instant.
    pub premature: u64,
    /// Packets that came after their deadline.
    pub late: u64,
    /// Deadline misses: lost and late packets.
    pub misses: u64,
    /// Datagrams that are no packets of this run. They are ignored.
    pub foreign: u64,
    /// Packets that the kernel did not take: the queue was full, or the interface was down.
    pub unsent: u64,
    /// Messages that no program listens at the port.
    pub refused: u64,
    /// Packets that the queueing discipline dropped because of their launch time.
    pub launch_missed: u64,
    /// Whole cycles that passed before the client woke up.
    pub skipped_cycles: u64,
    /// Steps of a clock during the run. Kernel time stamps of these cycles are left out.
    pub clock_steps: u64,
}

/// The account of a run.
#[derive(Debug)]
pub struct Ledger {
    run: u64,
    one_way: bool,
    deadline: Duration,
    common_clock: bool,
    samples: Vec<Sample>,
    /// The last stamps of the device, with the packet's number: at that number modulo the length.
    device: Vec<(u64, i64)>,
    highest: Option<u64>,
    counts: Counts,
}

/// The device stamps that are kept at a time.
const DEVICE_STAMPS: usize = 4096;

impl Ledger {
    /// Opens the account of a run. `common_clock`: the instants of the server are on the clock of this program.
    /// `expected` is the number of packets to make room for.
    pub fn new(run: u64, one_way: bool, deadline: Duration, common_clock: bool, expected: usize) -> Ledger {
        Ledger {
            run,
            one_way,
            deadline,
            common_clock,
            samples: Vec::with_capacity(expected),
            device: vec![(u64::MAX, 0); DEVICE_STAMPS],
            highest: None,
            counts: Counts::default(),
        }
    }

    /// The counts so far. `lost` and what depends on it is known after [`Ledger::close`] only.
    pub fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// The number of the next packet.
    pub fn next(&self) -> u64 {
        self.samples.len() as u64
    }

    /// Whether all packets that were sent have come.
    pub fn is_complete(&self) -> bool {
        self.counts.received == self.counts.sent
    }

    /// Enters the next packet. Instants are on the grid's clock, in ns.
    pub fn enter(&mut self, nominal: i64, sent: i64) {
        self.samples.push(Sample::sent(nominal, sent));
        self.counts.sent += 1;
    }

    /// Enters the time stamp of a packet on its way out. Stamps of unknown packets are ignored.
    pub fn stamp(&mut self, sequence: u64, station: Station, at: i64) {
        let Some(sample) = self.sample(sequence) else { return };
        let offset = Offset::new(at - sample.nominal);
        match station {
            Station::Queue => sample.queued = offset,
            Station::Driver => sample.driver = offset,
            Station::Device => self.device[sequence as usize % DEVICE_STAMPS] = (sequence, at),
        }
    }

    /// Enters a datagram that came to the client. Whatever is no answer of this run is foreign.
    pub fn receive(&mut self, packet: Option<Packet>, arrival: &Arrival) {
        let is_known = |packet: &Packet| {
            packet.kind == Kind::Answer && packet.run == self.run && packet.sequence < self.samples.len() as u64
        };
        let Some(packet) = packet.filter(is_known) else {
            self.counts.foreign += 1;
            return;
        };
        if !self.is_first(packet.sequence) {
            return;
        }
        let common = self.common_clock;
        let (number, sent) = self.device[packet.sequence as usize % DEVICE_STAMPS];
        let sample = &mut self.samples[packet.sequence as usize];
        let after = |at: i64| Offset::new(at - sample.nominal);
        let (arrived, received) = (arrival.kernel.map_or(Offset::UNKNOWN, after), after(arrival.at));
        let there_received = if common { after(packet.received) } else { Offset::UNKNOWN };
        let there = if common && packet.arrived != 0 { after(packet.arrived) } else { Offset::UNKNOWN };
        (sample.arrived, sample.received) = (arrived, received);
        (sample.there, sample.there_received) = (there, there_received);
        sample.turnaround = Offset::new(packet.answered - packet.received);
        if let Some(device) = arrival.device.filter(|_| number == packet.sequence) {
            sample.wire = Offset::new(device - sent);
        }
    }

    /// Enters a one-way packet that came to the server, in the order of the server's records. Instants are in ns on
    /// the server's clock; `arrived` is 0 if it is unknown. A record of a packet that was not sent is foreign.
    pub fn record(&mut self, sequence: u64, arrived: i64, received: i64) {
        if sequence >= self.next() {
            self.counts.foreign += 1;
            return;
        }
        if !self.is_first(sequence) || !self.common_clock {
            return;
        }
        let sample = &mut self.samples[sequence as usize];
        sample.there_received = Offset::new(received - sample.nominal);
        if arrived != 0 {
            sample.there = Offset::new(arrived - sample.nominal);
        }
    }

    /// Closes the account: what has not come is lost.
    pub fn close(mut self) -> (Counts, Vec<Sample>) {
        let deadline = self.deadline.as_nanos();
        let late = |sample: &&Sample| sample.end(self.one_way).is_some_and(|end| end > deadline);
        self.counts.lost = self.samples.iter().filter(|sample| sample.copies == 0).count() as u64;
        self.counts.late = self.samples.iter().filter(late).count() as u64;
        self.counts.premature = self.samples.iter().filter(|sample| sample.is_premature()).count() as u64;
        self.counts.misses = self.counts.lost + self.counts.late;
        (self.counts, self.samples)
    }

    fn sample(&mut self, sequence: u64) -> Option<&mut Sample> {
        self.samples.get_mut(usize::try_from(sequence).ok()?)
    }

    /// Counts a copy of a packet, and its place in the order. Whether it is the first copy.
    fn is_first(&mut self, sequence: u64) -> bool {
        let sample = &mut self.samples[sequence as usize];
        sample.copies = sample.copies.saturating_add(1);
        if sample.copies > 1 {
            self.counts.duplicate += 1;
            return false;
        }
        self.counts.received += 1;
        if self.highest.is_some_and(|highest| highest > sequence) {
            self.counts.reordered += 1;
        }
        self.highest = self.highest.max(Some(sequence));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ClockName;

    fn ledger(common_clock: bool) -> Ledger {
        let mut ledger = Ledger::new(7, false, Duration::from_nanos(500), common_clock, 4);
        (0..4).for_each(|number| ledger.enter(1_000 * number, 1_000 * number + 10));
        ledger
    }

    fn answer(sequence: u64) -> Packet {
        let base = 1_000 * sequence as i64;
        let instants = (base, base + 10, base + 30, base + 40, base + 45);
        Packet {
            nominal: instants.0,
            sent: instants.1,
            arrived: instants.2,
            received: instants.3,
            answered: instants.4,
            ..Packet::new(Kind::Answer, ClockName::Monotonic, 7, sequence)
        }
    }

    fn arrival(at: i64) -> Arrival {
        Arrival { length: 64, at, kernel: Some(at - 8), device: None }
    }

    #[test]
    fn copies_and_order_are_counted() {
        let mut ledger = ledger(true);
        for (sequence, at) in [(0, 100), (2, 2_100), (1, 2_200), (2, 2_300), (2, 2_400)] {
            ledger.receive(Some(answer(sequence)), &arrival(at));
        }
        let (counts, samples) = ledger.close();
        let expected = Counts {
            sent: 4,
            received: 3,
            lost: 1,
            duplicate: 2,
            reordered: 1,
            late: 1,
            misses: 2,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        // The first copy counts; answer 1 came 1200 ns after its nominal instant.
        let ends: Vec<Option<i64>> = samples.iter().map(|sample| sample.received.ns()).collect();
        assert_eq!(ends, [Some(100), Some(1_200), Some(100), None]);
        assert_eq!(samples.iter().map(|sample| sample.copies).collect::<Vec<_>>(), [1, 1, 3, 0]);
    }

    #[test]
    fn strangers_are_counted_and_ignored() {
        let mut ledger = ledger(true);
        let other_run = Packet { run: 8, ..answer(0) };
        let other_kind = Packet { kind: Kind::Request, ..answer(0) };
        for packet in [None, Some(other_run), Some(other_kind), Some(answer(4)), Some(answer(u64::MAX))] {
            ledger.receive(packet, &arrival(100));
        }
        ledger.record(4, 0, 0);
        let (counts, samples) = ledger.close();
        assert_eq!((counts.foreign, counts.received, counts.lost), (6, 0, 4));
        assert!(samples.iter().all(|sample| sample.copies == 0));
    }

    #[test]
    fn instants_of_the_server_count_on_a_common_clock_only() {
        for common in [true, false] {
            let mut ledger = ledger(common);
            ledger.receive(Some(answer(1)), &arrival(1_100));
            let (_, samples) = ledger.close();
            assert_eq!(samples[1].there.ns(), common.then_some(30));
            assert_eq!(samples[1].there_received.ns(), common.then_some(40));
            assert_eq!((samples[1].turnaround.ns(), samples[1].arrived.ns()), (Some(5), Some(92)));
        }
    }

    #[test]
    fn stamps_go_to_their_packets() {
        let mut ledger = ledger(true);
        ledger.stamp(1, Station::Queue, 1_012);
        ledger.stamp(1, Station::Driver, 999);
        ledger.stamp(1, Station::Device, 5_000);
        ledger.stamp(99, Station::Driver, 1);
        ledger.receive(Some(answer(1)), &Arrival { device: Some(5_060), ..arrival(1_100) });
        ledger.receive(Some(answer(2)), &Arrival { device: Some(5_060), ..arrival(2_100) });
        let (counts, samples) = ledger.close();
        assert_eq!(
            (samples[1].queued.ns(), samples[1].driver.ns(), samples[1].wire.ns()),
            (Some(12), Some(-1), Some(60))
        );
        assert_eq!(samples[2].wire.ns(), None, "its own stamp is missing");
        assert_eq!(counts.premature, 1);
    }

    #[test]
    fn records_of_one_way_packets_are_judged_at_the_server() {
        let mut ledger = Ledger::new(7, true, Duration::from_nanos(500), true, 3);
        (0..3).for_each(|number| ledger.enter(1_000 * number, 1_000 * number));
        ledger.record(0, 400, 501);
        ledger.record(2, 0, 2_500);
        let (counts, samples) = ledger.close();
        assert_eq!((counts.received, counts.lost, counts.late, counts.misses), (2, 1, 1, 2));
        assert_eq!((samples[0].there.ns(), samples[2].there.ns()), (Some(400), None));
        assert_eq!((samples[0].end(true), samples[2].end(true)), (Some(501), Some(500)));
    }
}
