//! The wanted state of devices, as plain structs.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use macrotick_model::{Duration, GateEntry};

use super::classifier::Side;

/// The number of priorities that a map of the kernel has (`TC_QOPT_BITMASK + 1`).
pub const PRIORITIES: usize = 16;
/// The largest number of traffic classes (`TC_QOPT_MAX_QUEUE`).
pub const MAX_CLASSES: usize = 16;

/// The wanted state of one device. Everything that it does not mention stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name of the device in its namespace.
    pub device: String,
    /// The number of transmit queues (`ethtool -L`).
    pub queues: Option<u32>,
    /// The root qdisc and the qdiscs of single queues.
    pub tree: Option<Tree>,
    /// The classifiers at egress, instead of those of an earlier deployment. They set the priority of a frame before its
    /// class and queue are chosen.
    pub classifiers: Option<Vec<Classifier>>,
    /// The classifiers at ingress, likewise. They set the priority of a frame that enters this host through the device,
    /// such as the host's end of a veth. The frame keeps it until it leaves through another device.
    pub ingress: Option<Vec<Classifier>>,
    /// For a VLAN device, the value of the PCP for each priority. Other priorities keep theirs.
    pub vlan_priorities: BTreeMap<u32, u8>,
    /// Neighbours that need no address resolution.
    pub neighbours: Vec<Neighbour>,
}

impl Wanted {
    /// Returns a state that changes nothing.
    pub fn of(device: impl Into<String>) -> Wanted {
        Wanted {
            device: device.into(),
            queues: None,
            tree: None,
            classifiers: None,
            ingress: None,
            vlan_priorities: BTreeMap::new(),
            neighbours: Vec::new(),
        }
    }

    /// Returns the classifiers of each side that the state mentions.
    pub(super) fn classifiers(&self) -> impl Iterator<Item = (Side, &[Classifier])> {
        let sides = [(Side::Ingress, &self.ingress), (Side::Egress, &self.classifiers)];
        sides.into_iter().filter_map(|(side, wanted)| Some((side, wanted.as_deref()?)))
    }
}

/// A root qdisc with the qdiscs of single queues below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The root.
    pub root: Root,
    /// Its size table. Without it, gates count the bytes of a frame without what the wire adds.
    pub sizes: Option<Sizes>,
    /// The qdiscs of transmit queues, by the number of the queue from 0. A queue without one keeps the kernel's default.
    pub leaves: BTreeMap<u16, Leaf>,
}

impl Tree {
    /// Returns a root without size table and without qdiscs of queues.
    pub fn of(root: Root) -> Tree {
        Tree { root, sizes: None, leaves: BTreeMap::new() }
    }
}

/// A root qdisc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// The kernel's default, as on a device that was never configured.
    Default,
    /// Gates.
    Taprio {
        /// The gates, with the first mode to try.
        taprio: Taprio,
        /// The modes to try next, in this order, where the kernel or the device refuses one.
        else_try: Vec<Mode>,
    },
    /// Traffic classes without gates.
    Mqprio(Mapping),
    /// One queue for the whole device.
    Single(Leaf),
}

/// A qdisc of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// First in, first out.
    Pfifo {
        /// The number of frames that it holds.
        limit: u32,
    },
    /// Frames leave at the instant that their sender gave (`SO_TXTIME`).
    Etf(Etf),
    /// A credit-based shaper (802.1Qav).
    Cbs(Cbs),
}

/// The parameters of an etf qdisc. The kernel cannot change them: another etf replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Etf {
    /// The clock of the instants.
    pub clock: GateClock,
    /// The time by which a frame is handed to the device before its instant.
    pub delta: Duration,
    /// The device sends at the instant (launch time).
    pub offload: bool,
    /// The instant is a deadline: the frame may leave earlier.
    pub deadline_mode: bool,
    /// Accept frames of sockets without `SO_TXTIME`. txtime-assist needs it.
    pub skip_socket_check: bool,
}

/// The parameters of a cbs qdisc, in the units of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cbs {
    /// The rate at which credit grows while frames wait, in kbit/s.
    pub idle_slope: i32,
    /// The rate at which credit falls while a frame is sent, in kbit/s. It is negative.
    pub send_slope: i32,
    /// The largest credit, in bytes.
    pub high_credit: i32,
    /// The smallest credit, in bytes. It is negative.
    pub low_credit: i32,
    /// The device shapes.
    pub offload: bool,
}

/// A size table: it adds to the length of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes added to each frame, for example 24 for preamble, frame check sequence and gap of Ethernet.
    pub overhead: i32,
}

/// The clock of gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateClock {
    /// `CLOCK_TAI`.
    Tai,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

impl GateClock {
    /// Returns the kernel's number of the clock.
    pub fn id(self) -> libc::clockid_t {
        match self {
            GateClock::Tai => libc::CLOCK_TAI,
            GateClock::Monotonic => libc::CLOCK_MONOTONIC,
        }
    }

    /// Returns the clock with this number; `None`: gates on it are not supported here.
    pub(super) fn from_id(id: i32) -> Option<GateClock> {
        [GateClock::Tai, GateClock::Monotonic].into_iter().find(|clock| clock.id() == id)
    }

    /// Returns the name that tc uses.
    pub fn name(self) -> &'static str {
        match self {
            GateClock::Tai => "CLOCK_TAI",
            GateClock::Monotonic => "CLOCK_MONOTONIC",
        }
    }
}

/// The part that enforces the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The device (full offload). Its clock is a PTP clock, and the gates are on `CLOCK_TAI`.
    Hardware,
    /// The gate thread of a kernel with Macrotick's patches.
    Exact {
        /// The time by which the thread begins before a boundary.
        lead: Duration,
    },
    /// The qdisc of an unmodified kernel.
    Software,
    /// The qdisc sets the instant of each frame, and a device with launch time sends at it. With an etf qdisc in
    /// software, frames leave before the gate opens.
    TxtimeAssist {
        /// The time from the qdisc to the device.
        delay: Duration,
    },
}

impl Mode {
    /// Returns all tiers for a clock, best first. Hardware is there for `CLOCK_TAI` only.
    pub fn best(clock: GateClock, lead: Duration) -> Vec<Mode> {
        let hardware = (clock == GateClock::Tai).then_some(Mode::Hardware);
        hardware.into_iter().chain([Mode::Exact { lead }, Mode::Software]).collect()
    }

    /// Returns the name of the tier.
    pub fn tier(self) -> &'static str {
        match self {
            Mode::Hardware => "hardware",
            Mode::Exact { .. } => "exact",
            Mode::Software => "software",
            Mode::TxtimeAssist { .. } => "txtime-assist",
        }
    }
}

/// A gate list of a device with its traffic classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taprio {
    /// The part that enforces the gates.
    pub mode: Mode,
    /// The clock of the base time.
    pub clock: GateClock,
    /// The instant on the clock at which entry 0 starts in some cycle, in nanoseconds. The kernel winds a past instant
    /// forward by whole cycles. If a gate list runs already, it switches to this one at this instant.
    pub base_time: i64,
    /// The sum of the entries' lengths, at most 2147483647 ns.
    pub cycle: Duration,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The traffic classes.
    pub mapping: Mapping,
    /// For each class, the largest frame in bytes without its link header; 0, or a missing class: no limit.
    pub max_sdu: Vec<u32>,
}

/// An entry of a gate list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its length.
    pub length: Duration,
    /// The open classes: bit N is class N.
    pub open: u32,
}

/// Returns the entries of a gate list of a plan. `classes` are the names of the traffic classes in the order of their
/// numbers. Fails with the name of an unknown class.
pub fn entries(list: &[GateEntry], classes: &[&str]) -> Result<Vec<Entry>, String> {
    let number = |name: &String| classes.iter().position(|class| class == name).ok_or_else(|| name.clone());
    let entry = |entry: &GateEntry| {
        let open = entry.open.iter().try_fold(0, |open, name| Ok::<u32, String>(open | bit(number(name)?)));
        Ok(Entry { length: entry.length, open: open? })
    };
    list.iter().map(entry).collect()
}

/// Returns the bit of a class. A number beyond the mask has none, and the check of the classes refuses it.
fn bit(class: usize) -> u32 {
    1_u32.checked_shl(class as u32).unwrap_or(0)
}

/// The traffic classes of a device: from the priority of a frame to a class, and from a class to its queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The class of each priority. The kernel uses the last four bits of a priority.
    pub classes: [u8; PRIORITIES],
    /// The queues of each class. Its length is the number of classes.
    pub queues: Vec<Queues>,
}

impl Mapping {
    /// Maps each class to one queue of the same number. `priorities` are pairs of priority and class; other priorities
    /// have the last class.
    pub fn one_queue_each(count: u16, priorities: &[(u8, u8)]) -> Mapping {
        let mut classes = [count.saturating_sub(1) as u8; PRIORITIES];
        for (priority, class) in priorities {
            classes[usize::from(*priority) % PRIORITIES] = *class;
        }
        Mapping { classes, queues: (0..count).map(|offset| Queues { count: 1, offset }).collect() }
    }

    /// Returns the number of transmit queues that the map needs.
    pub fn needed_queues(&self) -> u32 {
        self.queues.iter().map(|queues| u32::from(queues.offset) + u32::from(queues.count)).max().unwrap_or(0)
    }
}

/// The queues of a class: `count` queues from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queues {
    /// The number of queues.
    pub count: u16,
    /// The first queue.
    pub offset: u16,
}

/// Gives frames a priority. The first classifier that matches decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classifier {
    /// The matching frames.
    pub frames: Frames,
    /// Their priority (`skb->priority`).
    pub priority: u32,
}

/// The frames that match a classifier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    /// Frames with a VLAN tag of this PCP. The other fields must be empty.
    pub pcp: Option<u8>,
    /// IPv4 with this protocol.
    pub protocol: Option<Protocol>,
    /// IPv4 from this address.
    pub source: Option<Ipv4Addr>,
    /// IPv4 to this address.
    pub destination: Option<Ipv4Addr>,
    /// To this port. It needs `protocol`.
    pub port: Option<u16>,
    /// IPv4 with this code point (DSCP), from 0 to 63.
    pub code_point: Option<u8>,
}

/// A protocol above IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// A neighbour with a permanent hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its hardware address.
    pub hardware: [u8; 6],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_the_plan() {
        let us = |us: i64| Duration::from_nanos(us * 1000);
        let list = [
            GateEntry { length: us(700), open: vec!["rest".into()] },
            GateEntry { length: us(300), open: vec!["control".into(), "rest".into()] },
        ];
        let found = entries(&list, &["control", "rest"]);
        assert_eq!(found, Ok(vec![Entry { length: us(700), open: 2 }, Entry { length: us(300), open: 3 }]));
        assert_eq!(entries(&list, &["rest"]), Err("control".into()));
    }

    #[test]
    fn a_map_needs_the_queues_of_all_classes() {
        let map = Mapping::one_queue_each(3, &[(6, 0), (5, 1)]);
        assert_eq!(map.needed_queues(), 3);
        assert_eq!(map.classes, [2, 2, 2, 2, 2, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn hardware_gates_are_on_tai_only() {
        let lead = Duration::from_nanos(60_000);
        let tiers = |clock| Mode::best(clock, lead).into_iter().map(Mode::tier).collect::<Vec<_>>();
        assert_eq!(tiers(GateClock::Tai), ["hardware", "exact", "software"]);
        assert_eq!(tiers(GateClock::Monotonic), ["exact", "software"]);
    }
}
