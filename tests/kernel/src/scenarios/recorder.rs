//! The flight recorder: its call, its mapping, and the events of each CPU.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::ptr;

use macrotick_uapi::{event as kind, Device, Event, Rings, DEVICE, MAX_EVENTS};

use super::{unit_ns, Scenario};
use crate::board::Log;
use crate::check::{Check, Explain};
use crate::process::{check_in_child, fork, periodic};
use crate::table::Table;
use crate::{ensure, ensure_eq, sys};

pub const ALL: &[Scenario] = &[
    Scenario::new("recorder_arguments", arguments),
    Scenario::new("recorder_needs_rights", needs_rights),
    Scenario::new("recorder_mapping", mapping),
    Scenario::new("recorder_sees_a_job", sees_a_job).punctual(),
    Scenario::new("recorder_keeps_the_latest", keeps_the_latest),
    Scenario::new("recorder_storm", storm),
    Scenario::new("recorder_storm_two_cpus", storm).on(2),
];

const SECOND: u64 = 1_000_000_000;
/// A page of events.
const FEWEST: u32 = 64;

fn arguments() -> Check {
    let device = Device::open()?;
    for events in [0, 1, 32, 63, 65, 100, MAX_EVENTS + 1, 2 * MAX_EVENTS, u32::MAX, 1 << 31] {
        ensure_eq!(device.record(events).err(), Some(libc::EINVAL), "{events} events");
    }
    let mut flags = macrotick_uapi::Recorder { flags: 1, nr_events: FEWEST, ..Default::default() };
    ensure_eq!(device.call(&mut flags), Err(libc::EINVAL), "flags");
    let first = device.record(FEWEST).explain("record")?;
    ensure_eq!(device.record(FEWEST).err(), Some(libc::EBUSY), "a second recorder of the file");
    ensure_eq!(Device::open()?.record(FEWEST).err(), Some(libc::EBUSY), "a recorder of another file");
    // The rings keep the file open.
    drop(device);
    let next = Device::open()?;
    ensure_eq!(next.record(FEWEST).err(), Some(libc::EBUSY), "a recorder while another one is mapped");
    drop(first);
    next.record(MAX_EVENTS).explain("record after the first one ended").map(drop)
}

fn needs_rights() -> Check {
    check_in_child(SECOND, || {
        // SAFETY: the process only gives up its user.
        ensure_eq!(unsafe { libc::setuid(1000) }, 0, "setuid");
        let device = Device::open()?;
        ensure_eq!(device.record(FEWEST).err(), Some(libc::EPERM), "record as a user");
        Ok(())
    })?;
    Device::open()?.record(FEWEST).explain("record as root").map(drop)
}

fn open() -> Check<File> {
    OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|error| format!("{DEVICE}: {error}"))
}

/// Maps a part of the device. Returns the error.
fn map(device: &impl AsRawFd, protection: i32, length: usize, offset: i64) -> Result<(), i32> {
    // SAFETY: a new mapping, which is removed at once.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, device.as_raw_fd(), offset);
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        let made_writable = libc::mprotect(at, length, libc::PROT_READ | libc::PROT_WRITE);
        libc::munmap(at, length);
        match made_writable {
            0 => Err(-1),
            _ => Ok(()),
        }
    }
}

fn mapping() -> Check {
    let file = open()?;
    let page = FEWEST as usize * size_of::<Event>();
    ensure_eq!(map(&file, libc::PROT_READ, page, 0), Err(libc::ENODEV), "a mapping without a recorder");
    let mut arg = macrotick_uapi::Recorder { size: 16, nr_events: FEWEST, ..Default::default() };
    // SAFETY: the structure is writable and as large as it says.
    let started = unsafe { libc::ioctl(file.as_raw_fd(), macrotick_uapi::call::RECORD as _, &mut arg) };
    ensure_eq!(started, 0, "record");
    ensure!(arg.nr_rings as usize >= sys::nr_cpus() as usize, "{} rings", arg.nr_rings);
    let rings = arg.nr_rings as usize;
    ensure_eq!(map(&file, libc::PROT_READ, rings * page, 0), Ok(()), "all rings");
    ensure_eq!(map(&file, libc::PROT_READ, page, ((rings - 1) * page) as i64), Ok(()), "the last ring");
    ensure_eq!(map(&file, libc::PROT_READ, page, (rings * page) as i64), Err(libc::EINVAL), "behind the end");
    ensure_eq!(map(&file, libc::PROT_READ, (rings + 1) * page, 0), Err(libc::EINVAL), "too much");
    ensure_eq!(map(&file, libc::PROT_READ | libc::PROT_WRITE, page, 0), Err(libc::EPERM), "a writable mapping");
    let other = open()?;
    ensure_eq!(map(&other, libc::PROT_READ, page, 0), Err(libc::ENODEV), "the mapping of another file");
    Ok(())
}

fn named(event: &Event, name: &str) -> bool {
    event.name.starts_with(name.as_bytes()) && event.name[name.len()] == 0
}

/// Checks that numbers and instants of a ring are possible.
fn ensure_sound(rings: &Rings) -> Check {
    let now = sys::now_ns();
    for ring in 0..rings.count() {
        let mut numbers = Vec::new();
        for event in rings.latest(ring) {
            ensure!((kind::SWITCH..=kind::JOB_ENDS).contains(&event.kind), "{event:?}");
            ensure!(event.ns <= now + SECOND && event.reserved == 0, "{event:?} at {now}");
            numbers.push(event.sequence);
        }
        numbers.sort_unstable();
        ensure!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a number twice on CPU {ring}");
    }
    Ok(())
}

fn sees_a_job() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(1024));
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    let child = periodic("t", log, u)?;
    let rings = Device::open()?.record(4096).explain("record")?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 10 * 20 * u);
    ensure_sound(&rings)?;
    let events = rings.latest(0);
    let of = |wanted: u16| events.iter().filter(move |event| event.kind == wanted && named(event, "t"));
    let windows: Vec<u64> = of(kind::WINDOW_BEGINS).map(|event| (event.data - epoch) / u).collect();
    ensure!(windows.len() >= 9 && windows[..3] == [2, 22, 42], "windows at {windows:?}");
    let jobs: Vec<(u32, u64)> = of(kind::JOB_BEGINS).map(|event| (event.object, (event.data - epoch) / u)).collect();
    ensure!(jobs.len() >= 8 && jobs.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "jobs {jobs:?}");
    let ends = of(kind::JOB_ENDS).filter(|event| event.thread == child.pid as u32).count();
    ensure!(ends >= 8, "{ends} jobs end on their own thread");
    let to = |event: &&Event| event.kind == kind::SWITCH && event.object == child.pid as u32;
    let switches = events.iter().filter(to).count();
    ensure!(switches >= 8, "{switches} switches to the thread");
    let timers = events.iter().filter(|event| event.kind == kind::VECTOR_BEGINS && event.object == 0xec).count();
    ensure!(cfg!(not(target_arch = "x86_64")) || timers >= 8, "{timers} interrupts of the timer");
    child.kill(SECOND)
}

/// Checks that a full ring has the latest events, without a gap.
fn keeps_the_latest() -> Check {
    let rings = Device::open()?.record(FEWEST).explain("record")?;
    let sleeper = fork(|| loop {
        sys::sleep(unit_ns());
    });
    sys::sleep(200 * unit_ns());
    sleeper.kill(SECOND)?;
    ensure_sound(&rings)?;
    let mut numbers: Vec<u32> = rings.latest(0).iter().map(|event| event.sequence).collect();
    numbers.sort_unstable();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    ensure!(last > 2 * FEWEST, "only {last} events");
    ensure!(last - first < FEWEST && numbers.len() as u32 >= FEWEST - 2, "{} of {first}..{last}", numbers.len());
    Ok(())
}

/// Starts and ends recorders, and reads them, while threads switch, fault and fork.
fn storm() -> Check {
    let u = unit_ns();
    let busy = || loop {
        sys::sleep(u / 2);
        let touched = vec![1u8; 1 << 20];
        std::hint::black_box(&touched);
        let _ = fork(|| 0).wait(SECOND);
    };
    let children = [fork(busy), fork(busy), fork(busy)];
    for events in [FEWEST, 128, 4096, FEWEST, MAX_EVENTS, 256] {
        let rings = Device::open()?.record(events).explain("record")?;
        for _ in 0..3 {
            sys::sleep(5 * u);
            ensure_sound(&rings)?;
        }
        ensure!(!rings.latest(0).is_empty(), "no events");
    }
    children.iter().try_for_each(|child| child.kill(SECOND))
}
