//! Threads that sleep across a boundary, and wake up in the window of another CPU or outside of windows.

use std::sync::atomic::{AtomicU64, Ordering};

use macrotick_uapi::{self as abi, Device, Wait};

use super::{alternating, Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

/// The instant at which a job wakes up, and the CPU and time range in which it must continue, in units since its
/// cycle's beginning.
struct Waking {
    at: u64,
    cpu: u32,
    from: u64,
    to: u64,
}

const fn waking(at: u64, cpu: u32, from: u64, to: u64) -> Waking {
    Waking { at, cpu, from, to }
}

/// The wake-ups, with windows in [2, 6) on CPU 0 and [10, 14) on CPU 1 of 20 units. A job after a late one starts late
/// itself, but before it must wake up.
const WAKINGS: [Waking; 7] = [
    waking(4, 0, 4, 6),    // no boundary passed
    waking(11, 1, 11, 14), // in the other window
    waking(8, 1, 10, 14),  // outside windows
    waking(16, 0, 22, 26), // outside windows, after both
    waking(8, 1, 10, 14),
    waking(28, 1, 30, 34), // in the next cycle
    waking(12, 1, 12, 14),
];

/// The source of the wake-up.
#[derive(Clone, Copy)]
pub enum By {
    Timer,
    Futex,
    Pipe,
}

/// The state that the sleeper and the waker share. Word 0 counts the wake-ups.
#[derive(Clone, Copy)]
struct Bed {
    by: By,
    board: Board,
    pipe: [i32; 2],
}

impl Bed {
    fn new(by: By) -> Bed {
        let mut pipe = [0; 2];
        // SAFETY: writes two descriptors.
        unsafe { libc::pipe(pipe.as_mut_ptr()) };
        Bed { by, board: Board::new(1), pipe }
    }

    fn futex(&self, operation: i32, value: u32) {
        let word = self.board.futex(0).as_ptr();
        // SAFETY: the word is never unmapped; no time limit.
        unsafe { libc::syscall(libc::SYS_futex, word, operation, value, 0, 0, 0) };
    }

    /// Sleeps until an instant, or until there were more than this many wake-ups.
    fn sleep(&self, at_ns: u64, times: u64) {
        match self.by {
            By::Timer => sys::sleep_until(at_ns),
            By::Futex => {
                while self.board.get(0) <= times {
                    self.futex(libc::FUTEX_WAIT, times as u32);
                }
            }
            // SAFETY: one byte of a local variable.
            By::Pipe => drop(unsafe { libc::read(self.pipe[0], (&mut 0u8 as *mut u8).cast(), 1) }),
        }
    }

    fn wake(&self) {
        match self.by {
            By::Timer => {}
            By::Futex => {
                self.board.add(0, 1);
                self.futex(libc::FUTEX_WAKE, 1);
            }
            // SAFETY: one byte of a constant.
            By::Pipe => drop(unsafe { libc::write(self.pipe[1], b"x".as_ptr().cast(), 1) }),
        }
    }
}

/// Forks a process that wakes the sleeper at each wake-up, from this CPU.
fn waker(bed: Bed, epoch: u64, cpu: u32) {
    let u = unit_ns();
    process::fork(move || {
        if sys::set_sched(0, SchedAttr::fifo(60)).is_err() || sys::set_affinity(0, &[cpu]).is_err() {
            return 1;
        }
        for (job, waking) in (0..).zip(WAKINGS.iter().cycle()) {
            sys::sleep_until(epoch + (20 * job + waking.at) * u);
            bed.wake();
        }
        0
    });
}

/// Checks jobs that sleep. Each continues in the window that is open when it wakes up, or else in the next one, on the
/// window's CPU.
pub fn asleep(by: By, waker_cpu: u32) -> Check {
    let (u, device, bed, log) = (unit_ns(), Device::open()?, Bed::new(by), Log::new(64));
    let table = Table::new(20 * u).window("t", 0, 2 * u, 4 * u, abi::ACTIVATE).migrate();
    table.window("t", 1, 10 * u, 4 * u, 0).install(&device)?;
    let child = member("t", move |device| {
        while let Ok(Wait { job, nominal_ns, .. }) = device.wait() {
            let base = nominal_ns - 2 * u;
            bed.sleep(base + WAKINGS[job as usize % WAKINGS.len()].at * u, job);
            log.push(&Wait { job, nominal_ns: base, ..Default::default() });
        }
        1
    })?;
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    waker(bed, epoch, waker_cpu);
    sys::sleep_until(epoch + 5 * WAKINGS.len() as u64 * 20 * u + 15 * u);
    let jobs = log.jobs();
    ensure!(jobs.len() >= 5 * WAKINGS.len(), "{} jobs went on; the sleeper: {}", jobs.len(), child.describe());
    for (number, job) in (0..).zip(jobs) {
        let waking = &WAKINGS[number as usize % WAKINGS.len()];
        ensure_eq!((job.number, job.nominal_ns), (number, epoch + number * 20 * u), "number and cycle");
        let since = job.start_ns - job.nominal_ns;
        let in_time = (waking.from * u..waking.to * u).contains(&since);
        ensure!(
            in_time,
            "job {number} was woken after {} units and went on {since} ns after its cycle began",
            waking.at
        );
        ensure_eq!(job.cpu, waking.cpu, "the CPU of job {number}, woken after {} units", waking.at);
    }
    ensure_eq!(device.stats(0).explain("stats")?.lost, 0, "lost activations");
    Ok(())
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_signal: i32) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

/// Checks that signals in every phase of the cycle are handled, and no job is lost.
pub fn interrupted() -> Check {
    const CYCLES: u64 = 20;
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(64), Board::new(1));
    alternating(u).install(&device)?;
    let child = member("t", move |device| {
        // SAFETY: the handler only adds.
        unsafe { libc::signal(libc::SIGUSR1, count as extern "C" fn(i32) as usize) };
        loop {
            match device.wait() {
                Ok(wait) => log.push(&wait),
                Err(libc::EINTR) => continue, // the signal came before the wait
                Err(errno) => return errno,
            }
            sys::spin(u);
            board.set(0, SIGNALS.load(Ordering::SeqCst));
        }
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for cycle in 0..CYCLES - 2 {
        sys::sleep_until(epoch + cycle * 20 * u + cycle * u);
        child.signal(libc::SIGUSR1);
    }
    sys::sleep_until(epoch + CYCLES * 20 * u - u);
    ensure!(child.poll().is_none(), "a wait failed");
    ensure_eq!(log.count() as u64, 2 * CYCLES, "jobs");
    Grid::alternating(epoch, u).ensure_all(&log.jobs(), 0)?;
    ensure_eq!(board.get(0), CYCLES - 2, "handlers that ran");
    Ok(())
}

/// Checks SIGSTOP and SIGCONT in every phase of the cycle: the thread returns on the grid and on the right CPU.
pub fn stopped() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(1024));
    alternating(u).install(&device)?;
    let child = process::periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for round in 0..20 {
        sys::sleep_until(epoch + (round * 100 + round) * u);
        child.signal(libc::SIGSTOP);
        sys::sleep_until(epoch + (round * 100 + 40 + 2 * round) * u);
        child.signal(libc::SIGCONT);
        let before = log.count();
        ensure!(sys::eventually(SECOND, || log.count() > before + 1), "no more jobs after stop {round}");
    }
    sys::sleep_until(epoch + 20 * 100 * u + 100 * u - u);
    let jobs = log.jobs();
    Grid::alternating(epoch, u).ensure_on(&jobs)?;
    ensure!(jobs.windows(2).all(|pair| pair[0].number < pair[1].number), "jobs out of order");
    ensure_eq!(jobs.last().map(|job| job.number), Some(209), "the last job");
    Ok(())
}
