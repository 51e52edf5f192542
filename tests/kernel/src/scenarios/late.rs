//! Interrupts that come after their windows. A herd of threads wakes up at one instant, in one interrupt, which takes
//! longer than the windows.

use macrotick_uapi::Device;

use super::jobs::ensure_regular;
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, periodic};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("late_for_one_window", for_one_window).punctual().within(60_000),
    Scenario::new("late_for_many_windows", for_many_windows).punctual().within(60_000),
];

const SECOND: u64 = 1_000_000_000;
/// The number of threads that wake up at once.
const HERD: usize = 400;

/// Returns whether the herd takes exactly one long interrupt. On a slow kernel it would need more than a second.
/// Without PREEMPT_RT, softirqs take time from further windows while the herd ends.
fn takes_one_interrupt() -> bool {
    !is_slow() && sys::is_preempt_rt()
}

/// Threads under SCHED_FIFO that sleep until the instant of [`Herd::wake_at`], and then end. Their timers expire in one
/// interrupt, which wakes up all of them before it reads the clock again.
struct Herd {
    board: Board,
}

impl Herd {
    /// Forks the threads. TimerShield must not defer their timers.
    fn new() -> Check<Herd> {
        sys::set_timershield(false).explain("TimerShield")?;
        let herd = Herd { board: Board::new(4) };
        let Herd { board } = herd;
        process::fork(|| {
            if sys::set_sched(0, SchedAttr::fifo(1)).is_err() {
                return 1;
            }
            let sleeper = move || {
                board.add(0, 1);
                while board.get(1) == 0 {
                    sys::sleep(20_000_000);
                }
                board.add(2, 1);
                sys::sleep_until(board.get(1));
                board.add(3, 1);
            };
            let begin = |_| std::thread::Builder::new().stack_size(1 << 14).spawn(sleeper);
            let threads: Vec<_> = (0..HERD).filter_map(|at| begin(at).ok()).collect();
            threads.into_iter().for_each(|thread| drop(thread.join()));
            0
        });
        let there = || herd.board.get(0) == HERD as u64;
        ensure!(sys::eventually(20 * SECOND, there), "{} of the herd are there", herd.board.get(0));
        Ok(herd)
    }

    /// Sets the instant, and waits until the threads have woken up. The call must come some time before the instant.
    fn wake_at(&self, instant: u64) -> Check {
        self.board.set(1, instant);
        ensure!(sys::eventually(SECOND, || self.board.get(2) == HERD as u64), "{} are asleep", self.board.get(2));
        ensure!(sys::now_ns() < instant, "the herd is too slow");
        sys::sleep_until(instant);
        ensure!(sys::eventually(SECOND, || self.board.get(3) == HERD as u64), "{} woke up", self.board.get(3));
        Ok(())
    }
}

/// Checks that a late job starts in the next cycle's window, with its number, and no activation is lost. Other jobs are
/// not affected.
fn for_one_window() -> Check {
    const LATE: u64 = 50;
    if !takes_one_interrupt() {
        return Ok(());
    }
    let (u, device, log, witness) = (unit_ns(), Device::open()?, Log::new(128), Log::new(128));
    let herd = Herd::new()?;
    let cycle = 20 * u;
    Table::single(cycle, 0, 5 * u, u).window("witness", 0, 15 * u, 2 * u, 3).install(&device)?;
    periodic("t", log, 0)?;
    periodic("witness", witness, 0)?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    herd.wake_at(epoch + LATE * cycle + 5 * u - u / 10)?;
    sys::sleep_until(epoch + 120 * cycle - u);
    let (stats, others) = (device.stats(0).explain("stats")?, device.stats(1).explain("stats")?);
    ensure_eq!((stats.skipped, stats.misses, stats.never_ran), (1, 1, 1), "skipped, misses and jobs that never ran");
    ensure_eq!((stats.activations, stats.completions, stats.lost), (120, 120, 0), "activations, completions and lost");
    ensure!(stats.late_max_ns >= u, "the interrupt was {} ns late", stats.late_max_ns);
    ensure_eq!((others.skipped, others.misses, others.completions), (0, 0, 120), "skipped, misses and jobs of others");
    let jobs = log.jobs();
    ensure_regular(&jobs, 0, epoch, cycle, 5 * u)?;
    ensure_regular(&witness.jobs(), 0, epoch, cycle, 15 * u)?;
    for job in jobs {
        let begins = epoch + (job.number + u64::from(job.number == LATE)) * cycle + 5 * u;
        ensure!((begins..begins + u).contains(&job.start_ns), "job {} began at {}", job.number, job.start_ns - epoch);
    }
    Ok(())
}

/// Checks one interrupt that finds windows of several cycles over. Each window is counted: it has no job, or a job that
/// started late.
fn for_many_windows() -> Check {
    if !takes_one_interrupt() {
        return Ok(());
    }
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(2048));
    let herd = Herd::new()?;
    Table::single(u, 0, 0, u / 2).install(&device)?;
    periodic("t", log, 0)?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    herd.wake_at(epoch + 1000 * u - u / 10)?;
    sys::sleep_until(epoch + 1700 * u - u / 4);
    let (jobs, stats) = (log.jobs(), device.stats(0).explain("stats")?);
    let last = jobs.last().map_or(0, |job| job.number);
    let (missing, late) =
        (last + 1 - jobs.len() as u64, jobs.iter().filter(|job| job.start_ns >= job.nominal_ns + u / 2));
    let late = late.count() as u64;
    ensure!(last >= 1690, "the last job is {last}");
    // At least three cycles must be missing, or the interrupt would not pass over them at once.
    ensure!(missing >= 3, "{missing} windows had no job, {late} a late one");
    ensure_eq!(stats.skipped, missing + late, "skipped, of {missing} windows without a job and {late} with a late one");
    let off_grid = jobs.iter().find(|job| job.nominal_ns != epoch + job.number * u);
    ensure!(off_grid.is_none(), "off the grid: {off_grid:?}");
    Ok(())
}
