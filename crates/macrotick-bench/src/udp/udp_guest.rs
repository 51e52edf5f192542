//! The guest's part: the probe's server and client on two cards, beside a load.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use macrotick_model::Duration;
use macrotick_probe::{
    ClockName, Course, Finished, Mode, Place, Policy, ProbeError, RunOptions, Sample, ServeOptions, SocketOptions, Stop,
};
use macrotick_uapi::{self as abi, Device, Entity, Window};

use super::cells::{Column, Load, Path, Reading};
use super::hub::{address, device, raise_interrupts, Hub, CLIENT, CYCLE_NS, PC, PRIORITY, SERVER};
use super::stress;
use super::traffic::{self, Counts, BYTES};
use crate::kit::clock::now_ns;
use crate::kit::netns::{enter, kernel_thread, tai_ns};
use crate::kit::process::{self, Gate};

/// A hidden verb: round trips in a column and beside a load.
pub const RUN: &str = "udp";

const PORT: u16 = 7600;
/// The bytes of a packet, as in the paper, and its deadline.
const SIZE: usize = 500;
const DEADLINE: Duration = Duration::from_millis(1);
/// The SCHED_FIFO priority of client and server, as in the paper.
const FIFO: u8 = 80;
/// The priority of the interrupt threads above them.
const INTERRUPTS: u8 = 85;
/// The priorities of the profile `macrotick`: two above the tasks that wait for the network, and one for softirqs.
const ABOVE: u8 = FIFO + 2;
const SOFTIRQS: u32 = FIFO as u32 + 1;
/// The entity of the client, its window, and the lead. Others run while the client waits. The window is almost as long as
/// the deadline: a client with a late answer runs at once, and not in the next cycle.
const ENTITY: &str = "client";
const WINDOW_NS: u64 = 900_000;
const LEAD_NS: u64 = 20_000;
/// The time from the set-up to the first cycle.
const START_NS: i64 = 50_000_000;
/// The time in which the client greets the server and joins.
const JOIN_NS: i64 = 200_000_000;
/// The time in which a load gets going.
const SETTLE_NS: u64 = 20_000_000;

/// Runs the verb: its main function.
pub fn main() -> ExitCode {
    process::main(|words| match words {
        [column, load, path, packets] => {
            run(Column::from_name(column)?, Load::from_name(load)?, Path::from_name(path)?, process::number(packets)?)
        }
        _ => Err("this verb belongs to `macrotick-bench udp`".into()),
    })
}

fn run(column: Column, load: Load, path: Path, packets: u64) -> Result<(), String> {
    let mut hub = Hub::make()?;
    if load.is_received() {
        hub.open_pc()?;
    }
    let epoch = (now_ns() as i64 + START_NS) / CYCLE_NS * CYCLE_NS;
    // Both clocks have the same rate: their distance does not change.
    hub.deploy(column, epoch + tai_ns() - now_ns() as i64)?;
    if let Some(priority) = column.interrupts() {
        [CLIENT, SERVER].into_iter().try_for_each(|namespace| raise_interrupts(namespace, priority))?;
    }
    // SAFETY: both are atomic words.
    let (counts, ready): (&Counts, &Gate) = unsafe { (process::share()?, process::share()?) };
    let mut children = begin(load, counts)?;
    children.push(process::fork(move || serve(column, path, ready))?);
    ready.wait();
    crate::kit::clock::sleep_until(now_ns() + SETTLE_NS);
    let table = (column == Column::Macrotick).then(|| install(epoch)).transpose()?;
    enter(CLIENT)?;
    let (begin, before) = (now_ns(), moved(load, counts)?);
    let finished = probe(column, path, packets)?;
    let (span, after) = (now_ns() - begin, moved(load, counts)?);
    drop(table);
    children.into_iter().try_for_each(process::end)?;
    let mut reading = read(&finished);
    let own = if load.is_received() { 0 } else { finished.results.counts.sent };
    reading.moved_kbps = (after - before).saturating_sub(own) * BYTES as u64 * 8 * 1_000_000 / span;
    process::print(&reading)
}

/// Starts the load.
fn begin(load: Load, counts: &'static Counts) -> Result<Vec<i32>, String> {
    match load {
        Load::Idle => Ok(Vec::new()),
        Load::Stress => stress::begin(),
        Load::Sent(rate) => Ok(vec![traffic::send(CLIENT, PC, rate.mbps())?]),
        Load::Received(rate) => Ok(vec![traffic::sink(counts)?, traffic::send(PC, SERVER, rate.mbps())?]),
    }
}

/// Returns the datagrams that arrived: those that the sink received. If the PC is the sink, they are all frames of the
/// client's card.
fn moved(load: Load, counts: &Counts) -> Result<u64, String> {
    if load.is_received() {
        return Ok(counts.received.load(Ordering::Relaxed));
    }
    // The file describes the reader's network namespace. Eight numbers of reception come first: bytes, then packets.
    let path = "/proc/self/net/dev";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let card = format!("{}:", device(CLIENT));
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(&card));
    let sent = line.and_then(|numbers| numbers.split_whitespace().nth(9)?.parse().ok());
    sent.ok_or_else(|| format!("{path} has no number of packets of {card}"))
}

/// Sets up softirqs and windows as a deployment with the profile `macrotick` does. The table starts when the client has
/// joined: otherwise its first job would begin within a window. The start is whole cycles after that of the gates.
fn install(gates: i64) -> Result<Device, String> {
    process::set_policy_of(kernel_thread("ksoftirqd/0")?, libc::SCHED_FIFO as u32, SOFTIRQS)?;
    let device = Device::open()?;
    let entity = Entity { name: abi::name(ENTITY), ..Default::default() };
    let window = Window { length_ns: WINDOW_NS, flags: abi::ACTIVATE, ..Default::default() };
    process::install(&device, &[entity], &[window], CYCLE_NS as u64, LEAD_NS)?;
    let earliest = now_ns() as i64 + JOIN_NS;
    let epoch = earliest + (gates - earliest).rem_euclid(CYCLE_NS);
    device.start(epoch as u64).map_err(|errno| format!("cannot start: errno {errno}"))?;
    Ok(device)
}

fn socket() -> SocketOptions {
    SocketOptions { priority: Some(PRIORITY), ..SocketOptions::default() }
}

fn place(path: Path, namespace: &str) -> Option<Place> {
    let mode = match path {
        Path::Socket => return None,
        Path::Skb => Mode::Skb,
        Path::Native => Mode::Native,
    };
    Some(Place { interface: device(namespace), queue: 0, mode })
}

fn end_point(namespace: &str) -> Result<std::net::SocketAddr, String> {
    format!("{}:{PORT}", address(namespace)).parse().map_err(|_| format!("{namespace} has no address"))
}

fn serve(column: Column, path: Path, ready: &Gate) -> Result<(), String> {
    enter(SERVER)?;
    let options = ServeOptions {
        listen: end_point(SERVER)?,
        policy: if column == Column::Ordinary { Policy::Unchanged } else { Policy::Fifo(FIFO) },
        cpu: None,
        wait: Duration::ZERO,
        socket: socket(),
        xdp: place(path, SERVER),
        rate: None,
        records: 0,
    };
    macrotick_probe::serve(&options, &stop()?, &mut |_| ready.open()).map(drop).map_err(said)
}

fn probe(column: Column, path: Path, packets: u64) -> Result<Finished, String> {
    let options = RunOptions {
        destination: end_point(SERVER)?,
        course: Course {
            one_way: false,
            clock: ClockName::Monotonic,
            size: SIZE,
            trace: false,
            burst: 1,
            deadline: DEADLINE,
            linger: Duration::from_millis(100),
            early: Duration::ZERO,
            launch: false,
            packets: Some(packets),
            duration: None,
            assume_common_clock: false,
        },
        interval: Duration::from_nanos(CYCLE_NS),
        offset: Duration::ZERO,
        policy: match column {
            Column::Ordinary => Policy::Unchanged,
            Column::RealTime | Column::Interrupts => Policy::Fifo(FIFO),
            Column::Macrotick => Policy::Task(Some(ENTITY.into())),
        },
        cpu: None,
        socket: socket(),
        xdp: place(path, CLIENT),
        bins: 1000,
        cmdline: RUN.into(),
    };
    macrotick_probe::run(&options, &stop()?).map_err(said)
}

fn stop() -> Result<Arc<Stop>, String> {
    Stop::by_hand().map(Arc::new).map_err(|error| format!("the end of a run: {error}"))
}

fn said(error: ProbeError) -> String {
    error.to_string()
}

fn read(finished: &Finished) -> Reading {
    let (counts, samples) = (finished.results.counts, &finished.samples);
    let path = |sample: &Sample| Some(sample.received.ns()? - sample.sent.ns()?);
    let mut round_trips = BTreeMap::new();
    samples.iter().filter_map(path).for_each(|time| *round_trips.entry(time).or_default() += 1);
    let most = |name: &str| {
        let found = finished.results.times.iter().find(|times| times.name == name);
        found.map_or(0, |times| times.max_ns)
    };
    Reading {
        round_trips: round_trips.into_iter().collect(),
        sent: counts.sent,
        lost: counts.lost + counts.unsent,
        misses: counts.misses + counts.unsent + counts.skipped_cycles,
        wake_ns: most("send"),
        there_ns: most("one-way-path"),
        server_ns: most("server"),
        back_ns: most("way-back"),
        moved_kbps: 0,
    }
}

impl Column {
    /// Returns the priority of the interrupt threads of the measured queue; `None`: that of the kernel, 50.
    fn interrupts(self) -> Option<u8> {
        match self {
            Column::Ordinary | Column::RealTime => None,
            Column::Interrupts => Some(INTERRUPTS),
            Column::Macrotick => Some(ABOVE),
        }
    }
}
