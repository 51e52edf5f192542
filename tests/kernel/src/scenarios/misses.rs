//! Jobs that miss their deadlines.

use std::sync::atomic::{AtomicU64, Ordering};

use macrotick_uapi::{self as abi, Device, Stats};

use super::jobs::ensure_regular;
use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{member, periodic, Child, Ended};
use crate::table::Table;
use crate::{ensure, ensure_eq, sys};

pub const ALL: &[Scenario] = &[
    Scenario::new("miss_resumes", resumes).punctual(),
    Scenario::new("miss_is_signalled", is_signalled).punctual(),
    Scenario::new("miss_kills", kills).punctual(),
    Scenario::new("miss_kills_all_threads", kills_all_threads).punctual(),
    Scenario::new("miss_kills_a_sleeper", kills_a_sleeper).punctual(),
    Scenario::new("misses_stop", stop).punctual(),
    Scenario::new("misses_stop_before_a_job", stop_before_a_job).punctual(),
    Scenario::new("misses_on_an_eventfd", on_an_eventfd).punctual(),
    Scenario::new("miss_never_ran", never_ran).punctual(),
    Scenario::new("notify_arguments", notify_arguments),
];

const SOON: u64 = 250_000_000;

/// An entity `t` with [2, 4) of 20 units, beside a witness that must not be affected.
struct Stage {
    device: Device,
    witness: Log,
    epoch: u64,
    u: u64,
}

impl Stage {
    fn new(flags: u32, max_misses: u32, body: impl FnOnce(&Device) -> i32) -> Check<(Stage, Child)> {
        let (u, device, witness) = (unit_ns(), Device::open()?, Log::new(1024));
        let table = Table::single(20 * u, 0, 2 * u, 2 * u).misses(flags, max_misses);
        table.window("witness", 0, 10 * u, 4 * u, 3).install(&device)?;
        periodic("witness", witness, u)?;
        let child = member("t", body)?;
        let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
        Ok((Stage { device, witness, epoch, u }, child))
    }

    fn stats(&self) -> Check<Stats> {
        self.device.stats(0).explain("stats")
    }

    /// Sleeps until shortly before the end of a cycle.
    fn sleep_to_end_of(&self, cycle: u64) {
        sys::sleep_until(self.epoch + (cycle + 1) * 20 * self.u - self.u);
    }

    fn ensure_undisturbed(&self) -> Check {
        let cycles = (sys::now_ns() - self.epoch) / (20 * self.u) + 1;
        self.sleep_to_end_of(cycles);
        ensure_eq!(self.witness.count() as u64, cycles + 1, "jobs of the witness");
        ensure_regular(&self.witness.jobs(), 0, self.epoch, 20 * self.u, 10 * self.u)
    }
}

/// Returns a member. Its job 1 takes five units, more than two windows.
fn late_once(u: u64) -> impl FnOnce(&Device) -> i32 {
    move |device| {
        while let Ok(wait) = device.wait() {
            sys::spin(if wait.job == 1 { 5 * u } else { u / 2 });
        }
        1
    }
}

fn resumes() -> Check {
    let (stage, _) = Stage::new(0, 0, late_once(unit_ns()))?;
    stage.sleep_to_end_of(2);
    let stats = stage.stats()?;
    ensure_eq!((stats.misses, stats.misses_in_row, stats.never_ran), (2, 2, 0), "misses, in a row, never ran");
    // Job 1 ends in the third window, and pending jobs follow.
    stage.sleep_to_end_of(6);
    let stats = stage.stats()?;
    ensure_eq!((stats.misses_in_row, stats.stopped), (0, 0), "misses in a row after that, stopped");
    stage.ensure_undisturbed()
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_signal: i32) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

fn is_signalled() -> Check {
    let (u, board) = (unit_ns(), Board::new(1));
    let (stage, child) = Stage::new(abi::MISS_SIGNAL, 0, move |device| {
        // SAFETY: the handler only adds.
        unsafe { libc::signal(libc::SIGXCPU, count as extern "C" fn(i32) as usize) };
        for _ in 0..5 {
            if let Ok(wait) = device.wait() {
                sys::spin(if wait.job == 1 { 5 * u } else { u / 2 });
                board.set(0, SIGNALS.load(Ordering::SeqCst));
            }
        }
        0
    })?;
    child.succeed(SOON)?;
    ensure_eq!(stage.stats()?.misses, 2, "misses");
    ensure_eq!(board.get(0), 2, "signals");
    stage.ensure_undisturbed()
}

fn kills() -> Check {
    let u = unit_ns();
    let (stage, child) = Stage::new(abi::MISS_KILL, 0, late_once(u))?;
    ensure_eq!(child.wait(SOON)?, Ended::Signaled(libc::SIGKILL), "the end of a process that missed");
    let stats = stage.stats()?;
    ensure_eq!((stats.misses, stats.nr_threads, stats.completions), (1, 0, 1), "misses, threads, completions");
    // A supervisor restarts the process: its first job is the next activation.
    let log = Log::new(8);
    periodic("t", log, u / 2)?;
    let joined = (sys::now_ns() - stage.epoch) / (20 * u);
    stage.sleep_to_end_of(joined + 3);
    let first = log.jobs().first().map_or(0, |job| job.number);
    ensure!((joined..=joined + 1).contains(&first), "first job {first} after joining in cycle {joined}");
    ensure_regular(&log.jobs(), first, stage.epoch, 20 * u, 2 * u)?;
    stage.ensure_undisturbed()
}

/// Checks that all threads of the process end, including threads that are not members.
fn kills_all_threads() -> Check {
    let (stage, child) = Stage::new(abi::MISS_KILL, 0, move |device| {
        std::thread::spawn(|| loop {
            sys::sleep(1_000_000);
        });
        let _ = device.wait();
        sys::hog()
    })?;
    ensure_eq!(child.wait(SOON)?, Ended::Signaled(libc::SIGKILL), "the end of a process that missed");
    stage.ensure_undisturbed()
}

/// Checks that a job that sleeps past its deadline ends at once, before its next window.
fn kills_a_sleeper() -> Check {
    let (stage, child) = Stage::new(abi::MISS_KILL, 0, |device| {
        let _ = device.wait();
        sys::sleep(3_600_000_000_000);
        1
    })?;
    ensure_eq!(child.wait(SOON)?, Ended::Signaled(libc::SIGKILL), "the end of a process that missed");
    stage.ensure_undisturbed()
}

/// Checks that after this many misses in a row the entity's windows serve no thread, until a thread is bound. The
/// entity's threads continue as ordinary threads, to release their kernel locks.
fn stop() -> Check {
    let (u, board) = (unit_ns(), Board::new(1));
    let (stage, child) = Stage::new(0, 3, move |device| {
        let _ = device.wait();
        loop {
            board.set(0, sys::cpu_time_ns());
        }
    })?;
    stage.sleep_to_end_of(2);
    let (stopped, done) = (stage.stats()?, board.get(0));
    ensure_eq!((stopped.misses, stopped.stopped), (3, 1), "misses, stopped");
    stage.sleep_to_end_of(6);
    let later = stage.stats()?;
    ensure_eq!((later.misses, later.activations), (3, 3), "misses and activations of a stopped entity");
    ensure_eq!(later.runtime_ns, stopped.runtime_ns, "processor time of a stopped entity in the class");
    ensure!(board.get(0) > done + 20 * u, "a thread of a stopped entity is frozen");
    child.kill(SOON)?;
    let log = Log::new(8);
    periodic("t", log, u / 2)?;
    let joined = (sys::now_ns() - stage.epoch) / (20 * u);
    stage.sleep_to_end_of(joined + 3);
    let last = stage.stats()?;
    ensure_eq!((last.misses, last.misses_in_row, last.stopped), (3, 0, 0), "misses, in a row, stopped after a restart");
    ensure!((3..=4).contains(&log.count()), "{} jobs after a restart", log.count());
    stage.ensure_undisturbed()
}

/// Checks a thread with a released job that was forgotten at the stop: it waits for the next one.
fn stop_before_a_job() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let logs = [Log::new(64), Log::new(64)];
    Table::single(20 * u, 0, 2 * u, 4 * u).misses(0, 1).install(&device)?;
    let first = member("t", late_once(u))?;
    periodic("t", logs[0], u / 4)?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 40 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.never_ran, stats.stopped), (1, 1, 1), "misses, never ran, stopped");
    first.kill(SOON)?;
    periodic("t", logs[1], u / 4)?;
    sys::sleep(5 * 20 * u);
    for log in logs {
        let jobs = log.jobs();
        let last = jobs.last().map_or(0, |job| job.nominal_ns);
        ensure!(last + 2 * 20 * u > sys::now_ns(), "no job since {last}: {} jobs", jobs.len());
    }
    ensure_eq!(device.stats(0).explain("stats")?.misses, 1, "misses after the restart");
    Ok(())
}

fn eventfd() -> Check<i32> {
    // SAFETY: takes numbers.
    sys::done(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK) }).map(|fd| fd as i32).explain("eventfd")
}

/// Returns the number of signals since the last read; zero if there are none.
fn read(fd: i32) -> u64 {
    let mut count = 0u64;
    // SAFETY: writes eight bytes.
    let length = unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
    if length == 8 {
        count
    } else {
        0
    }
}

fn on_an_eventfd() -> Check {
    let (stage, _) = Stage::new(0, 0, late_once(unit_ns()))?;
    let (one, all, other) = (eventfd()?, eventfd()?, eventfd()?);
    stage.device.notify(0, one).explain("notify")?;
    stage.device.notify(1, other).explain("notify of the witness")?;
    stage.device.notify(abi::ALL_ENTITIES, all).explain("notify of all")?;
    stage.sleep_to_end_of(0);
    ensure_eq!((read(one), read(all)), (0, 0), "signals before the first miss");
    stage.sleep_to_end_of(1);
    ensure_eq!((read(one), read(all)), (1, 1), "signals of the first miss");
    stage.device.notify(0, -1).explain("no notify")?;
    stage.sleep_to_end_of(2);
    ensure_eq!((read(one), read(all), read(other)), (0, 1, 0), "signals of the second miss");
    // The removal of the table must release its eventfds.
    stage.ensure_undisturbed()
}

fn notify_arguments() -> Check {
    let device = Device::open()?;
    let fd = eventfd()?;
    ensure_eq!(device.notify(0, fd), Err(libc::ENOENT), "notify without a table");
    Table::single(10_000_000, 0, 0, 1_000_000).install(&device)?;
    ensure_eq!(device.notify(1, fd), Err(libc::ENOENT), "notify of no entity");
    ensure_eq!(device.notify(0, 4096), Err(libc::EBADF), "notify on no descriptor");
    ensure_eq!(device.notify(0, -2), Err(libc::EBADF), "notify on descriptor -2");
    // SAFETY: takes nothing that is kept.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) };
    ensure_eq!(device.notify(0, null), Err(libc::EINVAL), "notify on a file");
    ensure_eq!(device.notify(0, fd), Ok(()), "notify");
    ensure_eq!(device.notify(0, fd), Ok(()), "notify again");
    device.remove().explain("remove")
}

/// Checks two threads of which one takes the whole window.
fn never_ran() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    member("t", late_once(u))?;
    periodic("t", log, u / 4)?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 40 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.never_ran), (1, 1), "misses, with a job that had not begun");
    Ok(())
}
