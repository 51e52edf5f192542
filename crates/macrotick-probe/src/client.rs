//! The client: sends packets at the instants of a grid or of a task's jobs, and collects what comes back.

use std::io;

use macrotick_model::Duration;

use crate::error::ProbeError;
use crate::hello::{Common, Hello};
use crate::ledger::{Counts, Ledger};
use crate::packet::{self, ClockName, Kind, Packet};
use crate::port::{Arrival, Port, Receipt, SendFault, Sent};
use crate::records;
use crate::samples::{Sample, MOST};
use crate::trace::Passed;

/// How often a question to the server is repeated, and how long each answer is awaited.
const TRIES: usize = 5;
const PATIENCE: Duration = Duration::from_millis(300);

/// The work of a client.
#[derive(Clone, Debug)]
pub struct Course {
    /// Whether the server records the packets instead of answering them.
    pub one_way: bool,
    /// The clock of the grid and of all instants.
    pub clock: ClockName,
    /// The size of a packet: bytes of UDP payload.
    pub size: usize,
    /// Whether the kernel's events on the way of the packets are recorded.
    pub trace: bool,
    /// Packets in each cycle.
    pub burst: u32,
    /// The deadline of a packet after its nominal instant: of its answer, or for one way of its arrival.
    pub deadline: Duration,
    /// How long the client waits for answers after its last packet.
    pub linger: Duration,
    /// How long before the nominal instant the client sends.
    pub early: Duration,
    /// Whether packets carry their nominal instant as launch time.
    pub launch: bool,
    /// The number of packets; `None`: until the run is stopped.
    pub packets: Option<u64>,
    /// The length of the run; `None`: until the packets are sent.
    pub duration: Option<Duration>,
    /// Whether the user says that the clocks of both hosts are one.
    pub assume_common_clock: bool,
}

/// Where the nominal instants come from.
pub enum Pace<'a> {
    /// A grid: the next instant on the grid's clock in ns, and its step.
    Grid(i64, Duration),
    /// The jobs of a task: waits for the next one, and returns its nominal instant on `CLOCK_MONOTONIC` in ns and the
    /// activations lost before it. `None`: the table has ended.
    Jobs(&'a mut dyn FnMut() -> io::Result<Option<(i64, u64)>>),
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The random number of the run.
    pub run: u64,
    /// The server's host and clock, as its greeting states them.
    pub server: Hello,
    /// Whether the clocks are common.
    pub common: Common,
    /// The counts.
    pub counts: Counts,
    /// The record of each packet.
    pub samples: Vec<Sample>,
    /// The points that packets passed in this kernel.
    pub trace: Vec<Passed>,
    /// For one way: whether the server was restarted during the run. Its records from before are lost.
    pub server_restarted: bool,
}

/// Runs a client after its greeting: sends and collects. `run` is a random number; `own` and `server` are the greetings
/// of both programs.
pub fn run(
    port: &mut dyn Port,
    course: &Course,
    mut pace: Pace,
    run: u64,
    own: &Hello,
    server: Hello,
) -> Result<Outcome, ProbeError> {
    let common = Common::of(course.clock, own, &server, course.assume_common_clock);
    let mut client = Client::new(port, course, run, common.holds());
    client.send_all(&mut pace)?;
    let until = client.port.now() + course.linger.as_nanos();
    client.collect(until, true)?;
    client.drain()?;
    let mut server_restarted = false;
    if course.one_way {
        server_restarted = client.fetch(server.instance)?;
    }
    let (counts, samples) = client.ledger.close();
    Ok(Outcome { run, server, common, counts, samples, trace: Vec::new(), server_restarted })
}

/// Greets the server until it answers.
pub fn greet(port: &mut dyn Port, clock: ClockName, run: u64) -> Result<Hello, ProbeError> {
    let mut question = packet::blank(0);
    Packet::new(Kind::Hello, clock, run, 0).encode(&mut question);
    let is_answer = |packet: &Packet, _: &[u8]| packet.kind == Kind::Welcome && packet.run == run;
    ask(port, &question, &is_answer)?.map(|(packet, _)| Hello::of_packet(&packet)).ok_or(ProbeError::NoServer)
}

/// Sends a question and waits for its answer, several times. `None`: there is none.
fn ask(
    port: &mut dyn Port,
    question: &[u8],
    is_answer: &dyn Fn(&Packet, &[u8]) -> bool,
) -> Result<Option<(Packet, Vec<u8>)>, ProbeError> {
    let mut bytes = vec![0; question.len().max(packet::HEADER)];
    for _ in 0..TRIES {
        match port.send(question, None) {
            Ok(()) | Err(SendFault::Refused | SendFault::Untaken) => {}
            Err(SendFault::Broken(error)) => return Err(ProbeError::Network(error)),
        }
        let until = port.now() + PATIENCE.as_nanos();
        loop {
            match port.receive(&mut bytes, until).map_err(ProbeError::Network)? {
                Receipt::Datagram(arrival) => {
                    let answer = &bytes[..arrival.length.min(bytes.len())];
                    if let Some(packet) = Packet::decode(answer).filter(|packet| is_answer(packet, answer)) {
                        return Ok(Some((packet, answer.to_vec())));
                    }
                }
                Receipt::Stamps => port.stamps(&mut |_| ()).map_err(ProbeError::Network)?,
                // The server may be about to start: wait as for a missing answer.
                Receipt::Refused => {}
                Receipt::Timeout => break,
                Receipt::Stopped => return Ok(None),
            }
        }
    }
    Ok(None)
}

/// A client after its greeting.
struct Client<'a> {
    port: &'a mut dyn Port,
    course: &'a Course,
    run: u64,
    ledger: Ledger,
    out: Vec<u8>,
    in_: Vec<u8>,
    stopped: bool,
}

impl<'a> Client<'a> {
    fn new(port: &'a mut dyn Port, course: &'a Course, run: u64, common: bool) -> Client<'a> {
        let out = packet::blank(course.size);
        let expected = usize::try_from(course.packets.unwrap_or(1 << 16).min(MOST)).expect("MOST is small");
        Client {
            ledger: Ledger::new(run, course.one_way, course.deadline, common, expected),
            in_: vec![0; packet::LARGEST],
            stopped: false,
            port,
            course,
            run,
            out,
        }
    }

    fn send_all(&mut self, pace: &mut Pace) -> Result<(), ProbeError> {
        let mut end = None;
        let mut attempts = 0;
        let limit = self.course.packets.unwrap_or(MOST).min(MOST);
        while attempts < limit && !self.stopped {
            let Some(nominal) = self.next_cycle(pace)? else { break };
            let end = *end.get_or_insert(self.course.duration.map(|length| nominal + length.as_nanos()));
            if self.stopped || end.is_some_and(|end| nominal >= end) {
                break;
            }
            for _ in 0..u64::from(self.course.burst).min(limit - attempts) {
                self.send(nominal)?;
                attempts += 1;
            }
            if matches!(pace, Pace::Jobs(_)) {
                // The job ends with the last answer, and never later than the deadline. One way has no answers.
                let length = if self.course.one_way { Duration::ZERO } else { self.course.deadline };
                self.collect(nominal + length.as_nanos(), !self.course.one_way)?;
                self.drain()?;
            }
        }
        Ok(())
    }

    /// Waits for the next cycle, and returns its nominal instant in ns. `None`: there is no other.
    fn next_cycle(&mut self, pace: &mut Pace) -> Result<Option<i64>, ProbeError> {
        let is_step = self.port.step().is_some();
        self.ledger.counts().clock_steps += u64::from(is_step);
        match pace {
            Pace::Jobs(wait) => {
                let Some((nominal, lost)) = wait().map_err(ProbeError::Task)? else { return Ok(None) };
                self.ledger.counts().skipped_cycles += lost;
                Ok(Some(self.port.on_grid(nominal)))
            }
            Pace::Grid(next, interval) => {
                let (early, interval) = (self.course.early.as_nanos(), interval.as_nanos());
                let behind = self.port.now() + early - *next;
                if is_step {
                    // The clock was set: the grid goes on at the new time.
                    *next += behind.div_euclid(interval) * interval + interval;
                } else if behind >= interval {
                    let skipped = behind / interval;
                    self.ledger.counts().skipped_cycles += skipped as u64;
                    *next += skipped * interval;
                }
                let nominal = *next;
                *next += interval;
                self.collect(nominal - early, false)?;
                Ok(Some(nominal))
            }
        }
    }

    fn send(&mut self, nominal: i64) -> Result<(), ProbeError> {
        let kind = if self.course.one_way { Kind::OneWay } else { Kind::Request };
        let mut packet = Packet::new(kind, self.course.clock, self.run, self.ledger.next());
        packet.nominal = nominal;
        let launch = self.course.launch.then_some(nominal);
        // A refusal belongs to an earlier packet. The kernel reports it once.
        for _ in 0..2 {
            packet.sent = self.port.now();
            packet.encode(&mut self.out);
            match self.port.send(&self.out, launch) {
                Ok(()) => {
                    self.ledger.enter(nominal, packet.sent);
                    return Ok(());
                }
                Err(SendFault::Refused) => self.ledger.counts().refused += 1,
                Err(SendFault::Untaken) => break,
                Err(SendFault::Broken(error)) => return Err(ProbeError::Network(error)),
            }
        }
        self.ledger.counts().unsent += 1;
        Ok(())
    }

    /// Receives until an instant, or with `until_complete` until all packets have come.
    fn collect(&mut self, until: i64, until_complete: bool) -> Result<(), ProbeError> {
        while !(until_complete && self.ledger.is_complete()) {
            match self.port.receive(&mut self.in_, until).map_err(ProbeError::Network)? {
                Receipt::Datagram(arrival) => self.take(&arrival),
                Receipt::Stamps => self.drain()?,
                Receipt::Refused => self.ledger.counts().refused += 1,
                Receipt::Timeout => break,
                Receipt::Stopped => {
                    self.stopped = true;
                    break;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, arrival: &Arrival) {
        let bytes = &self.in_[..arrival.length.min(self.in_.len())];
        let packet = Packet::decode(bytes);
        self.ledger.receive(packet, arrival);
    }

    /// Enters what the kernel told about sent packets.
    fn drain(&mut self) -> Result<(), ProbeError> {
        let ledger = &mut self.ledger;
        let mut tell = |sent| match sent {
            Sent::Stamp(sequence, station, at) => ledger.stamp(sequence, station, at),
            Sent::LaunchMissed => ledger.counts().launch_missed += 1,
        };
        self.port.stamps(&mut tell).map_err(ProbeError::Network)
    }

    /// Fetches the server's records. Whether the server was restarted since the greeting.
    fn fetch(&mut self, instance: u64) -> Result<bool, ProbeError> {
        let run = self.run;
        let mut next = 0;
        loop {
            let question = records::question(self.course.clock, run, next);
            let is_answer = |packet: &Packet, _: &[u8]| {
                packet.kind == Kind::Records && packet.run == run && packet.sequence == next
            };
            let Some((packet, bytes)) = ask(self.port, &question, &is_answer)? else {
                return Err(ProbeError::NoRecords);
            };
            let page = records::page(&packet, &bytes).ok_or(ProbeError::NoRecords)?;
            page.records.iter().for_each(|record| self.ledger.record(record.sequence, record.arrived, record.received));
            next += page.records.len() as u64;
            if next >= page.total || page.records.is_empty() {
                return Ok(page.instance != instance);
            }
        }
    }
}
