//! Random systems: the judge accepts the gates of the planner.

use macrotick_check::check;
use macrotick_model::SplitMix64;
use macrotick_plan::{plan, PlanError, Solver};

use crate::common::*;

/// A random system of senders, receivers, slots, links and gate threads. Each flow has a class of its own, or shares
/// it with others.
pub fn random(seed: u64, shared: bool) -> String {
    let mut random = SplitMix64::new(seed);
    let mut below = move |limit: u64| random.bits() % limit;
    let speed = ["10Mb/s", "100Mb/s", "1Gb/s", "10Gb/s"][below(4) as usize];
    let mut text = String::from("system: s\ncpus: [0, 1]\ntasks:\n");
    let senders = 1 + below(5);
    for index in 0..senders {
        let period = [1, 2, 4, 5][below(4) as usize];
        text += &format!("  - {{name: s{index}, period: {period}ms, wcet: {}us, namespace: left", 20 + below(60));
        text += [", jitter: 0us}\n", "}\n"][below(2) as usize];
        text += &format!("  - {{name: r{index}, period: {period}ms, wcet: {}us, namespace: right}}\n", 20 + below(60));
    }
    text += "groups:\n  - {name: a, budget: 100us, priority: 2}\n  - {name: b, budget: 100us, priority: 1}\n";
    text += "namespaces:\n  - {name: left, address: 10.0.0.1/24}\n  - {name: right, address: 10.0.0.2/24}\n";
    if below(2) == 0 {
        text += "clock: {tai: {period: 20ms, length: 200us, bound: 100us}}\n";
    }
    text += "network:\n  classes:\n";
    let classes = if shared { 2 } else { senders };
    for number in 0..classes {
        text += &format!("    - {{name: x{number}, priority: {}}}\n", 8 + number);
    }
    let (lead, vlan) = (["", ", lead: 15us"][below(2) as usize], ["", ", vlan: 5"][below(2) as usize]);
    text += &format!(
        "    - {{name: a, priority: 5, max-size: 100B}}\n    - {{name: b, priority: 4, max-size: 100B}}\n    - {{name: \
         rest}}\n  interfaces:\n    - {{name: left, namespace: left, speed: {speed}, gates: planned{lead}{vlan}}}\n    \
         - {{name: port, port: right, speed: {speed}, path: {}us, gates: planned, opening: {}ns}}\n  flows:\n",
        below(9),
        1 + below(3000),
    );
    for index in 0..senders {
        let (size, class) = (1 + below(1400), if shared { below(2) } else { index });
        text += &format!(
            "    - {{name: f{index}, from: s{index}, to: r{index}, size: {size}B, class: x{class}, deadline: {}us}}\n",
            3000 + below(2000)
        );
    }
    text += "  slots:\n";
    for group in ["a", "b"] {
        let (period, length) = (1 + below(4), 120 + below(300));
        text += &format!(
            "    - {{group: {group}, period: {}us, length: {length}us, interface: left}}\n",
            period * 5000 / 2
        );
    }
    text
}

/// Plans random systems, and judges each plan. Returns the numbers of plans and of refusals.
fn judged(shared: bool, change: fn(String) -> String) -> (u32, u32) {
    let (mut made, mut not) = (0, 0);
    for seed in 0..200 {
        let text = change(random(seed, shared));
        let system = described(&text);
        let plan = match plan(&system, Solver::FoldedOccupancy) {
            Ok(plan) => plan,
            Err(PlanError::Gates(_)) => {
                not += 1;
                continue;
            }
            Err(error) => panic!("{seed}: {error}\n{text}"),
        };
        made += 1;
        let verdict = check(&plan);
        assert!(verdict.is_feasible(), "{seed}: {verdict}\n{text}\n{}", macrotick_model::timeline::timeline(&plan));
    }
    (made, not)
}

#[test]
fn the_gates_of_the_planner_keep_all_rules() {
    let (made, not) = judged(false, |text| text);
    assert!(made > 100 && not > 2, "{made} made, {not} not");
}

/// A frame has to leave before the windows of other tasks, so these leave room for the thread that opens the gates.
#[test]
fn frames_with_short_deadlines_have_room_for_the_gate_thread() {
    let (made, not) = judged(false, |text| {
        let text = text.replace("10Mb/s", "1Gb/s").replace("100Mb/s", "1Gb/s").replace(", lead: 15us", "");
        let lines = text.lines().map(|line| match line.split_once("deadline: ") {
            Some((line, rest)) => {
                let number: u64 = rest.trim_end_matches("us}").parse().unwrap();
                format!("{line}deadline: {}us}}\n", 120 + (number - 3000) / 8)
            }
            None => line.replace("namespace: left, speed", "namespace: left, lead: 60us, speed") + "\n",
        });
        lines.collect()
    });
    // Without room, 60 have no place.
    assert!(made > 180 && not > 2, "{made} made, {not} not");
}

/// Frames of several senders in one class can be in another order than planned, if a sender ends early.
#[test]
fn frames_of_one_class_keep_all_rules_in_every_order() {
    let (made, not) = judged(true, |text| text);
    assert!(made > 100, "{made} made, {not} not");
}

/// Without gates on an interface, frames of all classes share the link.
#[test]
fn frames_without_gates_keep_their_deadlines() {
    for shared in [false, true] {
        let (made, not) = judged(shared, |text| {
            let at = text.find("  slots:").expect("slots");
            text[..at].replace(", gates: planned, opening", ", opening")
        });
        assert!(made > 100, "{made} made, {not} not");
    }
}

/// A flow of an express socket, also beside gate threads and other flows of its class.
#[test]
fn express_frames_keep_their_deadlines() {
    for shared in [false, true] {
        let (made, not) = judged(shared, |text| {
            let at = text.find("{name: f0, ").expect("a flow");
            let end = at + text[at..].find('}').expect("its end");
            format!("{}, express: true{}", &text[..end], &text[end..])
        });
        assert!(made > 50, "{made} made, {not} not");
    }
}
