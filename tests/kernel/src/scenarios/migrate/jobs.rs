//! Jobs of such entities: their CPUs, instants and order.

use macrotick_uapi::{self as abi, Device, Wait, SCHED_TT};

use super::track::{Track, Windows};
use super::{alternating, busy_cpus, Grid, SECOND};
use crate::board::Log;
use crate::check::{Check, Explain};
use crate::process::{member, periodic};
use crate::scenarios::clock::{ensure_on_clock, step_to_and_fro};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

/// Checks that with windows on only one CPU it is an ordinary entity.
pub fn on_one_cpu() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 0, 2 * u, 4 * u).migrate().window("t", 0, 10 * u, 4 * u, 3).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 10 * 20 * u - u);
    ensure_eq!(log.count(), 20, "jobs in ten cycles");
    let grid = Grid { releases: vec![(0, 2 * u), (0, 10 * u)], ..Grid::alternating(epoch, u) };
    grid.ensure_all(&log.jobs(), 0)?;
    ensure_eq!(device.stats(0).explain("stats")?.cpu, 0, "the CPU");
    Ok(())
}

pub fn alternates() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    alternating(u).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for cycle in 1..=10 {
        sys::sleep_until(epoch + cycle * 20 * u - 12 * u);
        ensure_eq!(device.stats(0).explain("stats")?.cpu, 0, "the CPU between the windows of cycle {cycle}");
        sys::sleep_until(epoch + cycle * 20 * u - 2 * u);
        ensure_eq!(device.stats(0).explain("stats")?.cpu, 1, "the CPU behind the windows of cycle {cycle}");
    }
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(log.count(), 20, "jobs in ten cycles");
    Grid::alternating(epoch, u).ensure_all(&log.jobs(), 0)?;
    ensure_eq!((stats.activations, stats.completions), (20, 20), "activations and completions");
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    ensure_eq!((stats.preemptions, stats.nr_threads), (0, 1), "preemptions and threads");
    let share = stats.runtime_ns as f64 / (20 * u) as f64;
    ensure!((1.0..1.6).contains(&share), "{} ns of processor time for 20 units of {u}", stats.runtime_ns);
    Ok(())
}

/// Checks three windows, of which the last and the first are on one CPU. Job numbers follow the time, not the CPU.
pub fn three_windows() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let table = Table::new(20 * u).window("t", 0, 8 * u, 4 * u, 3).migrate();
    table.window("t", 1, 2 * u, 4 * u, 3).window("t", 1, 14 * u, 4 * u, 3).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    ensure_eq!(log.count(), 60, "jobs in twenty cycles");
    let releases = vec![(1, 2 * u), (0, 8 * u), (1, 14 * u)];
    Grid { releases, ..Grid::alternating(epoch, u) }.ensure_all(&log.jobs(), 0)
}

/// Checks a thread that waits again at once, and moves while it waits, 400 times.
pub fn without_work() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(512));
    let table = Table::new(8 * u).window("t", 0, 0, 2 * u, 3).migrate().window("t", 1, 4 * u, 2 * u, 3);
    table.install(&device)?;
    periodic("t", log, 0)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 200 * 8 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((log.count(), stats.completions), (400, 400), "jobs and completions in 200 cycles");
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    let releases = vec![(0, 0), (1, 4 * u)];
    Grid { releases, cycle: 8 * u, length: 2 * u, ..Grid::alternating(epoch, u) }.ensure_all(&log.jobs(), 0)
}

pub fn by_yield() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(1 << 14));
    alternating(u).install(&device)?;
    member("t", |_| {
        if sys::set_sched(0, SchedAttr::policy(SCHED_TT)).is_err() {
            return 1;
        }
        for job in 0.. {
            // SAFETY: takes nothing.
            unsafe { libc::sched_yield() };
            log.push(&Wait { job, ..Default::default() });
            sys::spin(u);
        }
        0
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    // Before the start `sched_yield` does not wait, and the first call that waits may have started before it.
    let jobs: Vec<_> = log.jobs().into_iter().filter(|job| job.start_ns >= epoch).collect();
    ensure_eq!(jobs.len(), 40, "rounds in twenty cycles");
    for (i, job) in jobs.iter().enumerate() {
        let (cpu, nominal) = Grid::alternating(epoch, u).place(i as u64);
        ensure_eq!(job.cpu, cpu, "the CPU of round {i}");
        let late = job.start_ns.checked_sub(nominal);
        ensure!(late.is_some_and(|late| late < 4 * u), "round {i} began early, or {late:?} ns late");
    }
    Ok(())
}

/// Checks one job over two CPUs, with a given gap between its windows in units. The first window is too short for it.
/// Other threads are busy on both CPUs all the time.
pub fn split(gap: u64) -> Check {
    const CYCLES: u64 = 10;
    let (u, device, log, track) = (unit_ns(), Device::open()?, Log::new(64), Track::new(256, unit_ns() / 2));
    let second = 5 + gap;
    let table = Table::new(20 * u).window("t", 0, 2 * u, 3 * u, abi::ACTIVATE).migrate();
    table.window("t", 1, second * u, 4 * u, abi::DEADLINE).install(&device)?;
    member("t", move |device| {
        while let Ok(wait) = device.wait() {
            log.push(&wait);
            track.spin(5 * u);
        }
        1
    })?;
    sys::sleep(20 * u); // until it waits
    busy_cpus(SchedAttr::fifo(50))?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + CYCLES * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(log.count() as u64, CYCLES, "jobs");
    Grid { releases: vec![(0, 2 * u)], length: 3 * u, ..Grid::alternating(epoch, u) }.ensure_all(&log.jobs(), 0)?;
    ensure_eq!((stats.completions, stats.misses, stats.lost), (CYCLES, 0, 0), "completions, misses and lost");
    let windows = vec![(0, 2 * u, 5 * u), (1, second * u, (second + 4) * u)];
    let parts = Windows { epoch, cycle: 20 * u, windows, late: u / 4 }.ensure_inside(&track)?;
    // The rest of the job runs in the second window.
    ensure!(
        parts[0] > CYCLES * 2 * u && parts[0] < CYCLES * 3 * u + u,
        "{parts:?} ns in the windows of {CYCLES} cycles"
    );
    ensure!(
        parts[1] > CYCLES * 3 * u / 2 && parts[1] < CYCLES * 3 * u,
        "{parts:?} ns in the windows of {CYCLES} cycles"
    );
    Ok(())
}

/// Checks that an endless job has all windows of its entity on both CPUs, and no other time.
pub fn overrun() -> Check {
    let (u, device, track) = (unit_ns(), Device::open()?, Track::new(256, unit_ns() / 2));
    alternating(u).install(&device)?;
    member("t", move |device| {
        let _ = device.wait();
        track.hog()
    })?;
    sys::sleep(20 * u); // until it waits
    busy_cpus(SchedAttr::other())?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.activations, stats.misses, stats.lost), (40, 40, 38), "activations, misses and lost");
    ensure_eq!(stats.misses_in_row, 40, "misses in a row");
    let share = stats.runtime_ns as f64 / (40 * 4 * u) as f64;
    ensure!((0.85..1.05).contains(&share), "{} ns in 40 windows of 4 units", stats.runtime_ns);
    let windows = vec![(0, 2 * u, 6 * u), (1, 10 * u, 14 * u)];
    let parts = Windows { epoch, cycle: 20 * u, windows, late: u / 4 }.ensure_inside(&track)?;
    ensure!(parts.iter().all(|part| *part > 20 * 3 * u), "{parts:?} ns in 20 windows of 4 units on each CPU");
    Ok(())
}

/// Checks the first job of a thread that joined between two instants: the next activation, or that of the open window.
fn ensure_first(grid: &Grid, number: u64, before: u64, after: u64) -> Check {
    let (_, nominal) = grid.place(number);
    let soonest = before.saturating_sub(grid.length);
    ensure!(nominal >= soonest && nominal < after + grid.cycle, "first job {number} at {nominal}, joined at {before}");
    Ok(())
}

/// Checks that activations are counted while the entity has no threads for a thousand cycles and no CPU needs an
/// interrupt.
pub fn bound_later() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    alternating(u).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let grid = Grid::alternating(epoch, u);
    sys::sleep_until(epoch + 1000 * grid.cycle + 7 * u);
    let before = sys::now_ns();
    periodic("t", log, u)?;
    let joined = sys::now_ns();
    sys::sleep_until(joined + 5 * grid.cycle);
    let jobs = log.jobs();
    ensure!((8..=11).contains(&jobs.len()), "{} jobs in five cycles", jobs.len());
    ensure!(jobs[0].number >= 2000, "first job {} after a thousand cycles", jobs[0].number);
    grid.ensure_all(&jobs, jobs[0].number)?;
    ensure_first(&grid, jobs[0].number, before, joined)?;
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

/// Checks threads that come and go. Between them are standstills that end at different points of the cycle.
pub fn between_members() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    alternating(u).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let grid = Grid::alternating(epoch, u);
    for round in 0..6 {
        let (log, before) = (Log::new(32), sys::now_ns());
        let member = periodic("t", log, u)?;
        let joined = sys::now_ns();
        sys::sleep(4 * grid.cycle);
        member.kill(SECOND / 4)?;
        let jobs = log.jobs();
        ensure!((6..=10).contains(&jobs.len()), "{} jobs in four cycles", jobs.len());
        grid.ensure_all(&jobs, jobs[0].number)?;
        ensure_first(&grid, jobs[0].number, before, joined)?;
        sys::sleep(100 * grid.cycle + round * 3 * u);
    }
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

/// Checks that jobs are dispatched early on the CPU of their window, and held there.
pub fn lead() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let lead = u / 2;
    alternating(u).lead(lead).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(log.count(), 40, "jobs in twenty cycles");
    Grid::alternating(epoch, u).ensure_all(&log.jobs(), 0)?;
    ensure_eq!((stats.completions, stats.misses, stats.lost), (40, 0, 0), "completions, misses and lost");
    ensure_eq!(stats.late, 0, "jobs that the lead was too short for");
    let held = stats.held_ns / stats.completions;
    ensure!(held > 0 && held < lead, "{held} ns held per job");
    // Without the lead, an interrupt and a move to another CPU would delay the job. The median is used because
    // sometimes the other CPU has its turn.
    let mut late: Vec<u64> = log.jobs().iter().map(|job| job.start_ns - job.nominal_ns).collect();
    late.sort_unstable();
    ensure!(late[late.len() / 2] < u / 50, "jobs began so many ns late: {late:?}");
    Ok(())
}

/// Checks a first window that opens before the cycle begins, on another CPU than the thread's.
pub fn lead_around_the_cycle() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let table = Table::new(20 * u).window("t", 0, 15 * u, 4 * u, 3).migrate().window("t", 1, 0, 4 * u, 3);
    table.lead(u).install(&device)?;
    periodic("t", log, u)?;
    // The epoch is in the past. The kernel moves it forward, far enough for the first lead.
    let epoch = device.start(1).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    let (jobs, stats) = (log.jobs(), device.stats(0).explain("stats")?);
    let releases = vec![(1, 0), (0, 15 * u)];
    Grid { releases, ..Grid::alternating(epoch, u) }.ensure_all(&jobs[..jobs.len().min(40)], 0)?;
    ensure!((40..=41).contains(&jobs.len()), "{} jobs in twenty cycles", jobs.len());
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

/// Checks that the grid follows the clock on both CPUs, and the thread follows the grid.
pub fn clock() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(4096));
    let table = alternating(u).sync(0, 15 * u, 4 * u, u as u32).sync(1, 15 * u, 4 * u, u as u32).sorted();
    table.install(&device)?;
    periodic("t", log, u / 2)?;
    let epoch = device.start(sys::tai_ns() + 10 * u).explain("start")?;
    step_to_and_fro(&device)?;
    let done = log.count() + 3;
    ensure!(sys::eventually(5 * SECOND, || log.count() > done), "no more jobs");
    let jobs = log.jobs();
    for pair in jobs.windows(2) {
        let (job, next) = (pair[0], pair[1]);
        ensure_eq!((next.number, next.lost), (job.number + 1, 0), "number and lost behind job {}", job.number);
        ensure_eq!(u64::from(next.cpu), next.number % 2, "the CPU of job {}", next.number);
        let (apart, sync) = (next.nominal_ns - job.nominal_ns, next.number % 2 == 0);
        let right = if sync { (11 * u..=13 * u).contains(&apart) } else { apart == 8 * u };
        ensure!(right, "jobs {} and {} are {apart} ns apart", job.number, next.number);
    }
    let last = jobs.iter().rev().find(|job| job.cpu == 0);
    ensure_on_clock(&device, last, epoch + 2 * u)
}
