//! The network of a plan as wanted states of devices: gates, traffic classes, priorities of frames.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use macrotick_host::net::{
    entries, Cbs, Classifier, Frames, GateClock, Leaf, LinkFacts, Mapping, Mode, Protocol, Queues, Root, Sizes, Taprio,
    Tree, Wanted, PRIORITIES,
};
use macrotick_host::network::device_of;
use macrotick_host::state::SlotDevice;
use macrotick_model::{
    Duration, Flow, GateEntry, GateList, GroupThread, Interface, InterfaceEnd, Network, Plan, Size, Slot, Speed,
    SyncClass, System, Workload,
};

/// The lead of exact gates without a lead in the description. It is the kernel's default.
const DEFAULT_LEAD: Duration = Duration::from_micros(60);
/// The bytes that the wire adds to a frame of the kernel: check sequence, preamble and gap.
const OVERHEAD: i32 = 4 + 8 + 12;
/// The time for which a shaper keeps its credit while gates or more important tasks keep its frames, in ms.
const UNSERVED_MS: i64 = 1;
/// The longest segment of TCP that the kernel has not cut into frames yet (GSO), in bytes. The shaper forgets what a
/// frame costs beyond its lowest credit.
const SEGMENT: i64 = 512 << 10;
/// The bytes of a frame on the wire beyond its payload: the header, the tag of a VLAN, and the overhead.
const FRAME: i64 = 14 + 4 + OVERHEAD as i64;
/// An interval that is shorter may be over before software without a gate thread in a window has opened its gate.
const OPENING: Duration = Duration::from_micros(10);

/// The wanted state of the device of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ported {
    /// The name of the interface in the description.
    pub interface: String,
    /// The name of the device's namespace for iproute2; `None`: the host's.
    pub namespace: Option<String>,
    /// The name of that namespace in the description.
    pub inside: Option<String>,
    /// The VLAN of its frames. Its device has the map of priorities.
    pub vlan: Option<u16>,
    /// The wanted state. The base time of its gates is 0.
    pub wanted: Wanted,
}

/// Returns the wanted states of the interfaces of a plan, with gates on this clock. `link` returns the link of a device
/// of the host.
pub fn ported(plan: &Plan, clock: GateClock, link: &dyn Fn(&str) -> LinkFacts) -> Vec<Ported> {
    let system = &plan.system;
    let each = system.network.iter().flat_map(|network| network.interfaces.iter().map(move |one| (network, one)));
    let port = |(network, interface): (&Network, &Interface)| {
        let (namespace, device) = device_of(system, &interface.end);
        let link = match interface.end {
            InterfaceEnd::Device(_) => link(&device),
            _ => LinkFacts::VIRTUAL,
        };
        let list = plan.gates.iter().find(|list| list.interface == interface.name);
        let classifiers = classifiers(system, network, interface);
        let wanted = Wanted {
            tree: list.map(|list| gates(network, interface, list, clock, link)).or_else(|| classes(network, link)),
            classifiers: (!classifiers.is_empty()).then_some(classifiers),
            ..Wanted::of(device)
        };
        let inside = match &interface.end {
            InterfaceEnd::Namespace(name) => Some(name.clone()),
            _ => None,
        };
        let vlan = interface.vlan.and_then(|vlan| u16::try_from(vlan).ok());
        Ported { interface: interface.name.clone(), namespace, inside, vlan, wanted }
    };
    each.map(port).collect()
}

/// Returns the part of [`ported`] that stays while the deployment runs: all except the gate lists and the leads.
pub fn fixed(plan: &Plan) -> Vec<Ported> {
    let mut all = ported(plan, GateClock::Monotonic, &|_| LinkFacts::VIRTUAL);
    for port in &mut all {
        if let Some(Tree { root: Root::Taprio { taprio, else_try }, .. }) = &mut port.wanted.tree {
            (taprio.mode, taprio.cycle) = (Mode::Software, Duration::ZERO);
            taprio.entries.clear();
            else_try.clear();
        }
    }
    all
}

/// Returns the interfaces with another gate list or lead in another plan with the same interfaces.
pub fn other_gates(running: &Plan, wanted: &Plan) -> Vec<String> {
    let lead = |plan: &Plan, name: &str| plan.system.network.as_ref().and_then(|all| all.interface(name)?.lead);
    let differs = |new: &&GateList| {
        let old = running.gates.iter().find(|old| old.interface == new.interface);
        old != Some(*new) || lead(running, &new.interface) != lead(wanted, &new.interface)
    };
    wanted.gates.iter().filter(differs).map(|list| list.interface.clone()).collect()
}

/// Returns the map from the priorities of classes to the PCP of a VLAN.
pub fn vlan_priorities(network: &Network) -> BTreeMap<u32, u8> {
    let rest = network.classes.last().map_or(0, |class| class.code_point());
    let given = network.code_points();
    (0..PRIORITIES as u8).map(|one| (one.into(), given.get(&one).copied().unwrap_or(rest))).collect()
}

/// Returns the priority of the frames that a task sends itself, if a flow gives it one.
pub fn priority_of(system: &System, task: &str) -> Option<u8> {
    let network = system.network.as_ref()?;
    let flow = network.flows.iter().find(|flow| flow.from == task)?;
    Some(network.priority(&flow.class))
}

/// Returns the devices of all slots of a system, with the priorities of their frames.
pub fn slot_devices(system: &System) -> Vec<SlotDevice> {
    let each = system.network.iter().flat_map(|network| network.slots.iter().map(move |slot| (network, slot)));
    let device = |(network, slot): (&Network, &Slot)| {
        let interface = network.interface_of(slot)?;
        let (namespace, device) = device_of(system, &interface.end);
        let (group, priority) = (slot.group.clone(), network.priority(&slot.class));
        Some(SlotDevice { group, interface: interface.name.clone(), device, namespace, priority })
    };
    each.filter_map(device).collect()
}

/// Returns a remark for each interface with intervals that its gates may be too late for. `in_windows` are the
/// interfaces with a gate thread that has windows.
pub fn too_late(plan: &Plan, in_windows: &dyn Fn(&str) -> bool) -> Vec<String> {
    let Some(network) = &plan.system.network else { return Vec::new() };
    let late = |list: &GateList| {
        let interface = network.interface(&list.interface)?;
        // The kernel starts a frame only if it ends before its gate closes.
        let frame = |class: &str| {
            let flows = network.flows.iter().filter(|flow| flow.class == class);
            let crosses = |flow: &&Flow| plan.system.way(network, flow).iter().any(|one| one.name == interface.name);
            flows.filter(crosses).map(|flow| interface.frame_time(flow.size)).max().unwrap_or(Duration::ZERO)
        };
        let spare = |entry: &GateEntry| entry.length - frame(&entry.open[0]);
        let is_short = |open: &[String]| {
            let mut same = list.entries.iter().filter(|entry| entry.open == open);
            same.all(|entry| spare(entry) < OPENING)
        };
        let alone = list.entries.iter().filter(|entry| entry.open.len() == 1 && is_short(&entry.open));
        let shortest = alone.min_by_key(|entry| spare(entry)).filter(|_| !in_windows(&list.interface))?;
        let (class, length) = (&shortest.open[0], shortest.length);
        let taken = match frame(class) {
            Duration::ZERO => String::new(),
            frame => format!(", of which a frame takes {frame}"),
        };
        Some(format!(
            "interface `{}`: its gates open up to {OPENING} late here, and `{class}` has an interval of {length}{taken}: \
             its frames may stay in the queue. Give the interface a `lead`, and run it on a kernel with exact gates, or \
             give it a longer `opening`",
            list.interface
        ))
    };
    plan.gates.iter().filter_map(late).collect()
}

/// Whether a group of the plan serves the gate thread of an interface.
pub fn is_served(system: &System, interface: &str) -> bool {
    let is_it = |thread: &GroupThread| matches!(thread, GroupThread::Gate(name) if name == interface);
    system.pools().any(|pool| pool.kernel_threads.iter().any(is_it))
}

fn gates(network: &Network, interface: &Interface, list: &GateList, clock: GateClock, link: LinkFacts) -> Tree {
    let modes = Mode::best(clock, interface.lead.unwrap_or(DEFAULT_LEAD));
    let names = numbered(network);
    let taprio = Taprio {
        mode: modes[0],
        clock,
        base_time: 0,
        cycle: list.cycle,
        // A plan that was loaded opens known classes only.
        entries: entries(&list.entries, &names).unwrap_or_default(),
        mapping: mapping(network),
        // Not of `sync`: a device that knows no limits would have no gates in hardware.
        max_sdu: names
            .iter()
            .map(|name| network.class(name).map_or(0, |class| limit(class.max_size, link.mtu)))
            .collect(),
    };
    let root = Root::Taprio { taprio, else_try: modes[1..].to_vec() };
    Tree { sizes: Some(Sizes { overhead: OVERHEAD }), leaves: shapers(network, link), ..Tree::of(root) }
}

/// Returns the largest frame of a class; 0: the device has no larger ones.
fn limit(size: Size, mtu: u32) -> u32 {
    Some(size.bytes()).filter(|bytes| *bytes < mtu).unwrap_or(0)
}

/// Returns the classes of an interface without gates, if they are more than a queue.
fn classes(network: &Network, link: LinkFacts) -> Option<Tree> {
    let mut leaves = shapers(network, link);
    match network.class_names().count() {
        0 => None,
        1 => Some(Tree::of(Root::Single(leaves.remove(&0)?))),
        _ => Some(Tree { leaves, ..Tree::of(Root::Mqprio(mapping(network))) }),
    }
}

/// Returns the shapers of a device with this link, by their transmit queues.
fn shapers(network: &Network, link: LinkFacts) -> BTreeMap<u16, Leaf> {
    let queues = mapping(network).queues;
    let numbered = numbered(network).into_iter().zip(queues);
    let shaper = |(name, queue): (&str, Queues)| {
        let rate = network.class(name)?.rate?;
        Some((queue.offset, Leaf::Cbs(shaper(network, name, rate, link.taken()))))
    };
    numbered.filter_map(shaper).collect()
}

/// Returns the credit-based shaper of a class (IEEE 802.1Q, annex L). Its credit grows while a frame waits: for one
/// frame of each other class, and while nothing serves the queue. The kernel counts with the speed of the device,
/// whatever the description has.
fn shaper(network: &Network, class: &str, rate: Speed, speed: Speed) -> Cbs {
    let longest = |name: &str| i64::from(network.max_size(name).bytes()) + FRAME;
    let others: i64 = network.class_names().filter(|name| *name != class).map(longest).sum();
    let (rate, speed) = (rate.bits() as i64 / 1000, speed.bits() as i64 / 1000);
    let share = |bytes: i64, slope: i64| (bytes * slope + speed - 1) / speed;
    // Kilobits in a second are bits in a millisecond.
    let unserved = rate * UNSERVED_MS / 8;
    // A speed is at most 400 Gb/s, a frame 64 KiB, and a class one of 16.
    Cbs {
        idle_slope: rate as i32,
        send_slope: (rate - speed) as i32,
        high_credit: (share(others, rate) + unserved) as i32,
        low_credit: -share(longest(class).max(SEGMENT), speed - rate) as i32,
        offload: false,
    }
}

/// Returns the names of the classes in the order of their numbers. The kernel sends first from the class with the
/// highest number.
fn numbered(network: &Network) -> Vec<&str> {
    let mut names: Vec<&str> = network.class_names().collect();
    names.reverse();
    names
}

/// Returns the map from priorities to classes. Class 0 takes the frames of all priorities that no class names.
fn mapping(network: &Network) -> Mapping {
    let names = numbered(network);
    let mut classes = [0; PRIORITIES];
    let sync = network.sync.iter().map(|sync| (SyncClass::NAME, sync.priority));
    let given = network.classes.iter().filter_map(|class| Some((class.name.as_str(), class.priority?)));
    for (name, priority) in given.chain(sync) {
        let number = names.iter().position(|other| *other == name).unwrap_or(0);
        classes[usize::from(priority) % PRIORITIES] = number as u8;
    }
    let mut offset = 0;
    let queues = |name: &&str| {
        let count = network.class(name).map_or(1, |class| class.queues as u16);
        offset += count;
        Queues { count, offset: offset - count }
    };
    Mapping { classes, queues: names.iter().map(queues).collect() }
}

/// Returns what gives frames on an interface their priority. A frame loses it where it leaves its namespace. So flows
/// need a classifier on all interfaces outside the namespace of their sender, and the slots of a group everywhere.
fn classifiers(system: &System, network: &Network, interface: &Interface) -> Vec<Classifier> {
    let here = match &interface.end {
        InterfaceEnd::Namespace(name) => Some(name.as_str()),
        _ => None,
    };
    let crosses = |flow: &&Flow| system.way(network, flow).iter().any(|one| one.name == interface.name);
    let is_outside = |flow: &&Flow| system.namespaces_of(&flow.from).iter().any(|namespace| *namespace != here);
    let flows = network.flows.iter().filter(crosses).filter(is_outside).filter_map(|flow| {
        let frames = frames_of(system, flow)?;
        Some(Classifier { frames, priority: network.priority(&flow.class).into() })
    });
    let slots = network.slots.iter().filter_map(|slot| {
        let on_it = network.interface_of(slot).is_some_and(|one| one.name == interface.name);
        let source = Some(only_address(system, &slot.group)?);
        let frames = Frames { source, ..Frames::default() };
        on_it.then(|| Classifier { frames, priority: network.priority(&slot.class).into() })
    });
    let mut all: Vec<Classifier> = Vec::new();
    for one in flows.chain(slots) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Returns the frames of a flow: those between the addresses of both ends and, for a built-in sender, to its port.
fn frames_of(system: &System, flow: &Flow) -> Option<Frames> {
    let target = system.task(&flow.from).and_then(|task| match &task.run {
        Workload::UdpSend(send) => send.to.parse::<SocketAddrV4>().ok(),
        _ => None,
    });
    let frames = Frames {
        source: only_address(system, &flow.from),
        destination: target
            .map(|target| *target.ip())
            .or_else(|| only_address(system, flow.to.as_deref().unwrap_or_default())),
        protocol: target.map(|_| Protocol::Udp),
        port: target.map(|target| target.port()),
        ..Frames::default()
    };
    (frames != Frames::default()).then_some(frames)
}

/// Returns the address of a task or group with all processes in one namespace.
fn only_address(system: &System, name: &str) -> Option<Ipv4Addr> {
    let namespaces = system.namespaces_of(name);
    let only = namespaces.first().copied().flatten().filter(|_| namespaces.len() == 1)?;
    system.namespace(only)?.decode().map(|(address, _)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "system: s
tasks:
  - {name: s, period: 1ms, wcet: 100us, namespace: left, run: {udp-send: {to: \"10.0.0.2:5000\"}}}
  - {name: r, period: 1ms, wcet: 100us, namespace: right, run: {udp-receive: {at: \"10.0.0.2:5000\"}}}
namespaces:
  - {name: left, address: 10.0.0.1/24}
  - {name: right, address: 10.0.0.2/24}
groups:
  - {name: vendor, windows: {period: 1ms, length: 50us}, run: [{name: v, hog: {}, namespace: left}]}
network:
  classes:
    - {name: high, priority: 6}
    - {name: tdma, priority: 5, max-size: 400B}
    - {name: rest}
  interfaces:
    - {name: left, namespace: left, gates: planned, lead: 20us}
    - {name: port, port: right, gates: planned}
    - {name: wire, device: eth9, speed: 1Gb/s, vlan: 7}
  flows:
    - {name: f, from: s, to: r, size: 64B, class: high, deadline: 900us}
  slots:
    - {group: vendor, class: tdma, interface: port, period: 1ms, length: 100us}
";

    fn planned() -> Plan {
        let system = System::parse(TEXT, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        let us = Duration::from_micros;
        let entry = |length, open: &[&str]| GateEntry {
            length: us(length),
            open: open.iter().map(|name| (*name).to_owned()).collect(),
        };
        let list = |interface: &str, entries| GateList { interface: interface.into(), cycle: us(1000), entries };
        let gates = vec![
            list("left", vec![entry(990, &["tdma", "rest"]), entry(10, &["high"])]),
            list("port", vec![entry(3, &["high"]), entry(997, &["rest"])]),
        ];
        Plan { gates, ..Plan::new("x", us(1000), Vec::new(), system) }
    }

    /// The slopes add up to the speed of the device, which for the veth of a namespace is not that of the description.
    #[test]
    fn a_class_with_a_rate_has_a_shaper_and_one_with_queues_has_several() {
        let text =
            TEXT.replace("- {name: rest}", "- {name: video, priority: 1, rate: 40Mb/s}\n    - {name: rest, queues: 3}");
        let system = System::parse(&text, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"));
        let plan = Plan { system, ..planned() };
        let all = ported(&plan, GateClock::Monotonic, &|_| LinkFacts {
            exists: true,
            mtu: 1500,
            speed: Some(Speed::from_bits(1_000_000_000)),
        });
        let shaper = |send_slope, high_credit, low_credit| {
            Leaf::Cbs(Cbs { idle_slope: 40_000, send_slope, high_credit, low_credit, offload: false })
        };
        // Frames of 400 and 1500 bytes and twice 1500 bytes, with 42 bytes around each.
        let others = 442 + 2 * 1542;
        let credits =
            |speed: i64| (others * 40_000 / speed + 1 + 5000, -((524_288 * (speed - 40_000) + speed - 1) / speed));
        for (number, speed) in [(0, 10_000_000), (2, 1_000_000)] {
            let tree = all[number].wanted.tree.as_ref().unwrap();
            let (Root::Taprio { taprio: Taprio { mapping, .. }, .. } | Root::Mqprio(mapping)) = &tree.root else {
                panic!("{tree:?}")
            };
            let queues: Vec<(u16, u16)> = mapping.queues.iter().map(|queue| (queue.count, queue.offset)).collect();
            assert_eq!(queues, [(3, 0), (1, 3), (1, 4), (1, 5)]);
            let (high, low) = credits(speed);
            assert_eq!(tree.leaves, [(3, shaper(40_000 - speed as i32, high as i32, low as i32))].into());
        }
        // A single class needs no map.
        let alone = "system: s\nnetwork: {classes: [{name: all, rate: 5Mb/s}], interfaces: [{name: w, device: e, speed: 1Gb/s}]}";
        let system = System::parse(&format!("{alone}\ntasks: [{{name: t, period: 1ms, wcet: 50us}}]"), "s.yaml");
        let plan = Plan { gates: Vec::new(), system: system.unwrap_or_else(|errors| panic!("{errors}")), ..planned() };
        let all = ported(&plan, GateClock::Monotonic, &|_| LinkFacts::VIRTUAL);
        let root = all[0].wanted.tree.as_ref().map(|tree| &tree.root);
        assert!(
            matches!(root, Some(Root::Single(Leaf::Cbs(Cbs { idle_slope: 5000, high_credit: 625, .. })))),
            "{all:?}"
        );
    }

    #[test]
    fn an_interface_is_a_device_with_gates_and_classes() {
        let all = ported(&planned(), GateClock::Monotonic, &|device| {
            if device == "eth9" {
                LinkFacts { exists: true, mtu: 9000, speed: Some(Speed::from_bits(1_000_000_000)) }
            } else {
                panic!("{device}")
            }
        });
        let of = |index: usize| {
            let one = &all[index];
            (one.namespace.as_deref(), one.inside.as_deref(), one.wanted.device.as_str(), one.vlan)
        };
        assert_eq!(of(0), (Some("macrotick-left"), Some("left"), "eth0", None));
        assert_eq!((of(1), of(2)), ((None, None, "mtick-1", None), (None, None, "eth9", Some(7))));
        let Some(Tree { root: Root::Taprio { taprio, else_try }, sizes: Some(Sizes { overhead: 24 }), .. }) =
            &all[0].wanted.tree
        else {
            panic!("{all:?}")
        };
        // The most important class has the highest number.
        assert_eq!(taprio.entries.iter().map(|entry| entry.open).collect::<Vec<_>>(), [0b011, 0b100]);
        assert_eq!(taprio.mapping.classes[..8], [0, 0, 0, 0, 0, 1, 2, 0]);
        assert_eq!(taprio.max_sdu, [0, 400, 0]);
        assert_eq!(
            (taprio.mode, else_try.as_slice()),
            (Mode::Exact { lead: Duration::from_micros(20) }, &[Mode::Software][..])
        );
        assert!(matches!(&all[2].wanted.tree, Some(Tree { root: Root::Mqprio(_), .. })), "{all:?}");
    }

    #[test]
    fn frames_get_their_priority_again_outside_the_namespace_of_the_sender() {
        let all = ported(&planned(), GateClock::Monotonic, &|_| LinkFacts::VIRTUAL);
        assert_eq!(all[0].wanted.classifiers, None);
        let flow = Frames {
            protocol: Some(Protocol::Udp),
            source: Some([10, 0, 0, 1].into()),
            destination: Some([10, 0, 0, 2].into()),
            port: Some(5000),
            ..Frames::default()
        };
        let slot = Frames { source: Some([10, 0, 0, 1].into()), ..Frames::default() };
        let expected = vec![Classifier { frames: flow, priority: 6 }, Classifier { frames: slot, priority: 5 }];
        assert_eq!(all[1].wanted.classifiers.as_ref(), Some(&expected));
        assert_eq!(priority_of(&planned().system, "s"), Some(6));
        assert_eq!(priority_of(&planned().system, "r"), None);
    }

    #[test]
    fn slots_have_a_device_and_a_priority() {
        let slot = SlotDevice {
            group: "vendor".into(),
            interface: "port".into(),
            device: "mtick-1".into(),
            namespace: None,
            priority: 5,
        };
        assert_eq!(slot_devices(&planned().system), [slot]);
    }

    #[test]
    fn only_lists_and_leads_may_change() {
        let (old, mut new) = (planned(), planned());
        assert_eq!((fixed(&old) == fixed(&new), other_gates(&old, &new)), (true, vec![]));
        new.gates[1].entries.swap(0, 1);
        new.system.network.as_mut().expect("a network").interfaces[0].lead = None;
        assert_eq!((fixed(&old) == fixed(&new), other_gates(&old, &new)), (true, vec!["left".into(), "port".into()]));
        new.system.network.as_mut().expect("a network").classes[1].priority = Some(4);
        assert!(fixed(&old) != fixed(&new));
    }

    #[test]
    fn a_vlan_maps_every_priority() {
        let map = vlan_priorities(planned().system.network.as_ref().expect("a network"));
        assert_eq!((map.len(), map[&6], map[&5], map[&0]), (16, 6, 5, 0));
    }

    #[test]
    fn short_intervals_need_exact_gates_in_windows() {
        let told = too_late(&planned(), &|interface| interface == "left");
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(
            told.starts_with(
                "interface `port`: its gates open up to 10us late here, and `high` has an interval of 3us, of which a \
                 frame takes 82ns: its frames may stay in the queue"
            ),
            "{told}"
        );
        assert_eq!(too_late(&planned(), &|_| true), [""; 0]);
    }
}
