//! Interfaces with gates, and the network's work.

use std::collections::BTreeSet;

use super::judging::{cpu_words, few, mask, number, short, without};
use crate::check::{Check, Mend, Verdict};
use crate::host::{Host, Interface};
use crate::needs::Needs;

const BUDGET: &str = "/proc/sys/net/core/netdev_budget";
const BUDGET_US: &str = "/proc/sys/net/core/netdev_budget_usecs";
const RPS: &str = "/sys/class/net/*/queues/rx-*/rps_cpus";
const PACKET: &str = "/proc/net/packet";

pub(super) const CHECKS: [Check; 13] = [
    Check {
        name: "queues",
        rank: 41,
        states: "An interface with gates has more than one transmit queue.",
        why: "Frames of all classes wait in one ring, and a gate does not hold back what is in the ring.",
        source: "tc-taprio(8)",
        reads: &["/sys/class/net/*/device", "/sys/class/net/*/phy80211"],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: queues,
    },
    Check {
        name: "qdiscs",
        rank: 42,
        states: "The interfaces of the plan have the qdisc of the plan.",
        why: "Another qdisc sends frames outside of their slots.",
        source: "tc(8)",
        reads: &[],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: qdiscs,
    },
    Check {
        name: "link",
        rank: 43,
        states: "The link is up, full duplex, and its speed is known.",
        why: "taprio counts with 10 Mbit/s if it does not know the speed, and frames miss their slots.",
        source: "net/sched/sch_taprio.c",
        reads: &["/sys/class/net/*/speed", "/sys/class/net/*/duplex", "/sys/class/net/*/carrier"],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: link,
    },
    Check {
        name: "coalescing",
        rank: 45,
        states: "Interrupts of the network are not delayed.",
        why: "A frame waits in the interface until the delay is over, or until more frames have come.",
        source: "Red Hat, Optimizing RHEL for Real Time",
        reads: &[],
        is_needed: |needs| needs.network,
        judge: coalescing,
    },
    Check {
        name: "offloads",
        rank: 46,
        states: "Interfaces with gates do not join or split frames.",
        why: "A joined frame is longer than its slot.",
        source: "tc-taprio(8)",
        reads: &[],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: offloads,
    },
    Check {
        name: "energy-efficient-ethernet",
        rank: 47,
        states: "Energy-efficient Ethernet is off.",
        why: "The link sleeps between frames, and wakes up in up to 30 us.",
        source: "IEEE 802.3az; isochron",
        reads: &[],
        is_needed: |needs| needs.network,
        judge: eee,
    },
    Check {
        name: "pause-frames",
        rank: 48,
        states: "No pause frame stops a transmitter.",
        why: "A slow receiver stops all classes of its sender.",
        source: "IEEE 802.1Q; isochron",
        reads: &[],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: pause,
    },
    Check {
        name: "rings",
        rank: 49,
        states: "The transmit ring of an interface with gates is short.",
        why: "Frames in the ring have passed the gate: a long ring of ordinary frames delays the next slot.",
        source: "tc-taprio(8)",
        reads: &[],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: rings,
    },
    Check {
        name: "hardware-stamps",
        rank: 50,
        states: "Interfaces with gates have a hardware clock.",
        why: "With stamps of the software, hosts agree only to tens of microseconds.",
        source: "Documentation/networking/timestamping.rst",
        reads: &[],
        is_needed: |needs| !needs.gated.is_empty() && needs.tai.is_some(),
        judge: stamps,
    },
    Check {
        name: "packet-steering",
        rank: 54,
        states: "Received frames are not steered to CPUs of the plan.",
        why: "The work of others for the network then runs there.",
        source: "Documentation/networking/scaling.rst",
        reads: &[RPS],
        is_needed: |needs| !needs.cpus.is_empty(),
        judge: steering,
    },
    Check {
        name: "softirq-budget",
        rank: 55,
        states: "A round of the network's softirq is short.",
        why: "A task waits for the whole round: up to 2 ticks, or 300 frames.",
        source: "Documentation/admin-guide/sysctl/net.rst",
        reads: &[BUDGET, BUDGET_US],
        is_needed: |needs| needs.network,
        judge: |host, _| {
            // Less than two ticks cannot be measured, and newer kernels refuse it.
            let hz: Option<i64> = host.option("CONFIG_HZ").and_then(|hz| hz.parse().ok()).filter(|hz| *hz > 0);
            let Some(least) = hz.map(|hz| 2_000_000 / hz) else {
                return Verdict::unknown("the length of a tick is unknown");
            };
            number(host, BUDGET_US, |us| us <= least, &format!("{least} us or less, which is 2 ticks"), least)
        },
    },
    Check {
        name: "busy-polling",
        rank: 56,
        states: "Sockets do not poll their device.",
        why: "A polling task takes the CPU while it waits, and counts as running.",
        source: "Documentation/networking/napi.rst",
        reads: &["/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll"],
        is_needed: |needs| needs.network,
        judge: busy_polling,
    },
    Check {
        name: "bypassing-sockets",
        rank: 57,
        states: "No program sends past the gates of an interface.",
        why: "Frames of AF_XDP, and of packet sockets with PACKET_QDISC_BYPASS, pass no qdisc.",
        source: "packet(7); Documentation/networking/af_xdp.rst",
        reads: &[PACKET],
        is_needed: |needs| !needs.gated.is_empty(),
        judge: bypassing,
    },
];

/// Returns the interfaces of the plan with gates; without a description, those with a cable.
fn of_plan<'a>(host: &'a Host, needs: &'a Needs) -> Vec<(&'a str, &'a Interface)> {
    let is_wireless = |name: &str| host.files.contains_key(&format!("/sys/class/net/{name}/phy80211"));
    let hardware: Vec<&str> = host.hardware().into_iter().filter(|name| !is_wireless(name)).collect();
    let is_of_plan = |name: &str| match needs.is_described() {
        true => needs.gated.contains(name),
        false => hardware.contains(&name),
    };
    let found = host.interfaces.iter().filter(|(name, _)| is_of_plan(name));
    found.map(|(name, interface)| (name.as_str(), interface)).collect()
}

/// Judges each interface of the plan that has a part. `bad` returns the state and the steps, if it is bad.
pub(super) fn each<T>(
    host: &Host,
    needs: &Needs,
    part: impl Fn(&Interface) -> Option<T>,
    (expected, absent): (&str, &str),
    bad: impl Fn(&str, &T) -> Option<(String, Vec<Mend>)>,
) -> Verdict {
    if needs.is_described() && needs.gated.is_empty() {
        return Verdict::absent("the plan has no interface with gates");
    }
    let missing: Vec<&String> = needs.gated.iter().filter(|name| !host.interfaces.contains_key(*name)).collect();
    if let Some(name) = missing.first() {
        return Verdict::unknown(format!("the host has no interface {name}"));
    }
    let found = of_plan(host, needs);
    let parts: Vec<(&str, T)> = found.iter().filter_map(|(name, interface)| Some((*name, part(interface)?))).collect();
    if parts.is_empty() {
        return Verdict::absent(absent);
    }
    let (mut observed, mut mend) = (Vec::new(), Vec::new());
    for (name, part) in &parts {
        if let Some((state, steps)) = bad(name, part) {
            observed.push(format!("{}: {state}", short(name)));
            mend.extend(steps);
        }
    }
    match observed.is_empty() {
        true => Verdict::good(few(parts.iter().map(|(name, _)| short(name)).collect()).join(", ")),
        false => Verdict::bad(few(observed).join("; "), expected, mend),
    }
}

/// Makes the command of ethtool, if the name of the interface can stand in a command.
fn ethtool(name: &str, option: &str, rest: &str) -> Vec<Mend> {
    let command = || Mend::Run(format!("ethtool {option} {name} {rest}"));
    is_plain(name).then(command).into_iter().collect()
}

/// Whether the name of an interface can stand in a command.
pub(super) fn is_plain(name: &str) -> bool {
    !name.starts_with('-') && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-:@".contains(c))
}

fn queues(host: &Host, needs: &Needs) -> Verdict {
    let texts = ("two or more", "no interface tells its queues");
    each(
        host,
        needs,
        |interface| Some((interface.queues?, interface.most_queues?)),
        texts,
        |name, (queues, most)| {
            let is_bad = *queues < 2;
            is_bad.then(|| {
                let mend = match *most > 1 {
                    true => ethtool(name, "-L", "combined 2"),
                    false => vec![Mend::Change(format!("use an interface with several queues: {name} has one"))],
                };
                (format!("{queues} of {most} queues"), mend)
            })
        },
    )
}

fn qdiscs(host: &Host, needs: &Needs) -> Verdict {
    if !needs.is_described() {
        return Verdict::absent("no description names qdiscs");
    }
    let texts = ("taprio or mqprio", "no interface tells its qdisc");
    each(
        host,
        needs,
        |interface| interface.qdisc.clone(),
        texts,
        |_, kind| {
            let is_bad = !["taprio", "mqprio"].contains(&kind.as_str());
            is_bad.then(|| (short(kind), vec![Mend::Run("macrotick apply SYSTEM.yaml".into())]))
        },
    )
}

fn link(host: &Host, needs: &Needs) -> Verdict {
    let texts = ("up, full duplex, a known speed", "no interface with hardware");
    let file = |name: &str, file: &str| host.text(&format!("/sys/class/net/{name}/{file}"));
    each(
        host,
        needs,
        |_| Some(()),
        texts,
        |name, ()| {
            let (carrier, duplex) = (file(name, "carrier"), file(name, "duplex"));
            let speed = file(name, "speed").and_then(|speed| speed.parse::<i64>().ok()).filter(|speed| *speed > 0);
            let mut bad = Vec::new();
            if carrier != Some("1") {
                bad.push("no carrier".to_owned());
            }
            if duplex.is_some_and(|duplex| duplex != "full") {
                bad.push(format!("{} duplex", short(duplex.unwrap_or_default())));
            }
            if speed.is_none() {
                bad.push("the speed is unknown".into());
            }
            let mend = match (carrier, speed) {
                (Some("1"), Some(speed)) => ethtool(name, "-s", &format!("speed {speed} duplex full")),
                (Some("1"), None) => vec![Mend::Change(format!("set the speed of {} by `ethtool -s`", short(name)))],
                _ => vec![Mend::Change(format!("connect a cable to {}, or set it up", short(name)))],
            };
            (!bad.is_empty()).then(|| (bad.join(", "), mend))
        },
    )
}

fn coalescing(host: &Host, needs: &Needs) -> Verdict {
    let texts = ("0 us, not adaptive", "no driver delays interrupts");
    let needs_all = Needs { gated: if needs.network { needs.gated.clone() } else { BTreeSet::new() }, ..needs.clone() };
    each(
        host,
        &needs_all,
        |interface| interface.coalescing,
        texts,
        |name, delays| {
            let is_bad = delays.receive_us > 0 || delays.transmit_us > 0 || delays.adaptive;
            is_bad.then(|| {
                let adaptive = if delays.adaptive { ", adaptive" } else { "" };
                let state = format!("receive {} us, transmit {} us{adaptive}", delays.receive_us, delays.transmit_us);
                (state, ethtool(name, "-C", "adaptive-rx off adaptive-tx off rx-usecs 0 tx-usecs 0"))
            })
        },
    )
}

/// The features that make one frame from several, or several from one: their name, and the word of `ethtool -K`.
const JOINING: [(&str, &str); 5] = [
    ("rx-gro", "gro"),
    ("rx-lro", "lro"),
    ("tx-tcp-segmentation", "tso"),
    ("tx-generic-segmentation", "gso"),
    ("tx-udp-segmentation", "tx-udp-segmentation"),
];

fn offloads(host: &Host, needs: &Needs) -> Verdict {
    let texts = ("off", "no interface tells its features");
    each(
        host,
        needs,
        |interface| interface.features.clone(),
        texts,
        |name, features| {
            let on: Vec<&str> =
                JOINING.iter().filter(|(long, _)| features.contains(*long)).map(|(_, word)| *word).collect();
            (!on.is_empty()).then(|| {
                let words: Vec<String> = on.iter().map(|word| format!("{word} off")).collect();
                (format!("{} on", on.join(", ")), ethtool(name, "-K", &words.join(" ")))
            })
        },
    )
}

fn eee(host: &Host, needs: &Needs) -> Verdict {
    each(
        host,
        needs,
        |interface| interface.eee,
        ("off", "no interface has it"),
        |name, on| on.then(|| ("on".into(), ethtool(name, "--set-eee", "eee off"))),
    )
}

fn pause(host: &Host, needs: &Needs) -> Verdict {
    each(
        host,
        needs,
        |interface| interface.pause,
        ("off", "no interface has them"),
        |name, pause| {
            let words = match (pause.receive, pause.transmit) {
                (false, false) => return None,
                (true, true) => "both ways",
                (true, false) => "received ones count",
                (false, true) => "sent",
            };
            Some((words.into(), ethtool(name, "-A", "autoneg off rx off tx off")))
        },
    )
}

/// The longest transmit ring, in frames.
const RING: u32 = 128;

fn rings(host: &Host, needs: &Needs) -> Verdict {
    let expected = format!("at most {RING} frames");
    each(
        host,
        needs,
        |interface| interface.rings,
        (&expected, "no interface tells its rings"),
        |name, rings| {
            let is_bad = rings.transmit > RING;
            is_bad.then(|| (format!("{} frames", rings.transmit), ethtool(name, "-G", &format!("tx {RING}"))))
        },
    )
}

fn stamps(host: &Host, needs: &Needs) -> Verdict {
    let texts = ("stamps of the hardware", "no interface tells its stamps");
    each(
        host,
        needs,
        |interface| interface.stamps,
        texts,
        |name, stamps| {
            let is_bad = !stamps.hardware || stamps.clock.is_none();
            is_bad.then(|| {
                ("only stamps of the software".into(), vec![Mend::Change(format!("use another interface than {name}"))])
            })
        },
    )
}

fn steering(host: &Host, needs: &Needs) -> Verdict {
    if needs.cpus.is_empty() {
        return Verdict::absent("no description names CPUs, and none is isolated");
    }
    let found = host.matching(RPS);
    if found.is_empty() {
        return Verdict::absent("no interface has receive queues");
    }
    let to_plan = found.iter().filter(|found| mask(found.text).is_some_and(|cpus| !cpus.is_disjoint(&needs.cpus)));
    let to_plan: Vec<_> = to_plan.collect();
    if to_plan.is_empty() {
        return Verdict::good(format!("not to {}", cpu_words(&needs.cpus)));
    }
    let names = to_plan.iter().map(|found| format!("{} queue {}", short(found.parts[0]), short(found.parts[1])));
    let mend: Vec<Mend> = to_plan.iter().map(|found| Mend::write(found.path, 0)).collect();
    Verdict::bad(few(names.collect()).join(", "), "off", mend)
}

fn busy_polling(host: &Host, _: &Needs) -> Verdict {
    let paths = ["/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll"];
    let on: Vec<&str> = paths.into_iter().filter(|path| host.number(path).is_some_and(|us| us != 0)).collect();
    if paths.iter().all(|path| host.text(path).is_none()) {
        return without(host, paths[0]);
    }
    match on.is_empty() {
        true => Verdict::good("off"),
        false => {
            let mend: Vec<Mend> = on.iter().map(|path| Mend::write(path, 0)).collect();
            Verdict::bad("on", "off", mend)
        }
    }
}

fn bypassing(host: &Host, _: &Needs) -> Verdict {
    let Some(text) = host.text(PACKET) else { return without(host, PACKET) };
    match text.lines().skip(1).filter(|line| !line.trim().is_empty()).count() {
        0 => Verdict::good("no packet socket is open"),
        1 => Verdict::noted("1 packet socket is open: the kernel does not tell whether it bypasses the qdisc"),
        count => {
            Verdict::noted(format!("{count} packet sockets are open: the kernel does not tell which bypass the qdisc"))
        }
    }
}
