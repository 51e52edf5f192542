//! The frames of flows: their lengths, their priorities and their receivers.

use std::net::Ipv4Addr;

use super::judging::{few, short};
use super::network;
use crate::check::{Check, Mend, Verdict};
use crate::host::{Host, Interface, Neighbour};
use crate::needs::{Needs, Vlan};

pub(super) const CHECKS: [Check; 4] = [
    Check {
        name: "size-table",
        rank: 44,
        states: "The gates of an interface know the length of a frame on the wire.",
        why: "Without a size table, taprio does not count preamble, gap and check sequence: the last frame of a slot ends after it.",
        source: "tc-stab(8); net/sched/sch_taprio.c",
        reads: &[],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: size_table,
    },
    Check {
        name: "vlan-priorities",
        rank: 51,
        states: "The frames of a VLAN carry the priorities of the plan.",
        why: "Switches on the way take frames for those of another class, and delay them.",
        source: "ip-link(8), egress-qos-map; IEEE 802.1Q",
        reads: &[],
        is_needed: |needs| !needs.vlans.is_empty(),
        judge: vlan_priorities,
    },
    Check {
        name: "classifiers",
        rank: 52,
        states: "Frames have their priorities again after they left their namespace.",
        why: "A frame loses its priority where it crosses a veth, and leaves in the slot of another class.",
        source: "net/core/dev.c; tc-skbedit(8)",
        reads: &[],
        is_needed: |needs| !needs.classified.is_empty(),
        judge: classifiers,
    },
    Check {
        name: "neighbours",
        rank: 53,
        states: "The hardware address of each receiver is permanent.",
        why: "Otherwise the host asks for it again at times: the frame waits for the answer, 36 us and more.",
        source: "ip-neighbour(8)",
        reads: &[],
        is_needed: |needs| !needs.receivers.is_empty(),
        judge: neighbours,
    },
];

/// The command that sets up the interfaces of a plan.
const APPLY: &str = "macrotick apply SYSTEM.yaml";

fn apply() -> Vec<Mend> {
    vec![Mend::Run(APPLY.into())]
}

fn size_table(host: &Host, needs: &Needs) -> Verdict {
    network::each(
        host,
        needs,
        |interface| interface.size_table.filter(|_| interface.qdisc.as_deref() == Some("taprio")),
        ("a size table", "no interface has taprio"),
        |_, has_one| (!has_one).then(|| ("no size table".into(), apply())),
    )
}

/// Judges parts of a plan. `bad` returns the state of one and the steps, if it is bad.
fn all<T>(
    parts: impl Iterator<Item = T>,
    name: impl Fn(&T) -> String,
    (expected, absent): (&str, &str),
    bad: impl Fn(&T) -> Result<Option<(String, Vec<Mend>)>, String>,
) -> Verdict {
    let (mut good, mut observed, mut mend) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match bad(&part) {
            Err(unknown) => return Verdict::unknown(unknown),
            Ok(None) => good.push(name(&part)),
            Ok(Some((state, steps))) => {
                observed.push(format!("{}: {state}", name(&part)));
                mend.extend(steps.into_iter().filter(|step| !mend.contains(step)).collect::<Vec<_>>());
            }
        }
    }
    match (observed.is_empty(), good.is_empty()) {
        (false, _) => Verdict::bad(few(observed).join("; "), expected, mend),
        (true, false) => Verdict::good(few(good).join(", ")),
        (true, true) => Verdict::absent(absent),
    }
}

fn interface<'h>(host: &'h Host, name: &str) -> Result<&'h Interface, String> {
    host.interfaces.get(name).ok_or_else(|| format!("the host has no interface {}", short(name)))
}

fn vlan_priorities(host: &Host, needs: &Needs) -> Verdict {
    let device = |vlan: &&Vlan| {
        let is_it = |interface: &&Interface| {
            let found = interface.vlan.as_ref();
            found.is_some_and(|found| found.number == vlan.number && found.below.as_deref() == Some(&vlan.below))
        };
        host.interfaces
            .values()
            .find(is_it)
            .ok_or_else(|| format!("{} has no VLAN {}", short(&vlan.below), vlan.number))
    };
    all(
        needs.vlans.iter(),
        |vlan| format!("{} VLAN {}", short(&vlan.below), vlan.number),
        ("the PCP of the plan", "no interface of the plan has a VLAN"),
        |vlan| {
            let map = device(vlan)?.vlan.as_ref().map(|found| &found.code_points);
            let set = |priority: u8| map.and_then(|map| map.get(&u32::from(priority))).copied().unwrap_or(0);
            let wrong = vlan.code_points.iter().filter(|(priority, code_point)| set(**priority) != **code_point);
            let wrong: Vec<String> = wrong
                .map(|(priority, code_point)| {
                    format!("priority {priority} has PCP {}, not {code_point}", set(*priority))
                })
                .collect();
            Ok((!wrong.is_empty()).then(|| (few(wrong).join(", "), apply())))
        },
    )
}

fn classifiers(host: &Host, needs: &Needs) -> Verdict {
    all(
        needs.classified.iter(),
        |(device, _)| short(device),
        ("a classifier for each priority", "no frame of the plan leaves its namespace"),
        |(device, wanted)| {
            let Some(found) = &interface(host, device)?.priorities else {
                return Err(format!("{} does not tell its filters", short(device)));
            };
            let lacking = wanted.iter().filter(|priority| !found.contains(&u32::from(**priority)));
            let lacking: Vec<String> = lacking.map(u8::to_string).collect();
            Ok((!lacking.is_empty()).then(|| (format!("no classifier gives priority {}", lacking.join(", ")), apply())))
        },
    )
}

fn neighbours(host: &Host, needs: &Needs) -> Verdict {
    let known = |address: &Ipv4Addr| {
        host.interfaces.iter().find_map(|(name, interface)| {
            Some((name.as_str(), interface.neighbours.as_ref()?.get(&address.to_string())?))
        })
    };
    if !needs.receivers.is_empty() && host.interfaces.values().all(|interface| interface.neighbours.is_none()) {
        return Verdict::unknown("no interface tells its neighbours");
    }
    all(
        needs.receivers.iter(),
        |address| address.to_string(),
        ("permanent", "no flow leaves the host to an address that the description names"),
        |address| {
            Ok(match known(address) {
                Some((_, Neighbour { permanent: true, .. })) => None,
                Some((device, neighbour)) => {
                    Some(("learned, and forgotten again".into(), keep(address, neighbour, device)))
                }
                None => {
                    let command = format!("ip neighbour replace {address} lladdr MAC dev DEVICE nud permanent");
                    Some(("unknown".into(), vec![Mend::Change(format!("with the MAC of the receiver: {command}"))]))
                }
            })
        },
    )
}

/// Makes the command that keeps a neighbour, if its parts can stand in a command.
fn keep(address: &Ipv4Addr, neighbour: &Neighbour, device: &str) -> Vec<Mend> {
    let is_hardware = neighbour.hardware.chars().all(|c| c.is_ascii_hexdigit() || c == ':');
    let plain = is_hardware && network::is_plain(device);
    let hardware = &neighbour.hardware;
    let command = || Mend::Run(format!("ip neighbour replace {address} lladdr {hardware} dev {device} nud permanent"));
    plain.then(command).into_iter().collect()
}
