//! A client on a network that a test writes: lost, copied, delayed and forged packets, clocks that are set, and the end
//! of a run. Time is virtual, so every number is exact.

use std::collections::BTreeMap;
use std::io;

use macrotick_fixtures::{hold, hold_schema, refusals, Side};
use macrotick_model::Duration;
use macrotick_probe::client::{self, Outcome, Pace};
use macrotick_probe::hello::{Common, Hello};
use macrotick_probe::ledger::Counts;
use macrotick_probe::packet::{blank, Kind, Packet};
use macrotick_probe::port::{Arrival, Port, Receipt, SendFault, Sent, Station};
use macrotick_probe::records::{Record, Records};
use macrotick_probe::results::{Circumstances, SysInfo};
use macrotick_probe::{ClockName, Course, ProbeError, Results, Sample};

const RUN: u64 = 42;
const MS: i64 = 1_000_000;
/// The first nominal instant.
const FIRST: i64 = 100 * MS;
/// The time that a call of send takes, and a wake-up.
const SEND: i64 = 300;
const WAKE_UP: i64 = 2_000;

fn hello(host: u64) -> Hello {
    Hello { host, instance: 5, synchronised: false, error: Duration::ZERO, tai_offset: 37 }
}

/// A network. `fate` says when the copies of a packet come back, in ns after it was sent.
struct Network {
    now: i64,
    /// The clock's distance from `CLOCK_MONOTONIC`.
    offset: i64,
    fate: fn(u64) -> Vec<i64>,
    /// The kernel's refusal of a packet.
    refusal: fn(u64) -> Option<SendFault>,
    /// When the clock is set, and by how much.
    set: Option<(i64, i64)>,
    stop_at: i64,
    stopped: bool,
    server: Hello,
    records: Records,
    on_the_way: BTreeMap<(i64, u64), Vec<u8>>,
    order: u64,
    stamps: Vec<Sent>,
    attempts: u64,
    launches: Vec<Option<i64>>,
}

impl Network {
    fn new(fate: fn(u64) -> Vec<i64>) -> Network {
        Network {
            now: FIRST - 50 * MS,
            offset: 0,
            fate,
            refusal: |_| None,
            set: None,
            stop_at: i64::MAX,
            stopped: false,
            server: hello(1),
            records: Records::new(1000),
            on_the_way: BTreeMap::new(),
            order: 0,
            stamps: Vec::new(),
            attempts: 0,
            launches: Vec::new(),
        }
    }

    fn deliver(&mut self, at: i64, bytes: Vec<u8>) {
        self.order += 1;
        self.on_the_way.insert((at, self.order), bytes);
    }

    /// The answer of the server, which needs 500 ns for it.
    fn answer(&self, bytes: &[u8], back: i64) -> Vec<u8> {
        let packet = Packet::decode(bytes).unwrap();
        let middle = self.now + (back - 500) / 2;
        let mut bytes = bytes.to_vec();
        let instants = Packet { arrived: middle - 100, received: middle, answered: middle + 500, ..packet };
        Packet { kind: Kind::Answer, ..instants }.encode(&mut bytes);
        bytes
    }
}

impl Port for Network {
    fn now(&mut self) -> i64 {
        self.now
    }

    fn on_grid(&self, monotonic: i64) -> i64 {
        monotonic + self.offset
    }

    fn step(&mut self) -> Option<Duration> {
        let (_, by) = self.set.take_if(|(at, _)| *at <= self.now)?;
        self.now += by;
        Some(Duration::from_nanos(by))
    }

    fn send(&mut self, bytes: &[u8], launch: Option<i64>) -> Result<(), SendFault> {
        let packet = Packet::decode(bytes).expect("a packet");
        match packet.kind {
            Kind::Hello => {
                let mut answer = blank(0);
                self.server.packet(packet.clock, packet.run, packet.sequence).encode(&mut answer);
                self.deliver(self.now + 10_000, answer);
            }
            Kind::Fetch => {
                let mut answer = bytes.to_vec();
                let length = self.records.answer(&packet, self.server.instance, &mut answer, bytes.len());
                answer.truncate(length);
                self.deliver(self.now + 10_000, answer);
            }
            _ => {
                self.attempts += 1;
                if let Some(fault) = (self.refusal)(self.attempts - 1) {
                    return Err(fault);
                }
                self.launches.push(launch);
                self.stamps.push(Sent::Stamp(packet.sequence, Station::Queue, self.now + 100));
                self.stamps.push(Sent::Stamp(packet.sequence, Station::Driver, self.now + 250));
                for back in (self.fate)(packet.sequence) {
                    if packet.kind == Kind::Request {
                        let answer = self.answer(bytes, back);
                        self.deliver(self.now + back, answer);
                    } else {
                        let received = self.now + back;
                        let record = Record { sequence: packet.sequence, arrived: received - 100, received };
                        self.records.add(packet.run, record);
                    }
                }
                self.now += SEND;
            }
        }
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8], until: i64) -> io::Result<Receipt> {
        if !self.stamps.is_empty() {
            return Ok(Receipt::Stamps);
        }
        let next = self.on_the_way.first_key_value().map_or(i64::MAX, |((at, _), _)| *at);
        let stop = if self.stopped { i64::MAX } else { self.stop_at };
        if next.min(until) > stop {
            (self.stopped, self.now) = (true, self.now.max(stop));
            return Ok(Receipt::Stopped);
        }
        if next > until {
            self.now = self.now.max(until + WAKE_UP);
            return Ok(Receipt::Timeout);
        }
        let (_, packet) = self.on_the_way.pop_first().expect("one");
        self.now = self.now.max(next);
        bytes[..packet.len()].copy_from_slice(&packet);
        Ok(Receipt::Datagram(Arrival { length: packet.len(), at: self.now, kernel: Some(next - 700), device: None }))
    }

    fn stamps(&mut self, tell: &mut dyn FnMut(Sent)) -> io::Result<()> {
        self.stamps.drain(..).for_each(tell);
        Ok(())
    }
}

fn course(packets: u64) -> Course {
    Course {
        one_way: false,
        clock: ClockName::Monotonic,
        size: 500,
        trace: false,
        burst: 1,
        deadline: Duration::from_millis(1),
        linger: Duration::from_millis(20),
        early: Duration::ZERO,
        launch: false,
        packets: Some(packets),
        duration: None,
        assume_common_clock: false,
    }
}

fn grid() -> Pace<'static> {
    Pace::Grid(FIRST, Duration::from_millis(1))
}

fn attempt(port: &mut dyn Port, course: &Course, pace: Pace) -> Result<Outcome, ProbeError> {
    let server = client::greet(port, course.clock, RUN)?;
    client::run(port, course, pace, RUN, &hello(1), server)
}

fn run(network: &mut Network, course: &Course) -> Outcome {
    attempt(network, course, grid()).unwrap()
}

fn offsets(outcome: &Outcome, of: fn(&Sample) -> Option<i64>) -> Vec<Option<i64>> {
    outcome.samples.iter().map(of).collect()
}

#[test]
fn a_quiet_path_has_exact_times() {
    let outcome = run(&mut Network::new(|_| vec![70_000]), &course(3));
    assert_eq!(outcome.counts, Counts { sent: 3, received: 3, ..Counts::default() });
    assert_eq!(outcome.common, Common::SameHost);
    let nominal: Vec<i64> = outcome.samples.iter().map(|sample| sample.nominal).collect();
    assert_eq!(nominal, [FIRST, FIRST + MS, FIRST + 2 * MS]);
    for sample in &outcome.samples {
        let times = [sample.sent, sample.queued, sample.driver, sample.there, sample.there_received].map(|at| at.ns());
        assert_eq!(times, [2_000, 2_100, 2_250, 36_650, 36_750].map(Some));
        let times = [sample.turnaround, sample.arrived, sample.received].map(|at| at.ns());
        assert_eq!(times, [500, 71_300, 72_000].map(Some));
    }
}

/// Packet 1 is lost, 2 comes twice, 3 after 4, 5 after its deadline, and 6 twice with the second copy late.
fn troubled(sequence: u64) -> Vec<i64> {
    match sequence {
        1 => vec![],
        2 => vec![70_000, 90_000],
        3 => vec![990_000 + 30_000 + 70_000],
        4 => vec![60_000],
        5 => vec![2_500_000],
        6 => vec![70_000, 3_000_000],
        _ => vec![70_000],
    }
}

#[test]
fn every_trouble_is_counted_once() {
    let outcome = run(&mut Network::new(troubled), &course(10));
    let expected =
        Counts { sent: 10, received: 9, lost: 1, duplicate: 2, reordered: 2, late: 2, misses: 3, ..Counts::default() };
    assert_eq!(outcome.counts, expected);
    let received = offsets(&outcome, |sample| sample.received.ns());
    assert_eq!(received[1], None);
    assert_eq!((received[2], received[6]), (Some(72_000), Some(72_000)), "the first copy counts");
    assert_eq!(received[5], Some(2_502_000));
}

#[test]
fn forged_packets_change_nothing() {
    let mut network = Network::new(|_| vec![70_000]);
    for (number, change) in [
        |packet: Packet| Packet { run: 43, ..packet },
        |packet: Packet| Packet { kind: Kind::Welcome, ..packet },
        |packet: Packet| Packet { kind: Kind::Request, ..packet },
        |packet: Packet| Packet { sequence: 1 << 60, ..packet },
    ]
    .into_iter()
    .enumerate()
    {
        let mut bytes = blank(64);
        change(Packet::new(Kind::Answer, ClockName::Monotonic, RUN, 0)).encode(&mut bytes);
        network.deliver(FIRST + 3_000 + number as i64, bytes);
    }
    network.deliver(FIRST + 4_000, b"GET / HTTP/1.1".to_vec());
    network.deliver(FIRST + 4_001, vec![]);
    let outcome = run(&mut network, &course(3));
    assert_eq!(outcome.counts, Counts { sent: 3, received: 3, foreign: 6, ..Counts::default() });
    assert_eq!(offsets(&outcome, |sample| sample.received.ns()), [Some(72_000); 3]);
}

#[test]
fn bursts_have_one_nominal_instant() {
    let outcome = run(&mut Network::new(|_| vec![70_000]), &Course { burst: 4, ..course(10) });
    let nominal: Vec<i64> = outcome.samples.iter().map(|sample| (sample.nominal - FIRST) / MS).collect();
    assert_eq!(nominal, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    let sent: Vec<i64> = outcome.samples.iter().take(4).filter_map(|sample| sample.sent.ns()).collect();
    assert_eq!(sent, [2_000, 2_300, 2_600, 2_900]);
    assert_eq!((outcome.counts.received, outcome.counts.misses), (10, 0));
}

#[test]
fn packets_that_are_not_taken_are_no_losses() {
    let mut network = Network::new(|_| vec![70_000]);
    network.refusal = |attempt| match attempt {
        1 | 2 => Some(SendFault::Untaken),
        // The refusal of an earlier packet: the second try succeeds.
        3 => Some(SendFault::Refused),
        _ => None,
    };
    let outcome = run(&mut network, &course(5));
    let expected = Counts { sent: 3, received: 3, unsent: 2, refused: 1, ..Counts::default() };
    assert_eq!(outcome.counts, expected);
}

#[test]
fn a_broken_network_ends_the_run() {
    let mut network = Network::new(|_| vec![70_000]);
    network.refusal = |attempt| (attempt == 1).then(|| SendFault::Broken(io::Error::from_raw_os_error(libc::EACCES)));
    let error = attempt(&mut network, &course(5), grid()).unwrap_err();
    assert!(matches!(error, ProbeError::Network(_)), "{error}");
}

#[test]
fn a_stopped_run_has_results() {
    let mut network = Network::new(|_| vec![70_000]);
    network.stop_at = FIRST + 2 * MS + 10_000;
    let outcome = run(&mut network, &Course { packets: None, ..course(0) });
    // Packets on their way still come.
    assert_eq!(outcome.counts, Counts { sent: 3, received: 3, ..Counts::default() });
}

#[test]
fn a_duration_ends_the_run() {
    let limits = Course { packets: None, duration: Some(Duration::from_millis(4)), ..course(0) };
    assert_eq!(run(&mut Network::new(|_| vec![70_000]), &limits).counts.sent, 4);
    let none = run(&mut Network::new(|_| vec![70_000]), &course(0));
    assert_eq!((none.counts, none.samples.len()), (Counts::default(), 0));
}

#[test]
fn whole_cycles_that_pass_are_skipped() {
    let mut network = Network::new(|_| vec![70_000]);
    network.now = FIRST + 3 * MS + 400_000;
    let outcome = run(&mut network, &course(2));
    let nominal: Vec<i64> = outcome.samples.iter().map(|sample| (sample.nominal - FIRST) / MS).collect();
    assert_eq!(nominal, [3, 4]);
    assert_eq!(outcome.counts.skipped_cycles, 3);
    // The first one is late, and counts from its nominal instant.
    assert_eq!(outcome.samples[0].sent.ns(), Some(410_000));
}

#[test]
fn the_grid_follows_a_clock_that_is_set() {
    for by in [-7_000 * MS, 5_000 * MS + 400_000] {
        let mut network = Network::new(|_| vec![70_000]);
        network.set = Some((FIRST + MS, by));
        let outcome = run(&mut network, &Course { clock: ClockName::Tai, ..course(4) });
        assert_eq!((outcome.counts.clock_steps, outcome.counts.sent, outcome.counts.skipped_cycles), (1, 4, 0));
        let nominal: Vec<i64> = outcome.samples.iter().map(|sample| sample.nominal).collect();
        assert!(nominal.iter().all(|at| (at - FIRST) % MS == 0), "{nominal:?}");
        let jump = nominal[2] - nominal[1];
        assert!((jump - by - MS).abs() <= MS, "{nominal:?}");
    }
}

#[test]
fn a_launch_time_is_the_nominal_instant() {
    let early = Course { early: Duration::from_micros(300), launch: true, ..course(2) };
    let mut network = Network::new(|_| vec![500_000]);
    let outcome = run(&mut network, &early);
    assert_eq!(network.launches, [Some(FIRST), Some(FIRST + MS)]);
    assert_eq!(offsets(&outcome, |sample| sample.sent.ns()), [Some(-298_000); 2]);
    // This network sends at once: the driver has the packet before its instant.
    assert_eq!((outcome.counts.premature, outcome.counts.misses), (2, 0));
}

#[test]
fn one_way_packets_are_judged_by_the_server_records() {
    let mut network = Network::new(troubled);
    let outcome = run(&mut network, &Course { one_way: true, ..course(10) });
    let expected = Counts { sent: 10, received: 9, lost: 1, duplicate: 2, late: 2, misses: 3, ..Counts::default() };
    assert_eq!(outcome.counts, expected);
    assert_eq!(outcome.samples[0].there_received.ns(), Some(72_000));
    assert!(!outcome.server_restarted);
    // More records than one page has.
    let many = run(&mut Network::new(|_| vec![70_000]), &Course { one_way: true, ..course(200) });
    assert_eq!((many.counts.received, many.counts.lost), (200, 0));
}

#[test]
fn without_a_common_clock_there_are_no_one_way_times() {
    let mut network = Network::new(|_| vec![70_000]);
    network.server = hello(9);
    let outcome = run(&mut network, &course(2));
    assert_eq!(outcome.common, Common::OtherHost);
    assert_eq!(offsets(&outcome, |sample| sample.there_received.ns()), [None; 2]);
    assert_eq!(offsets(&outcome, |sample| sample.received.ns()), [Some(72_000); 2]);
    let mut network = Network::new(|_| vec![5_000_000]);
    network.server = hello(9);
    let one_way = run(&mut network, &Course { one_way: true, ..course(2) });
    assert_eq!((one_way.counts.received, one_way.counts.late), (2, 0), "lateness is unknown");
}

#[test]
fn jobs_of_a_task_are_cycles() {
    let mut network = Network::new(|sequence| if sequence == 1 { vec![] } else { vec![70_000] });
    network.offset = 1_000;
    network.now = FIRST;
    let mut jobs = vec![Some((FIRST - 1_000, 0)), Some((FIRST + 2 * MS - 1_000, 3)), None].into_iter();
    let mut wait = || Ok(jobs.next().unwrap());
    let course = Course { burst: 2, ..course(100) };
    let outcome = attempt(&mut network, &course, Pace::Jobs(&mut wait)).unwrap();
    let nominal: Vec<i64> = outcome.samples.iter().map(|sample| sample.nominal - FIRST).collect();
    assert_eq!(nominal, [0, 0, 2 * MS, 2 * MS]);
    assert_eq!((outcome.counts.sent, outcome.counts.lost, outcome.counts.skipped_cycles), (4, 1, 3));
}

#[test]
fn a_silent_server_is_an_error() {
    struct Silent(i64);
    impl Port for Silent {
        fn now(&mut self) -> i64 {
            self.0
        }
        fn on_grid(&self, monotonic: i64) -> i64 {
            monotonic
        }
        fn step(&mut self) -> Option<Duration> {
            None
        }
        fn send(&mut self, _: &[u8], _: Option<i64>) -> Result<(), SendFault> {
            Err(SendFault::Refused)
        }
        fn receive(&mut self, _: &mut [u8], until: i64) -> io::Result<Receipt> {
            self.0 = until;
            Ok(Receipt::Timeout)
        }
        fn stamps(&mut self, _: &mut dyn FnMut(Sent)) -> io::Result<()> {
            Ok(())
        }
    }
    let error = attempt(&mut Silent(0), &course(1), grid()).unwrap_err();
    assert!(matches!(error, ProbeError::NoServer), "{error}");
}

fn results(course: &Course, outcome: &Outcome) -> Results {
    let text = |text: &str| text.to_owned();
    let circumstances = Circumstances {
        cmdline: text("macrotick probe run 10.0.0.2"),
        span_ns: (1_000_000_000, 1_020_000_000),
        sysinfo: SysInfo {
            sysname: text("Linux"),
            nodename: text("left"),
            release: text("6.12.0"),
            version: text("#1 SMP PREEMPT_RT"),
            machine: text("x86_64"),
            realtime: 1,
        },
        cpu: Some(1),
        destination: text("10.0.0.2:7600"),
        path: text("socket"),
        interval: Some(Duration::from_millis(1)),
        bins: 1_000,
        remarks: vec![text("a remark")],
    };
    Results::new(course, outcome, circumstances)
}

#[test]
fn the_schema_is_that_of_the_types() {
    hold_schema::<Results>("probe", "Results of macrotick probe run", Side::Written);
    let outcome = run(&mut Network::new(troubled), &course(10));
    let document: serde_json::Value = serde_json::from_str(&results(&course(10), &outcome).to_json()).unwrap();
    assert_eq!(refusals("probe", &document), [""; 0]);
}

#[test]
fn results_have_these_forms() {
    let outcome = run(&mut Network::new(troubled), &course(10));
    let results = results(&course(10), &outcome);
    assert!(!results.holds());
    hold("crates/macrotick-probe/tests/golden/results.json", &results.to_json());
    hold("crates/macrotick-probe/tests/golden/results.txt", &results.table(false, 100));
    hold("crates/macrotick-probe/tests/golden/samples.csv", &Sample::csv(&outcome.samples, ClockName::Monotonic));
}

#[test]
fn a_run_without_packets_has_results() {
    let outcome = run(&mut Network::new(|_| vec![]), &course(0));
    let results = results(&course(0), &outcome);
    assert!(results.holds() && results.thread.is_empty() && results.times.is_empty());
    assert!(results.table(false, 100).contains("sent"));
}
