//! Client and server in two network namespaces with a veth between them: the express path, and an interface that goes
//! down. They need root, as the tests of namespaces and BPF programs do.

mod common;

use std::process::Command;
use std::sync::{mpsc, Arc};
use std::thread::JoinHandle;

use macrotick_model::Duration;
use macrotick_probe::{
    run, serve, Finished, Mode, Place, Policy, ProbeError, RunOptions, ServeOptions, Served, SocketOptions, Stop,
};
use nix::sched::{unshare, CloneFlags};

/// The names of the ends, and the address of the server.
const CLIENT: &str = "probe0";
const SERVER: &str = "probe1";
const ADDRESS: &str = "10.77.0.2:7600";

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn place(interface: &str, mode: Option<Mode>) -> Option<Place> {
    mode.map(|mode| Place { interface: interface.into(), queue: 0, mode })
}

/// The end of the server, and its thread: its counts, and its link afterwards.
type Server = (Arc<Stop>, JoinHandle<(Served, String)>);

/// The calling thread's namespace, with the server in another one. `None`: it needs root.
fn connected(mode: Option<Mode>) -> Option<Server> {
    if unshare(CloneFlags::CLONE_NEWNET).is_err() {
        eprintln!("skipped: it needs root");
        return None;
    }
    let options = ServeOptions {
        listen: ADDRESS.parse().unwrap(),
        policy: Policy::Unchanged,
        cpu: None,
        wait: Duration::ZERO,
        socket: SocketOptions::default(),
        xdp: place(SERVER, mode),
        rate: None,
        records: 1000,
    };
    let stop = Arc::new(Stop::by_hand().unwrap());
    let ((tell_id, id), (tell_plug, plugged), (tell_ready, ready)) =
        (mpsc::channel(), mpsc::channel::<()>(), mpsc::channel());
    let other = stop.clone();
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        tell_id.send(nix::unistd::gettid()).unwrap();
        plugged.recv().unwrap();
        ip(&format!("link set {SERVER} up"));
        ip(&format!("address add 10.77.0.2/24 dev {SERVER}"));
        let served = serve(&options, &other, &mut |_| tell_ready.send(()).unwrap()).unwrap();
        (served, ip(&format!("link show {SERVER}")))
    });
    let id = id.recv().unwrap();
    ip(&format!("link add name {CLIENT} type veth peer name {SERVER}"));
    ip(&format!("link set {SERVER} netns {id}"));
    ip(&format!("link set {CLIENT} up"));
    ip(&format!("address add 10.77.0.1/24 dev {CLIENT}"));
    tell_plug.send(()).unwrap();
    ready.recv().unwrap();
    Some((stop, thread))
}

fn options(mode: Option<Mode>, packets: u64) -> RunOptions {
    RunOptions { xdp: place(CLIENT, mode), ..common::options(ADDRESS.parse().unwrap(), Some(packets)) }
}

fn measure(options: &RunOptions) -> Result<Finished, ProbeError> {
    run(options, &Arc::new(Stop::by_hand().unwrap()))
}

#[test]
fn packets_cross_on_every_combination_of_paths() {
    for server_mode in [None, Some(Mode::Skb), Some(Mode::Native)] {
        std::thread::spawn(move || {
            let Some((stop, server)) = connected(server_mode) else { return };
            for client_mode in [None, Some(Mode::Skb), Some(Mode::Native)] {
                let mut options = options(client_mode, 200);
                options.course.burst = 50;
                options.interval = Duration::from_millis(5);
                let finished = measure(&options).unwrap();
                let counts = finished.results.counts;
                let what = format!("{client_mode:?} to {server_mode:?}: {counts:?}");
                assert_eq!((counts.sent, counts.received, counts.lost, counts.duplicate), (200, 200, 0, 0), "{what}");
                let path = match client_mode {
                    None => "socket",
                    Some(Mode::Skb) => "xdp-skb",
                    Some(Mode::Native) => "xdp-native",
                };
                assert_eq!(finished.results.setup.path, path);
                let link = ip(&format!("link show {CLIENT}"));
                assert!(!link.contains("xdp"), "a program is left: {link}");
            }
            stop.stop();
            let (served, link) = server.join().unwrap();
            assert_eq!(served.answered, 600);
            assert!(!link.contains("xdp"), "a program is left: {link}");
        })
        .join()
        .unwrap();
    }
}

#[test]
fn one_way_packets_cross_on_the_express_path() {
    std::thread::spawn(|| {
        let Some((stop, server)) = connected(Some(Mode::Skb)) else { return };
        let mut options = options(Some(Mode::Skb), 100);
        (options.course.one_way, options.course.linger) = (true, Duration::from_millis(100));
        let finished = measure(&options).unwrap();
        assert_eq!((finished.results.counts.received, finished.results.counts.lost), (100, 0));
        stop.stop();
        assert_eq!(server.join().unwrap().0.recorded, 100);
    })
    .join()
    .unwrap();
}

#[test]
fn an_interface_that_goes_down_costs_packets_and_not_the_run() {
    std::thread::spawn(|| {
        let Some((stop, server)) = connected(None) else { return };
        // The kernel needs up to a second to see that the link is back.
        let mut options = options(None, 2500);
        options.course.linger = Duration::from_millis(300);
        // A new thread is in this namespace, too.
        let thread = std::thread::spawn(move || measure(&options).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(100));
        ip(&format!("link set {CLIENT} down"));
        std::thread::sleep(std::time::Duration::from_millis(100));
        ip(&format!("link set {CLIENT} up"));
        let finished = thread.join().unwrap();
        let counts = finished.results.counts;
        assert!(counts.unsent > 0, "{counts:?}");
        assert_eq!(counts.sent + counts.unsent, 2500);
        assert!(finished.samples.last().unwrap().received.ns().is_some(), "it works again: {counts:?}");
        stop.stop();
        server.join().unwrap();
    })
    .join()
    .unwrap();
}

#[test]
fn packets_beyond_the_frames_are_refused() {
    std::thread::spawn(|| {
        let Some((stop, server)) = connected(None) else { return };
        for (mode, most) in [(None, 1472), (Some(Mode::Skb), 1472)] {
            let mut options = options(mode, 1);
            options.course.size = 1473;
            let error = measure(&options).unwrap_err().to_string();
            assert!(error.contains(&format!("take {most}")), "{error}");
            options.course.size = 1472;
            assert_eq!(measure(&options).unwrap().results.counts.received, 1);
        }
        stop.stop();
        server.join().unwrap();
    })
    .join()
    .unwrap();
}
