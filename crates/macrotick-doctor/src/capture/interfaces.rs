//! Reads the network interfaces.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;

use macrotick_host::net::{describe, Described, Netlink};

use crate::host::{Coalescing, Interface, Neighbour, Pause, Rings, Stamps, VlanState};

/// Returns the interfaces of this network namespace, without the loopback.
pub(super) fn read() -> BTreeMap<String, Interface> {
    let Ok(mut netlink) = Netlink::open() else { return BTreeMap::new() };
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name != "lo");
    let known = names.filter_map(|name| Some((name.clone(), interface(describe(&mut netlink, &name).ok()?))));
    known.collect()
}

fn interface(found: Described) -> Interface {
    Interface {
        qdisc: found.qdisc,
        queues: found.queues.map(|(queues, _)| queues),
        most_queues: found.queues.map(|(_, most)| most),
        coalescing: found.coalescing.map(|(receive_us, transmit_us, adaptive)| Coalescing {
            receive_us,
            transmit_us,
            adaptive,
        }),
        features: found.features,
        eee: found.eee,
        pause: found.pause.map(|(receive, transmit)| Pause { receive, transmit }),
        rings: found.rings.map(|(transmit, receive)| Rings { transmit, receive }),
        stamps: found.stamps.map(|(hardware, clock)| Stamps { hardware, clock }),
        size_table: found.has_sizes,
        vlan: found.vlan.map(|(number, below, code_points)| VlanState { number, below, code_points }),
        priorities: found.priorities,
        neighbours: found.neighbours.map(|all| {
            let one = |(address, hardware, permanent): (Ipv4Addr, String, bool)| {
                (address.to_string(), Neighbour { hardware, permanent })
            };
            all.into_iter().map(one).collect()
        }),
    }
}
