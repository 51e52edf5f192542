//! The network: traffic classes, interfaces with gates, flows and slots.

use std::collections::BTreeMap;

use super::gates::Gates;
use super::{MAX_LONG_NAME, MAX_NAME};
use crate::gates::GateList;
use crate::keys::{forms, object, Field, Kind};
use crate::time::Duration;
use crate::units::{Size, Speed};
use crate::validate::MAX_CYCLE;

object! {
    /// The network of the system, on the epoch and the cycle of the tables.
    pub struct Network: "`network`" {
        "classes" classes: Vec<TrafficClass>, required
            = "The [traffic classes](#traffic-classes), from the most to the least important one. At most 16, counted together with `sync`.";
        "sync" sync: Option<SyncClass>, optional "see [The class `sync`](#the-class-sync)"
            = "The class for clock synchronisation. Only with `clock: {tai: ...}`.";
        "interfaces" interfaces: Vec<Interface>, optional "none" = "The [interfaces](#interfaces) that send frames.";
        "flows" flows: Vec<Flow>, optional "none" = "The [flows](#flows): messages with a deadline.";
        "slots" slots: Vec<Slot>, optional "none" = "The [slots](#slots) of groups.";
    }
}

object! {
    /// A traffic class of frames.
    #[derive(Eq)]
    pub struct TrafficClass: "a class" {
        "name" name: String [Kind::Name { most: MAX_NAME }], required = "The unique name of the class, other than `sync`.";
        "priority" priority: Option<u8> [TrafficClass::PRIORITY], optional "all others, for the last class"
            = "Priority of its frames (`SO_PRIORITY`), unique among classes. Required, except for the last class, which takes the frames of all other priorities.";
        "pcp" pcp: Option<u8> [TrafficClass::PCP], optional "the priority, or 0 if it is greater than 7"
            = "Priority code point of its frames in a VLAN.";
        "max-size" max_size: Size, or "`1500B`" { Size::from_bytes(1500) }
            = "The longest payload of its frames. Before the gate of another class, this class is closed for the time of such a frame.";
        "rate" rate: Option<Speed>, optional "as much as the link has"
            = "The speed that its frames have at most: a [shaper](#shaped-classes) spreads them. Below the speed of each interface, and not for the class of a flow or a slot.";
        "queues" queues: u32 [Kind::Integer { least: 1, most: Network::MAX_QUEUES as i64 }], or "1" { 1 }
            = "Number of transmit queues for its frames on each interface, so that several CPUs can send at once, except through gates in software. Several ones do not keep the order of frames: not for the class of a flow or a slot, and not with `rate`.";
    }
}

object! {
    /// The class for clock synchronisation. It is the most important class, and its name is `sync`.
    #[derive(Copy, Eq)]
    pub struct SyncClass: "`sync`" {
        "priority" priority: u8 [TrafficClass::PRIORITY], or "the highest from 7 on down that no class has" { SyncClass::UNSAID }
            = "Priority of its frames (`SO_PRIORITY`), unique among classes.";
        "size" size: Size, or "`128B`" { Size::from_bytes(128) } = "The longest payload of its frames.";
        "frames" frames: u32 [Kind::Integer { least: 1, most: 1000 }], or "8" { 8 }
            = "Number of such frames that fit into its slot.";
    }
}

object! {
    /// An interface that sends frames.
    pub struct Interface: "an interface" {
        flat end: InterfaceEnd, required = "The device.";
        "name" name: String [Kind::Name { most: MAX_NAME }], required = "The unique name of the interface.";
        "host" host: Option<String> [Kind::Text("host")], optional "that of its CPU; not with `namespace`, `port` or `switch`" = "The name of its [host](#hosts).";
        "speed" speed: Option<Speed>, optional "`10Gb/s`; required with `device` and `switch`"
            = "Speed of the link, as in `/sys/class/net/DEVICE/speed`: from 1 Mb/s to 400 Gb/s.";
        "vlan" vlan: Option<u32> [Kind::Integer { least: 1, most: 4094 }], optional "none"
            = "The VLAN of its frames. A tag makes a frame 4 bytes longer.";
        "gates" gates: Option<Gates>, optional "all gates are always open" = "The [gates](#gates).";
        "entries" entries: Option<u32> [Interface::ENTRIES], optional "`400`"
            = "The most intervals of its gate list, see [Short gate lists](#short-gate-lists). More than 400 only with `switch`. Only with `gates`.";
        "path" path: Duration [Interface::PATH], or "`0us`" { Duration::ZERO }
            = "Constant time that a frame takes to the queue of the interface. Its gate opens that much after the frame is ready.";
        "delay" delay: Duration [Interface::PATH], or "`0us`" { Duration::ZERO }
            = "Longest time from the end of a frame on the link until the next interface or the receiver has it: cable, switch and reception.";
        "opening" opening: Duration [Interface::OPENING], or "`2us`" { Duration::from_micros(2) }
            = "Longest time from the instant at which a gate opens until the first frame starts. The gate stays open that much longer than its frames take.";
        "lead" lead: Option<Duration> [Interface::LEAD], optional "none"
            = "With a lead, the kernel thread `gate/INTERFACE` begins to open a gate this much before its instant, see [Gate threads](#gate-threads). Only with `gates: planned`.";
        "cpu" cpu: Option<u32> [Kind::Cpu], optional "that of the first sender" = "The CPU of that thread, one of `cpus`. Only with `lead`.";
    }
}

forms! {
    /// The end of a link that sends the frames.
    #[derive(Eq)]
    pub enum InterfaceEnd: "an end of a link" {
        key "namespace" Namespace: String = "The interface `eth0` of this [namespace](#namespaces). It sends the frames that leave the namespace.";
        key "port" Port: String = "The host's end, a port of the bridge. It sends the frames to this [namespace](#namespaces).";
        key "device" Device: String [Kind::Text("device")] = "A network device of the host, such as `eth1`.";
        key "switch" Switch: String [Kind::Text("switch")] = "A port of this switch. Macrotick plans its gates, and something else sets them up.";
    }
}

object! {
    /// A message of a task or of a group, with a deadline.
    #[derive(Eq)]
    pub struct Flow: "a flow" {
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "The name of the flow, unique among flows.";
        "from" from: String [Kind::Text("task or group")], required = "The sender: a task with windows, or a group.";
        "to" to: Option<String> [Kind::Text("task or group")], optional "a receiver outside the system"
            = "The receiver: a task or a group. A frame arrives before the next window of a task.";
        "via" via: Vec<String> [Kind::List(&Kind::Text("interfaces"))], optional "the interfaces that the namespaces of both ends give"
            = "The names of the interfaces that send the frame, in order.";
        "size" size: Size, required = "Payload of the frame: an IP packet with its headers.";
        "class" class: String [Kind::Text("class")], required = "The name of its traffic class.";
        "deadline" deadline: Duration [Flow::DEADLINE], required
            = "Longest time from the instant at which the frame is ready until the last interface has sent it, with the `delay` of that interface.";
        "after" after: Option<Duration> [NOT_NEGATIVE], optional "the end of the sender's windows"
            = "The instant at which the frame is ready, counted from the start of the sender's job. For a group it counts from the start of the period.";
        "period" period: Option<Duration>, optional "the period of the sender"
            = "Interval between two frames, counted from the epoch. Only for a group, and required without `windows`.";
        "express" express: bool, optional "`false`"
            = "Whether the sender uses a socket that passes no gate of its interface, see [Sockets that pass no gate](#sockets-that-pass-no-gate).";
    }
}

object! {
    /// The slots of a group on an interface (TDMA): the frames of the group leave in them, and no other frames.
    #[derive(Eq)]
    pub struct Slot: "a slot" {
        "group" group: String [Kind::Text("group")], required = "The name of the group.";
        "class" class: String [Kind::Text("class")], or "the name of the group" { group.clone() }
            = "The traffic class of the group's frames. No other frames have this class on the interface.";
        "interface" interface: Option<String> [Kind::Text("interface")], optional "the only one with planned gates"
            = "The name of the interface.";
        "period" period: Duration, required = "Interval between two slots. The cycle is a multiple of it.";
        "length" length: Duration, required = "Length of a slot, at most the period.";
        "offset" offset: Option<Duration> [NOT_NEGATIVE], optional "the planner chooses" = "Start of the slot within the period.";
    }
}

const NOT_NEGATIVE: Kind = Kind::Time { least: Duration::ZERO, most: Duration::from_nanos(i64::MAX) };

impl TrafficClass {
    /// The priorities that a queueing discipline can map to a class (`TC_PRIO_MAX`).
    const PRIORITY: Kind = Kind::Integer { least: 0, most: 15 };
    /// The priority code points of IEEE 802.1Q.
    const PCP: Kind = Kind::Integer { least: 0, most: 7 };

    /// Returns the priority code point of its frames; that of the last class is 0 without `pcp`.
    pub fn code_point(&self) -> u8 {
        self.pcp.or(self.priority.filter(|priority| *priority <= 7)).unwrap_or(0)
    }
}

impl Flow {
    const DEADLINE: Kind = Kind::Time { least: Duration::from_nanos(1), most: MAX_CYCLE };
}

impl Slot {
    pub(crate) const OFFSET: Kind = NOT_NEGATIVE;

    /// Returns the slot as an item of `slots:`.
    pub fn to_yaml(&self) -> String {
        self.write().to_item()
    }
}

impl SyncClass {
    /// The name of the class.
    pub const NAME: &'static str = "sync";
    /// The placeholder for a priority that follows from the classes. No text has this value.
    const UNSAID: u8 = u8::MAX;

    /// Returns the length of its slot on an interface: the time of its frames, but no more than the sync window has. It
    /// has time for one frame at least.
    pub fn slot(&self, interface: &Interface, window: Duration) -> Duration {
        let frame = interface.longest_frame_time(self.size);
        (frame * i64::from(self.frames) + interface.opening).min(window).max(frame + interface.opening)
    }
}

impl Interface {
    const PATH: Kind = Kind::Time { least: Duration::ZERO, most: Duration::from_secs(1) };
    /// The kernel lets no frame start that would end with its window. So a gate is never open for just one frame.
    const OPENING: Kind = Kind::Time { least: Duration::from_nanos(1), most: Duration::from_millis(1) };
    /// Fewer entries cannot hold an interval of one class, the time around it, and a slot of the class `sync`.
    const ENTRIES: Kind = Kind::Integer { least: 4, most: 65_536 };
    /// The range of leads. The kernel stores it as nanoseconds in 32 bits.
    const LEAD: Kind = Kind::Time { least: Duration::from_micros(1), most: Duration::from_millis(1) };
    /// The bytes before a frame (preamble and start delimiter) and after it (gap).
    const AROUND: u32 = 8 + 12;
    /// The header and the check sequence of a frame, and the tag of a VLAN.
    const HEADER: u32 = 14 + 4;
    const TAG: u32 = 4;
    /// The shortest frame.
    const SHORTEST: u32 = 64;

    /// Returns the speed of the link; without one in the description, that of virtual Ethernet.
    pub fn link_speed(&self) -> Speed {
        self.speed.unwrap_or(Speed::VIRTUAL)
    }

    /// Returns the time that a frame with this payload occupies the link, with preamble and gap. A device inserts the
    /// tag of a VLAN into a frame that already has its shortest length.
    pub fn frame_time(&self, payload: Size) -> Duration {
        self.time_of(payload, if self.vlan.is_some() { Self::TAG } else { 0 })
    }

    /// Returns the time of the longest frame with at most this payload, which may have the tag of a VLAN.
    pub fn longest_frame_time(&self, payload: Size) -> Duration {
        self.time_of(payload, Self::TAG)
    }

    fn time_of(&self, payload: Size, tag: u32) -> Duration {
        let frame = payload.bytes().saturating_add(Self::HEADER).max(Self::SHORTEST);
        self.link_speed().time(frame.saturating_add(tag + Self::AROUND))
    }

    /// Returns the longest time from the instant at which a frame with this payload can start until the link is free
    /// again. With gates, this contains the time until the first frame starts.
    pub fn sending_time(&self, payload: Size) -> Duration {
        let opening = if self.gates.is_some() { self.opening } else { Duration::ZERO };
        // Another rule reports an opening beyond the range of a cycle.
        self.frame_time(payload).checked_add(opening).unwrap_or(opening)
    }

    /// Returns the time of the shortest frame. No interval of a gate list is shorter.
    pub fn shortest_frame_time(&self) -> Duration {
        self.link_speed().time(Self::SHORTEST + Self::AROUND)
    }

    /// Returns the most entries of its gate list.
    pub fn most_entries(&self) -> usize {
        self.entries.map_or(GateList::MAX_ENTRIES, |entries| entries as usize)
    }

    /// Whether the planner makes the gate list.
    pub fn is_planned(&self) -> bool {
        self.gates == Some(Gates::Planned)
    }

    /// Returns the name of the kernel thread that opens the gates, with the name of the interface for the device.
    pub fn gate_thread(&self) -> String {
        format!("gate/{}", self.name)
    }
}

impl Network {
    /// The number of priorities that a frame can have.
    pub const PRIORITIES: u8 = 16;
    /// The largest number of classes (`TC_QOPT_MAX_QUEUE`).
    pub const MAX_CLASSES: usize = 16;

    /// The largest number of transmit queues for all classes together.
    pub const MAX_QUEUES: u32 = 64;

    /// Returns the number of transmit queues for all classes together. The class `sync` has one.
    pub fn queues(&self) -> u32 {
        let sync = u32::from(self.sync.is_some());
        self.classes.iter().fold(sync, |sum, class| sum.saturating_add(class.queues))
    }

    /// Returns the priority of the frames of a class (`SO_PRIORITY`). The last class has all priorities that no other
    /// class has, and its own is the first of them.
    pub fn priority(&self, class: &str) -> u8 {
        let sync = || self.sync.filter(|_| class == SyncClass::NAME).map(|sync| sync.priority);
        let taken = |one: &u8| {
            self.classes.iter().any(|class| class.priority == Some(*one))
                || self.sync.is_some_and(|sync| sync.priority == *one)
        };
        let free = || (0..Network::PRIORITIES).find(|one| !taken(one)).unwrap_or(0);
        self.class(class).and_then(|class| class.priority).or_else(sync).unwrap_or_else(free)
    }

    /// Returns the priority code points (PCP) of the priorities that classes name.
    pub fn code_points(&self) -> BTreeMap<u8, u8> {
        let given = self.classes.iter().filter_map(|class| Some((class.priority?, class.code_point())));
        given.chain(self.sync.iter().map(|sync| (sync.priority, sync.priority.min(7)))).collect()
    }

    /// Returns the names of all classes from the most important one on, `sync` included.
    pub fn class_names(&self) -> impl Iterator<Item = &str> + Clone {
        let sync = self.sync.iter().map(|_| SyncClass::NAME);
        sync.chain(self.classes.iter().map(|class| class.name.as_str()))
    }

    /// Returns the class of that name; `sync` is none of them.
    pub fn class(&self, name: &str) -> Option<&TrafficClass> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Returns the interface of that name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// Returns the interface of a slot; `None` if the description names none and several are possible.
    pub fn interface_of(&self, slot: &Slot) -> Option<&Interface> {
        match &slot.interface {
            Some(name) => self.interface(name),
            None => {
                let mut planned = self.interfaces.iter().filter(|interface| interface.is_planned());
                planned.next().filter(|_| planned.next().is_none())
            }
        }
    }

    /// Returns the payload of the longest frame of a class.
    pub fn max_size(&self, class: &str) -> Size {
        let sync = || self.sync.filter(|_| class == SyncClass::NAME).map(|sync| sync.size);
        self.class(class).map(|class| class.max_size).or_else(sync).unwrap_or(Size::from_bytes(1500))
    }

    /// Returns the periods of slots and of flows that have one.
    pub fn periods(&self) -> impl Iterator<Item = Duration> + '_ {
        let flows = self.flows.iter().filter_map(|flow| flow.period);
        self.slots.iter().map(|slot| slot.period).chain(flows)
    }

    /// Fills in the class `sync`, which exists with a clock that hosts share.
    pub(super) fn complete(&mut self, shares_clock: bool) {
        if shares_clock && self.sync.is_none() {
            self.sync = Some(SyncClass { priority: SyncClass::UNSAID, size: Size::from_bytes(128), frames: 8 });
        }
        let virtual_ones = self
            .interfaces
            .iter_mut()
            .filter(|one| matches!(one.end, InterfaceEnd::Namespace(_) | InterfaceEnd::Port(_)));
        virtual_ones.for_each(|interface| interface.speed = interface.speed.or(Some(Speed::VIRTUAL)));
        let taken = |priority: &u8| self.classes.iter().any(|class| class.priority == Some(*priority));
        let free = (0..=7).rev().chain(8..=15).find(|priority| !taken(priority)).unwrap_or(7);
        if let Some(sync) = self.sync.as_mut().filter(|sync| sync.priority == SyncClass::UNSAID) {
            sync.priority = free;
        }
    }
}
