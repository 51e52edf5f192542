//! The rules on slots, one each. The cycle is 6 ms with slots of 1 ms, as in section 5.4 of the container paper.

use macrotick_check::network::*;
use macrotick_model::Duration;

use crate::common::*;

const MS: i64 = 1_000_000;

fn slot(group: &str, class: &str, offset: i64, length: i64) -> Slot {
    let (group, class) = (group.into(), class.into());
    Slot { group, class, period: ns(6 * MS), offset: ns(offset), length: ns(length) }
}

/// Slots of two containers, and bulk in the rest.
fn network() -> Network {
    let gates = list(&[(4 * MS, "bulk"), (MS, "one"), (MS, "two")]);
    let interface = NetworkInterface {
        name: "left".into(),
        link: Link::ethernet(100_000_000),
        classes: ["one", "two", "bulk"].map(Class::new).into(),
        gates: Some(gates),
        guard: Guard::Wire,
        gating: Gating::Link,
        slots: vec![slot("vendor-a", "one", 4 * MS, MS), slot("vendor-b", "two", 5 * MS, MS)],
    };
    let flow = |name: &str, class: &str, size, period: i64| Flow {
        name: name.into(),
        interface: "left".into(),
        class: class.into(),
        size,
        protocol: Protocol::Udp4,
        tagged: false,
        period: ns(period * MS),
        ready: Duration::ZERO,
        deadline: ns(7 * MS),
    };
    let flows = vec![flow("a", "one", 64, 18), flow("b", "two", 64, 30), flow("file", "bulk", 1000, 2)];
    Network { cycle: ns(6 * MS), interfaces: vec![interface], flows }
}

fn broken(change: impl FnOnce(&mut NetworkInterface)) -> Vec<String> {
    let mut network = network();
    change(&mut network.interfaces[0]);
    judge(&network).violations.iter().map(ToString::to_string).collect()
}

#[test]
fn two_containers_beside_bulk() {
    let verdict = judge(&network());
    assert_eq!(verdict.violations, []);
    let interface = &verdict.interfaces[0];
    assert_eq!((interface.hyperperiod, interface.classes[2].frames), (ns(90 * MS), 45));
    assert!((interface.slots - 2.0 / 6.0).abs() < 1e-12);
    // Four milliseconds, and 106 bytes and the preamble at 80 ns per byte.
    assert_eq!((verdict.flows[0].latency, verdict.flows[0].messages), (Some(ns(4 * MS + 118 * 80)), 5));
}

#[test]
fn the_sum_of_the_slots_is_at_most_the_cycle() {
    let found = broken(|interface| {
        interface.slots = vec![slot("x", "one", 0, 4 * MS), slot("y", "one", 0, 2 * MS), slot("z", "two", 5 * MS, MS)];
        interface.gates = Some(list(&[(5 * MS, "one"), (MS, "two")]));
    });
    assert!(found.contains(&"interface `left`: the slots take 7ms of a cycle of 6ms".into()), "{found:?}");
    // Exactly the cycle is possible.
    let found = broken(|interface| {
        interface.slots = vec![slot("x", "one", 0, 5 * MS), slot("y", "two", 5 * MS, MS)];
        interface.gates = Some(list(&[(5 * MS, "one"), (MS, "two")]));
    });
    assert!(found.iter().all(|text| !text.contains("slot")), "{found:?}");
}

#[test]
fn slots_do_not_overlap() {
    let found = broken(|interface| interface.slots[0].length = ns(MS + 1));
    assert_eq!(
        found[0],
        "group `vendor-a` on `left`: a slot of `vendor-b` starts at 5ms, in the slot [4ms, 5000001ns)"
    );
    // Also with different periods: 4 + 3k and 5 + 6k meet at 7 ms never, and 5 + 4k meets 5 + 6k.
    let found = broken(|interface| {
        interface.slots = vec![slot("x", "one", 0, 1), slot("y", "two", 5 * MS, 1)];
        (interface.slots[0].period, interface.slots[0].offset) = (ns(4 * MS), ns(3 * MS));
    });
    let overlap = "group `x` on `left`: a slot of `y` starts at 11ms, in the slot [11ms, 11000001ns)";
    assert!(found.iter().any(|text| text == overlap), "{found:?}");
}

#[test]
fn a_slot_is_within_its_period_and_has_a_class() {
    let found = broken(|interface| interface.slots[1].length = ns(6 * MS + 1));
    assert_eq!(
        found,
        ["group `vendor-b` on `left`: the slot at 5ms with a length of 6000001ns is not within its period of 6ms"]
    );
    // A slot can reach into its next period, and then overlaps with the slots there.
    let found = broken(|interface| {
        interface.slots[1].length = ns(2 * MS);
        interface.gates = Some(list(&[(MS, "two"), (3 * MS, "bulk"), (MS, "one"), (MS, "two")]));
    });
    assert_eq!(found, Vec::<String>::new());
    let found = broken(|interface| (interface.slots[1].length, interface.slots[0].offset) = (ns(2 * MS), ns(0)));
    assert!(found[0].starts_with("group `vendor-b` on `left`: a slot of `vendor-a` starts at 0ns, in"), "{found:?}");
    let found = broken(|interface| interface.slots[1].class = "three".into());
    assert_eq!(found, ["group `vendor-b`: interface `left` has no traffic class `three`"]);
    let found = broken(|interface| interface.slots[1].period = ns(0));
    assert_eq!(found.len(), 1);
}

#[test]
fn the_gate_of_a_slot_is_open_in_it_and_nowhere_else() {
    let found = broken(|interface| interface.slots[0].offset = ns(4 * MS - 1));
    assert!(
        found[0].starts_with("group `vendor-a` on `left`, cycle 0: the gate of `one` is not open for the whole slot"),
        "{found:?}"
    );
    let found = broken(|interface| interface.slots[0].length = ns(MS - 5));
    assert_eq!(
        found,
        ["interface `left`, cycle 0: the gate of `one` is open in [4999995ns, 5ms), outside the slots of the class"]
    );
    // A slot at every other occurrence of its window.
    let found = broken(|interface| interface.slots[0].period = ns(12 * MS));
    assert_eq!(
        found,
        ["interface `left`, cycle 1: the gate of `one` is open in [10ms, 11ms), outside the slots of the class"]
    );
}

#[test]
fn no_other_class_starts_in_a_slot() {
    let found = broken(|interface| interface.gates = Some(list(&[(4 * MS, "bulk"), (MS, "one"), (MS, "two bulk")])));
    assert_eq!(
        found,
        [
            "group `vendor-b` on `left`, cycle 0: `bulk` can start a frame at 5ms, in the slot [5ms, 6ms)",
            "flow `file` on `left`, cycle 0: a frame takes [5010400ns, 5094720ns), in the slot of group `vendor-b` at \
             5ms",
        ]
    );
    // A class that never closes, and an interface without gates.
    let found = broken(|interface| interface.gates = None);
    assert!(found.iter().any(|text| text.contains("`bulk` can start a frame at 4ms")), "{found:?}");
}

#[test]
fn no_frame_that_started_before_reaches_into_a_slot() {
    // The largest frame of 1530 bytes with a tag takes 122.4 us, and can start 1 ns before the closing.
    let found = broken(|interface| interface.guard = Guard::None);
    assert_eq!(
        found[0],
        "group `vendor-b` on `left`, cycle 0: the gate of `one` closes at 5ms, but its frames can end at 5122399ns, \
         after the start of the slot at 5ms"
    );
    assert!(found[1].contains("vendor-a` on `left`, cycle 0: the gate of `bulk` closes at 4ms"), "{found:?}");
    assert_eq!(found.len(), 2, "the other pairs are a slot apart: {found:?}");
    // The kernel without a size table counts 14 bytes of an empty frame that takes 76.
    let found = broken(|interface| interface.guard = Guard::Kernel);
    assert!(found[0].contains(&format!("can end at {}ns", 5 * MS + (76 - 14) * 80 - 1)), "{found:?}");
    // A pause of that length is enough.
    let found = broken(|interface| {
        interface.guard = Guard::Kernel;
        let pause = (76 - 14) * 80 - 1;
        interface.gates = Some(list(&[
            (4 * MS - pause, "bulk"),
            (pause, ""),
            (MS - pause, "one"),
            (pause, ""),
            (MS - pause, "two"),
            (pause, ""),
        ]));
        interface.slots[0].length = ns(MS - pause);
        interface.slots[1].length = ns(MS - pause);
    });
    assert_eq!(found, Vec::<String>::new());
    // If the qdisc decides, a burst as long as the window can come at its end.
    let found = broken(|interface| interface.gating = Gating::Qdisc);
    assert!(found.iter().any(|text| text.contains("`bulk` closes at 4ms, but its frames can end at 8ms")), "{found:?}");
}

#[test]
fn frames_of_flows_in_foreign_slots_are_named() {
    // Both containers share a gate, so that the first flow leaves in the slot of the second group.
    let mut network = network();
    network.interfaces[0].gates = Some(list(&[(4 * MS, "bulk"), (MS, "two"), (MS, "one two")]));
    network.interfaces[0].slots = vec![slot("vendor-b", "two", 4 * MS, 2 * MS)];
    let found: Vec<String> = judge(&network).violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "group `vendor-b` on `left`, cycle 0: `one` can start a frame at 5ms, in the slot [4ms, 6ms)",
            "flow `a` on `left`, cycle 0: a frame takes [5ms, 5009440ns), in the slot of group `vendor-b` at 4ms",
        ]
    );
}
