//! Swaps, and CPUs that are taken offline, while threads move.

use macrotick_uapi::{error, Device, SCHED_TT};

use super::{alternating, Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, periodic};
use crate::scenarios::suspend::{ensure_goes_on, missing, suspend, Depth};
use crate::scenarios::{is_slow, unit_ns};
use crate::sys::{self, SchedAttr};
use crate::table::{Refusal, Table};
use crate::{ensure, ensure_eq};

fn swap(device: &Device, table: &Table) -> Check<u64> {
    table.swap(device).map_err(|refusal| format!("swap: {refusal:?}"))
}

/// Returns a table with another cycle and three windows, the first of them on the other CPU.
fn another(u: u64) -> Table {
    let table = Table::new(30 * u).window("t", 0, 12 * u, 4 * u, 3).migrate();
    table.window("t", 1, 2 * u, 4 * u, 3).window("t", 1, 22 * u, 4 * u, 3)
}

fn another_grid(epoch: u64, first: u64, u: u64) -> Grid {
    let releases = vec![(1, 2 * u), (0, 12 * u), (1, 22 * u)];
    Grid { cycle: 30 * u, releases, first, ..Grid::alternating(epoch, u) }
}

/// Checks that job numbers continue across swaps, and each job has the place in the table of its time.
pub fn swap_keeps_threads() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(256));
    alternating(u).install(&device)?;
    periodic("t", log, u)?;
    let first = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(first + 75 * u);
    let second = swap(&device, &another(u))?;
    ensure_eq!(second, first + 80 * u, "the instant of the first swap");
    sys::sleep_until(second + 100 * u);
    let third = swap(&device, &alternating(u).lead(u / 5))?;
    ensure_eq!(third, second + 120 * u, "the instant of the second swap");
    sys::sleep_until(third + 5 * 20 * u - u);
    let (jobs, stats) = (log.jobs(), device.stats(0).explain("stats")?);
    ensure_eq!((jobs.len(), stats.activations, stats.nr_threads), (8 + 12 + 10, 30, 1), "jobs, activations, threads");
    Grid::alternating(first, u).ensure_all(&jobs[..8], 0)?;
    another_grid(second, 8, u).ensure_all(&jobs[8..20], 8)?;
    Grid { first: 20, ..Grid::alternating(third, u) }.ensure_all(&jobs[20..], 20)?;
    ensure_eq!((stats.misses, stats.lost), (0, 0), "misses and lost");
    Ok(())
}

/// Checks that an entity with threads keeps all its CPUs in a swap. Without threads it may change them.
pub fn swap_refused() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let on_one = |cpu| Table::single(20 * u, cpu, 2 * u, 4 * u).migrate();
    alternating(u).install(&device)?;
    let child = periodic("t", log, u)?;
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    let stays = Refusal { errno: libc::EBUSY, error: error::SWAP_CPU, index: 0, other: 0 };
    for (what, table) in [
        ("to CPU 0 alone", on_one(0)),
        ("to CPU 1 alone", on_one(1)),
        ("to CPU 0, not to migrate", Table::single(20 * u, 0, 2 * u, 4 * u)),
    ] {
        ensure_eq!(table.swap(&device), Err(stays), "{what}");
    }
    let other = Table::new(20 * u).window("x", 0, 8 * u, 2 * u, 3).window("t", 1, 2 * u, 4 * u, 3).migrate();
    let moved = Refusal { index: 1, ..stays };
    ensure_eq!(other.swap(&device), Err(moved), "to CPU 1 alone, as the second entity");
    let before = log.count();
    sys::sleep(60 * u);
    ensure!(log.count() >= before + 4, "no jobs after the refusals");
    child.kill(SECOND)?;
    for table in [on_one(1), alternating(u), on_one(0), alternating(u)] {
        let at = swap(&device, &table)?;
        let there = || device.get().is_ok_and(|get| get.epoch_ns == at);
        ensure!(sys::eventually(SECOND, there), "no swap without threads");
    }
    // An entity with one CPU can only get a second one while it has no threads.
    let at = swap(&device, &on_one(0))?;
    ensure!(sys::eventually(SECOND, || device.get().is_ok_and(|get| get.epoch_ns == at)), "no swap without threads");
    periodic("t", Log::new(64), u)?;
    ensure_eq!(alternating(u).swap(&device), Err(stays), "from CPU 0 to both");
    Ok(())
}

/// Checks many swaps, with a thread that waits, one that never waits, and others that come and go.
pub fn swap_storm() -> Check {
    let (u, device, log, board) = (unit_ns(), Device::open()?, Log::new(4096), Board::new(1));
    let tables = [
        alternating(u).window("x", 1, 16 * u, 2 * u, 3),
        another(u).lead(u / 5).window("y", 0, 2 * u, 4 * u, 3).sorted(),
        Table::new(11 * u).window("t", 0, 6 * u, 3 * u, 3).migrate().window("t", 1, 0, 3 * u, 3),
    ];
    tables[0].install(&device)?;
    periodic("t", log, u / 2)?;
    let busy = member("t", |_| match sys::set_sched(0, SchedAttr::policy(SCHED_TT)) {
        Ok(()) => loop {
            board.add(0, 1);
            // The thread pauses, because otherwise the waiting thread would never run.
            sys::spin(u / 2);
            sys::sleep(u);
        },
        Err(errno) => errno,
    })?;
    process::hog(SchedAttr::other());
    // A swap before the first cycle has the same epoch. The epoch could not show whether the swap is over.
    let mut epochs = vec![device.start(sys::now_ns() + 10 * u).explain("start")?];
    sys::sleep_until(epochs[0]);
    for round in 1..=if is_slow() { 12 } else { 60 } {
        let epoch = swap(&device, &tables[round % 3])?;
        epochs.push(epoch);
        let other = ["x", "y", "t"][round % 3];
        let _ = member(other, |device| device.wait().err().unwrap_or(0));
        let there = || device.get().is_ok_and(|get| get.epoch_ns == epoch);
        ensure!(sys::eventually(5 * SECOND, there), "swap {round}");
    }
    let (jobs, rounds) = (log.count(), board.get(0));
    ensure!(sys::eventually(5 * SECOND, || log.count() > jobs + 3), "no jobs after {jobs}");
    ensure!(sys::eventually(5 * SECOND, || board.get(0) > rounds + 3), "stuck: {}", busy.describe());
    let offsets = [[2 * u, 10 * u, 10 * u], [2 * u, 12 * u, 22 * u], [6 * u, 0, 0]];
    for job in log.jobs() {
        let table = epochs.iter().rposition(|&epoch| epoch <= job.nominal_ns).unwrap_or(0);
        let phase = (job.nominal_ns - epochs[table]) % tables[table % 3].cycle_ns;
        ensure!(offsets[table % 3].contains(&phase), "job {} at {phase} of table {table}", job.number);
    }
    let jobs = log.jobs();
    ensure!(jobs.windows(2).all(|pair| pair[0].number < pair[1].number), "jobs out of order");
    Ok(())
}

/// Checks that a CPU with windows of such an entity cannot be taken offline, wherever the threads are.
pub fn hotplug() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    // The threads are rarely on CPU 1.
    let table = Table::new(20 * u).window("t", 0, 2 * u, 4 * u, 3).migrate().window("t", 1, 10 * u, u, 0);
    table.install(&device)?;
    let stays = |when: &str| {
        ensure_eq!(sys::set_online(1, false), Err(libc::EBUSY), "off line with a table {when}");
        Ok(())
    };
    stays("installed")?;
    periodic("t", log, u)?;
    stays("and a thread")?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for phase in [1, 4, 8, 10, 12] {
        sys::sleep_until(epoch + (phase * 20 + phase) * u);
        stays("running")?;
    }
    device.stop().explain("stop")?;
    stays("stopped")?;
    Grid { releases: vec![(0, 2 * u)], ..Grid::alternating(epoch, u) }.ensure_on(&log.jobs())?;
    device.remove().explain("remove")?;
    ensure_eq!(sys::set_online(1, false), Ok(()), "off line without a table");
    let wanted = Refusal { errno: libc::EINVAL, error: error::WINDOW_CPU, index: 1, other: 0 };
    ensure_eq!(table.try_install(&device), Err(wanted), "a table with a CPU that is off line");
    sys::set_online(1, true).explain("on line")?;
    table.install(&device)
}

/// Checks that threads continue on both CPUs after a suspend, wherever they are. Each round suspends a little later in
/// the cycle.
pub fn suspended(depth: Depth) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    alternating(u).install(&device)?;
    let logs = [Log::new(4096), Log::new(4096)];
    let children = [periodic("t", logs[0], u / 2)?, periodic("t", logs[1], u / 10)?];
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * u);
    for round in 0..3 {
        sys::sleep_until(epoch + ((sys::now_ns() - epoch) / (20 * u) + 1) * 20 * u + (3 + 5 * round) * u);
        let slept = suspend(depth, 1)?;
        for (log, child) in logs.into_iter().zip(children) {
            ensure_goes_on(&device, 0, log, child)?;
            let (jobs, stats) = (log.jobs(), device.stats(0).explain("stats")?);
            let (missing, counted) = (missing(&jobs)?, stats.lost + stats.skipped);
            ensure!(missing <= counted, "{missing} activations had no job, {counted} were lost or skipped");
            Grid::alternating(epoch, u).ensure_on(&jobs)?;
            if depth == Depth::Processors {
                let least = (round + 1) * (SECOND / (10 * u) - 4);
                ensure!(missing >= least, "there were jobs meanwhile: {missing} activations had none");
            }
            let after = |cpu| jobs.iter().any(|job| job.cpu == cpu && job.nominal_ns > slept.ended);
            ensure!(after(0) && after(1), "no jobs on both CPUs after the suspend");
            ensure_eq!(sys::affinity(child.pid), Ok(vec![0, 1]), "CPUs of the thread");
        }
    }
    device.remove().explain("remove")
}
