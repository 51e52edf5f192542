//! Client and server through the network stack of this host.

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::sync::{mpsc, Arc};
use std::thread::JoinHandle;

use macrotick_model::Duration;
use macrotick_probe::hello::Common;
use macrotick_probe::{
    run, serve, ClockName, Course, Policy, ProbeError, RunOptions, ServeOptions, Served, SocketOptions, Stop,
};

/// A server in a thread of its own.
struct Running {
    address: SocketAddr,
    stop: Arc<Stop>,
    thread: JoinHandle<Served>,
}

impl Running {
    fn start(listen: &str) -> Running {
        let options = ServeOptions {
            listen: listen.parse().unwrap(),
            policy: Policy::Unchanged,
            cpu: None,
            wait: Duration::ZERO,
            socket: SocketOptions { stamps: true, ..SocketOptions::default() },
            xdp: None,
            rate: None,
            records: 1000,
        };
        let (stop, (tell, told)) = (Arc::new(Stop::by_hand().unwrap()), mpsc::channel());
        let other = stop.clone();
        let ready = move |address| tell.send(address).unwrap();
        let thread = std::thread::spawn(move || serve(&options, &other, &mut { ready }).unwrap());
        Running { address: told.recv().unwrap(), stop, thread }
    }

    fn end(self) -> Served {
        self.stop.stop();
        self.thread.join().unwrap()
    }
}

/// Small packets with the kernel's time stamps.
fn options(destination: SocketAddr, packets: Option<u64>) -> RunOptions {
    let options = common::options(destination, packets);
    RunOptions {
        course: Course { size: 200, ..options.course },
        socket: SocketOptions { stamps: true, stamps_out: true, ..SocketOptions::default() },
        ..options
    }
}

fn by_hand() -> Arc<Stop> {
    Arc::new(Stop::by_hand().unwrap())
}

#[test]
fn packets_come_back_with_all_stamps() {
    for (listen, clock) in [("127.0.0.1:0", ClockName::Monotonic), ("[::1]:0", ClockName::Tai)] {
        let server = Running::start(listen);
        let mut options = options(server.address, Some(60));
        (options.course.clock, options.course.burst) = (clock, 3);
        let finished = run(&options, &by_hand()).unwrap();
        let counts = finished.results.counts;
        assert_eq!((counts.sent, counts.received, counts.lost, counts.foreign), (60, 60, 0, 0), "{listen}");
        assert_eq!(finished.results.common_clock, Common::SameHost);
        for sample in &finished.samples {
            let all = [sample.sent, sample.queued, sample.driver, sample.there, sample.there_received, sample.received];
            let all: Vec<i64> = all
                .iter()
                .map(|offset| offset.ns().unwrap_or_else(|| panic!("{listen}: a stamp is missing: {sample:?}")))
                .collect();
            // Kernel stamps are on another clock. Its distance is known to some 100 ns.
            let ordered = all.windows(2).all(|pair| pair[0] <= pair[1] + 20_000);
            assert!(ordered && sample.turnaround.ns() > Some(0), "{listen}: {sample:?}");
        }
        assert_eq!(finished.results.remarks, [""; 0]);
        let served = server.end();
        assert_eq!((served.answered, served.greeted, served.foreign), (60, 1, 0));
    }
}

#[test]
fn one_way_packets_are_fetched() {
    let server = Running::start("127.0.0.1:0");
    let mut options = options(server.address, Some(150));
    (options.course.one_way, options.course.linger) = (true, Duration::from_millis(100));
    options.interval = Duration::from_micros(200);
    let finished = run(&options, &by_hand()).unwrap();
    let counts = finished.results.counts;
    assert_eq!((counts.sent, counts.received, counts.lost), (150, 150, 0));
    assert!(finished.samples.iter().all(|sample| sample.there_received.ns().is_some_and(|ns| ns > 0)));
    assert!(finished.results.times.iter().any(|times| times.name == "one-way" && times.count == 150));
    assert_eq!(server.end().recorded, 150);
}

#[test]
fn strangers_get_no_answer() {
    let server = Running::start("127.0.0.1:0");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    for bytes in [&b""[..], b"MTP\x01", &[0; 2000]] {
        stranger.send_to(bytes, server.address).unwrap();
    }
    assert!(stranger.recv(&mut [0; 100]).is_err());
    assert_eq!(server.end(), Served { foreign: 3, ..Served::default() });
}

#[test]
fn an_endless_run_ends_when_it_is_stopped() {
    let server = Running::start("127.0.0.1:0");
    for busy_poll in [false, true] {
        let mut options = options(server.address, None);
        options.socket.busy_poll = busy_poll;
        let stop = by_hand();
        let other = stop.clone();
        let thread = std::thread::spawn(move || run(&options, &other).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(100));
        stop.stop();
        let counts = thread.join().unwrap().results.counts;
        assert!(counts.sent > 0 && counts.lost == 0, "{counts:?}");
    }
    server.end();
}

#[test]
fn a_run_survives_a_restart_of_its_server() {
    let server = Running::start("127.0.0.1:0");
    let address = server.address;
    let mut options = options(address, Some(400));
    options.course.linger = Duration::from_millis(200);
    let thread = std::thread::spawn(move || run(&options, &by_hand()).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.end();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let server = Running::start(&address.to_string());
    let finished = thread.join().unwrap();
    let counts = finished.results.counts;
    assert!(counts.refused > 0 && counts.lost > 0 && counts.received > 0, "{counts:?}");
    assert_eq!(counts.sent + counts.unsent, 400);
    assert!(server.end().answered > 0, "the second server answered, too");
}

#[test]
fn a_missing_server_is_an_error() {
    let unused = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = run(&options(unused, Some(1)), &by_hand()).unwrap_err();
    assert!(matches!(error, ProbeError::NoServer), "{error}");
}

/// The kernel's own events tell what each packet passed. They are in order, and within its times.
#[test]
fn packets_are_followed_through_the_kernel() {
    let server = Running::start("127.0.0.1:0");
    let options = options(server.address, Some(20));
    let course = Course { trace: true, ..options.course.clone() };
    let finished = run(&RunOptions { course, ..options }, &by_hand()).unwrap();
    server.end();
    let results = finished.results;
    if results.remarks.iter().any(|remark| remark.starts_with("no trace: ")) {
        return eprintln!("skipped: it needs root and trace points");
    }
    let names = |back| {
        let events = results.events.iter().filter(move |event| event.on_the_way_back == back);
        events.map(|event| (event.times.name, event.times.count)).collect::<Vec<_>>()
    };
    for back in [false, true] {
        let names = names(back);
        for point in ["device-queue", "driver-send", "stack-receive", "socket", "run", "read"] {
            // A receiver that ran already did not have to be woken.
            let least = if point == "run" { 1 } else { 20 };
            let count = names.iter().find(|(name, _)| *name == point).map_or(0, |(_, count)| *count);
            assert!((least..=20).contains(&count), "{point}: {names:?} {:?}", results.remarks);
        }
    }
    let mean = |back, name: &str| {
        let event = results.events.iter().find(|event| event.on_the_way_back == back && event.times.name == name);
        event.unwrap().times.mean_ns.as_us_f64()
    };
    let way = ["device-queue", "driver-send", "stack-receive", "read"];
    let means: Vec<_> = [false, true].into_iter().flat_map(|back| way.map(|name| mean(back, name))).collect();
    assert!(means.is_sorted(), "{means:?}");
    let trip = results.times.iter().find(|times| times.name == "round-trip").unwrap();
    assert!(means[7] <= trip.mean_ns.as_us_f64() && means[0] > 0.0, "{means:?} {trip:?}");
}
