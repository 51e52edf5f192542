//! The guest's part of the bursts: many frames in each cycle, and a workload that starts when the last one is in.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use macrotick_host::net::Taprio;

use super::bursts::{Burst, Reading};
use super::classes::{exact, gates, MICROSECOND};
use super::gates::Load;
use super::pair::{check_clocks, near, sender, tap, Pair, BEYOND_ADDRESS, FAR, NEAR};
use super::ring::Ring;
use crate::kit::netns::{enter, set, sleep_until_tai, tai_ns};
use crate::kit::process;
use crate::kit::round::{round_ps, work};

/// A hidden verb: bursts beside a load.
pub const RUN: &str = "network-bursts";

/// The length of the workload.
pub const WORK_NS: i64 = 50 * MICROSECOND;
const SEND: i64 = 10 * MICROSECOND;
const PORT: u16 = 5000;
const CRITICAL: u8 = 6;
/// The bytes of a datagram: the start of its cycle, and its number in the burst.
const BYTES: usize = 24;
/// The datagrams that one call passes to the kernel, which makes frames of them (`UDP_SEGMENT`).
const SEGMENTS: usize = 64;
/// The longest packet of the class. The kernel makes frames of longer ones before they wait for the gate.
const MAX_SDU: u32 = 100;
/// The headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// The place of the destination port.
const PORT_AT: usize = 36;
const UDP_SEGMENT: i32 = 103;
/// The cycles until the first burst.
const START: i64 = 200;
const PATIENCE_MS: i32 = 2000;
const ROOM: i32 = 4 << 20;
const SENDER_PRIORITY: u32 = 60;
const RECEIVER_PRIORITY: u32 = 30;
const HOGS: usize = 4;

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| match words {
        [load, frames, cycle, cycles] => {
            let burst = Burst { frames: process::number(frames)?, cycle_ns: process::number(cycle)? };
            run(Load::from_name(load)?, burst, process::number(cycles)?)
        }
        _ => Err("this verb belongs to `macrotick-bench network`".into()),
    })
}

fn run(load: Load, burst: Burst, cycles: u64) -> Result<(), String> {
    check_clocks()?;
    let mut pair = Pair::make()?;
    pair.deploy(list(burst), near())?;
    let rounds = WORK_NS as u64 * 1000 / round_ps();
    let hog = |_| {
        process::fork(|| loop {
            work(u64::MAX);
        })
    };
    let hogs: Vec<i32> = (0..if load.has_hogs() { HOGS } else { 0 }).map(hog).collect::<Result<_, _>>()?;
    enter(FAR)?;
    let mut ring = Ring::of(tap()?)?;
    process::set_policy(libc::SCHED_FIFO as u32, RECEIVER_PRIORITY)?;
    let first = (tai_ns() / burst.cycle_ns + START) * burst.cycle_ns;
    let child = process::fork(move || send(first, burst, cycles))?;
    let reading = receive(&mut ring, burst, cycles, rounds);
    process::end(child)?;
    hogs.into_iter().try_for_each(process::end)?;
    process::print(&reading)
}

fn list(burst: Burst) -> Taprio {
    let (open, close) = burst.window();
    let entries = [(2, open), (1, close - open), (2, burst.cycle_ns - close)];
    Taprio { max_sdu: vec![MAX_SDU], ..gates(exact(), &entries, 2, &[(CRITICAL, 0)]) }
}

/// Receives all bursts. The workload follows the last frame of each one.
fn receive(ring: &mut Ring, burst: Burst, cycles: u64, rounds: u64) -> Reading {
    let (mut reading, open) = (Reading::default(), burst.window().0);
    let (mut lateness, mut starts, mut in_burst) = (BTreeMap::new(), BTreeMap::new(), 0);
    while reading.frames < cycles * burst.frames {
        let Some(taken) = ring.take(PATIENCE_MS, |frame| (frame.at_ns, numbers(frame.data))) else { break };
        let (at_ns, Some((cycle, number))) = taken else { continue };
        reading.frames += 1;
        in_burst += 1;
        *lateness.entry(at_ns - cycle - open).or_default() += 1;
        if number + 1 == burst.frames {
            let start = tai_ns();
            work(rounds);
            reading.latest_end_ns = reading.latest_end_ns.max(tai_ns() - cycle);
            *starts.entry(start - at_ns).or_default() += 1;
            reading.whole += u64::from(in_burst == burst.frames);
            in_burst = 0;
        }
    }
    reading.lost = cycles * burst.frames - reading.frames;
    (reading.lateness, reading.starts) = (lateness.into_iter().collect(), starts.into_iter().collect());
    reading
}

/// Returns the start of the cycle and the number in the burst of a frame; none for other frames of the link.
fn numbers(frame: &[u8]) -> Option<(i64, u64)> {
    let is_ours = frame.get(PORT_AT..PORT_AT + 2)? == PORT.to_be_bytes();
    let word = |at: usize| frame.get(HEADERS + at..)?.first_chunk().copied();
    is_ours.then_some((i64::from_ne_bytes(word(0)?), u64::from_ne_bytes(word(8)?)))
}

fn send(first: i64, burst: Burst, cycles: u64) -> Result<(), String> {
    enter(NEAR)?;
    process::set_policy(libc::SCHED_FIFO as u32, SENDER_PRIORITY)?;
    let socket = sender(BEYOND_ADDRESS, PORT, CRITICAL.into())?;
    set(socket.as_raw_fd(), libc::SOL_UDP, UDP_SEGMENT, &(BYTES as i32))?;
    set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &ROOM)?;
    let mut datagrams = vec![0u8; burst.frames as usize * BYTES];
    for (datagram, number) in datagrams.chunks_mut(BYTES).zip(0u64..) {
        datagram[8..16].copy_from_slice(&number.to_ne_bytes());
    }
    for cycle in (first..).step_by(burst.cycle_ns as usize).take(cycles as usize) {
        sleep_until_tai(cycle + SEND);
        datagrams.chunks_mut(BYTES).for_each(|datagram| datagram[..8].copy_from_slice(&cycle.to_ne_bytes()));
        for part in datagrams.chunks(SEGMENTS * BYTES) {
            socket.send(part).map_err(|error| format!("a burst: {error}"))?;
        }
    }
    // The end of the process would take time from the gate.
    loop {
        std::thread::park();
    }
}
