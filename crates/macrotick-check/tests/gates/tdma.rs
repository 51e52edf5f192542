//! Slots of two containers beside bulk traffic, as in section 5.4 of the paper on real-time containers.
//!
//! The cycle has 6 ms, each slot has 1 ms, and the periods of the messages are coprime.

use macrotick_check::check;
use macrotick_check::network::capture::{Capture, PlannedPort, Settings, StrayKind};
use macrotick_check::network::placed_slots;
use macrotick_model::{Duration, Instant, Plan};

use crate::capture::{file, udp};
use crate::common::*;

const SYSTEM: &str = "system: s
groups:
  - {name: a, budget: 500us, priority: 2}
  - {name: b, budget: 500us, priority: 1}
network:
  classes: [{name: a, priority: 6}, {name: b, priority: 5}, {name: rest}]
  interfaces:
    - {name: wire, device: eth1, speed: 100Mb/s, gates: planned}
  flows:
    - {name: from-a, from: a, via: [wire], size: 64B, class: a, period: 18ms, after: 500us, deadline: 7ms}
    - {name: from-b, from: b, via: [wire], size: 64B, class: b, period: 30ms, after: 500us, deadline: 7ms}
  slots:
    - {group: a, period: 6ms, length: 1ms}
    - {group: b, period: 6ms, length: 1ms}
";

const MS: i64 = 1_000_000;
const EPOCH: i64 = 1_700_000_000_000_000_000;

fn offsets(plan: &Plan) -> [i64; 2] {
    let slots = placed_slots(plan);
    let of = |group: &str| slots.iter().find(|(_, slot)| slot.group == group).expect("a slot").1.offset.as_nanos();
    [of("a"), of("b")]
}

#[test]
fn containers_leave_in_their_slots_only() {
    let plan = planned(SYSTEM);
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}");
    assert_eq!((plan.cycle, plan.gates[0].cycle), (Duration::from_millis(90), Duration::from_millis(6)));
    assert!((verdict.interfaces[0].slots - 2.0 / 6.0).abs() < 1e-9);
    let messages: Vec<usize> = verdict.flows.iter().map(|flow| flow.messages).collect();
    assert_eq!(messages, [5, 3]);
    // Without the slots of one of them, its frames have no gate.
    let mut other = plan.clone();
    other.gates[0].entries.iter_mut().for_each(|entry| entry.open.retain(|class| class != "b"));
    let found = found(&other);
    assert!(
        found.iter().any(|text| text.starts_with("group `b` on `wire`: class `b` is not open for 1ms")),
        "{found:?}"
    );
    assert!(found.iter().any(|text| text.starts_with("flow `from-b` of `b`: the gate of class `b` on `wire` never")));
}

#[test]
fn a_capture_shows_frames_outside_of_slots() {
    let plan = planned(SYSTEM);
    let rules = ["a=udp:6001", "b=udp:6002"].map(|rule| rule.parse().expect("a rule"));
    let port = PlannedPort::new(&plan, Some("wire"), &rules).unwrap_or_else(|error| panic!("{error}"));
    let [a, b] = offsets(&plan);
    let judge = |frames: &[(i64, Vec<u8>)]| {
        let (epoch, tolerance) = (Instant::from_nanos(EPOCH), Duration::ZERO);
        let settings = Settings { epoch, interface: None, path: Duration::ZERO, tolerance };
        port.judge(Capture::new(&file(frames)).unwrap(), settings).unwrap()
    };
    // Bulk, one frame each millisecond, is there only when its gate is open.
    let gates = port.port.gates.clone().expect("gates").at(Instant::from_nanos(EPOCH));
    let bulk = (0..180).map(|number| EPOCH + number * MS + 300_000);
    let bulk = bulk.filter(|at| gates.is_open(2, Instant::from_nanos(*at)));
    let mut frames: Vec<(i64, Vec<u8>)> = bulk.map(|at| (at, udp(9, &[0; 1000]))).collect();
    frames.extend((0..10).map(|number| (EPOCH + number * 18 * MS + a, udp(6001, &[0; 36]))));
    frames.extend((0..6).map(|number| (EPOCH + number * 30 * MS + b + MS - 1, udp(6002, &[0; 36]))));
    frames.sort_by_key(|(at, _)| *at);
    let verdict = judge(&frames);
    assert!(verdict.is_clean(), "{verdict}");
    assert_eq!(verdict.classes.iter().map(|class| class.frames).collect::<Vec<_>>()[..2], [10, 6]);
    // A frame of the one in the slot of the other, and bulk in a slot.
    frames.push((EPOCH + 200 * MS + (a - 200 * MS).rem_euclid(6 * MS) + 500_000, udp(6002, &[0; 36])));
    frames.push((EPOCH + 210 * MS + (b - 210 * MS).rem_euclid(6 * MS) + 500_000, udp(9, &[0; 1000])));
    let verdict = judge(&frames);
    let counts =
        |class: usize| (verdict.classes[class].outside_slots.frames, verdict.classes[class].foreign_slots.frames);
    assert_eq!([counts(0), counts(1), counts(2)], [(0, 0), (1, 1), (0, 1)], "{verdict}");
    let foreign: Vec<_> = verdict
        .strays
        .iter()
        .filter(|stray| stray.kind == StrayKind::ForeignSlot)
        .map(|stray| stray.group.as_deref())
        .collect();
    assert_eq!(foreign, [Some("a"), Some("b")]);
}
