//! The bytes of every message. The literals are what iproute2 6.1 sends (recorded with strace), and differ from ours in
//! one point: iproute2 leaves `NLA_F_NESTED` out of most nested attributes. Messages that iproute2 does not send are
//! literals of our own.

use std::collections::BTreeMap;

use macrotick_model::Duration;

use super::channels::{self, Channels};
use super::classifier::{self, Filter, Side};
use super::message::{Family, Message};
use super::qdisc::{self, Kind, Placed, Put};
use super::wanted::{Classifier, Frames, Leaf, Mapping, Mode, Queues, Sizes, Taprio};
use super::{link, neighbour, samples};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Returns the message as on the wire, with the number of the message and the sender zero.
fn wire(message: &Message) -> Vec<u8> {
    let kind = match message.family {
        Family::Route(kind) => kind,
        Family::Generic(_) => 0,
    };
    let length = (16 + message.payload.len()) as u32;
    [&length.to_le_bytes()[..], &kind.to_le_bytes(), &message.flags.to_le_bytes(), &[0; 8], &message.payload].concat()
}

/// Fails unless the message is `hex`, apart from `NLA_F_NESTED`, which our bytes may have in the type of an attribute.
#[track_caller]
fn is(message: &Message, hex: &str) {
    let (ours, theirs) = (wire(message), bytes(hex));
    let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(ours.len(), theirs.len(), "\n{}\n{}", text(&ours), text(&theirs));
    for (at, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        let nested = at % 4 == 3 && *our == their | 0x80;
        assert!(our == their || nested, "byte {at}\n{}\n{}", text(&ours), text(&theirs));
    }
}

fn root(kind: Kind) -> Placed {
    Placed { parent: qdisc::ROOT, handle: qdisc::HANDLE, sizes: None, kind }
}

fn leaf(queue: u32, leaf: Leaf) -> Placed {
    let at = qdisc::HANDLE + queue;
    Placed { parent: at, handle: qdisc::HANDLE + (queue << 16), sizes: None, kind: Kind::Leaf(leaf) }
}

#[test]
fn gates_with_a_size_table() {
    let placed = Placed { sizes: Some(Sizes { overhead: 24 }), ..root(Kind::Taprio(samples::taprio())) };
    is(
        &qdisc::put(3, Put::Add, &placed),
        "0801000024000506000000000000000000000000030000000000004dffffffff000000000b00010074617072696f0000b800\
         0200080005000b00000056000100020101010101010001010101010101010100010001000000000000000000000000000000\
         0000000000000000000000000000000001000000000000000000000000000000000000000000000000000000000000000c00\
         03000010a5d4e80000000c00080040420f00000000003c0002801c0001000500020000000000080003000200000008000400\
         60ae0a001c0001000500020000000000080003000100000008000400e0930400200008001c00010000000000180000000000\
         0000000000000000000000000000",
    );
    is(
        &qdisc::put(3, Put::Change, &placed),
        "0801000024000500000000000000000000000000030000000000004dffffffff000000000b00010074617072696f0000b800\
         0200080005000b00000056000100020101010101010001010101010101010100010001000000000000000000000000000000\
         0000000000000000000000000000000001000000000000000000000000000000000000000000000000000000000000000c00\
         03000010a5d4e80000000c00080040420f00000000003c0002801c0001000500020000000000080003000200000008000400\
         60ae0a001c0001000500020000000000080003000100000008000400e0930400200008001c00010000000000180000000000\
         0000000000000000000000000000",
    );
}

#[test]
fn gates_by_launch_time() {
    let mode = Mode::TxtimeAssist { delay: Duration::from_nanos(200_000) };
    is(
        &qdisc::put(3, Put::Add, &root(Kind::Taprio(Taprio { mode, ..samples::taprio() }))),
        "f800000024000506000000000000000000000000030000000000004dffffffff000000000b00010074617072696f0000c800\
         0200080005000b00000008000a00010000005600010002010101010101000101010101010101010001000100000000000000\
         0000000000000000000000000000000000000000000000000100000000000000000000000000000000000000000000000000\
         00000000000008000b00400d03000c0003000010a5d4e80000000c00080040420f00000000003c0002801c00010005000200\
         0000000008000300020000000800040060ae0a001c0001000500020000000000080003000100000008000400e0930400",
    );
}

#[test]
fn gates_in_hardware_have_no_clock() {
    let taprio = Taprio { mode: Mode::Hardware, ..samples::taprio() };
    is(
        &qdisc::put(3, Put::Add, &root(Kind::Taprio(taprio))),
        "e800000024000506000000000000000000000000030000000000004dffffffff000000000b00010074617072696f0000b800\
         020008000a000200000056000100020101010101010001010101010101010100010001000000000000000000000000000000\
         0000000000000000000000000000000001000000000000000000000000000000000000000000000000000000000000000c00\
         03000010a5d4e80000000c00080040420f00000000003c0002801c0001000500020000000000080003000200000008000400\
         60ae0a001c0001000500020000000000080003000100000008000400e0930400",
    );
}

#[test]
fn exact_gates_and_the_largest_frames() {
    let mode = Mode::Exact { lead: Duration::from_nanos(60_000) };
    let taprio = Taprio { mode, max_sdu: vec![0, 1500], ..samples::taprio() };
    // iproute2 6.1 has neither: the flag is BIT(2), attribute 13 is the lead, attribute 12 is the limit of a class.
    is(
        &qdisc::put(3, Put::Add, &root(Kind::Taprio(taprio))),
        "2001000024000506000000000000000000000000030000000000004dffffffff000000000b00010074617072696f0000f000\
         0200080005000b00000008000a00040000005600010002010101010101000101010101010101010001000100000000000000\
         0000000000000000000000000000000000000000000000000100000000000000000000000000000000000000000000000000\
         00000000000008000d0060ea00000c0003000010a5d4e80000000c00080040420f00000000003c0002801c00018005000200\
         0000000008000300020000000800040060ae0a001c0001800500020000000000080003000100000008000400e09304001400\
         0c800800010000000000080002000000000014000c80080001000100000008000200dc050000",
    );
}

#[test]
fn traffic_classes() {
    let mut mapping = Mapping::one_queue_each(2, &[(6, 0)]);
    mapping.queues[1] = Queues { count: 3, offset: 1 };
    is(
        &qdisc::put(3, Put::Add, &root(Kind::Mqprio(mapping))),
        "8800000024000506000000000000000000000000030000000000004dffffffff000000000b0001006d717072696f00005800\
         0200020101010101010001010101010101010100010003000000000000000000000000000000000000000000000000000000\
         000000000100000000000000000000000000000000000000000000000000000000000000",
    );
}

#[test]
fn qdiscs_of_queues() {
    is(
        &qdisc::put(3, Put::Add, &leaf(1, Leaf::Etf(samples::etf()))),
        "4000000024000506000000000000000000000000030000000000014d0100004d000000000800010065746600140002001000\
         0100e09304000b00000006000000",
    );
    is(
        &qdisc::put(3, Put::Add, &leaf(2, Leaf::Cbs(samples::cbs()))),
        "4800000024000506000000000000000000000000030000000000024d0200004d0000000008000100636273001c0002001800\
         0100000000009900000093faffff80810100403ff2ff",
    );
    is(
        &qdisc::put(3, Put::Add, &leaf(2, Leaf::Pfifo { limit: 500 })),
        "3800000024000506000000000000000000000000030000000000024d0200004d000000000a000100706669666f0000000800\
         0200f4010000",
    );
}

#[test]
fn the_default_qdisc() {
    is(&qdisc::delete(3, qdisc::ROOT, 0), "24000000250005000000000000000000000000000300000000000000ffffffff00000000");
}

#[test]
fn the_place_of_classifiers() {
    is(
        &qdisc::add_clsact(3),
        "3000000024000506000000000000000000000000030000000000fffff1ffffff000000000b000100636c736163740000",
    );
}

#[test]
fn a_closed_device() {
    is(
        &classifier::add(3, Side::Egress, classifier::CLOSED, &Filter::Closed),
        "700000002c0005060000000000000000000000000300000001000000f3ffffff000301000d0001006d61746368616c6c0000\
         00003c00020038000200340001000c000100736b626564697400240002801800020000000000000000000200000000000000\
         000000000800030000000000",
    );
    is(
        &classifier::delete(3, Side::Egress, classifier::CLOSED, &Filter::Closed),
        "340000002d0005000000000000000000000000000300000001000000f3ffffff000301000d0001006d61746368616c6c0000\
         0000",
    );
}

#[test]
fn classifiers() {
    let with = |frames, priority| Filter::Classifier(Classifier { frames, priority });
    is(
        &classifier::add(3, Side::Egress, classifier::FIRST, &with(samples::frames(), 6)),
        "bc0000002c0005060000000000000000000000000300000001000000f3ffffff0800004d0b000100666c6f77657200008c00\
         0200050009001100000008000a000a00000108000b00ffffffff08000c000a00000208000d00ffffffff060015000fa00000\
         05004900b800000005004a00fc00000038000300340001000c000100736b6265646974002400028018000200000000000000\
         0000000000000000000000000000080003000600000008001600000000000600080008000000",
    );
    is(
        &classifier::add(
            3,
            Side::Egress,
            classifier::FIRST + 1,
            &with(Frames { pcp: Some(6), ..Frames::default() }, 6),
        ),
        "840000002c0005060000000000000000000000000300000001000000f3ffffff8100014d0b000100666c6f77657200005400\
         0200050018000600000038000300340001000c000100736b6265646974002400028018000200000000000000000000000000\
         0000000000000000080003000600000008001600000000000600080081000000",
    );
    is(
        &classifier::add(3, Side::Egress, classifier::FIRST + 2, &with(Frames::default(), 3)),
        "700000002c0005060000000000000000000000000300000001000000f3ffffff0003024d0d0001006d61746368616c6c0000\
         00003c00020038000200340001000c000100736b626564697400240002801800020000000000000000000000000000000000\
         000000000800030003000000",
    );
}

#[test]
fn priorities_of_a_vlan() {
    // iproute2 sends the name `vlan` without the zero at its end.
    is(
        &link::set_vlan_priorities(3, &BTreeMap::from([(6, 6), (3, 2)])),
        "50000000100005000000000000000000000000000300000000000000000000003000120009000100766c616e\
         00000000200002001c0003000c00010003000000020000000c0001000600000006000000",
    );
}

#[test]
fn neighbours() {
    is(
        &neighbour::put(3, &samples::neighbour()),
        "300000001c0005050000000000000000020000000300000080000000080001000a0000020a0002000200000000010000",
    );
    is(
        &neighbour::delete(3, &samples::neighbour()),
        "240000001d0005000000000000000000020000000300000080000000080001000a000002",
    );
}

#[test]
fn queues() {
    let of = |combined| Channels { queues: 4, max: 4, combined };
    // The header of generic netlink: command 18, version 1. `ETHTOOL_A_CHANNELS_HEADER` has the number of the device;
    // then `ETHTOOL_A_CHANNELS_COMBINED_COUNT` (9) or `ETHTOOL_A_CHANNELS_TX_COUNT` (7).
    is(&channels::set(3, of(true)), "28000000000005000000000000000000120100000c00018008000100030000000800090004000000");
    is(
        &channels::set(3, of(false)),
        "28000000000005000000000000000000120100000c00018008000100030000000800070004000000",
    );
    is(&channels::read(3), "20000000000005000000000000000000110100000c0001800800010003000000");
}

#[test]
fn questions() {
    let hex = |message: &Message| message.payload.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&qdisc::dump(3)), "0000000003000000000000000000000000000000");
    assert_eq!(hex(&classifier::dump(3, Side::Egress)), "000000000300000000000000f3ffffff00000000");
    assert_eq!(hex(&link::read("lo")), "00000000000000000000000000000000070003006c6f0000");
    assert_eq!(hex(&neighbour::dump()), "020000000000000000000000");
    let dump = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_DUMP) as u16;
    for message in [qdisc::dump(3), classifier::dump(3, Side::Egress), neighbour::dump()] {
        assert_eq!(message.flags, dump);
    }
}
