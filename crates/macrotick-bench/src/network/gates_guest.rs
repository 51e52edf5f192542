//! The guest's part of the gates: frames that wait for a gate, beside a load.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use macrotick_host::net::{Mode, Taprio};

use super::classes::{exact, gates, MICROSECOND};
use super::gates::{Column, Load, Reading};
use super::pair::{check_clocks, near, processor_ns, sender, Pair, FAR, FAR_ADDRESS, GATE_THREAD, NEAR, NEAR_ADDRESS};
use super::{flood, stamped};
use crate::kit::netns::{enter, kernel_thread, sleep_until_tai, tai_ns};
use crate::kit::process;
use crate::kit::round::work;

/// A hidden verb: frames that wait for a gate, in a column and beside a load.
pub const RUN: &str = "network-gates";

/// The cycle of the gates.
pub const CYCLE: i64 = 1000 * MICROSECOND;
/// The opening of the gate in the cycle.
pub const OPEN: i64 = 700 * MICROSECOND;
/// The instant in the cycle at which a frame is sent.
const SEND: i64 = 100 * MICROSECOND;
const PORT: u16 = 5000;
/// The priority of the frames, and their bytes.
const CRITICAL: u8 = 6;
const BYTES: usize = 64;
/// Frames that measure the constant path before a run, as a deployment does.
const SAMPLES: u64 = 200;
/// The time until the first frame.
const START: i64 = 300 * CYCLE;
/// A time without frames, in which the gate's thread must not run.
const PAUSE: i64 = 1000 * CYCLE;
const HOGS: usize = 4;
/// The longest wait for a frame.
const PATIENCE: libc::timeval = libc::timeval { tv_sec: 2, tv_usec: 0 };
const ROOM: i32 = 4 << 20;
const SENDER_PRIORITY: u32 = 60;
const RECEIVER_PRIORITY: u32 = 30;
/// The priority of ksoftirqd in the set-up that has no exact gates. It is above all tasks.
const KSOFTIRQD_PRIORITY: u32 = 95;

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| match words {
        [column, load, frames] => run(Column::from_name(column)?, Load::from_name(load)?, process::number(frames)?),
        _ => Err("this verb belongs to `macrotick-bench network`".into()),
    })
}

fn run(column: Column, load: Load, frames: u64) -> Result<(), String> {
    check_clocks()?;
    let mut pair = Pair::make()?;
    let list = list(column);
    pair.deploy(list.clone(), near())?;
    enter(FAR)?;
    process::set_policy(libc::SCHED_FIFO as u32, RECEIVER_PRIORITY)?;
    let socket = UdpSocket::bind((FAR_ADDRESS, PORT)).map_err(|error| format!("a receiver: {error}"))?;
    stamped::prepare(socket.as_raw_fd(), PATIENCE, ROOM)?;
    if column == Column::Ksoftirqd {
        process::set_policy_of(kernel_thread("ksoftirqd/0")?, libc::SCHED_FIFO as u32, KSOFTIRQD_PRIORITY)?;
    }
    let mut reading = Reading::default();
    let mut thread = None;
    if column == Column::Exact {
        reading.path_ns = pass(&socket, SAMPLES)?.median().ok_or("no frame to measure the path")?;
        pair.move_earlier(&list, reading.path_ns)?;
        thread = Some(kernel_thread(GATE_THREAD)?);
    }
    let used = || thread.map_or(Ok(0), processor_ns);
    let before = used()?;
    sleep_until_tai(tai_ns() + PAUSE);
    reading.idle_ns = used()? - before;
    let loads = begin(load)?;
    let (began, before) = (tai_ns(), used()?);
    let passed = pass(&socket, frames)?;
    (reading.thread_ns, reading.span_ns) = (used()? - before, tai_ns() - began);
    loads.into_iter().try_for_each(process::end)?;
    reading.lost = frames - passed.frames();
    (reading.fingerprint, reading.lateness) = (passed.fingerprint, passed.counts.into_iter().collect());
    process::print(&reading)
}

/// Class 1 is open until the gate of class 0 opens.
fn list(column: Column) -> Taprio {
    let mode = if column == Column::Exact { exact() } else { Mode::Software };
    gates(mode, &[(2, OPEN), (1, CYCLE - OPEN)], 2, &[(CRITICAL, 0)])
}

/// Starts the processes of a load.
fn begin(load: Load) -> Result<Vec<i32>, String> {
    let flood = |from: &'static str, to: &'static str| {
        process::fork(move || {
            enter(from)?;
            flood::run(to.parse().map_err(|_| format!("{to} is no address"))?)
        })
    };
    let hog = |_| {
        process::fork(|| {
            process::set_policy(libc::SCHED_OTHER as u32, 0)?;
            loop {
                work(u64::MAX);
            }
        })
    };
    let mut children = Vec::new();
    if load.has_hogs() {
        children = (0..HOGS).map(hog).collect::<Result<_, _>>()?;
    }
    match load {
        Load::Flood | Load::Both => children.push(flood(FAR, NEAR_ADDRESS)?),
        Load::FloodThrough => children.push(flood(NEAR, FAR_ADDRESS)?),
        Load::Idle | Load::Hogs => {}
    }
    Ok(children)
}

/// The frames of a pass.
struct Passed {
    /// How often each lateness occurred, in ns after the nominal instant.
    counts: BTreeMap<i64, u64>,
    /// A hash of all time stamps in their order.
    fingerprint: u64,
}

impl Passed {
    fn frames(&self) -> u64 {
        self.counts.values().sum()
    }

    fn median(&self) -> Option<i64> {
        let mut rank = self.frames().div_ceil(2);
        let found = self.counts.iter().find(|(_, count)| {
            let is_here = rank <= **count;
            rank = rank.saturating_sub(**count);
            is_here
        });
        found.map(|(lateness, _)| *lateness)
    }
}

/// Sends a frame in each cycle, and receives them.
fn pass(socket: &UdpSocket, frames: u64) -> Result<Passed, String> {
    let first = (tai_ns() + START) / CYCLE * CYCLE;
    let child = process::fork(move || send(first, frames))?;
    let mut passed = Passed { counts: BTreeMap::new(), fingerprint: FNV_OFFSET };
    let mut data = [0u8; BYTES];
    for _ in 0..frames {
        let Some(frame) = stamped::receive(socket.as_raw_fd(), &mut data) else { break };
        let nominal = i64::from_ne_bytes(*data.first_chunk().expect("64 bytes"));
        *passed.counts.entry(frame.at_ns - nominal).or_default() += 1;
        passed.fingerprint = hash(passed.fingerprint, frame.at_ns);
    }
    process::end(child)?;
    Ok(passed)
}

fn send(first: i64, frames: u64) -> Result<(), String> {
    enter(NEAR)?;
    process::set_policy(libc::SCHED_FIFO as u32, SENDER_PRIORITY)?;
    let socket = sender(FAR_ADDRESS, PORT, CRITICAL.into())?;
    let mut frame = [0u8; BYTES];
    for cycle in (first..).step_by(CYCLE as usize).take(frames as usize) {
        sleep_until_tai(cycle + SEND);
        frame[..8].copy_from_slice(&(cycle + OPEN).to_ne_bytes());
        socket.send(&frame).map_err(|error| format!("a frame: {error}"))?;
    }
    // The end of the process would take time from the gate.
    loop {
        std::thread::park();
    }
}

/// The start of the hash FNV-1a.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(so_far: u64, word: i64) -> u64 {
    word.to_ne_bytes().iter().fold(so_far, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_every_frame() {
        let median =
            |counts: &[(i64, u64)]| Passed { counts: counts.iter().copied().collect(), fingerprint: 0 }.median();
        assert_eq!(median(&[(5, 1), (7, 2), (100, 1)]), Some(7));
        assert_eq!(median(&[(5, 2), (7, 2)]), Some(5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_fingerprint_depends_on_the_order() {
        let of = |stamps: [i64; 2]| stamps.into_iter().fold(FNV_OFFSET, hash);
        assert!(of([1, 2]) != of([2, 1]) && of([1, 2]) == of([1, 2]));
    }
}
