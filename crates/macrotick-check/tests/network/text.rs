//! The verdicts as text.

use macrotick_check::network::capture::*;
use macrotick_check::network::*;
use macrotick_model::Duration;

use crate::capture::{nanos, udp, LITTLE};
use crate::common::*;

#[test]
fn the_verdict_on_a_network() {
    let interface = NetworkInterface {
        name: "left".into(),
        link: Link::ethernet(100_000_000),
        classes: ["control", "rest"].map(Class::new).into(),
        gates: Some(list(&[(700_000, "rest"), (300_000, "control")])),
        guard: Guard::default(),
        gating: Gating::default(),
        slots: vec![Slot {
            group: "vendor-a".into(),
            class: "control".into(),
            period: ns(1_000_000),
            offset: ns(700_000),
            length: ns(300_000),
        }],
    };
    let flow = |name: &str, class: &str, ready, deadline| Flow {
        name: name.into(),
        interface: "left".into(),
        class: class.into(),
        size: 64,
        protocol: Protocol::Udp4,
        tagged: false,
        period: ns(1_000_000),
        ready: ns(ready),
        deadline: ns(deadline),
    };
    let flows = vec![flow("setpoint", "control", 0, 300_000), flow("log", "rest", 0, 1_000_000)];
    let mut network = Network { cycle: Duration::from_millis(1), interfaces: vec![interface], flows };
    assert_eq!(
        judge(&network).to_string(),
        "\
network: not feasible: 1 violation
  flow `setpoint` on `left`, cycle 0: the message that is ready at 0ns ends at 709440ns, but the deadline is 300us
interface left: repeats after 1ms, slots take 30.0 %
  class control: 1 frame, 1.1 % of the link, open 30.0 %, at most 700us in the queue, 1 waiting
  class rest: 1 frame, 1.1 % of the link, open 70.0 %, at most 0ns in the queue, 1 waiting
flow     messages      latency        slack
setpoint        1     709440ns    -409440ns
log             1       9440ns     990560ns
"
    );
    network.flows.clear();
    network.interfaces[0].slots.clear();
    assert!(judge(&network).to_string().starts_with("network: feasible\ninterface left: repeats after 1ms\n"));
}

#[test]
fn the_verdict_on_a_capture() {
    let port = port(&[(70_000, "rest"), (30_000, "control")]);
    let sequences = [Sequence { class: CONTROL, offset: 0, width: Width::U16, big_endian: true }];
    let expectation = Expectation { sequences: &sequences, ..Expectation::of(&port) };
    let frames = [(75_000, 1), (169_990, 3), (270_000, 4)].map(|(at, number)| (at, udp(Some(6), 5000, &[0, number])));
    let judge = |frames: &[(i64, Vec<u8>)]| {
        let file = nanos(LITTLE, frames);
        let class = |packet: &Packet| packet.vlan.map(|_| CONTROL);
        judge_capture(Capture::new(&file).unwrap(), &expectation, class).unwrap().to_string()
    };
    assert_eq!(
        judge(&[frames.as_slice(), &[(280_000, udp(None, 1, &[]))]].concat()),
        "\
capture of left: 4 frames: not all frames in their windows and slots
  1 frame without a traffic class
  class control: 3 frames, 2 in their windows, 1 early by at most 10ns
    from the opening: earliest -10ns, mean 1663ns, latest 5us
    gaps: least 94990ns, mean 97500ns, greatest 100010ns
    bursts: 1 to 1 frames per cycle in 3 cycles, 0 without a frame
    numbers: 1 lost, 0 duplicate, 0 reordered
  class rest: 0 frames, 0 in their windows
  frame 2, class `control`, cycle 1 at 69990ns: 10ns before its gate opens
"
    );
    assert!(judge(&frames[..1]).starts_with("capture of left: 1 frame: all frames in their windows and slots\n"));
    assert!(judge(&[]).starts_with("capture of left: 0 frames: no frame to judge\n"));
}
