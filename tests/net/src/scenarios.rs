//! The scenarios.

use std::collections::BTreeMap;

use macrotick_host::net::slots::{classify, release};
use macrotick_host::net::{
    gate_thread, pending, propose, restart, swap, Cbs, Classifier, Deployment, Entry, Etf, Frames, GateClock, Leaf,
    Mapping, Mode, Neighbour, NoEnds, Protocol, Queues, Reason, Root, Sizes, Taprio, Tree, Wanted,
};
use macrotick_host::sys::{in_network_namespace, sleep};
use macrotick_model::Duration;

use crate::container::{prepare, Container, Way};
use crate::pair::{namespace, run, Pair, CONTROL, REST};

/// A scenario by its name.
type Named = (&'static str, fn());

/// All scenarios.
pub const ALL: [Named; 19] = [
    ("gates_hold_frames_and_swap", gates_hold_frames_and_swap),
    ("the_best_gates_hold_frames_and_swap", the_best_gates_hold_frames_and_swap),
    ("no_frame_passes_while_classes_change", no_frame_passes_while_classes_change),
    ("a_refused_change_leaves_the_gates", a_refused_change_leaves_the_gates),
    ("a_refused_replacement_restores_the_gates", a_refused_replacement_restores_the_gates),
    ("the_tier_is_found_by_trying", the_tier_is_found_by_trying),
    ("exact_gates_have_a_thread", exact_gates_have_a_thread),
    ("a_long_list_is_read_back", a_long_list_is_read_back),
    ("roots_follow_each_other", roots_follow_each_other),
    ("queues_have_qdiscs", queues_have_qdiscs),
    ("classifiers_replace_each_other", classifiers_replace_each_other),
    ("a_vlan_maps_priorities", a_vlan_maps_priorities),
    ("neighbours_are_permanent", neighbours_are_permanent),
    ("queues_are_set_or_the_option_is_named", queues_are_set_or_the_option_is_named),
    ("gates_run_again_after_a_link_was_down", gates_run_again_after_a_link_was_down),
    ("a_closed_device_drops_and_counts", a_closed_device_drops_and_counts),
    ("bridged_frames_of_a_container_leave_in_its_slots", bridged_frames_of_a_container_leave_in_its_slots),
    ("routed_frames_of_a_container_leave_in_its_slots", routed_frames_of_a_container_leave_in_its_slots),
    ("a_container_needs_veths_for_its_slots", a_container_needs_veths_for_its_slots),
];

fn us(us: i64) -> Duration {
    Duration::from_nanos(us * 1000)
}

/// Gates with the classes control (0) and rest (1). `open` has the open classes of equal parts of 1 ms.
fn gates(open: &[u32]) -> Taprio {
    let length = us(1000 / open.len() as i64);
    Taprio {
        mode: Mode::Software,
        clock: GateClock::Monotonic,
        base_time: 0,
        cycle: us(1000),
        entries: open.iter().map(|open| Entry { length, open: *open }).collect(),
        mapping: Mapping::one_queue_each(2, &[(6, 0)]),
        max_sdu: Vec::new(),
    }
}

/// The same with another map of priorities.
fn other_classes(open: &[u32]) -> Taprio {
    Taprio { mapping: Mapping::one_queue_each(2, &[(6, 0), (5, 0)]), ..gates(open) }
}

fn control() -> Classifier {
    let frames = Frames { protocol: Some(Protocol::Udp), port: Some(CONTROL), ..Frames::default() };
    Classifier { frames, priority: 6 }
}

fn with(root: Root) -> Wanted {
    Wanted { tree: Some(Tree::of(root)), classifiers: Some(vec![control()]), ..Wanted::of("eth1") }
}

fn only(taprio: Taprio) -> Wanted {
    with(Root::Taprio { taprio, else_try: Vec::new() })
}

/// Only rest is open.
const REST_ONLY: [u32; 1] = [2];
const ALL_OPEN: [u32; 1] = [3];

fn gates_hold_frames_and_swap() {
    hold_and_swap(&[Mode::Software]);
}

fn the_best_gates_hold_frames_and_swap() {
    hold_and_swap(&Mode::best(GateClock::Monotonic, us(60)));
}

fn hold_and_swap(modes: &[Mode]) {
    let wanted = |open: &[u32]| {
        let taprio = Taprio { mode: modes[0], ..gates(open) };
        with(Root::Taprio { taprio, else_try: modes[1..].to_vec() })
    };
    let pair = Pair::new();
    let before = pair.shown();
    assert_eq!(pair.arrivals(), (true, true));
    let deployment = Deployment::make(&pair.target(wanted(&REST_ONLY))).unwrap();
    assert_eq!(pair.arrivals(), (false, true));
    let at = pair.kernel.borrow().now(GateClock::Monotonic) + 50_000_000;
    let swapped = swap(&pair.target(wanted(&ALL_OPEN)), at).unwrap();
    assert_eq!(swapped.reports()[0].closed, None);
    let next = pending(&pair.kernel, "eth1").unwrap().unwrap();
    assert_eq!((next.base_time, next.entries), (at, gates(&ALL_OPEN).entries));
    // The frame from before waits for its gate. The one sent now is behind it.
    assert_eq!(pair.arrivals(), (false, true));
    while pending(&pair.kernel, "eth1").unwrap().is_some() {}
    assert!(pair.control_arrives() && pair.control_arrives());
    assert_eq!(pair.arrivals(), (true, true));
    drop(swapped);
    assert_eq!(pair.arrivals(), (false, true));
    drop(deployment);
    assert_eq!(pair.shown(), before);
    assert_eq!(pair.arrivals(), (true, true));
}

fn no_frame_passes_while_classes_change() {
    let pair = Pair::new();
    let first = Deployment::make(&pair.target(only(gates(&REST_ONLY)))).unwrap();
    let before = pair.shown();
    assert_eq!(pair.arrivals(), (false, true));
    let target = pair.target(only(other_classes(&REST_ONLY)));
    assert_eq!(propose(&target).unwrap()[0].closes.as_deref(), Some("the traffic classes change"));
    let second = Deployment::make(&target).unwrap();
    let (closed, _) = second.reports()[0].closed.unwrap();
    println!("closed for {closed}");
    assert!(closed < us(50_000), "{closed}");
    assert_eq!(pair.arrivals(), (false, true));
    drop(second);
    assert_eq!(pair.shown(), before);
    assert_eq!(pair.arrivals(), (false, true));
    drop(first);
    assert_eq!(pair.arrivals(), (true, true));
}

/// The kernel refuses an entry that is shorter than the smallest frame.
fn too_short() -> Vec<Entry> {
    vec![Entry { length: Duration::from_nanos(1), open: 3 }, Entry { length: Duration::from_nanos(999_999), open: 3 }]
}

fn a_refused_change_leaves_the_gates() {
    let pair = Pair::new();
    let _first = Deployment::make(&pair.target(only(gates(&REST_ONLY)))).unwrap();
    let before = pair.shown();
    let wanted = Taprio { entries: too_short(), ..gates(&REST_ONLY) };
    let fault = Deployment::make(&pair.target(only(wanted))).err().unwrap();
    println!("{fault}");
    assert!(matches!(fault.reason, Reason::Refused(_)) && fault.left.is_empty(), "{fault}");
    assert_eq!(pair.shown(), before);
    assert_eq!(pair.arrivals(), (false, true));
}

fn a_refused_replacement_restores_the_gates() {
    let pair = Pair::new();
    let _first = Deployment::make(&pair.target(only(gates(&REST_ONLY)))).unwrap();
    let before = pair.shown();
    let wanted = Taprio { entries: too_short(), ..other_classes(&REST_ONLY) };
    let fault = Deployment::make(&pair.target(only(wanted))).err().unwrap();
    println!("{fault}");
    assert!(matches!(fault.reason, Reason::Refused(_)) && fault.left.is_empty(), "{fault}");
    assert_eq!(pair.shown(), before);
    assert_eq!(pair.arrivals(), (false, true));
}

fn the_tier_is_found_by_trying() {
    let pair = Pair::new();
    let modes = Mode::best(GateClock::Tai, us(60));
    let taprio = Taprio { mode: modes[0], clock: GateClock::Tai, ..gates(&REST_ONLY) };
    let root = Root::Taprio { taprio, else_try: modes[1..].to_vec() };
    let deployment = Deployment::make(&pair.target(with(root))).unwrap();
    let report = &deployment.reports()[0];
    println!("{report:?}");
    // A veth has no gates, and a kernel without Macrotick's patches has no exact ones.
    assert_eq!(report.refused[0].0, Mode::Hardware);
    assert!(matches!(report.mode, Some(Mode::Software | Mode::Exact { .. })), "{report:?}");
    assert_eq!(pair.arrivals(), (false, true));
}

fn exact_gates_have_a_thread() {
    let pair = Pair::new();
    let modes = Mode::best(GateClock::Monotonic, us(60));
    let taprio = Taprio { mode: modes[0], ..gates(&[3, 2]) };
    let root = Root::Taprio { taprio, else_try: modes[1..].to_vec() };
    let tree = Some(Tree { sizes: Some(Sizes { overhead: 24 }), ..Tree::of(root) });
    let deployment = Deployment::make(&pair.target(Wanted { tree, ..Wanted::of("eth1") })).unwrap();
    let thread = gate_thread(&pair.kernel, "eth1").unwrap();
    match (deployment.reports()[0].mode, thread) {
        (Some(Mode::Exact { .. }), Some(thread)) => {
            let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap();
            assert_eq!(name, "gate/eth1\n");
        }
        (Some(Mode::Software), None) => {}
        other => panic!("{other:?}"),
    }
    // A change of the list wakes the thread, and keeps it.
    restart(&pair.kernel, "eth1").unwrap();
    assert_eq!(gate_thread(&pair.kernel, "eth1").unwrap(), thread);
}

fn a_long_list_is_read_back() {
    let pair = Pair::new();
    let list = |shift: i64| {
        let entry = |number: i64| Entry { length: us(2 + (number + shift) % 2), open: 2 };
        let entries: Vec<Entry> = (0..400).map(entry).collect();
        Taprio { entries, ..gates(&REST_ONLY) }
    };
    let first = Deployment::make(&pair.target(only(list(0)))).unwrap();
    let at = pair.kernel.borrow().now(GateClock::Monotonic) + 1_000_000_000;
    let second = swap(&pair.target(only(list(1))), at).unwrap();
    assert_eq!(pending(&pair.kernel, "eth1").unwrap().map(|next| next.entries), Some(list(1).entries));
    drop(second);
    drop(first);
}

fn roots_follow_each_other() {
    let pair = Pair::new();
    let untouched = pair.shown();
    let mut mapping = Mapping::one_queue_each(2, &[(6, 0)]);
    mapping.queues[1] = Queues { count: 3, offset: 1 };
    let roots = [
        with(Root::Mqprio(mapping)),
        only(gates(&REST_ONLY)),
        with(Root::Single(Leaf::Pfifo { limit: 50 })),
        only(gates(&ALL_OPEN)),
        with(Root::Mqprio(Mapping::one_queue_each(4, &[]))),
    ];
    let mut deployed = Vec::new();
    for wanted in roots {
        let before = pair.shown();
        deployed.push((Deployment::make(&pair.target(wanted)).unwrap(), before));
    }
    while let Some((deployment, before)) = deployed.pop() {
        drop(deployment);
        assert_eq!(pair.shown(), before);
    }
    assert_eq!(pair.shown(), untouched);
    assert_eq!(pair.arrivals(), (true, true));
}

fn queues_have_qdiscs() {
    let pair = Pair::new();
    let etf =
        Etf { clock: GateClock::Tai, delta: us(300), offload: false, deadline_mode: false, skip_socket_check: false };
    let cbs = Cbs { idle_slope: 98_688, send_slope: -901_312, high_credit: 153, low_credit: -1389, offload: false };
    let tree = |first| Tree {
        root: Root::Mqprio(Mapping::one_queue_each(3, &[(6, 0), (5, 1)])),
        sizes: None,
        leaves: BTreeMap::from([(0, first), (1, Leaf::Cbs(cbs)), (2, Leaf::Pfifo { limit: 64 })]),
    };
    let wanted = |first| Wanted { tree: Some(tree(first)), ..Wanted::of("eth1") };
    let first = Deployment::make(&pair.target(wanted(Leaf::Etf(etf)))).unwrap();
    let before = pair.shown();
    assert!(before.contains("etf") && before.contains("cbs") && before.contains("limit 64p"), "{before}");
    assert_eq!(propose(&pair.target(wanted(Leaf::Etf(etf)))).unwrap()[0].commands, [""; 0]);
    let other = Leaf::Etf(Etf { delta: us(200), ..etf });
    let second = Deployment::make(&pair.target(wanted(other))).unwrap();
    assert!(pair.shown().contains("delta 200000"));
    drop(second);
    assert_eq!(pair.shown(), before);
    drop(first);
    // The gates of a device count what its wire adds, and cut long frames.
    let taprio = Taprio { max_sdu: vec![0, 1000], ..gates(&ALL_OPEN) };
    let leaves = BTreeMap::from([(0, Leaf::Pfifo { limit: 64 })]);
    let root = Root::Taprio { taprio, else_try: Vec::new() };
    let tree = Some(Tree { root, sizes: Some(Sizes { overhead: 24 }), leaves });
    let wanted = Wanted { tree, ..Wanted::of("eth1") };
    let deployment = Deployment::make(&pair.target(wanted.clone())).unwrap();
    assert!(pair.shown().contains("limit 64p") && pair.shown().contains("overhead 24"), "{}", pair.shown());
    assert_eq!(propose(&pair.target(wanted)).unwrap()[0].commands, [""; 0]);
    drop(deployment);
}

fn classifiers_replace_each_other() {
    let pair = Pair::new();
    let of = |classifiers| Wanted { classifiers: Some(classifiers), ..only(gates(&REST_ONLY)) };
    let tagged = Classifier { frames: Frames { pcp: Some(3), ..Frames::default() }, priority: 3 };
    let all = Classifier { frames: Frames::default(), priority: 0 };
    let to = Frames {
        source: Some([10, 0, 0, 1].into()),
        destination: Some([10, 0, 0, 2].into()),
        code_point: Some(46),
        ..Frames::default()
    };
    let address = Classifier { frames: to, priority: 5 };
    let first = Deployment::make(&pair.target(of(vec![tagged, address, control(), all.clone()]))).unwrap();
    let before = pair.shown();
    assert_eq!(pair.arrivals(), (false, true));
    // All frames are of the class rest.
    let second = Deployment::make(&pair.target(of(vec![all]))).unwrap();
    assert_eq!(pair.arrivals(), (true, true));
    drop(second);
    assert_eq!(pair.shown(), before);
    assert_eq!(pair.arrivals(), (false, true));
    drop(first);
}

fn a_vlan_maps_priorities() {
    let pair = Pair::new();
    run("ip -netns left link add link eth1 name eth1.5 type vlan id 5 egress-qos-map 3:2");
    let shown = || run("ip -netns left -details link show eth1.5");
    let before = shown();
    let wanted = Wanted { vlan_priorities: BTreeMap::from([(6, 6), (3, 1)]), ..Wanted::of("eth1.5") };
    let deployment = Deployment::make(&pair.target(wanted)).unwrap();
    assert!(shown().contains("6:6") && shown().contains("3:1"), "{}", shown());
    drop(deployment);
    assert_eq!(shown(), before);
}

fn neighbours_are_permanent() {
    let pair = Pair::new();
    let shown = || run("ip -netns left neigh show dev eth1");
    let before = shown();
    let neighbour =
        |last, hardware| Neighbour { address: [10, 0, 0, last].into(), hardware: [2, 0, 0, 0, 0, hardware] };
    let neighbours = vec![neighbour(2, 9), neighbour(3, 3)];
    let deployment = Deployment::make(&pair.target(Wanted { neighbours, ..Wanted::of("eth1") })).unwrap();
    assert!(shown().contains("10.0.0.3 lladdr 02:00:00:00:00:03 PERMANENT"), "{}", shown());
    assert!(shown().contains("10.0.0.2 lladdr 02:00:00:00:00:09 PERMANENT"), "{}", shown());
    drop(deployment);
    assert_eq!(shown(), before);
}

fn queues_are_set_or_the_option_is_named() {
    let pair = Pair::new();
    let in_use = || run("ip netns exec left ls /sys/class/net/eth1/queues").matches("tx-").count();
    let before = in_use();
    let wanted = Wanted { queues: Some(2), ..Wanted::of("eth1") };
    match Deployment::make(&pair.target(wanted)) {
        Ok(deployment) => {
            assert_eq!(in_use(), 2);
            drop(deployment);
        }
        Err(fault) => {
            println!("{fault}");
            assert!(fault.to_string().ends_with("the kernel needs CONFIG_ETHTOOL_NETLINK"), "{fault}");
        }
    }
    assert_eq!(in_use(), before);
}

/// The commands of a dry run do the same as the deployment. The device stays closed between the second and the last
/// but one.
fn a_closed_device_drops_and_counts() {
    let pair = Pair::new();
    let _first = Deployment::make(&pair.target(only(gates(&ALL_OPEN)))).unwrap();
    assert_eq!(pair.arrivals(), (true, true));
    let target = pair.target(only(other_classes(&ALL_OPEN)));
    let commands = propose(&target).unwrap().remove(0).commands;
    let mut commands = commands.iter().filter(|command| !command.starts_with('#'));
    for command in commands.by_ref() {
        run(command);
        if command.contains("pref 1 ") {
            break;
        }
    }
    for command in commands {
        if command.contains("filter del") {
            assert!(command.contains("pref 1"), "{command}");
            let dropped = run("tc -statistics -netns left filter show dev eth1 egress pref 1");
            assert!(dropped.contains("pkt"), "{dropped}");
        } else {
            assert_eq!(pair.arrivals(), (false, false), "before {command}");
        }
        run(command);
    }
    assert_eq!(pair.arrivals(), (true, true));
    assert_eq!(propose(&target).unwrap()[0].commands, [""; 0]);
}

fn gates_run_again_after_a_link_was_down() {
    let pair = Pair::new();
    let _first = Deployment::make(&pair.target(only(gates(&[3, 2])))).unwrap();
    let before = pair.shown();
    assert_eq!(pair.arrivals(), (true, true));
    run("ip -netns left link set eth1 down");
    run("ip -netns left link set eth1 up");
    run("ip -netns left neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth1 nud permanent");
    // On a stock kernel the gates stay in one entry from here on.
    restart(&pair.kernel, "eth1").unwrap();
    assert_eq!(pair.shown(), before);
    assert_eq!(pair.arrivals(), (true, true));
}

/// The cycle of the slots. The class rest has its first half, the slot its second one.
const SLOTS: i64 = 8_000_000;
/// The time from a gate to the receiver.
const PATH: i64 = 500_000;

/// Whether a frame leaves in the slot, or outside of it; `None`: it does not arrive.
fn is_in_slot(pair: &Pair, container: &Container, port: u16) -> Option<bool> {
    container.send(port);
    let phase = pair.arrival(port)?.rem_euclid(SLOTS);
    // A frame that leaves at the end of its half arrives at the beginning of the other one.
    match phase % (SLOTS / 2) < PATH {
        true => None,
        false => Some(phase >= SLOTS / 2),
    }
}

/// Sends frames of two containers at many phases of the cycle. Returns the number of those that leave in the slot, and
/// outside of it, of each container.
fn count(pair: &Pair, vendor: &Container, bulk: &Container) -> [[u32; 2]; 2] {
    let mut counts = [[0; 2]; 2];
    for step in 0..40 {
        for (count, (container, port)) in counts.iter_mut().zip([(vendor, CONTROL), (bulk, REST)]) {
            sleep(us(step * 1700 % 8000));
            if let Some(in_slot) = is_in_slot(pair, container, port) {
                count[usize::from(!in_slot)] += 1;
            }
        }
    }
    println!("in the slot and outside: {counts:?}");
    counts
}

fn slots_of_a_container(way: Way) {
    let pair = Pair::new();
    prepare(way);
    let (vendor, bulk) = (Container::new("vendor", 3, way), Container::new("bulk", 4, way));
    let part = |open| Entry { length: Duration::from_nanos(SLOTS / 2), open };
    let list = Taprio { cycle: Duration::from_nanos(SLOTS), entries: vec![part(2), part(1)], ..gates(&REST_ONLY) };
    let tree = Some(Tree::of(Root::Taprio { taprio: list, else_try: Vec::new() }));
    let _gates = Deployment::make(&pair.target(Wanted { tree, ..Wanted::of("eth1") })).unwrap();
    let outside_only = |[slot, rest]: [u32; 2]| slot == 0 && rest > 8;
    let in_slot_only = |[slot, rest]: [u32; 2]| slot > 8 && rest == 0;
    // Without a classifier, the priority that a container has chosen is lost.
    assert!(count(&pair, &vendor, &bulk).into_iter().all(outside_only));
    let before = vendor.shown();
    let ends = vendor.ends(&pair).unwrap();
    assert_eq!(ends, ["vvendor"]);
    classify(&pair.kernel, &ends, 6, vendor.holder()).unwrap().keep();
    let [of_vendor, of_bulk] = count(&pair, &vendor, &bulk);
    assert!(in_slot_only(of_vendor) && outside_only(of_bulk));
    // Its end.
    in_network_namespace(&namespace("left"), || release("vendor")).unwrap();
    assert_eq!(vendor.shown(), before);
    assert!(count(&pair, &vendor, &bulk).into_iter().all(outside_only));
    // A container that does not start.
    drop(classify(&pair.kernel, &ends, 6, vendor.holder()).unwrap());
    assert_eq!(vendor.shown(), before);
}

fn bridged_frames_of_a_container_leave_in_its_slots() {
    slots_of_a_container(Way::Bridge);
}

fn routed_frames_of_a_container_leave_in_its_slots() {
    slots_of_a_container(Way::Route);
}

fn a_container_needs_veths_for_its_slots() {
    let pair = Pair::new();
    prepare(Way::Bridge);
    let container = Container::new("vendor", 3, Way::Bridge);
    // Its network has not been set up.
    run("ip netns exec vendor ip link set eth0 netns right name eth9");
    assert_eq!(container.ends(&pair), Err(NoEnds::None));
    run("ip netns exec right ip link set eth9 netns vendor name eth0");
    assert_eq!(container.ends(&pair), Ok(vec!["vvendor".into()]));
    // A veth to a third namespace.
    run("ip -netns vendor link add net1 type veth peer name eth8 netns right");
    assert_eq!(container.ends(&pair), Err(NoEnds::Elsewhere("net1".into())));
    run("ip -netns vendor link del net1");
    // A pair within the namespace leads nowhere.
    run("ip -netns vendor link add one type veth peer name two");
    assert_eq!(container.ends(&pair), Ok(vec!["vvendor".into()]));
}
