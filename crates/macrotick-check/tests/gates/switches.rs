//! Many flows over a line of switches: the judge accepts the gates of the planner.

use macrotick_check::check;
use macrotick_model::{Plan, SplitMix64};
use macrotick_plan::{plan, Solver};

use crate::common::*;

const SWITCHES: u64 = 8;
const HOSTS: u64 = 2 * SWITCHES;

/// A random system of hosts at a line of switches, and of flows between them. `more` has further keys of each interface.
fn line(seed: u64, flows: u64, more: &str) -> String {
    let mut random = SplitMix64::new(seed);
    let mut below = move |limit: u64| random.bits() % limit;
    let (mut tasks, mut all) = (String::new(), String::new());
    let mut interfaces: Vec<String> = Vec::new();
    for flow in 0..flows {
        let from = below(HOSTS);
        let to = (from + 1 + below(HOSTS - 1)) % HOSTS;
        let period = [1, 2, 4, 8][below(4) as usize];
        tasks += &format!("  - {{name: t{flow}, cpu: {from}, period: {period}ms, wcet: {}us}}\n", 10 + below(20));
        let (first, last) = (from / 2, to / 2);
        let mut way = vec![(format!("h{from}"), format!("device: eth0, host: h{from}"))];
        let mut at = first;
        while at != last {
            let next = if last > at { at + 1 } else { at - 1 };
            way.push((format!("s{at}-s{next}"), format!("switch: s{at}")));
            at = next;
        }
        way.push((format!("s{last}-h{to}"), format!("switch: s{last}")));
        let names: Vec<&str> = way.iter().map(|(name, _)| name.as_str()).collect();
        all += &format!(
            "    - {{name: f{flow}, from: t{flow}, size: {}B, class: c, deadline: {period}ms, via: [{}]}}\n",
            46 + below(1455),
            names.join(", ")
        );
        let keys = "speed: 1Gb/s, gates: planned, delay: 3us";
        interfaces.extend(way.iter().map(|(name, end)| format!("    - {{name: {name}, {end}, {keys}{more}}}\n")));
    }
    interfaces.sort();
    interfaces.dedup();
    let hosts: String = (0..HOSTS).map(|host| format!("  - {{name: h{host}, cpus: [{host}]}}\n")).collect();
    format!(
        "system: s\nclock: {{tai: {{period: 8ms, length: 200us, bound: 20us}}}}\nhosts:\n{hosts}tasks:\n{tasks}network:\n  \
         classes: [{{name: c, priority: 6}}, {{name: rest}}]\n  interfaces:\n{}  flows:\n{all}",
        interfaces.concat()
    )
}

fn planned(text: &str) -> Option<Plan> {
    let plan = plan(&described(text), Solver::FoldedOccupancy).ok()?;
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}\n{text}");
    Some(plan)
}

/// Many senders would end at the same instant otherwise, and their frames would wait for each other.
#[test]
fn senders_end_when_links_are_free() {
    let systems = (0..12).map(|seed| line(seed, 90, ""));
    let made = systems.filter(|text| planned(text).is_some()).count();
    assert!(made >= 11, "{made}");
}

#[test]
fn gate_lists_are_as_short_as_their_devices_demand() {
    for most in [8, 16, 64] {
        for seed in 0..4 {
            let text = line(seed, 40, &format!(", entries: {most}"));
            let plan = planned(&text).unwrap_or_else(|| panic!("{most}, {seed}"));
            let longest = plan.gates.iter().map(|list| list.entries.len()).max();
            assert!(longest <= Some(most), "{most}, {seed}: {longest:?}");
        }
    }
}
