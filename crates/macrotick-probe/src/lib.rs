//! The probe: measures a network path with packets of its own, from the nominal instants of a grid or of a task.
//!
//! [`serve`] answers packets and records those that go one way. [`run`] sends them, collects what comes back, and
//! returns [`Results`]. Both use the network stack, or the express path without it. `docs/reference/probe.md` defines
//! every number.

pub mod client;
mod clock;
mod device;
mod error;
mod events;
pub mod hello;
pub mod ledger;
mod limit;
pub mod options;
pub mod packet;
pub mod port;
pub mod records;
pub mod results;
pub mod samples;
pub mod server;
pub mod standing;
mod stop;
pub mod times;
pub mod trace;
pub mod udp;
mod xdp;

use std::net::SocketAddr;
use std::sync::Arc;

use macrotick_host::{sys, HostFailure};
use macrotick_model::Duration;
use macrotick_task::Task;

pub use crate::client::Course;
pub use crate::error::ProbeError;
pub use crate::options::{RunOptions, ServeOptions};
pub use crate::packet::ClockName;
pub use crate::results::Results;
pub use crate::samples::Sample;
pub use crate::server::Served;
pub use crate::standing::Policy;
pub use crate::stop::Stop;
pub use crate::udp::SocketOptions;
pub use crate::xdp::Place;
pub use macrotick_task::express::Mode;

use crate::client::{Outcome, Pace};
use crate::device::DeviceStamps;
use crate::events::Recording;
use crate::hello::Hello;
use crate::port::Port;
use crate::results::{Circumstances, SysInfo};
use crate::server::Server;
use crate::udp::UdpPort;
use crate::xdp::XdpPort;

/// The time before the first packet, for what still has to settle.
const SETTLE: Duration = Duration::from_millis(10);

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// The results.
    pub results: Results,
    /// The record of each packet.
    pub samples: Vec<Sample>,
}

/// Measures a path: runs a client until its packets are sent, or until it is stopped.
pub fn run(options: &RunOptions, stop: &Arc<Stop>) -> Result<Finished, ProbeError> {
    options.check()?;
    let (mut remarks, course) = (Vec::new(), &options.course);
    let own = Hello::of_this_host(packet::run_id(sys::now().as_nanos()));
    let mut socket = options.socket.clone();
    if course.launch {
        socket.launch = Some(course.clock);
    }
    let device = device_stamps(&mut socket, &mut remarks);
    let (mut port, path, most) = open(options, &socket, stop)?;
    if course.size > most {
        return Err(ProbeError::TooLarge { size: course.size, most });
    }
    let recording = if course.trace { record(&mut remarks) } else { None };
    let begin = sys::time_of(libc::CLOCK_REALTIME).as_nanos();
    let run = packet::run_id(begin);
    // A task greets before it is ready: afterwards its jobs are under way.
    let server = client::greet(&mut *port, course.clock, run)?;
    let mut task = join(&options.policy)?;
    standing::settle(&options.policy, options.cpu)?;
    let mut next_job = || next_job(task.as_mut());
    let pace = match &options.policy {
        Policy::Task(_) => Pace::Jobs(&mut next_job),
        _ => Pace::Grid(first(port.now(), options), options.interval),
    };
    let recording = recording.filter(|recording| traced(recording.begin(), &mut remarks).is_some());
    let mut outcome = client::run(&mut *port, course, pace, run, &own, server)?;
    let span_ns = (begin, sys::time_of(libc::CLOCK_REALTIME).as_nanos());
    let recorded = recording.and_then(|recording| traced(recording.end(|at| port.on_grid(at)), &mut remarks));
    if let Some((events, dropped)) = recorded {
        if dropped > 0 {
            remarks
                .push(format!("there was no room for {dropped} events of the kernel: the trace has the first packets"));
        }
        outcome.trace = trace::follow(&events, sys::own_tid(), &outcome.samples);
        if outcome.trace.is_empty() && !outcome.samples.is_empty() {
            remarks.push("the trace has no packet: the events may be those of another PID namespace".into());
        }
    }
    drop(device);
    remark_on_stamps(&options.socket, &outcome, &mut remarks);
    let circumstances = Circumstances {
        cmdline: options.cmdline.clone(),
        span_ns,
        sysinfo: sysinfo(),
        cpu: options.cpu,
        destination: options.destination.to_string(),
        path,
        interval: (!matches!(options.policy, Policy::Task(_))).then_some(options.interval),
        bins: options.bins,
        remarks,
    };
    Ok(Finished { results: Results::new(course, &outcome, circumstances), samples: outcome.samples })
}

/// Answers and records packets until it is stopped. Calls `ready` with the address when packets can come.
pub fn serve(
    options: &ServeOptions,
    stop: &Arc<Stop>,
    ready: &mut dyn FnMut(SocketAddr),
) -> Result<Served, ProbeError> {
    let spins = options.socket.busy_poll;
    let (mut port, address): (Box<dyn Port>, SocketAddr) = match (&options.xdp, options.listen) {
        (Some(place), SocketAddr::V4(at)) => {
            let port = XdpPort::listen(at, place, ClockName::Monotonic, spins, stop.clone())?;
            (Box::new(port), options.listen)
        }
        (Some(_), SocketAddr::V6(_)) => return Err(ProbeError::Options("`--xdp` needs an IPv4 address".into())),
        (None, at) => {
            let port = UdpPort::listen(at, ClockName::Monotonic, &options.socket, stop.clone())?;
            let local = port.local().unwrap_or(at);
            (Box::new(port), local)
        }
    };
    let mut task = join(&options.policy)?;
    standing::settle(&options.policy, options.cpu)?;
    let mut server =
        Server::new(Hello::of_this_host(packet::run_id(sys::now().as_nanos())), options.records, options.rate);
    let mut bytes = server::buffer();
    ready(address);
    loop {
        port.step();
        server.set_tai(clock::GridClock::new(ClockName::Tai).on_grid(0));
        let until = match &options.policy {
            Policy::Task(_) => match next_job(task.as_mut()).map_err(ProbeError::Task)? {
                Some((nominal, _)) => nominal + options.wait.as_nanos(),
                None => break,
            },
            _ => port.now() + server::LOOK.as_nanos(),
        };
        if server.serve(&mut *port, &mut bytes, until)? {
            break;
        }
    }
    Ok(server.served())
}

/// Opens the client's end. Returns it with its name and the largest payload.
fn open(
    options: &RunOptions,
    socket: &SocketOptions,
    stop: &Arc<Stop>,
) -> Result<(Box<dyn Port>, String, usize), ProbeError> {
    let clock = options.course.clock;
    match (&options.xdp, options.destination) {
        (Some(place), SocketAddr::V4(to)) => {
            let port = XdpPort::connect(to, place, clock, socket.busy_poll, stop.clone())?;
            let name = match place.mode {
                Mode::Skb => "xdp-skb",
                Mode::Native => "xdp-native",
            };
            let name = format!("{name}{}", if port.is_zero_copy() { "-zero-copy" } else { "" });
            let most = port.most();
            Ok((Box::new(port), name, most))
        }
        (_, to) => {
            let port = UdpPort::connect(to, clock, socket, stop.clone())?;
            let most = port.most();
            Ok((Box::new(port), "socket".into(), most))
        }
    }
}

/// Returns the first nominal instant: the next one of the grid for which there is enough time.
fn first(now: i64, options: &RunOptions) -> i64 {
    let (interval, offset) = (options.interval.as_nanos(), options.offset.as_nanos());
    let earliest = now + (SETTLE + options.course.early).as_nanos();
    // One more for a grid that the earliest instant has just passed.
    ((earliest - offset).div_euclid(interval) + 1) * interval + offset
}

fn join(policy: &Policy) -> Result<Option<Task>, ProbeError> {
    let Policy::Task(name) = policy else { return Ok(None) };
    let failed = |error| ProbeError::Join(name.clone().unwrap_or_else(|| "of this process".into()), error);
    let task = name.as_deref().map_or_else(Task::join_as_named, Task::join);
    let mut task = task.map_err(failed)?;
    task.ready().map_err(ProbeError::Task)?;
    Ok(Some(task))
}

/// Waits for the next job. Returns its nominal instant on `CLOCK_MONOTONIC` in ns, and the activations lost before it.
fn next_job(task: Option<&mut Task>) -> std::io::Result<Option<(i64, u64)>> {
    let task = task.expect("a policy that joined");
    loop {
        match task.wait() {
            Ok(job) => return Ok(job.map(|job| (job.nominal_ns as i64, job.lost))),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Turns the stamps of the device on, if they are asked for and it has them.
fn device_stamps(socket: &mut SocketOptions, remarks: &mut Vec<String>) -> Option<DeviceStamps> {
    if !socket.device_stamps {
        return None;
    }
    let turned = match &socket.interface {
        Some(interface) => DeviceStamps::turn_on(interface).map_err(|error| format!("`{interface}`: {error}")),
        None => Err("name it with `--interface`".into()),
    };
    match turned {
        Ok(stamps) => Some(stamps),
        Err(reason) => {
            remarks.push(format!("no time stamps of the device: {reason}"));
            socket.device_stamps = false;
            None
        }
    }
}

/// Says which stamps were asked for and did not come.
fn remark_on_stamps(socket: &SocketOptions, outcome: &Outcome, remarks: &mut Vec<String>) {
    let sent = outcome.samples.len();
    let count = |of: fn(&Sample) -> bool| outcome.samples.iter().filter(|sample| of(sample)).count();
    let mut tell = |asked: bool, count: usize, what: &str| {
        if asked && count < sent {
            remarks.push(format!("{} of {sent} packets have no time stamp of {what}", sent - count));
        }
    };
    tell(socket.stamps_out, count(|sample| sample.queued.ns().is_some()), "the queueing discipline");
    tell(socket.stamps_out, count(|sample| sample.driver.ns().is_some()), "the driver");
}

/// Prepares to record the kernel's events. A run without them goes on with a remark.
fn record(remarks: &mut Vec<String>) -> Option<Recording> {
    let recording = traced(Recording::prepare(), remarks)?;
    let missing = recording.missing();
    if !missing.is_empty() {
        remarks.push(format!("this kernel has no events of {}", missing.join(", ")));
    }
    Some(recording)
}

/// Returns the result of a step of the trace; a failure becomes a remark.
fn traced<T>(result: Result<T, HostFailure>, remarks: &mut Vec<String>) -> Option<T> {
    result.map_err(|failure| remarks.push(format!("no trace: {failure}"))).ok()
}

fn sysinfo() -> SysInfo {
    let name = nix::sys::utsname::uname().ok();
    let text = |of: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        name.as_ref().map_or_else(String::new, |name| of(name).to_string_lossy().into_owned())
    };
    let version = text(|name| name.version());
    SysInfo {
        sysname: text(|name| name.sysname()),
        nodename: text(|name| name.nodename()),
        release: text(|name| name.release()),
        machine: text(|name| name.machine()),
        realtime: u8::from(version.contains("PREEMPT_RT")),
        version,
    }
}
