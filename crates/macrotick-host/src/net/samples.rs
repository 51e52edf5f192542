//! Wanted states for tests.

use macrotick_model::Duration;

use super::link::Link;
use super::present::Present;
use super::wanted::{Cbs, Entry, Etf, Frames, GateClock, Mapping, Mode, Neighbour, Protocol, Taprio};

pub(super) fn taprio() -> Taprio {
    let entry = |us: i64, open| Entry { length: Duration::from_nanos(us * 1000), open };
    Taprio {
        mode: Mode::Software,
        clock: GateClock::Tai,
        base_time: 1_000_000_000_000,
        cycle: Duration::from_millis(1),
        entries: vec![entry(700, 2), entry(300, 1)],
        mapping: Mapping::one_queue_each(2, &[(6, 0)]),
        max_sdu: Vec::new(),
    }
}

pub(super) fn etf() -> Etf {
    Etf {
        clock: GateClock::Tai,
        delta: Duration::from_nanos(300_000),
        offload: true,
        deadline_mode: false,
        skip_socket_check: true,
    }
}

pub(super) fn cbs() -> Cbs {
    Cbs { idle_slope: 98_688, send_slope: -901_312, high_credit: 153, low_credit: -1389, offload: false }
}

pub(super) fn frames() -> Frames {
    Frames {
        pcp: None,
        protocol: Some(Protocol::Udp),
        source: Some([10, 0, 0, 1].into()),
        destination: Some([10, 0, 0, 2].into()),
        port: Some(4000),
        code_point: Some(46),
    }
}

pub(super) fn neighbour() -> Neighbour {
    Neighbour { address: [10, 0, 0, 2].into(), hardware: [2, 0, 0, 0, 0, 1] }
}

/// A veth with four queues that was never configured.
pub(super) fn present() -> Present {
    let link = Link { index: 3, kind: "veth".into(), tx_queues: 4, mtu: 1500, vlan_priorities: None };
    Present { link, qdiscs: Vec::new(), filters: Vec::new(), neighbours: Vec::new(), channels: None }
}
