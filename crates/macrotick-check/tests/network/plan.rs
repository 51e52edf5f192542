//! The judge of planned flows. At 100 Mb/s a byte takes 80 ns. A message of 64 bytes over UDP takes 118 bytes, 9440 ns.

use macrotick_check::network::*;
use macrotick_model::Duration;

use crate::common::*;

const US: i64 = 1_000;

fn flow(name: &str, class: &str, ready: i64) -> Flow {
    Flow {
        name: name.into(),
        interface: "left".into(),
        class: class.into(),
        size: 64,
        protocol: Protocol::Udp4,
        tagged: false,
        period: ns(1_000 * US),
        ready: ns(ready),
        deadline: ns(300 * US),
    }
}

fn interface() -> NetworkInterface {
    NetworkInterface {
        name: "left".into(),
        link: Link::ethernet(100_000_000),
        classes: ["control", "rest"].map(Class::new).into(),
        gates: Some(list(&[(700 * US, "rest"), (300 * US, "control")])),
        guard: Guard::default(),
        gating: Gating::default(),
        slots: Vec::new(),
    }
}

fn network(flows: Vec<Flow>) -> Network {
    Network { cycle: ns(2_000 * US), interfaces: vec![interface()], flows }
}

fn texts(network: &Network) -> Vec<String> {
    judge(network).violations.iter().map(ToString::to_string).collect()
}

#[test]
fn messages_in_time() {
    let verdict = judge(&network(vec![flow("setpoint", "control", 690 * US), flow("log", "rest", 0)]));
    assert!(verdict.is_feasible(), "{verdict}");
    let setpoint = &verdict.flows[0];
    assert_eq!((setpoint.messages, setpoint.latency), (1, Some(ns(10 * US + 9_440))));
    assert_eq!(setpoint.slack, Some(ns(300 * US - 10 * US - 9_440)));
}

#[test]
fn a_late_message_names_its_instants() {
    let mut late = flow("setpoint", "control", 400 * US);
    assert_eq!(
        texts(&network(vec![late.clone()])),
        ["flow `setpoint` on `left`, cycle 0: the message that is ready at 400us ends at 709440ns, but the deadline is \
          700us"]
    );
    // The end of the frame may be the deadline, and not a nanosecond later.
    late.deadline = ns(309_440);
    assert_eq!(texts(&network(vec![late.clone()])), Vec::<String>::new());
    late.deadline = ns(309_439);
    assert_eq!(texts(&network(vec![late])).len(), 1);
}

#[test]
fn the_worst_message_of_the_hyperperiod() {
    // Every 750 us: ready at 0, 750, 1500 and 2250 us of 3 ms. The first waits 700 us, the third and the last one less.
    let mut flow = flow("setpoint", "control", 0);
    flow.period = ns(750 * US);
    let mut network = network(vec![flow]);
    network.cycle = ns(3_000 * US);
    assert_eq!(
        texts(&network),
        ["flow `setpoint` on `left`, cycle 0: the message that is ready at 0ns ends at 709440ns, but the deadline is \
          300us (2 messages of the hyperperiod)"]
    );
}

#[test]
fn frames_of_the_hyperperiod_before_still_wait() {
    // In steady state, the frame of 1500 bytes that is ready at 990 us waits for the next cycle. There it delays the
    // one that is ready at the start of the cycle.
    let mut big = flow("big", "control", 990 * US);
    (big.size, big.deadline) = (1472, ns(1_000 * US));
    let small = flow("small", "control", 0);
    let mut network = network(vec![small, big]);
    network.flows[0].deadline = ns(900 * US);
    let verdict = judge(&network);
    // 1538 bytes before it, and 118 bytes of its own.
    assert_eq!(verdict.flows[0].latency, Some(ns(700 * US + 1538 * 80 + 9_440)));
    assert!(verdict.is_feasible());
}

#[test]
fn a_backlog_that_grows_is_found() {
    // 300 us are 3750 bytes, two frames of 1538; three are ready in each cycle.
    let mut flow = flow("big", "control", 0);
    (flow.size, flow.deadline) = (1472 + 2 * 1480, ns(1_000_000 * US));
    let found = texts(&network(vec![flow]));
    assert_eq!(
        found,
        ["flow `big` on `left`: its frames wait longer in each hyperperiod of 1ms: open the gate longer, or send less"]
    );
}

#[test]
fn a_lost_message_says_why() {
    let mut network = network(vec![flow("setpoint", "control", 0)]);
    network.interfaces[0].gates = Some(list(&[(990 * US, "rest"), (10 * US, "control")]));
    assert_eq!(
        texts(&network),
        ["flow `setpoint` on `left`, cycle 0: the message that is ready at 0ns is lost: the frame has 130 bytes, but \
          the longest window has room for 125"]
    );
    network.interfaces[0].classes[0].max_sdu = Some(91);
    assert!(texts(&network)[0].ends_with("the frame has 92 bytes of content, but its class allows 91"));
}

#[test]
fn an_overrun_is_found_without_a_size_table() {
    let mut network = network(vec![flow("log", "rest", 0)]);
    network.interfaces[0].guard = Guard::Kernel;
    // 106 bytes, 8480 ns, end 1 ns before the closing; the 118 bytes on the wire end 959 ns after it.
    network.flows[0].ready = ns(700 * US - 8_481);
    assert_eq!(
        texts(&network),
        ["flow `log` on `left`, cycle 0: a frame takes [691519ns, 700959ns), but its gate closes at 700us"]
    );
}

#[test]
fn inputs_that_cannot_be_judged() {
    let with = |change: fn(&mut Network)| {
        let mut network = network(vec![flow("f", "control", 700 * US)]);
        change(&mut network);
        texts(&network)
    };
    assert_eq!(with(|_| ()), Vec::<String>::new());
    assert_eq!(
        with(|network| network.flows[0].interface = "right".into()),
        ["flow `f`: no interface is named `right`"]
    );
    assert_eq!(
        with(|network| network.flows[0].class = "x".into()),
        ["flow `f`: interface `left` has no traffic class `x`"]
    );
    assert_eq!(
        with(|network| network.flows[0].period = Duration::ZERO),
        ["flow `f` on `left`: the period 0ns and the deadline 300us must be positive, and the ready offset 700us must \
          not be negative"]
    );
    assert_eq!(
        with(|network| (network.flows[0].size, network.flows[0].protocol) = (1501, Protocol::Ethernet)),
        ["flow `f` on `left`: frames of 1500 bytes cannot carry a message of 1501 bytes"]
    );
    assert_eq!(
        with(|network| network.cycle = ns(1_500 * US)),
        ["interface `left`: the cycle 1500us of the plan is not a positive multiple of the cycle 1ms of the gate list"]
    );
    assert_eq!(
        with(|network| network.flows[0].period = ns(999_999_999_999_989)),
        ["interface `left`: the hyperperiod is too long, or three of it have more than 4000000 frames, windows and \
          slots: use periods with a smaller common multiple"]
    );
    assert_eq!(
        with(|network| network.interfaces[0].gates.as_mut().unwrap().entries[0].open.push("x".into())),
        ["interface `left`, entry 0: no traffic class is named `x`: use one of control, rest"]
    );
    assert_eq!(
        with(|network| network.interfaces[0].link.speed = 0),
        ["interface `left`: the speed of the link is zero: give it in bits per second"]
    );
}

#[test]
fn inputs_and_verdicts_are_documents() {
    let network = network(vec![flow("setpoint", "control", 0), flow("log", "rest", 0)]);
    let text = serde_json::to_string(&network).unwrap();
    assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
    let verdict = judge(&network);
    let text = serde_json::to_string(&verdict).unwrap();
    assert!(text.contains(r#"{"rule":"late","flow":"setpoint""#), "{text}");
    assert_eq!(serde_json::from_str::<NetworkVerdict>(&text).unwrap(), verdict);
}
