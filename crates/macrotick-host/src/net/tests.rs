//! Deployments on the model of the kernel.

use std::collections::BTreeMap;

use macrotick_model::Duration;

use super::classifier::{self, Filter, Side};
use super::fake::{self, Fake, INDEX};
use super::kernel::Kernel;
use super::samples;
use super::wanted::{Classifier, Entry, Frames, GateClock, Leaf, Mapping, Mode, Root, Sizes, Taprio, Tree, Wanted};
use super::{pending, propose, propose_new, restart, swap, DeployFault, Deployment, Reason, Report, Shared, Target};

fn us(us: i64) -> Duration {
    Duration::from_nanos(us * 1000)
}

fn software(taprio: Taprio) -> Tree {
    Tree::of(Root::Taprio { taprio, else_try: Vec::new() })
}

fn with(tree: Tree) -> Wanted {
    Wanted { tree: Some(tree), ..Wanted::of("eth1") }
}

fn target(kernel: &Shared, wanted: Wanted) -> [Target; 1] {
    [Target { kernel: kernel.clone(), namespace: None, wanted }]
}

fn keep(kernel: &Shared, wanted: Wanted) -> Report {
    Deployment::make(&target(kernel, wanted)).unwrap().keep().remove(0)
}

fn other_list() -> Taprio {
    let entries = vec![Entry { length: us(500), open: 3 }, Entry { length: us(500), open: 1 }];
    Taprio { entries, ..samples::taprio() }
}

fn other_classes() -> Taprio {
    Taprio { mapping: Mapping::one_queue_each(2, &[(5, 0)]), ..samples::taprio() }
}

fn to_control() -> Classifier {
    Classifier { frames: samples::frames(), priority: 6 }
}

/// Everything that a deployment can set on a device, beside its root.
fn everything(tree: Tree) -> Wanted {
    Wanted {
        queues: Some(3),
        classifiers: Some(vec![to_control(), Classifier { frames: Frames::default(), priority: 0 }]),
        neighbours: vec![samples::neighbour()],
        ..with(tree)
    }
}

fn with_leaves() -> Tree {
    let leaves = BTreeMap::from([(0, Leaf::Pfifo { limit: 100 }), (1, Leaf::Cbs(samples::cbs()))]);
    Tree { leaves, sizes: Some(Sizes { overhead: 24 }), ..software(samples::taprio()) }
}

/// Deploys, with a failure at each change in turn. Afterwards the kernel must have what it had before.
fn fails_without_a_trace(setup: &[Wanted], wanted: &Wanted, vlan: bool) {
    let mut changes = None;
    for at in 0.. {
        let (fake, kernel) = fake::shared(Fake::new(vlan));
        for wanted in setup {
            keep(&kernel, wanted.clone());
        }
        let before = fake.borrow().state.clone();
        let first = fake.borrow().changes;
        fake.borrow_mut().fail_at = Some(first + at);
        match Deployment::make(&target(&kernel, wanted.clone())) {
            Err(fault) => {
                assert!(fault.to_string().contains("the fault of the test"), "change {at}: {fault}");
                assert_eq!(fault.left, [""; 0], "change {at}");
            }
            Ok(deployment) => {
                assert_eq!(fake.borrow().changes, first + at, "some change has no step");
                changes = Some(at);
                fake.borrow_mut().fail_at = None;
                drop(deployment);
            }
        }
        assert_eq!(fake.borrow().state, before, "change {at} of {wanted:?}");
        let has_gates = |wanted: &Wanted| matches!(wanted.tree, Some(Tree { root: Root::Taprio { .. }, .. }));
        let gates = has_gates(wanted) && setup.last().is_some_and(has_gates);
        assert!(!gates || !fake.borrow().leaked, "change {at}: frames passed no gate");
        if changes.is_some() {
            break;
        }
    }
    assert!(changes > Some(0), "{wanted:?} changes nothing");
}

#[test]
fn every_failure_restores_the_former_state() {
    let mqprio = || Tree::of(Root::Mqprio(Mapping::one_queue_each(2, &[(6, 0)])));
    let states = [
        with(Tree::of(Root::Default)),
        with(software(samples::taprio())),
        with(software(other_list())),
        with(software(other_classes())),
        with(with_leaves()),
        with(mqprio()),
        with(Tree::of(Root::Single(Leaf::Pfifo { limit: 10 }))),
        everything(software(samples::taprio())),
        everything(mqprio()),
    ];
    for before in &states {
        for after in states.iter().filter(|after| *after != before) {
            // A root stays while only the rest changes.
            let (_, kernel) = fake::shared(Fake::new(false));
            keep(&kernel, before.clone());
            if propose(&target(&kernel, after.clone())).unwrap()[0].commands.is_empty() {
                continue;
            }
            fails_without_a_trace(std::slice::from_ref(before), after, false);
        }
    }
}

#[test]
fn a_vlan_and_neighbours_are_restored() {
    let neighbours = vec![samples::neighbour()];
    let vlan_priorities = BTreeMap::from([(6, 6), (3, 1)]);
    let wanted = Wanted { vlan_priorities, neighbours, ..Wanted::of("eth1.5") };
    fails_without_a_trace(&[], &wanted, true);
    let other = super::Neighbour { hardware: [2, 0, 0, 0, 0, 9], ..samples::neighbour() };
    let before = Wanted { neighbours: vec![other], ..Wanted::of("eth1.5") };
    fails_without_a_trace(&[before], &wanted, true);
}

#[test]
fn a_second_device_that_fails_restores_the_first() {
    let ((first, one), (second, two)) = (fake::shared(Fake::new(false)), fake::shared(Fake::new(false)));
    second.borrow_mut().fail_at = Some(0);
    let before = (first.borrow().state.clone(), second.borrow().state.clone());
    let wanted = with(software(samples::taprio()));
    let targets = [target(&one, wanted.clone()), target(&two, wanted)].concat();
    assert!(Deployment::make(&targets).is_err());
    assert!(first.borrow().changes > 1);
    assert_eq!((first.borrow().state.clone(), second.borrow().state.clone()), before);
}

#[test]
fn the_best_tier_that_there_is_holds() {
    let modes = Mode::best(GateClock::Tai, us(60));
    let tree = || {
        let taprio = Taprio { mode: modes[0], ..samples::taprio() };
        with(Tree::of(Root::Taprio { taprio, else_try: modes[1..].to_vec() }))
    };
    for (refused, tier) in [(vec![], "hardware"), (vec!["hardware"], "exact"), (vec!["hardware", "exact"], "software")]
    {
        let mut model = Fake::new(false);
        model.refused = refused.clone();
        let (fake, kernel) = fake::shared(model);
        let report = keep(&kernel, tree());
        assert_eq!(report.mode.map(Mode::tier), Some(tier));
        assert_eq!(fake.borrow().mode(), report.mode);
        let names: Vec<&str> = report.refused.iter().map(|(mode, _)| mode.tier()).collect();
        assert_eq!((names, report.kept), (refused, false));
        assert!(report.refused.iter().all(|(_, why)| why.contains("Device does not support taprio offload")));
        // The next list keeps the tier, without another try.
        let report = keep(&kernel, tree());
        assert_eq!((report.mode.map(Mode::tier), report.kept, report.closed), (Some(tier), true, None));
    }
    let mut model = Fake::new(false);
    model.refused = vec!["hardware", "exact", "software"];
    let fault = Deployment::make(&target(&fake::shared(model).1, tree())).err().unwrap();
    assert!(matches!(fault.reason, Reason::Refused(_)), "{fault}");
}

#[test]
fn exact_gates_start_without_a_frame() {
    let mut model = Fake::new(false);
    model.silent = true;
    let (fake, kernel) = fake::shared(model);
    let taprio = Taprio { mode: Mode::Exact { lead: us(60) }, max_sdu: vec![0, 1000], ..samples::taprio() };
    let first = Deployment::make(&target(&kernel, with(software(taprio.clone())))).unwrap();
    let at = fake.borrow().time + 10_000_000;
    let list = Taprio { entries: other_list().entries, ..taprio.clone() };
    let second = swap(&target(&kernel, with(software(list))), at).unwrap();
    assert!(pending(&kernel, "eth1").unwrap().is_some());
    fake.borrow_mut().wait(us(10_001));
    assert_eq!(pending(&kernel, "eth1"), Ok(None));
    drop(second);
    let commands = propose(&target(&kernel, with(software(taprio)))).unwrap().remove(0).commands;
    assert_eq!(commands, [""; 0], "the first list is back");
    drop(first);
}

#[test]
fn a_device_with_gates_is_closed_while_its_classes_change() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    assert_eq!(keep(&kernel, with(software(samples::taprio()))).closed, None);
    let proposal = propose(&target(&kernel, with(software(other_classes())))).unwrap().remove(0);
    assert_eq!((proposal.closes.as_deref(), proposal.swaps), (Some("the traffic classes change"), false));
    let (closed, dropped) = keep(&kernel, with(software(other_classes()))).closed.unwrap();
    assert!(closed > Duration::from_nanos(0) && closed <= us(1001), "{closed}");
    assert!(dropped == 0 && !fake.borrow().leaked);
    // A new list needs no closed device.
    let list = Taprio { entries: other_list().entries, ..other_classes() };
    assert_eq!(keep(&kernel, with(software(list))).closed, None);
}

#[test]
fn lists_swap_at_one_instant() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    keep(&kernel, with(software(samples::taprio())));
    let at = fake.borrow().time + 1_500_000;
    swap(&target(&kernel, with(software(other_list()))), at).unwrap().keep();
    let next = pending(&kernel, "eth1").unwrap().unwrap();
    assert_eq!((next.base_time, next.entries), (at, other_list().entries));
    // Nothing changes until then.
    let refused = propose(&target(&kernel, with(software(samples::taprio())))).unwrap_err();
    assert!(refused.to_string().contains(&format!("another gate list follows at {at} ns")), "{refused}");
    fake.borrow_mut().wait(us(1500));
    assert_eq!(pending(&kernel, "eth1"), Ok(None));
    assert!(!fake.borrow().leaked);
}

#[test]
fn gates_start_again_with_their_list() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    restart(&kernel, "eth1").unwrap();
    assert_eq!(fake.borrow().changes, 0);
    keep(&kernel, with(with_leaves()));
    let (before, changes) = (fake.borrow().state.clone(), fake.borrow().changes);
    restart(&kernel, "eth1").unwrap();
    assert_eq!(fake.borrow().changes, changes + 1);
    assert_eq!(propose(&target(&kernel, with(with_leaves()))).unwrap()[0].commands, [""; 0]);
    // The message itself differs in one flag of its header only.
    assert_eq!(fake.borrow().state, before);
}

#[test]
fn a_swap_that_would_close_a_device_is_refused() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    let says = |wanted: Taprio, after: i64, said: &str| {
        let at = fake.borrow().time + after;
        let fault = swap(&target(&kernel, with(software(wanted))), at).err().unwrap();
        assert_eq!(fault.to_string(), format!("device `eth1`: cannot swap the gate list: {said}"));
    };
    says(samples::taprio(), 1_000_000, "no gate list runs on it");
    keep(&kernel, with(software(samples::taprio())));
    says(other_classes(), 1_000_000, "the traffic classes change");
    let at = fake.borrow().time;
    says(other_list(), 0, &format!("the instant of {at} ns has passed; choose a later one"));
}

#[test]
fn a_swap_that_comes_too_late_is_taken_back() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    keep(&kernel, with(software(samples::taprio())));
    let before = fake.borrow().state.clone();
    let at = fake.borrow().time + 1000;
    // The change itself takes longer.
    fake.borrow_mut().duration = 2000;
    assert!(swap(&target(&kernel, with(software(other_list()))), at).is_err());
    assert_eq!(fake.borrow().state, before);
    assert!(!fake.borrow().leaked);
}

#[test]
fn what_is_deployed_needs_no_step() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    let mut tree = with_leaves();
    tree.sizes = None;
    keep(&kernel, everything(tree.clone()));
    let changes = fake.borrow().changes;
    assert_eq!(propose(&target(&kernel, everything(tree.clone()))).unwrap()[0].commands, [""; 0]);
    assert!(keep(&kernel, everything(tree)).kept);
    assert_eq!(fake.borrow().changes, changes);
}

#[test]
fn a_device_that_was_left_closed_is_opened() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    let gates = with(software(samples::taprio()));
    keep(&kernel, gates.clone());
    kernel.borrow_mut().send(&super::qdisc::add_clsact(INDEX)).unwrap();
    kernel.borrow_mut().send(&classifier::add(INDEX, Side::Egress, classifier::CLOSED, &Filter::Closed)).unwrap();
    assert!(fake.borrow().closed());
    keep(&kernel, gates);
    assert!(!fake.borrow().closed());
}

#[test]
fn a_killed_run_is_cleared() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    let before = fake.borrow().state.clone();
    let wanted = Wanted { queues: None, neighbours: Vec::new(), ..everything(with_leaves()) };
    keep(&kernel, wanted);
    assert_ne!(fake.borrow().state, before);
    super::left::clear(&kernel, "eth1").unwrap();
    assert_eq!(fake.borrow().state, before);
    super::left::clear(&kernel, "eth1").unwrap();
    assert_eq!(fake.borrow().state, before);
}

/// A veth that does not exist yet has the commands of one that was never configured.
#[test]
fn a_dry_run_needs_no_device() {
    let (_, kernel) = fake::shared(Fake::new(false));
    let wanted = Wanted { queues: None, ..everything(with_leaves()) };
    let there = propose(&target(&kernel, wanted.clone())).unwrap().remove(0);
    assert_eq!(propose_new(None, 4, &wanted).unwrap(), there);
    let refused = propose_new(None, 1, &wanted).unwrap_err().to_string();
    assert!(refused.contains("it has 1 transmit queues, and 2 are needed"), "{refused}");
}

#[test]
fn a_dry_run_lists_the_commands() {
    let (_, kernel) = fake::shared(Fake::new(false));
    let commands = |wanted: Wanted, namespace: Option<&str>| {
        let target = Target { kernel: kernel.clone(), namespace: namespace.map(str::to_owned), wanted };
        propose(&[target]).unwrap().remove(0).commands
    };
    let tree = Tree { leaves: BTreeMap::from([(1, Leaf::Etf(samples::etf()))]), ..with_leaves() };
    assert_eq!(
        commands(everything(tree.clone()), Some("left")),
        [
            "ip -netns left neighbour replace 10.0.0.2 lladdr 02:00:00:00:00:01 dev eth1 nud permanent",
            "tc -netns left qdisc add dev eth1 clsact",
            "tc -netns left filter add dev eth1 egress pref 19712 protocol ip handle 1 flower ip_proto udp src_ip 10.0.0.1 \
             dst_ip 10.0.0.2 dst_port 4000 ip_tos 0xb8/0xfc action skbedit priority 0:6 pass",
            "tc -netns left filter add dev eth1 egress pref 19713 protocol all handle 1 matchall action skbedit priority \
             0:0 pass",
            "ip netns exec left ethtool -L eth1 combined 3",
            "tc -netns left qdisc add dev eth1 root handle 4d00: stab overhead 24 taprio num_tc 2 map 1 1 1 1 1 1 0 1 1 1 \
             1 1 1 1 1 1 queues 1@0 1@1 base-time 1000000000000 cycle-time 1000000 sched-entry S 02 700000 sched-entry S \
             01 300000 clockid CLOCK_TAI",
            "tc -netns left qdisc add dev eth1 parent 4d00:2 handle 4d02: etf delta 300000 clockid CLOCK_TAI offload \
             skip_sock_check",
            "# wait until the gates have started",
        ]
    );
    keep(&kernel, with(software(samples::taprio())));
    assert_eq!(
        commands(with(software(other_list())), None),
        ["tc qdisc change dev eth1 root handle 4d00: taprio num_tc 2 map 1 1 1 1 1 1 0 1 1 1 1 1 1 1 1 1 queues 1@0 1@1 \
          base-time 1000000000000 cycle-time 1000000 sched-entry S 03 500000 sched-entry S 01 500000 clockid CLOCK_TAI"]
    );
    let single = Tree::of(Root::Single(Leaf::Cbs(samples::cbs())));
    assert_eq!(
        commands(with(single), None),
        [
            "tc qdisc add dev eth1 clsact",
            "tc filter add dev eth1 egress pref 1 protocol all handle 1 matchall action skbedit priority 0:0 drop",
            "tc qdisc del dev eth1 root handle 4d00:",
            "tc qdisc add dev eth1 root handle 4d00: cbs idleslope 98688 sendslope -901312 hicredit 153 locredit -1389 \
             offload 0",
            "tc filter del dev eth1 egress pref 1",
            "tc qdisc del dev eth1 clsact",
        ]
    );
}

#[test]
fn a_dry_run_lists_the_tiers() {
    let (_, kernel) = fake::shared(Fake::new(false));
    let modes = Mode::best(GateClock::Tai, us(60));
    let taprio = Taprio { mode: modes[0], max_sdu: vec![0, 1500], ..samples::taprio() };
    let tree = Tree::of(Root::Taprio { taprio, else_try: modes[1..].to_vec() });
    let commands = propose(&target(&kernel, with(tree))).unwrap().remove(0).commands;
    let add = "tc qdisc add dev eth1 root handle 4d00: taprio num_tc 2 map 1 1 1 1 1 1 0 1 1 1 1 1 1 1 1 1 queues 1@0 1@1 \
               base-time 1000000000000 cycle-time 1000000 sched-entry S 02 700000 sched-entry S 01 300000 max-sdu 0 1500";
    assert_eq!(
        commands,
        [
            format!("{add} flags 0x2"),
            format!("# or, if refused (exact gates): {add} flags 0x4 lead 60000 clockid CLOCK_TAI"),
            format!("# or, if refused (software gates): {add} clockid CLOCK_TAI"),
            "# wait until the gates have started".into(),
        ]
    );
}

#[test]
fn a_future_base_time_is_wound_back_for_new_gates() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    let base_time = fake.borrow().time + 3_600_000_000_123;
    keep(&kernel, with(software(Taprio { base_time, ..samples::taprio() })));
    assert!(fake.borrow().time < base_time - 3_599_000_000_000, "it waited for the base time");
}

#[test]
fn a_foreign_root_is_refused_with_the_command() {
    let (_, kernel) = fake::shared(Fake::new(false));
    let header = netlink_bindings::tc::Tcmsg {
        ifindex: INDEX,
        parent: super::qdisc::ROOT,
        handle: 0x10000,
        ..Default::default()
    };
    let mut request = netlink_bindings::tc::Request::new().set_create().set_excl().op_newqdisc_do(&header);
    request.encode().push_kind(c"htb");
    kernel.borrow_mut().send(&super::Message::of(&request)).unwrap();
    let fault: Box<DeployFault> = propose(&target(&kernel, with(software(samples::taprio())))).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "device `eth1`: cannot replace the root qdisc: it has a qdisc `htb` that Macrotick could not restore; delete it \
         first: `tc qdisc del dev eth1 root handle 1:`"
    );
}

#[test]
fn what_cannot_be_restored_is_told() {
    let (fake, kernel) = fake::shared(Fake::new(false));
    let wanted = Wanted { neighbours: vec![samples::neighbour()], ..with(software(samples::taprio())) };
    fake.borrow_mut().always_fail_from = Some(1);
    let fault = Deployment::make(&target(&kernel, wanted)).err().unwrap();
    assert_eq!(
        fault.to_string(),
        "device `eth1`: cannot add the gates: Cannot allocate memory (os error 12): the fault of the test; the former \
         state is not restored: `ip neighbour del 10.0.0.2 dev eth1`: Cannot allocate memory (os error 12): the fault of \
         the test; filters, neighbours or queues of `eth1` are not as before"
    );
}
