//! Jobs over two CPUs that miss their deadlines.

use std::sync::atomic::{AtomicU64, Ordering};

use macrotick_uapi::{self as abi, Device};

use super::{Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{member, periodic, Ended};
use crate::scenarios::unit_ns;
use crate::sys;
use crate::table::Table;
use crate::{ensure, ensure_eq};

/// Returns a table of 20 units. On CPU 0, [2, 4) has a release; on CPU 1, the end of [10, 12) is a deadline.
fn table(flags: u32, max_misses: u32) -> Table {
    let u = unit_ns();
    let table = Table::new(20 * u).window("t", 0, 2 * u, 2 * u, abi::ACTIVATE).misses(flags, max_misses).migrate();
    table.window("t", 1, 10 * u, 2 * u, abi::DEADLINE)
}

fn grid(epoch: u64) -> Grid {
    let u = unit_ns();
    Grid { releases: vec![(0, 2 * u)], length: 2 * u, ..Grid::alternating(epoch, u) }
}

/// Checks that a job that needs more than both windows is a miss, and continues in the next ones.
pub fn resumes() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    table(0, 0).install(&device)?;
    member("t", move |device| {
        while let Ok(wait) = device.wait() {
            log.push(&wait);
            // Most jobs need less than both windows, and job 2 needs more than twice as much.
            sys::spin(if wait.job == 2 { 9 * u } else { 5 * u / 2 });
        }
        1
    })?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 10 * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    // Job 2 misses twice, and an activation is lost meanwhile.
    ensure!(stats.misses >= 2 && stats.misses <= 7, "{} misses", stats.misses);
    ensure_eq!((stats.activations, stats.stopped), (10, 0), "activations, stopped");
    let jobs = log.jobs();
    ensure!(jobs.len() >= 6, "{} jobs", jobs.len());
    grid(epoch).ensure_on(&jobs)?;
    ensure_eq!(jobs.iter().take(3).map(|job| job.number).collect::<Vec<_>>(), [0, 1, 2], "the first jobs");
    // The job starts after the end of job 2, and not before the windows of the second cycle after it.
    let next = jobs[3].start_ns - epoch;
    ensure!(next > 4 * 20 * u, "the job behind one of 9 units began after {next} ns");
    Ok(())
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_signal: i32) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

/// Checks that each miss is signalled, although one CPU finds it and the thread gets the signal on another CPU.
pub fn is_signalled() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    table(abi::MISS_SIGNAL, 0).install(&device)?;
    let child = member("t", move |device| {
        // SAFETY: the handler only adds.
        unsafe { libc::signal(libc::SIGXCPU, count as extern "C" fn(i32) as usize) };
        let _ = device.wait();
        while SIGNALS.load(Ordering::SeqCst) < 5 {
            board.set(0, SIGNALS.load(Ordering::SeqCst));
            sys::relax();
        }
        0
    })?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 3 * 20 * u + 9 * u);
    ensure_eq!((device.stats(0).explain("stats")?.misses, board.get(0)), (3, 3), "misses and signals in three cycles");
    child.succeed(SECOND)?;
    ensure_eq!(device.stats(0).explain("stats")?.misses, 5, "misses until the fifth signal");
    Ok(())
}

pub fn kills() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    table(abi::MISS_KILL, 0).install(&device)?;
    let child = member("t", |device| {
        while device.wait().is_ok_and(|wait| wait.job < 3) {}
        sys::hog()
    })?;
    device.start(sys::now_ns() + 20 * u).explain("start")?;
    ensure_eq!(child.wait(SECOND)?, Ended::Signaled(libc::SIGKILL), "the end of a process that missed");
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.nr_threads, stats.completions), (1, 0, 3), "misses, threads, completions");
    Ok(())
}

/// Checks that after this many misses in a row the windows on both CPUs serve no thread, until a thread is bound. The
/// entity's threads continue as ordinary threads.
pub fn stop() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    table(0, 3).install(&device)?;
    let child = member("t", move |device| {
        let _ = device.wait();
        loop {
            board.set(0, sys::cpu_time_ns());
            sys::relax();
        }
    })?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    let stopped = || device.stats(0).is_ok_and(|stats| stats.stopped == 1);
    ensure!(sys::eventually(SECOND, stopped), "not stopped: {:?}", device.stats(0));
    // The thread leaves the class in the interrupt that stopped it. It may have to wait for the turn of its CPU.
    sys::sleep(4 * u);
    let (then, done) = (device.stats(0).explain("stats")?, board.get(0));
    ensure_eq!((then.misses, then.misses_in_row), (3, 3), "misses, in a row");
    sys::sleep(100 * u);
    let later = device.stats(0).explain("stats")?;
    ensure_eq!((later.misses, later.activations), (3, then.activations), "misses and activations of a stopped entity");
    ensure_eq!(later.runtime_ns, then.runtime_ns, "processor time of a stopped entity in the class");
    ensure!(board.get(0) > done + 40 * u, "a thread of a stopped entity is frozen");
    child.kill(SECOND)?;
    ensure_eq!(device.stats(0).explain("stats")?.stopped, 1, "stopped until a thread is bound");
    let log = Log::new(64);
    periodic("t", log, u / 2)?;
    sys::sleep(100 * u);
    let (last, jobs) = (device.stats(0).explain("stats")?, log.jobs());
    ensure_eq!((last.misses, last.misses_in_row, last.stopped), (3, 0, 0), "misses, in a row, stopped after a restart");
    ensure!((4..=6).contains(&jobs.len()), "{} jobs in five cycles after a restart", jobs.len());
    grid(epoch).ensure_all(&jobs, jobs[0].number)
}
