//! The texts of the judge of gates, in `golden/violations.txt`. `MACROTICK_BLESS=1` writes them again.

use std::fmt::Write as _;
use std::path::Path;

use macrotick_check::check;
use macrotick_model::{Duration, GateEntry, GroupThread, Plan, Size};

use crate::common::*;

/// A sensor, a controller, a camera, and a container with a slot.
const SYSTEM: &str = "system: s
cpus: [0, 1]
clock: {tai: {period: 2ms, length: 200us, bound: 100us}}
tasks:
  - {name: sensor, period: 1ms, wcet: 100us, offset: 0us, jitter: 0us, namespace: left}
  - {name: camera, period: 2ms, wcet: 200us, offset: 500us, jitter: 0us, namespace: left, cpu: 1}
  - {name: control, period: 1ms, wcet: 100us, offset: 300us, jitter: 0us, namespace: right}
groups:
  - {name: guest, budget: 100us, priority: 1}
namespaces:
  - {name: left, address: 10.0.0.1/24}
  - {name: right, address: 10.0.0.2/24}
network:
  classes:
    - {name: control, priority: 6}
    - {name: video, priority: 5}
    - {name: guest, priority: 4}
    - {name: rest}
  interfaces:
    - {name: left, namespace: left, speed: 1Gb/s, gates: planned, lead: 20us}
    - {name: port, port: right, speed: 1Gb/s, path: 5us, gates: planned}
    - {name: wire, device: eth1, speed: 1Gb/s}
  flows:
    - {name: setpoint, from: sensor, to: control, size: 64B, class: control, deadline: 150us}
    - {name: image, from: camera, size: 1400B, class: video, deadline: 300us, via: [left, wire]}
  slots:
    - {group: guest, period: 2ms, length: 100us, interface: left}
";

type Change = fn(&mut Plan);

fn entry<'a>(plan: &'a mut Plan, list: usize, open: &str) -> &'a mut GateEntry {
    plan.gates[list].entries.iter_mut().find(|entry| entry.open == [open]).expect("an entry")
}

fn network(plan: &mut Plan) -> &mut macrotick_model::Network {
    plan.system.network.as_mut().expect("a network")
}

/// Each case with its title.
const CASES: [(&str, Change); 25] = [
    ("an entry that is longer", |plan| plan.gates[0].entries[0].length += ns(1)),
    ("a class that is none", |plan| plan.gates[0].entries[0].open.push("vidoe".into())),
    ("no entries", |plan| plan.gates[1].entries.clear()),
    ("no list", |plan| drop(plan.gates.remove(1))),
    ("two lists", |plan| plan.gates.push(plan.gates[0].clone())),
    ("a list of an interface that is none", |plan| plan.gates[1].interface = "other".into()),
    ("a list of an interface without gates", |plan| plan.gates[1].interface = "wire".into()),
    ("another list than the one by hand", |plan| {
        let mut entries = plan.gates[1].entries.clone();
        entries[0].open.pop();
        network(plan).interfaces[1].gates = Some(macrotick_model::Gates::Given(entries));
    }),
    ("a gate that never opens", |plan| entry(plan, 0, "video").open.clear()),
    ("a gate that is open too short", |plan| network(plan).interfaces[0].opening = us(60)),
    ("a frame that is too long for its class", |plan| network(plan).classes[1].max_size = Size::from_bytes(1000)),
    ("a deadline before the arrival", |plan| network(plan).flows[0].deadline = us(30)),
    ("a receiver that starts before the arrival", |plan| {
        let mut windows = plan.tables.iter_mut().flat_map(|table| &mut table.windows);
        windows.find(|window| window.task == "control").expect("a window").offset = us(110);
    }),
    ("a gate that opens too rarely", |plan| entry(plan, 1, "control").open.clear()),
    ("flows that pass each other in a queue", |plan| {
        let network = network(plan);
        network.flows[1].class = "control".into();
        for list in &mut plan.gates {
            list.entries.iter_mut().for_each(|entry| {
                entry.open.iter_mut().for_each(|class| {
                    if class == "video" {
                        *class = "control".into();
                    }
                })
            });
        }
        // The camera starts before the sensor, and needs longer.
        let mut windows = plan.tables.iter_mut().flat_map(|table| &mut table.windows);
        let camera = windows.find(|window| window.task == "camera").expect("a window");
        (camera.offset, camera.length) = (us(0), us(700));
    }),
    ("another class that is open, too", |plan| entry(plan, 0, "control").open.push("rest".into())),
    ("no guard band", |plan| {
        let list = &mut plan.gates[1].entries;
        list.iter_mut().filter(|entry| entry.open.is_empty()).for_each(|entry| entry.open = vec!["rest".into()]);
    }),
    ("no time for the class sync", |plan| entry(plan, 0, "sync").open.clear()),
    ("no place for a slot", |plan| entry(plan, 0, "guest").open.clear()),
    ("a slot that is longer in the list", |plan| network(plan).slots[0].length = us(70)),
    ("a slot at another place", |plan| network(plan).slots[0].offset = Some(us(1_234))),
    ("slots that are longer than the cycle", |plan| {
        let mut other = network(plan).slots[0].clone();
        other.length = us(1_950);
        network(plan).slots.push(other);
        network(plan).slots.iter_mut().for_each(|slot| slot.offset = Some(Duration::ZERO));
    }),
    ("no group for the gate thread", |plan| {
        let gate = |group: &macrotick_model::Group| group.kernel_threads != [GroupThread::Gate("left".into())];
        plan.system.groups.retain(gate);
        plan.tables.iter_mut().for_each(|table| table.windows.retain(|window| window.task != "gate-left"));
    }),
    ("a gate thread with a shorter window", |plan| {
        let mut windows = plan.tables.iter_mut().flat_map(|table| &mut table.windows);
        windows.find(|window| window.task == "gate-left").expect("a window").length -= us(3);
    }),
    ("a gate thread on another CPU", |plan| network(plan).interfaces[0].cpu = Some(1)),
];

#[test]
fn violations_read_as_recorded() {
    let good = planned(SYSTEM);
    let mut text =
        format!("# the plan\n{}\n# its verdict\n{}", macrotick_model::timeline::timeline(&good), check(&good));
    for (title, change) in CASES {
        let mut plan = good.clone();
        change(&mut plan);
        let found = found(&plan);
        assert!(!found.is_empty(), "{title}");
        let _ = write!(text, "\n# {title}\n{}\n", found.join("\n"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gates/golden/violations.txt");
    if std::env::var_os("MACROTICK_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &text).expect("a writable file");
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == recorded, "differs from {}:\n{text}", path.display());
}
