//! Jobs that the kernel dispatches early and holds until their nominal instant.

use macrotick_uapi::{Device, SCHED_TT};

use super::jobs::ensure_regular;
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, hog, member, periodic};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("lead_is_exact", exact).punctual(),
    Scenario::new("lead_by_yield", by_yield).punctual(),
    Scenario::new("lead_too_short", too_short),
    Scenario::new("lead_leaves_windows_alone", leaves_windows_alone),
    Scenario::new("lead_not_for_the_unfinished", not_for_the_unfinished),
    Scenario::new("lead_around_the_cycle", around_the_cycle).punctual(),
    Scenario::new("lead_of_several_threads", several_threads),
    Scenario::new("lead_cut_off", cut_off),
];

/// Returns the lead of these tables: 20 us, more on slow kernels.
fn lead_ns() -> u64 {
    if is_slow() {
        800_000
    } else {
        20_000
    }
}

/// Returns the lateness limit of a held job: a round of the loop, and the return to user space.
fn bound_ns() -> u64 {
    if is_slow() {
        200_000
    } else {
        2000
    }
}

/// The kernel's tick comes at whole milliseconds. The offsets below avoid it.
const TICK: u64 = 1_000_000;

/// Starts the table on the grid of the tick, some milliseconds from now.
fn start(device: &Device) -> Check<u64> {
    let epoch = (sys::now_ns() / TICK + 5) * TICK;
    ensure_eq!(device.start(epoch).explain("start")?, epoch, "the epoch in force");
    Ok(epoch)
}

/// Returns the spread of the jobs' starts, and the largest lateness, in nanoseconds.
fn spread(log: Log) -> (u64, u64) {
    let late = log.jobs().into_iter().map(|job| job.start_ns - job.nominal_ns).collect::<Vec<_>>();
    let (least, most) = (late.iter().min().copied().unwrap_or(0), late.iter().max().copied().unwrap_or(u64::MAX));
    (most - least, most)
}

fn exact() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(100));
    Table::single(20 * u, 0, 3 * u, 4 * u).lead(lead_ns()).install(&device)?;
    periodic("t", log, u)?;
    hog(SchedAttr::other());
    let epoch = start(&device)?;
    sys::sleep_until(epoch + 100 * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(log.count(), 100, "jobs");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 3 * u)?;
    ensure_eq!(
        (stats.late, stats.misses, stats.lost, stats.preemptions),
        (0, 0, 0, 0),
        "late, misses, lost, preemptions"
    );
    let held = stats.held_ns / stats.completions;
    ensure!(held > 0 && held < lead_ns(), "{held} ns held per job");
    let (spread, latest) = spread(log);
    ensure!(
        spread < bound_ns() / 2 && latest < bound_ns(),
        "jobs began {latest} ns late, with a spread of {spread} ns"
    );
    Ok(())
}

fn by_yield() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(100));
    Table::single(20 * u, 0, 3 * u, 4 * u).lead(lead_ns()).install(&device)?;
    process::member("t", |_| {
        if sys::set_sched(0, SchedAttr::policy(SCHED_TT)).is_err() {
            return 1;
        }
        for job in (0..).map(|job| job % 100) {
            // SAFETY: takes nothing.
            unsafe { libc::sched_yield() };
            board.set(job, sys::now_ns());
            sys::spin(u);
        }
        0
    })?;
    let epoch = start(&device)?;
    sys::sleep_until(epoch + 55 * 20 * u - u);
    let phase = |job| (board.get(job) - epoch) % (20 * u);
    // Before the start `sched_yield` does not wait. The last jobs are those of the table.
    let last = (0..100).max_by_key(|&job| board.get(job)).unwrap_or(0);
    for back in 0..50 {
        let phase = phase((last + 100 - back) % 100);
        ensure!((3 * u..3 * u + bound_ns()).contains(&phase), "{back} jobs ago it began at {phase} of {}", 20 * u);
    }
    ensure_eq!(device.stats(0).explain("stats")?.late, 0, "late");
    Ok(())
}

/// Checks that jobs with a lead that is too short start as soon as possible, and are counted.
fn too_short() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(20));
    Table::single(20 * u, 0, 3 * u, 4 * u).lead(1).install(&device)?;
    periodic("t", log, u)?;
    let epoch = start(&device)?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 3 * u)?;
    ensure_eq!((stats.completions, stats.late, stats.held_ns), (20, 20, 0), "completions, late, held");
    ensure!(stats.late_max_ns > 0, "no interrupt was late");
    Ok(())
}

/// Checks that the window before a lead keeps its length, and its entity does not run in the lead.
fn leaves_windows_alone() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(20));
    let first = 4 * u - lead_ns();
    Table::single(20 * u, 0, 0, first).window("after", 0, 4 * u, 2 * u, 3).lead(lead_ns()).install(&device)?;
    member("t", |device| {
        let _ = device.wait();
        sys::hog()
    })?;
    periodic("after", log, u)?;
    let epoch = start(&device)?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    let (stats, after) = (device.stats(0).explain("stats")?, device.stats(1).explain("stats")?);
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 4 * u)?;
    ensure_eq!((after.completions, after.misses), (20, 0), "completions and misses behind the overrun");
    ensure_eq!((stats.misses, stats.preemptions), (20, 20), "misses and preemptions of the overrun");
    let share = stats.runtime_ns as f64 / (20 * first) as f64;
    ensure!((0.9..1.01).contains(&share), "{share} of its windows");
    Ok(())
}

/// Checks that a thread with an unfinished job gets its windows without the leads.
fn not_for_the_unfinished() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    // An additional lead in each window would be visible.
    let window = 4 * u;
    Table::single(20 * u, 0, 3 * u, window).lead(lead_ns()).install(&device)?;
    member("t", |device| {
        let _ = device.wait();
        sys::hog()
    })?;
    let epoch = start(&device)?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.activations, stats.misses, stats.lost), (20, 20, 18), "activations, misses, lost");
    // Only the first job had a lead.
    let most = 20 * window + lead_ns();
    ensure!(stats.runtime_ns <= most, "{} ns in windows of {most} ns", stats.runtime_ns);
    Ok(())
}

/// Checks that the first window of a cycle opens before the cycle begins.
fn around_the_cycle() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(20));
    Table::single(20 * u, 0, 0, 2 * u)
        .window("last", 0, 18 * u, 2 * u - lead_ns(), 3)
        .lead(lead_ns())
        .install(&device)?;
    periodic("t", log, u)?;
    let last = Log::new(20);
    periodic("last", last, u)?;
    // The epoch is in the past. The kernel moves it forward, far enough for the first lead.
    let epoch = device.start(1).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - lead_ns());
    ensure_regular(&last.jobs(), 0, epoch, 20 * u, 18 * u)?;
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 0)?;
    ensure_eq!(device.stats(1).explain("stats")?.completions, 20, "jobs of the last window");
    let stats = device.stats(0).explain("stats")?;
    ensure!((20..=21).contains(&stats.completions) && stats.misses == 0, "{stats:?}");
    Ok(())
}

/// Checks that one thread of the entity is held, and the others wait for it.
fn several_threads() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let logs = [Log::new(20), Log::new(20), Log::new(20)];
    Table::single(20 * u, 0, 3 * u, 6 * u).lead(lead_ns()).install(&device)?;
    for log in logs {
        periodic("t", log, u)?;
    }
    let epoch = start(&device)?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    for (place, log) in logs.into_iter().enumerate() {
        ensure_regular(&log.jobs(), 0, epoch, 20 * u, 3 * u)?;
        let early = log.jobs().iter().any(|job| job.start_ns < job.nominal_ns + place as u64 * u);
        ensure!(!early, "a thread began before the ones in front of it were done");
    }
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.completions, stats.misses), (60, 0), "completions and misses");
    Ok(())
}

/// Checks the removal of the table, or a fatal signal, while a job is held.
fn cut_off() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    // One millisecond is the longest lead.
    let lead = 1_000_000;
    for kills in [false, true] {
        let cycle = 4 * lead + 20 * u;
        Table::single(cycle, 0, 2 * lead, 2 * u).lead(lead).install(&device)?;
        let child = periodic("t", log, u)?;
        let epoch = start(&device)?;
        sys::sleep_until(epoch + cycle + 3 * lead / 2);
        if kills {
            child.signal(libc::SIGKILL);
        } else {
            device.remove().explain("remove")?;
        }
        ensure!(sys::eventually(1_000_000_000, || child.poll().is_some()), "the held thread is stuck");
    }
    device.remove().explain("remove")
}
