//! Damaged captures: an error with its place, and never a panic.

use macrotick_check::network::capture::*;
use macrotick_model::SplitMix64;

use crate::capture::{classic, nanos, udp, Order, BIG, LITTLE};
use crate::common::*;

fn fails(file: &[u8]) -> (usize, String) {
    let capture = match Capture::new(file) {
        Ok(capture) => capture,
        Err(error) => return (0, error.to_string()),
    };
    let frames: Vec<_> = capture.collect();
    let error = frames.last().and_then(|last| last.as_ref().err()).map_or("none".into(), ToString::to_string);
    (frames.iter().filter(|frame| frame.is_ok()).count(), error)
}

#[test]
fn a_file_of_another_format() {
    let text = "the capture is neither pcapng nor pcap: it starts with [50, 4b, 03, 04]";
    assert_eq!(fails(b"PK\x03\x04 a zip file that is long enough"), (0, text.into()));
    assert_eq!(fails(b"ab").1, "the capture is neither pcapng nor pcap: it starts with [61, 62]");
    assert!(fails(b"").1.starts_with("byte 0: the capture ends"));
}

#[test]
fn a_truncated_file_names_the_offset() {
    for order in [LITTLE, BIG] {
        let file = nanos(order, &[(1, vec![1; 60]), (2, vec![2; 61])]);
        // The section header has 28 bytes and the interface 32, the blocks of the frames 92 and 96.
        assert_eq!((fails(&file), file.len()), ((2, "none".into()), 248));
        for length in 4..file.len() {
            let start = [152, 60, 28, 0].into_iter().find(|start| *start <= length).unwrap();
            let (frames, error) = fails(&file[..length]);
            assert_eq!(frames, usize::from(length >= 152));
            match [28, 60, 152].contains(&length) {
                true => assert_eq!(error, "none", "{length}"),
                false => {
                    assert!(error.starts_with(&format!("byte {start}: the capture ends within")), "{length}: {error}")
                }
            }
        }
        let file = classic(order, 0xa1b2_3c4d, (1, 2), &[1; 60]);
        for length in 4..file.len() {
            let start = if length < 24 { 0 } else { 24 };
            let (frames, error) = fails(&file[..length]);
            assert_eq!(frames, 0);
            match length == 24 {
                true => assert_eq!(error, "none"),
                false => {
                    assert!(error.starts_with(&format!("byte {start}: the capture ends within")), "{length}: {error}")
                }
            }
        }
    }
}

#[test]
fn contradictions() {
    for order in [LITTLE, BIG] {
        let good = nanos(order, &[(1, vec![1; 60])]);
        let change = |at: usize, bytes: Vec<u8>| {
            let mut file = good.clone();
            file[at..at + bytes.len()].copy_from_slice(&bytes);
            fails(&file).1
        };
        assert_eq!(change(8, vec![1, 2, 3, 4]), "byte 0: the section header has no byte order");
        assert_eq!(change(12, order.two(2)), "byte 0: the section has an unknown version of pcapng: only 1 is known");
        assert_eq!(change(64, order.four(13)), "byte 60: the length of the block is impossible");
        assert_eq!(change(64, order.four(8)), "byte 60: the length of the block is impossible");
        assert_eq!(change(64, order.four(88)), "byte 60: the two lengths of the block differ");
        assert_eq!(change(80, order.four(61 * 4)), "byte 60: the enhanced packet block is damaged");
        assert_eq!(change(80, order.four(u32::MAX)), "byte 60: the enhanced packet block is damaged");
        assert_eq!(change(68, order.four(3)), "byte 60: a frame of interface 3, but the section describes 1 before it");
        assert_eq!(change(72, order.four(u32::MAX)), "byte 60: the time stamp is out of range");
        assert!(change(60, order.four(2)).starts_with("byte 60: obsolete packet block: convert"));
    }
}

#[test]
fn options_that_are_damaged() {
    let order = LITTLE;
    let file = |interface: Vec<u8>, rest: Vec<u8>| [order.section(), interface, rest].concat();
    let short = order.interface(0, &[order.option(14, &[1, 2, 3, 4])]);
    assert_eq!(fails(&file(short, vec![])).1, "byte 28: if_tsoffset does not have 8 bytes");
    let fine = order.interface(0, &[order.option(9, &[39])]);
    assert_eq!(fails(&file(fine, vec![])).1, "byte 28: if_tsresol is finer than 10^-38 s");
    let far = order.interface(0, &[order.option(14, &order.eight(i64::MAX as u64))]);
    assert_eq!(fails(&file(far, order.enhanced(0, 0, &[]))).1, "byte 64: the time stamp is out of range");
    let simple = order.block(3, &[order.four(60), vec![0; 56]]);
    let interface = order.interface(0, &[]);
    assert_eq!(fails(&file(interface, simple)).1, "byte 52: the simple packet block is shorter than its frame");
    let simple = order.block(3, &[order.four(4), vec![0; 4]]);
    assert!(fails(&file(vec![], simple)).1.starts_with("byte 28: a frame of interface 0"));
    let classic = classic(order, 0xa1b2_3c4d, (0, 1_000_000_000), &[]);
    assert_eq!(fails(&classic).1, "byte 24: the fraction of the time stamp is a second or more");
}

#[test]
fn random_bytes_never_panic() {
    let random = &mut SplitMix64::new(7);
    let port = port(&[(70_000, "rest"), (30_000, "control")]);
    let sequences = [Sequence { class: 0, offset: usize::MAX, width: Width::U16, big_endian: false }];
    let mut judged = 0;
    let (mut errors, mut fine) = (0, 0);
    for round in 0..20_000 {
        let order = Order { big: random.bits() % 2 == 0 };
        let mut file = match round % 4 {
            0 => nanos(order, &[(70_000, udp(Some(6), 5000, &[1; 20])), (1 << 61, udp(None, 1, &[2; 9]))]),
            1 => classic(order, 0xa1b2_c3d4, (1, 2), &udp(Some(6), 5000, &[3; 30])),
            2 => classic(order, 0xa1b2_cd34, (1, 2), &udp(Some(6), 5000, &[3; 30])),
            _ => (0..random.bits() % 300).map(|_| random.bits() as u8).collect(),
        };
        for _ in 0..random.bits() % 3 {
            let at = random.bits() as usize % file.len().max(1);
            if let Some(byte) = file.get_mut(at) {
                *byte = [0, 1, 0xff, random.bits() as u8][random.bits() as usize % 4];
            }
        }
        if random.bits() % 4 == 0 {
            file.truncate(random.bits() as usize % (file.len() + 1));
        }
        let expectation = Expectation {
            whole: random.bits() % 2 == 0,
            clock: ns(random.bits() as i64),
            path: ns(random.bits() as i64),
            sequences: &sequences,
            ..Expectation::of(&port)
        };
        let Ok(capture) = Capture::new(&file) else { continue };
        match judge_capture(capture, &expectation, |packet| packet.vlan.map(|vlan| usize::from(vlan.pcp % 3))) {
            Ok(verdict) => {
                (fine, judged) = (fine + 1, judged + verdict.frames);
                let _ = verdict.to_string();
            }
            Err(error) => {
                errors += 1;
                let _ = error.to_string();
            }
        }
    }
    // The damage leaves something of each kind.
    assert!(judged > 1_000 && errors > 1_000 && fine > 1_000, "{judged} frames, {errors} errors, {fine} verdicts");
}
