//! The guest's part of the slots: two senders and bulk on a link with TDMA, and a capture.

use std::fs;
use std::net::UdpSocket;
use std::process::ExitCode;

use macrotick_host::net::{Classifier, Frames, Protocol, Wanted};

use super::capture::{File, KEPT};
use super::classes::{exact, gates, MICROSECOND};
use super::pair::{check_clocks, near, sender, tap, Pair, BEYOND_ADDRESS, FAR, NEAR};
use super::slots::{Sender, BULK_PORT, CYCLE, ENTRIES, RELEASE, SENDERS};
use super::stamped;
use crate::kit::netns::{enter, sleep_until_tai, tai_ns};
use crate::kit::process;

/// A hidden verb: senders and bulk on a link with slots.
pub const RUN: &str = "network-slots";
/// The capture.
pub const CAPTURE: &str = "/tmp/slots.pcap";

/// The bytes of a sender's datagram: its release, and its number.
const BYTES: usize = 64;
/// A datagram of the bulk. The kernel makes frames of it.
const BULK: usize = 8192;
/// The time until the first cycle.
const START: i64 = 50 * CYCLE;
const PATIENCE: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
const ROOM: i32 = 64 << 20;
const PRIORITY: u32 = 60;
const CAPTURE_PRIORITY: u32 = 30;

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| match words {
        [path, cycles] => run(process::number(path)?, process::number(cycles)?),
        _ => Err("this verb belongs to `macrotick-bench network`".into()),
    })
}

/// Opens the gates earlier by the constant path, and captures for a number of cycles.
fn run(path_ns: i64, cycles: i64) -> Result<(), String> {
    check_clocks()?;
    let priorities: Vec<(u8, u8)> = SENDERS.iter().zip(0..).map(|(sender, class)| (sender.priority, class)).collect();
    let list = gates(exact(), &ENTRIES, SENDERS.len() as u16 + 1, &priorities);
    let mut pair = Pair::make()?;
    pair.deploy(list.clone(), Wanted { classifiers: Some(SENDERS.iter().map(classifier).collect()), ..near() })?;
    pair.move_earlier(&list, path_ns)?;
    enter(FAR)?;
    let socket = tap()?;
    stamped::prepare(socket, PATIENCE, ROOM)?;
    process::set_policy(libc::SCHED_FIFO as u32, CAPTURE_PRIORITY)?;
    let first = (tai_ns() + START) / CYCLE * CYCLE;
    let mut children = vec![process::fork(bulk)?];
    for one in &SENDERS {
        children.push(process::fork(move || send(one, first, first + cycles * CYCLE))?);
    }
    let (mut file, mut data) = (File::new(), [0u8; KEPT]);
    // The first cycles have the bulk alone. Afterwards, the last frames of the senders have another cycle.
    while tai_ns() < first + (cycles + 1) * CYCLE {
        if let Some(frame) = stamped::receive(socket, &mut data) {
            file.add(frame.at_ns, frame.length, &data);
        }
    }
    children.into_iter().try_for_each(process::end)?;
    fs::write(CAPTURE, file.bytes()).map_err(|error| format!("{CAPTURE}: {error}"))
}

/// Gives the frames of a sender its priority, as for a container that cannot set it.
fn classifier(sender: &Sender) -> Classifier {
    let frames = Frames { protocol: Some(Protocol::Udp), port: Some(sender.port), ..Frames::default() };
    Classifier { frames, priority: sender.priority.into() }
}

fn send(one: &Sender, first: i64, end: i64) -> Result<(), String> {
    let socket = begin(one.port)?;
    process::set_policy(libc::SCHED_FIFO as u32, PRIORITY)?;
    let mut datagram = [0u8; BYTES];
    for (release, number) in (first + RELEASE..end).step_by(one.period as usize).zip(0u64..) {
        sleep_until_tai(release);
        datagram[..8].copy_from_slice(&release.to_ne_bytes());
        datagram[8..16].copy_from_slice(&number.to_ne_bytes());
        socket.send(&datagram).map_err(|error| format!("{}: {error}", one.name))?;
    }
    // The end of the process would take time from the gates.
    loop {
        std::thread::park();
    }
}

/// Sends without a pause, under SCHED_OTHER. The socket's buffer bounds the frames that wait.
fn bulk() -> Result<(), String> {
    let socket = begin(BULK_PORT)?;
    process::set_policy(libc::SCHED_OTHER as u32, 0)?;
    loop {
        socket.send(&[0; BULK]).map_err(|error| format!("bulk: {error}"))?;
    }
}

fn begin(port: u16) -> Result<UdpSocket, String> {
    enter(NEAR)?;
    sender(BEYOND_ADDRESS, port, 0)
}

const _: () = assert!(BYTES >= 16 && RELEASE < CYCLE && RELEASE % MICROSECOND == 0);
