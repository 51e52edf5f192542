//! Captures that are built byte by byte, and their verdicts.

use std::net::IpAddr;

use macrotick_check::network::capture::*;
use macrotick_check::network::{Port, Slot};
use macrotick_model::Instant;

use crate::common::*;

/// Writes numbers in one byte order.
#[derive(Clone, Copy)]
pub struct Order {
    pub big: bool,
}

impl Order {
    pub fn two(self, number: u16) -> Vec<u8> {
        if self.big {
            number.to_be_bytes().into()
        } else {
            number.to_le_bytes().into()
        }
    }

    pub fn four(self, number: u32) -> Vec<u8> {
        if self.big {
            number.to_be_bytes().into()
        } else {
            number.to_le_bytes().into()
        }
    }

    pub fn eight(self, number: u64) -> Vec<u8> {
        if self.big {
            number.to_be_bytes().into()
        } else {
            number.to_le_bytes().into()
        }
    }

    pub fn block(self, kind: u32, content: &[Vec<u8>]) -> Vec<u8> {
        let mut content = content.concat();
        content.resize(content.len().next_multiple_of(4), 0);
        let length = self.four(content.len() as u32 + 12);
        [self.four(kind), length.clone(), content, length].concat()
    }

    pub fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut padded = value.to_vec();
        padded.resize(value.len().next_multiple_of(4), 0);
        [self.two(code), self.two(value.len() as u16), padded].concat()
    }

    pub fn section(self) -> Vec<u8> {
        self.block(0x0a0d_0d0a, &[self.four(0x1a2b_3c4d), self.two(1), self.two(0), self.eight(u64::MAX)])
    }

    pub fn interface(self, snaplen: u32, options: &[Vec<u8>]) -> Vec<u8> {
        let options = [options.concat(), self.option(0, &[])].concat();
        self.block(1, &[self.two(1), self.two(0), self.four(snaplen), options])
    }

    pub fn enhanced(self, interface: u32, stamp: u64, data: &[u8]) -> Vec<u8> {
        let length = self.four(data.len() as u32);
        let (high, low) = (self.four((stamp >> 32) as u32), self.four(stamp as u32));
        self.block(6, &[self.four(interface), high, low, length.clone(), length, data.to_vec()])
    }
}

pub const LITTLE: Order = Order { big: false };
pub const BIG: Order = Order { big: true };

/// A capture with nanoseconds.
pub fn nanos(order: Order, frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let mut file = [order.section(), order.interface(0, &[order.option(9, &[9])])].concat();
    frames.iter().for_each(|(at, data)| file.extend(order.enhanced(0, *at as u64, data)));
    file
}

/// An Ethernet frame with a UDP datagram over IPv4, and a VLAN tag if there is a priority.
pub fn udp(pcp: Option<u8>, port: u16, payload: &[u8]) -> Vec<u8> {
    let tag = pcp.map_or(Vec::new(), |pcp| vec![0x81, 0, pcp << 5, 7]);
    let length = payload.len() as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((length + 28).to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let header = [4000_u16.to_be_bytes(), port.to_be_bytes(), (length + 8).to_be_bytes(), [0, 0]].concat();
    let frame = [vec![2; 12], tag, vec![8, 0], ip, header, payload.to_vec()];
    let mut frame = frame.concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

fn read(file: &[u8]) -> Result<Vec<CapturedFrame<'_>>, CaptureError> {
    Capture::new(file)?.collect()
}

fn stamps(file: &[u8]) -> Vec<Option<i64>> {
    read(file).unwrap().iter().map(|frame| frame.at.map(Instant::as_nanos)).collect()
}

#[test]
fn pcapng_in_both_byte_orders() {
    for order in [LITTLE, BIG] {
        let file = nanos(order, &[(5, vec![1, 2, 3]), (1_700_000_000_123_456_789, vec![4; 60])]);
        let frames = read(&file).unwrap();
        assert_eq!((frames[0].data, frames[0].number, frames[0].length), (&[1, 2, 3][..], 1, 3));
        assert_eq!((frames[1].data.len(), frames[1].number, frames[1].link_type), (60, 2, 1));
        assert_eq!(stamps(&file), [Some(5), Some(1_700_000_000_123_456_789)]);
        assert_eq!(frames[1].offset, frames[0].offset + 36);
    }
}

#[test]
fn resolution_and_offset_of_time_stamps() {
    let stamp = |order: Order, options: &[Vec<u8>], stamp: u64| {
        let file = [order.section(), order.interface(0, options), order.enhanced(0, stamp, &[0; 4])].concat();
        stamps(&file)[0].unwrap()
    };
    for order in [LITTLE, BIG] {
        let resolution = |value: u8| order.option(9, &[value]);
        // Microseconds without the option.
        assert_eq!(stamp(order, &[], 1_234_567), 1_234_567_000);
        assert_eq!(stamp(order, &[resolution(0)], 7), 7_000_000_000);
        assert_eq!(stamp(order, &[resolution(9)], 1 << 40), 1 << 40);
        // Rounded down: 1.999 ns, and 3 of 2^-10 s.
        assert_eq!(stamp(order, &[resolution(12)], 1_999), 1);
        assert_eq!(stamp(order, &[resolution(0x8a)], 3), 2_929_687);
        assert_eq!(stamp(order, &[resolution(0xff)], u64::MAX), 0);
        let offset = |seconds: i64| order.option(14, &order.eight(seconds as u64));
        assert_eq!(stamp(order, &[resolution(9), offset(10)], 1), 10_000_000_001);
        assert_eq!(stamp(order, &[offset(-3)], 1), -2_999_999_000);
    }
}

#[test]
fn simple_packets_several_interfaces_and_sections() {
    for order in [LITTLE, BIG] {
        let simple = |length: u32, data: &[u8]| order.block(3, &[order.four(length), data.to_vec()]);
        let second = order.interface(0, &[order.option(2, b"eth1"), order.option(9, &[9])]);
        let mut file =
            [order.section(), order.interface(6, &[]), second, simple(5, &[1; 5]), simple(9, &[2; 6])].concat();
        file.extend(order.enhanced(1, 77, &[3; 4]));
        // Statistics, and a block of an unknown type.
        file.extend([order.block(5, &[vec![0; 12]]), order.block(0x1234, &[vec![0; 4]])].concat());
        file.extend(order.enhanced(0, 77, &[4; 4]));
        // The second section has the other byte order and its own interfaces.
        file.extend(nanos(Order { big: !order.big }, &[(99, vec![5; 4])]));
        let frames = read(&file).unwrap();
        assert_eq!(frames.iter().map(|frame| frame.interface).collect::<Vec<_>>(), [0, 0, 1, 0, 0]);
        assert_eq!(frames.iter().map(|frame| frame.data.len()).collect::<Vec<_>>(), [5, 6, 4, 4, 4]);
        assert_eq!(frames[1].length, 9);
        assert_eq!(stamps(&file), [None, None, Some(77), Some(77_000), Some(99)]);
        let mut capture = Capture::new(&file).unwrap();
        capture.nth(2);
        assert_eq!((capture.interface(1), capture.interface(0), capture.interface(9)), (Some("eth1"), None, None));
    }
}

/// Makes a classic capture with one frame.
pub fn classic(order: Order, magic: u32, stamp: (u32, u32), data: &[u8]) -> Vec<u8> {
    let header = [order.four(magic), order.two(2), order.two(4), vec![0; 8], order.four(65_535), order.four(1)];
    let length = order.four(data.len() as u32);
    let record = [order.four(stamp.0), order.four(stamp.1), length.clone(), length, data.to_vec()];
    [header.concat(), record.concat()].concat()
}

#[test]
fn pcap_with_microseconds_and_nanoseconds() {
    for order in [LITTLE, BIG] {
        let micros = classic(order, 0xa1b2_c3d4, (3, 4), &[1, 2]);
        let nanos = classic(order, 0xa1b2_3c4d, (u32::MAX, 999_999_999), &[1, 2, 3]);
        assert_eq!(
            (stamps(&micros), stamps(&nanos)),
            (vec![Some(3_000_004_000)], vec![Some(4_294_967_295_999_999_999)])
        );
        assert_eq!(read(&nanos).unwrap()[0].data, [1, 2, 3]);
    }
}

#[test]
fn headers_of_packets() {
    let packet = |link_type, data: &[u8]| {
        let length = data.len() as u32;
        let frame = CapturedFrame { number: 1, offset: 0, interface: 0, link_type, at: None, length, data };
        let packet = Packet::new(&frame);
        (packet.vlan.map(|vlan| (vlan.pcp, vlan.id)), packet.destination_port, packet.payload.to_vec(), packet.content)
    };
    // The padding to 60 bytes is not part of the payload, but of the content on the wire.
    assert_eq!(packet(1, &udp(None, 5000, b"abc")), (None, Some(5000), b"abc".into(), 46));
    assert_eq!(packet(1, &udp(Some(6), 5000, &[7; 50])), (Some((6, 7)), Some(5000), vec![7; 50], 78));
    // Two tags: the outer one counts.
    let inner = udp(Some(3), 5000, &[7; 50]);
    let double = [&inner[..12], &[0x88, 0xa8, 0xe0, 1], &inner[12..]].concat();
    assert_eq!(packet(1, &double), (Some((7, 1)), Some(5000), vec![7; 50], 78));
    // A later fragment has no ports.
    let mut fragment = udp(None, 5000, &[7; 50]);
    fragment[21] = 1;
    assert_eq!(packet(1, &fragment).1, None);
    // The pseudo-device `any`.
    let cooked = [&[0; 14], &udp(None, 5000, &[7; 50])[12..]].concat();
    assert_eq!(packet(113, &cooked), (None, Some(5000), vec![7; 50], 78));
    let cooked = [&[8, 0], &[0; 18][..], &udp(None, 5000, &[7; 50])[14..]].concat();
    assert_eq!(packet(276, &cooked), (None, Some(5000), vec![7; 50], 78));
    // Cut at every place, nothing fails.
    (0..double.len()).for_each(|length| drop(packet(1, &double[..length])));
    assert_eq!(packet(228, b"ip"), (None, None, b"ip".into(), 2));
}

#[test]
fn udp_over_ipv6() {
    let mut data = [vec![2; 12], vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 11, 17, 64]].concat();
    data.extend([[0; 15].as_slice(), &[1], &[0; 15], &[2], &[0, 9, 0x13, 0x88, 0, 11, 0, 0], b"abc"].concat());
    let length = data.len() as u32;
    let frame = CapturedFrame { number: 1, offset: 0, interface: 0, link_type: 1, at: None, length, data: &data };
    let packet = Packet::new(&frame);
    assert_eq!((packet.source_port, packet.destination_port, packet.payload), (Some(9), Some(5000), &b"abc"[..]));
    assert_eq!((packet.source, packet.destination), ("::1".parse().ok(), "::2".parse().ok()));
    let rule = Rule { class: "control".into(), destination: "::2".parse::<IpAddr>().ok(), ..Rule::default() };
    assert!(rule.matches(&packet));
}

#[test]
fn rules_classify_in_order() {
    let rule = |class: &str| Rule { class: class.into(), ..Rule::default() };
    let rules = [
        Rule { pcp: Some(6), ..rule("control") },
        Rule { destination_port: Some(5000), source: "10.0.0.1".parse().ok(), ..rule("control") },
        Rule { ether_type: Some(0x0800), ..rule("rest") },
    ];
    let classifier = Classifier::new(&["control", "rest"], &rules).unwrap();
    let class = |data: &[u8]| {
        let frame = CapturedFrame { number: 1, offset: 0, interface: 0, link_type: 1, at: None, length: 0, data };
        classifier.classify(&Packet::new(&frame))
    };
    assert_eq!(class(&udp(Some(6), 1, &[])), Some(CONTROL));
    assert_eq!(class(&udp(Some(5), 5000, &[])), Some(CONTROL));
    assert_eq!(class(&udp(Some(5), 5001, &[])), Some(REST));
    assert_eq!(class(&[0; 60]), None);
    let error = Classifier::new(&["control", "rest"], &[rule("rest"), rule("x")]).unwrap_err();
    assert_eq!(error.to_string(), "rule 1: no traffic class is named `x`: use one of control, rest");
}

/// The frames with priority 6 are `control`, and all others are `rest`.
fn by_pcp(packet: &Packet) -> Option<usize> {
    Some(if packet.vlan.is_some_and(|vlan| vlan.pcp == 6) { CONTROL } else { REST })
}

/// `rest` is open in [0, 70) us, and `control` in [70, 100) us.
fn gated() -> Port {
    port(&[(70_000, "rest"), (30_000, "control")])
}

fn control(at: i64) -> (i64, Vec<u8>) {
    (at, udp(Some(6), 5000, &[0; 40]))
}

fn judge(expectation: &Expectation, frames: &[(i64, Vec<u8>)]) -> CaptureVerdict {
    judge_capture(Capture::new(&nanos(LITTLE, frames)).unwrap(), expectation, by_pcp).unwrap()
}

#[test]
fn frames_against_their_gate() {
    let port = gated();
    let frames = [70_000, 99_999, 100_000, 169_999, 210_000, 260_000].map(control);
    let verdict = judge(&Expectation::of(&port), &frames);
    let class = &verdict.classes[CONTROL];
    assert_eq!((class.frames, class.inside), (6, 2));
    // 100 000 is late by nothing, and still outside; 210 000 is 10 us after the closing and 60 us before the opening.
    assert_eq!((class.late.frames, class.late.worst), (2, ns(10_000)));
    assert_eq!((class.early.frames, class.early.worst), (2, ns(10_000)));
    let strays: Vec<_> = verdict.strays.iter().map(|stray| (stray.number, stray.kind, stray.by.as_nanos())).collect();
    let (early, late) = (StrayKind::Early, StrayKind::Late);
    assert_eq!(strays, [(3, late, 0), (4, early, 1), (5, late, 10_000), (6, early, 10_000)]);
    assert_eq!((verdict.strays[3].cycle, verdict.strays[3].at), (2, ns(60_000)));
    assert!(!verdict.is_clean());
    let two = Expectation { shown: 2, ..Expectation::of(&port) };
    assert_eq!(judge(&two, &frames).strays.len(), 2);
}

#[test]
fn clock_path_and_tolerance() {
    let port = gated();
    // The capture's clock is 1 s behind that of the gates, and the stamp is 1104 ns after the gate.
    let expectation =
        Expectation { clock: ns(1_000_000_000), path: ns(1_104), tolerance: ns(30), ..Expectation::of(&port) };
    let at = |instant: i64| instant + 1_104 - 1_000_000_000;
    let inside = |instant: i64| {
        let file = [
            LITTLE.section(),
            LITTLE.interface(0, &[LITTLE.option(9, &[9]), LITTLE.option(14, &LITTLE.eight(-2_i64 as u64))]),
            LITTLE.enhanced(0, (at(instant) + 2_000_000_000) as u64, &control(0).1),
        ];
        let file = file.concat();
        judge_capture(Capture::new(&file).unwrap(), &expectation, by_pcp).unwrap().classes[CONTROL].inside == 1
    };
    // Before the opening by up to 30 ns, and after the closing by less than 30 ns.
    assert_eq!([69_969, 69_970, 70_000, 99_999, 100_029, 100_030].map(inside), [false, true, true, true, true, false]);
}

#[test]
fn whole_frames_end_in_their_window() {
    let port = gated();
    let whole = Expectation { whole: true, ..Expectation::of(&port) };
    // 68 bytes of content and a tag are 8 + 14 + 4 + 68 + 4 = 98 bytes: 784 ns.
    let inside = |at| judge(&whole, &[control(at)]).classes[CONTROL].inside == 1;
    assert_eq!([70_000, 99_216, 99_217].map(inside), [true, true, false]);
    assert_eq!(judge(&whole, &[control(99_999)]).strays[0].by, ns(783));
}

#[test]
fn a_class_that_never_opens() {
    let port = port(&[(70_000, "rest"), (30_000, "")]);
    let verdict = judge(&Expectation::of(&port), &[control(5)]);
    assert_eq!((verdict.classes[CONTROL].closed, verdict.strays[0].kind), (1, StrayKind::Closed));
    assert!(!verdict.is_clean());
}

#[test]
fn gaps_and_bursts() {
    let port = gated();
    // Cycle 0: two; cycle 1: three, one of which is 10 ns early; cycle 2: none; cycle 3: one.
    let frames = [75_000, 76_000, 169_990, 171_000, 175_500, 370_000].map(control);
    let class = judge(&Expectation::of(&port), &frames).classes[CONTROL].clone();
    assert_eq!(class.gaps, Some(Gaps { least: ns(1_000), greatest: ns(194_500), mean: ns(59_000) }));
    assert_eq!(class.bursts, Some(Bursts { cycles: 4, empty: 1, least: 0, most: 3 }));
    // The first and the last cycle can be incomplete. A frame before the epoch, at the end of its cycle, is in it.
    let frames = [99_000, 170_000, 171_000, 270_000].map(control);
    assert_eq!(
        judge(&Expectation::of(&port), &frames).classes[CONTROL].bursts,
        Some(Bursts { cycles: 3, empty: 0, least: 2, most: 2 })
    );
    // 10^13 cycles are counted without a walk.
    let far = judge(&Expectation::of(&port), &[control(70_000), control(1_000_000_000_000_070_000)]);
    assert_eq!(far.classes[CONTROL].bursts.unwrap().empty, 10_000_000_000_000 - 1);
    assert_eq!(judge(&Expectation::of(&port), &[control(75_000)]).classes[CONTROL].gaps, None);
}

fn slot(class: &str, offset: i64, length: i64) -> Slot {
    Slot {
        group: format!("group of {class}"),
        class: class.into(),
        period: ns(100_000),
        offset: ns(offset),
        length: ns(length),
    }
}

#[test]
fn frames_against_slots() {
    let mut port = gated();
    let slots = [slot("control", 80_000, 10_000)];
    let frames = [79_990, 80_000, 89_999, 90_000].map(control);
    for gates in [true, false] {
        if !gates {
            port.gates = None;
        }
        let verdict = judge(&Expectation { slots: &slots, ..Expectation::of(&port) }, &frames);
        let class = &verdict.classes[CONTROL];
        assert_eq!((class.outside_slots.frames, class.outside_slots.worst), (2, ns(10)));
        assert_eq!(class.foreign_slots.frames, 0);
    }
    // A frame of the other class in the slot, one that reaches into it, and one that does not.
    let rest = |at| (at, udp(None, 5000, &[0; 40]));
    let port = self::port(&[]);
    let expectation = Expectation { slots: &slots, whole: true, ..Expectation::of(&port) };
    // 68 bytes of content are 94 bytes: 752 ns.
    let verdict = judge(&expectation, &[rest(79_248), rest(79_249), rest(85_000), rest(90_000)]);
    let class = &verdict.classes[REST];
    assert_eq!((class.foreign_slots.frames, class.foreign_slots.worst), (2, ns(5_000)));
    let strays: Vec<_> = verdict.strays.iter().map(|stray| (stray.number, stray.by.as_nanos())).collect();
    assert_eq!(strays, [(2, 1), (3, 5_000)]);
    assert_eq!(verdict.strays[0].group.as_deref(), Some("group of control"));
    // A frame of its own class has to fit as a whole.
    let verdict = judge(&expectation, &[control(89_216), control(89_217)]);
    assert_eq!(verdict.classes[CONTROL].outside_slots, Outside { frames: 1, worst: ns(1) });
}

#[test]
fn counts_frames_that_it_cannot_judge() {
    let order = LITTLE;
    let mut file = [order.section(), order.interface(0, &[order.option(9, &[9])]), order.interface(0, &[])].concat();
    file.extend(order.block(3, &[order.four(60), udp(Some(6), 5000, &[])]));
    file.extend(order.enhanced(1, 0, &udp(Some(6), 5000, &[])));
    file.extend(order.enhanced(0, 0, &[0; 60]));
    let port = gated();
    let expectation = Expectation { interface: Some(0), ..Expectation::of(&port) };
    let verdict =
        judge_capture(Capture::new(&file).unwrap(), &expectation, |packet| Some(packet.vlan.map_or(99, |_| CONTROL)));
    let verdict = verdict.unwrap();
    assert_eq!((verdict.frames, verdict.other, verdict.untimed, verdict.unclassified), (2, 1, 1, 1));
    assert!(!verdict.is_clean());
    // A capture without frames shows nothing.
    assert!(!judge(&expectation, &[]).is_clean());
    assert!(judge(&expectation, &[control(70_000)]).is_clean());
}

#[test]
fn sequence_numbers_of_a_class() {
    let port = gated();
    let sequences = [Sequence { class: CONTROL, offset: 4, width: Width::U32, big_endian: true }];
    let expectation = Expectation { sequences: &sequences, ..Expectation::of(&port) };
    let numbered = |number: u32| (75_000, udp(Some(6), 5000, &[vec![0; 4], number.to_be_bytes().to_vec()].concat()));
    let frames = [numbered(1), numbered(2), numbered(5), numbered(4), numbered(4), (75_000, udp(Some(6), 1, &[1]))];
    let numbers = judge(&expectation, &frames).classes[CONTROL].numbers;
    assert_eq!(numbers, Some(Numbering { lost: 1, duplicate: 1, reordered: 1, unnumbered: 1 }));
}

#[test]
fn verdicts_are_documents() {
    let port = gated();
    let verdict = judge(&Expectation::of(&port), &[control(5), control(75_000)]);
    let text = serde_json::to_string(&verdict).unwrap();
    assert_eq!(serde_json::from_str::<CaptureVerdict>(&text).unwrap(), verdict);
}
