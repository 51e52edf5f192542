//! The server's records of one-way packets, and the pages in which a client fetches them.

use std::collections::VecDeque;

use crate::packet::{self, ClockName, Kind, Packet, HEADER};

/// The length of a record in a page, in bytes.
const LENGTH: usize = 24;
/// The size of a client's question, in bytes. The answer is at most as long.
pub const QUESTION: usize = 1400;
/// The runs that a server remembers; a new one replaces the one that was silent longest.
const RUNS: usize = 16;

/// The arrival of a one-way packet. Instants are in ns on the clock of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the packet.
    pub sequence: u64,
    /// When it arrived at the kernel; 0 if that is unknown.
    pub arrived: i64,
    /// When the server received it.
    pub received: i64,
}

/// A part of a run's records, as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The random number of the server.
    pub instance: u64,
    /// The records of the whole run.
    pub total: u64,
    /// The records of this part.
    pub records: Vec<Record>,
}

/// The records of the last runs.
#[derive(Debug)]
pub struct Records {
    /// The most records of a run.
    most: usize,
    /// From the one that was silent longest.
    runs: VecDeque<(u64, Vec<Record>)>,
    unrecorded: u64,
}

impl Records {
    /// Makes room for `most` records of each run.
    pub fn new(most: usize) -> Records {
        Records { most, runs: VecDeque::new(), unrecorded: 0 }
    }

    /// Keeps a record.
    pub fn add(&mut self, run: u64, record: Record) {
        let index = self.runs.iter().position(|(other, _)| *other == run);
        let (_, mut records) = match index {
            Some(index) => self.runs.remove(index).expect("an index of it"),
            None => {
                if self.runs.len() == RUNS {
                    self.runs.pop_front();
                }
                (run, Vec::new())
            }
        };
        match records.len() < self.most {
            true => records.push(record),
            false => self.unrecorded += 1,
        }
        self.runs.push_back((run, records));
    }

    /// Returns the arrivals for which there was no room.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Writes the answer to a question over it, and returns its length: at most the question's. An unknown run has no
    /// records.
    pub fn answer(&self, question: &Packet, instance: u64, bytes: &mut [u8], length: usize) -> usize {
        let all = self.runs.iter().find(|(run, _)| *run == question.run).map_or(&[][..], |(_, records)| records);
        let first = usize::try_from(question.sequence).unwrap_or(usize::MAX).min(all.len());
        let part: Vec<&Record> = all[first..].iter().take((length - HEADER) / LENGTH).collect();
        let answer = Packet {
            nominal: instance as i64,
            sent: all.len() as i64,
            arrived: part.len() as i64,
            ..Packet::new(Kind::Records, question.clock, question.run, question.sequence)
        };
        answer.encode(bytes);
        bytes[6..8].fill(0);
        for (record, place) in part.iter().zip(bytes[HEADER..].chunks_exact_mut(LENGTH)) {
            place[..8].copy_from_slice(&record.sequence.to_be_bytes());
            place[8..16].copy_from_slice(&record.arrived.to_be_bytes());
            place[16..].copy_from_slice(&record.received.to_be_bytes());
        }
        HEADER + part.len() * LENGTH
    }
}

/// Reads a page. `None`: it is shorter than it says.
pub fn page(packet: &Packet, bytes: &[u8]) -> Option<Page> {
    let count = usize::try_from(packet.arrived).ok()?;
    let records = bytes.get(HEADER..HEADER.checked_add(count.checked_mul(LENGTH)?)?)?;
    let number = |place: &[u8], at: usize| u64::from_be_bytes(place[at..at + 8].try_into().expect("eight bytes"));
    let record = |place: &[u8]| Record {
        sequence: number(place, 0),
        arrived: number(place, 8) as i64,
        received: number(place, 16) as i64,
    };
    Some(Page {
        instance: packet.nominal as u64,
        total: u64::try_from(packet.sent).ok()?,
        records: records.chunks_exact(LENGTH).map(record).collect(),
    })
}

/// Returns the question for the records of a run from a number on.
pub fn question(clock: ClockName, run: u64, first: u64) -> Vec<u8> {
    let mut bytes = packet::blank(QUESTION);
    Packet::new(Kind::Fetch, clock, run, first).encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64) -> Record {
        Record { sequence, arrived: -1, received: i64::MAX }
    }

    fn ask(records: &Records, run: u64, first: u64, length: usize) -> (usize, Page) {
        let mut bytes = question(ClockName::Tai, run, first);
        let packet = Packet::decode(&bytes).unwrap();
        let length = records.answer(&packet, 3, &mut bytes, length);
        let packet = Packet::decode(&bytes[..length]).unwrap();
        assert_eq!((packet.kind, packet.sequence), (Kind::Records, first));
        (length, page(&packet, &bytes[..length]).unwrap())
    }

    #[test]
    fn pages_have_all_records_and_are_never_longer_than_the_question() {
        let mut records = Records::new(100);
        (0..60).for_each(|number| records.add(7, record(number)));
        let (length, first) = ask(&records, 7, 0, QUESTION);
        assert_eq!((length, first.records.len(), first.total, first.instance), (1384, 55, 60, 3));
        let (length, last) = ask(&records, 7, 55, QUESTION);
        assert_eq!((length, last.records), (184, (55..60).map(record).collect()));
        assert_eq!(ask(&records, 7, 0, 64 + 23), (64, Page { instance: 3, total: 60, records: vec![] }));
        assert_eq!(ask(&records, 8, 0, QUESTION).1.total, 0);
        assert_eq!(ask(&records, 7, u64::MAX, QUESTION).1.records, []);
    }

    #[test]
    fn room_is_limited() {
        let mut records = Records::new(2);
        (0..5).for_each(|number| records.add(1, record(number)));
        assert_eq!((records.unrecorded(), ask(&records, 1, 0, QUESTION).1.total), (3, 2));
        (2..17).for_each(|run| records.add(run, record(0)));
        records.add(1, record(9));
        // Run 2 was silent longest.
        records.add(17, record(0));
        assert_eq!([1, 2, 3, 17].map(|run| ask(&records, run, 0, QUESTION).1.total), [2, 0, 1, 1]);
    }

    #[test]
    fn a_page_that_lies_about_its_length_is_refused() {
        let lie = Packet { arrived: 2, ..Packet::new(Kind::Records, ClockName::Tai, 1, 0) };
        assert_eq!(page(&lie, &[0; HEADER + 2 * LENGTH - 1]), None);
        assert_eq!(page(&Packet { arrived: i64::MAX, ..lie }, &[0; HEADER]), None);
        assert_eq!(page(&Packet { arrived: -1, ..lie }, &[0; HEADER]), None);
    }
}
