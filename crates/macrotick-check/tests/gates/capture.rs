//! Captures against plans: the port that follows from a plan, its classes, its epoch, and the numbers of its flows.

use macrotick_check::network::capture::{Capture, CaptureVerdict, PlanRefusal, PlannedPort, Rule, Settings, StrayKind};
use macrotick_model::{Duration, Instant, Plan};

use crate::common::*;

const SYSTEM: &str = "system: s
cpus: [0]
clock: {tai: {period: 1ms, length: 200us, bound: 100us}}
tasks:
  - {name: s, period: 1ms, wcet: 100us, offset: 0us, jitter: 0us, namespace: left, run: {udp-send: {to: \"10.0.0.2:5000\"}}}
  - {name: r, period: 1ms, wcet: 100us, offset: 300us, jitter: 0us, namespace: right, run: {udp-receive: {at: \"10.0.0.2:5000\"}}}
groups:
  - {name: guest, budget: 100us, priority: 1}
namespaces:
  - {name: left, address: 10.0.0.1/24}
  - {name: right, address: 10.0.0.2/24}
network:
  classes: [{name: control, priority: 6}, {name: guest, priority: 5}, {name: rest}]
  interfaces:
    - {name: left, namespace: left, speed: 1Gb/s, gates: planned}
    - {name: port, port: right, speed: 1Gb/s}
  flows:
    - {name: f, from: s, to: r, size: 64B, class: control, deadline: 150us}
  slots:
    - {group: guest, period: 1ms, length: 100us, offset: 400us}
";

/// The slot of the guest is on the only interface with planned gates; its frames go to port 6000.
fn port(plan: &Plan) -> PlannedPort {
    PlannedPort::new(plan, None, &["guest=udp:6000".parse().expect("a rule")]).unwrap_or_else(|error| panic!("{error}"))
}

/// A pcap file with nanoseconds: instants, and UDP datagrams from the first namespace.
pub fn file(frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let four = |number: u32| number.to_le_bytes();
    let mut file = [four(0xa1b2_3c4d), [2, 0, 4, 0], four(0), four(0), four(65_535), four(1)].concat();
    for (at, frame) in frames {
        let (seconds, nanos) = ((at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32);
        let length = frame.len() as u32;
        file.extend([four(seconds), four(nanos), four(length), four(length)].concat());
        file.extend(frame);
    }
    file
}

pub fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((length + 28).to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let header = [4000_u16.to_be_bytes(), port.to_be_bytes(), (length + 8).to_be_bytes(), [0, 0]].concat();
    [vec![2; 12], vec![8, 0], ip, header, payload.to_vec()].concat()
}

/// The datagram of a job.
fn job(number: u64) -> Vec<u8> {
    udp(5000, &[number.to_le_bytes(), [0; 8]].concat())
}

/// A packet of `macrotick probe`.
fn probe(number: u64) -> Vec<u8> {
    udp(6000, &[b"MTP\x01\x03\0\0\0".as_slice(), &[7; 8], &number.to_be_bytes(), &[0; 40]].concat())
}

const EPOCH: i64 = 1_700_000_000_000_000_123;

fn judged(plan: &Plan, frames: &[(i64, Vec<u8>)]) -> CaptureVerdict {
    let settings =
        Settings { epoch: Instant::from_nanos(EPOCH), interface: None, path: ns(1_100), tolerance: Duration::ZERO };
    port(plan).judge(Capture::new(&file(frames)).unwrap(), settings).unwrap()
}

/// Frames of so many cycles, a path of 1100 ns after their gates. The gate of the flow opens at 100 us.
fn good(cycles: i64) -> Vec<(i64, Vec<u8>)> {
    let of_cycle = |cycle: i64| {
        let at = EPOCH + cycle * 1_000_000 + 1_100;
        [
            (at + 20_000, udp(7, &[1; 100])),
            (at + 100_000 + cycle % 7, job(cycle as u64)),
            (at + 410_000, probe(cycle as u64)),
        ]
    };
    (0..cycles).flat_map(of_cycle).collect()
}

#[test]
fn frames_in_their_gates_and_slots() {
    let verdict = judged(&planned(SYSTEM), &good(50));
    assert!(verdict.is_clean(), "{verdict}");
    let frames: Vec<(&str, u64)> = verdict.classes.iter().map(|class| (class.name.as_str(), class.frames)).collect();
    assert_eq!(frames, [("sync", 0), ("control", 50), ("guest", 50), ("rest", 50)]);
    let offsets = verdict.classes[1].offsets.expect("offsets");
    assert_eq!((offsets.earliest, offsets.latest), (ns(0), ns(6)));
    let flows: Vec<_> = verdict.flows.iter().map(|flow| (flow.name.as_str(), flow.frames)).collect();
    assert_eq!(flows, [("f", 50), ("guest", 50)]);
    let lost: Vec<_> = verdict.flows.iter().map(|flow| flow.numbers.expect("numbers").lost).collect();
    assert_eq!(lost, [0, 0]);
}

#[test]
fn strays_losses_and_duplicates_are_found() {
    let plan = planned(SYSTEM);
    let mut frames = good(50);
    // Frame 2 leaves 5 us early, and frame 12 in the slot of the guest. Job 7 is lost, and packet 9 is there twice.
    frames[1].0 -= 5_000;
    frames[12].0 += 400_000;
    frames.remove(7 * 3 + 1);
    let again = (frames[28].0 + 1_000, probe(9));
    frames.insert(29, again);
    let verdict = judged(&plan, &frames);
    assert!(!verdict.is_clean());
    let kinds: Vec<(u64, StrayKind)> = verdict.strays.iter().map(|stray| (stray.number, stray.kind)).collect();
    assert_eq!(kinds, [(2, StrayKind::Early), (13, StrayKind::Late), (13, StrayKind::ForeignSlot)], "{verdict}");
    assert_eq!(verdict.strays[2].group.as_deref(), Some("guest"));
    let numbers: Vec<_> = verdict.flows.iter().map(|flow| flow.numbers.expect("numbers")).collect();
    assert_eq!((numbers[0].lost, numbers[0].duplicate, numbers[1].lost, numbers[1].duplicate), (1, 0, 0, 1));
    let text = verdict.to_string();
    assert!(text.contains("  class control: 49 frames, 48 in their windows, 1 early by at most 5us\n"), "{text}");
    assert!(text.contains("    from the opening: earliest -5us, mean -100ns, latest 6ns\n"), "{text}");
    assert!(text.contains("  flow f: 49 frames, 1 lost, 0 duplicate, 0 reordered\n"), "{text}");
}

#[test]
fn at_most_twenty_strays_are_shown() {
    let mut frames = good(50);
    frames.iter_mut().for_each(|(at, _)| *at += 150_000);
    let verdict = judged(&planned(SYSTEM), &frames);
    assert_eq!((verdict.strays.len(), verdict.classes[1].late.frames), (20, 50));
}

#[test]
fn the_epoch_follows_from_the_frames() {
    let plan = planned(SYSTEM);
    let mut frames = good(50);
    frames[10].0 += 150_000;
    let file = file(&frames);
    let fit = port(&plan).fit(Capture::new(&file).unwrap(), None, ns(1_100)).unwrap().expect("an epoch");
    assert_eq!((fit.epoch.as_nanos() - EPOCH).rem_euclid(1_000_000), 0);
    assert_eq!((fit.inside, fit.frames), (149, 150));
    // The sync windows and the gates leave the frames of all classes some room, but not those of the flow.
    assert!(fit.range < us(3), "{fit:?}");
}

#[test]
fn interfaces_that_cannot_be_judged() {
    let plan = planned(SYSTEM);
    let refused = |plan: &Plan, interface, rules: &[Rule]| {
        PlannedPort::new(plan, interface, rules).map(drop).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(&plan, None, &[]),
        "class `guest` of interface `left`: a capture does not show its frames. Its senders have no `udp-send`, and \
         the interface has no VLAN. Describe the frames, as in `guest=udp:5000`"
    );
    assert_eq!(refused(&plan, Some("lift"), &[]), "the plan has no interface `lift`: use one of left, port");
    assert_eq!(refused(&plan, Some("port"), &[]), "interface `port` has no gates: all frames can leave at any time");
    let rule = "gust=udp:6000".parse().expect("a rule");
    let guest = "guest=udp:6000".parse().expect("a rule");
    assert!(refused(&plan, None, &[guest, rule]).starts_with("rule 1: no traffic class is named `gust`"));
    let mut broken = plan.clone();
    broken.gates[0].entries[0].length += ns(1);
    assert_eq!(
        refused(&broken, None, &[]),
        "the gates of interface `left` cannot be used: interface `left`: the entries sum up to 1000001ns, not to the \
         cycle 1ms"
    );
    let mut without = plan.clone();
    without.gates.clear();
    without.system.network.as_mut().expect("a network").interfaces[0].gates = None;
    assert_eq!(refused(&without, None, &[]), "0 interfaces of the plan have gates: name the one of the capture");
    without.system.network = None;
    assert_eq!(PlannedPort::new(&without, None, &[]).map(drop), Err(PlanRefusal::NoNetwork));
}
