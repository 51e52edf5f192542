//! Interrupts that come after the windows that they were for: a herd of threads wakes up at one instant, which takes one
//! interrupt longer than those windows are.

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
/// How many threads wake up at once.
const HERD: usize = 400;

/// Whether the herd takes the one interrupt longer, and nothing else: not where it has not even woken up after a second, nor
/// without PREEMPT_RT, where softirqs take the processor from further windows while it ends.
fn takes_one_interrupt() -> bool {
    !is_slow() && sys::is_preempt_rt()
}

/// Threads of SCHED_FIFO that are asleep until an instant that [`Herd::wake_at`] tells, and end then: their timers expire
/// in the interrupt itself, which wakes up all of them before it looks at the clock again.
struct Herd {
    board: Board,
}

impl Herd {
    /// They must not be shielded from.
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

    /// To be called a while before the instant.
    fn wake_at(&self, instant: u64) -> Check {
        self.board.set(1, instant);
        ensure!(sys::eventually(SECOND, || self.board.get(2) == HERD as u64), "{} are asleep", self.board.get(2));
        ensure!(sys::now_ns() < instant, "the herd is too slow");
        sys::sleep_until(instant);
        ensure!(sys::eventually(SECOND, || self.board.get(3) == HERD as u64), "{} woke up", self.board.get(3));
        Ok(())
    }
}

/// The job begins in the window of the next cycle, as the one that it is, and nothing is lost; others notice nothing.
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

/// Of windows of several cycles that one interrupt finds over, each is counted: it has no job, or one that began late.
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
    // Three cycles at least, or they would not be passed over in one go.
    ensure!(missing >= 3, "{missing} windows had no job, {late} a late one");
    ensure_eq!(stats.skipped, missing + late, "skipped, of {missing} windows without a job and {late} with a late one");
    let off_grid = jobs.iter().find(|job| job.nominal_ns != epoch + job.number * u);
    ensure!(off_grid.is_none(), "off the grid: {off_grid:?}");
    Ok(())
}
