//! Threads that join such an entity and leave it, and the CPUs that they may use.

use macrotick_uapi::{Device, SCHED_TT};

use super::{alternating, Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, periodic, Ended};
use crate::scenarios::policy::outside_for_windows;
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::{ensure, ensure_eq};

/// Checks that a thread that sleeps or is busy on either CPU can be bound. It may have to wake up first.
pub fn bound_elsewhere() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    alternating(u).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for (cpu, busy) in [(0, false), (1, false), (0, true), (1, true)] {
        let (log, board) = (Log::new(256), Board::new(1));
        let child = process::fork(|| {
            let Ok(device) = Device::open() else { return 1 };
            let _ = sys::set_affinity(0, &[cpu]);
            board.set(0, 1);
            while board.get(0) == 1 {
                if busy {
                    sys::spin(u / 10);
                } else {
                    sys::sleep(30 * u);
                }
            }
            while let Ok(wait) = device.wait() {
                log.push(&wait);
            }
            2
        });
        ensure!(sys::eventually(SECOND, || board.get(0) == 1), "the thread did not begin");
        let pidfd = sys::pidfd_open(child.pid, 0).explain("pidfd")?;
        let mut bound = Ok(());
        sys::eventually(SECOND, || {
            bound = device.bind(pidfd, "t");
            bound != Err(libc::EAGAIN)
        });
        bound.explain("bind")?;
        board.set(0, 2);
        ensure!(sys::eventually(SECOND, || log.count() >= 20), "{} jobs once bound", log.count());
        let jobs = log.jobs();
        // The first job may have been released before the thread waited for it.
        Grid::alternating(epoch, u).ensure_all(&jobs[1..], jobs[1].number)?;
        device.unbind(pidfd).explain("unbind")?;
        ensure_eq!(child.wait(SECOND)?, Ended::Exited(2), "the end of one that was unbound");
    }
    Ok(())
}

/// Checks that a thread has its former affinity again when its membership ends, for each way to end it.
pub fn affinity_restored() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    for asked in [vec![0], vec![1], (0..sys::nr_cpus()).collect()] {
        for ends in [|device: &Device, pidfd| device.unbind(pidfd), |device: &Device, _| device.remove()] {
            let board = Board::new(1);
            let child = process::fork(|| loop {
                board.add(0, 1);
                sys::relax();
            });
            sys::set_affinity(child.pid, &asked).explain("affinity")?;
            alternating(u).install(&device)?;
            let pidfd = sys::pidfd_open(child.pid, 0).explain("pidfd")?;
            device.bind(pidfd, "t").explain("bind")?;
            sys::set_sched(child.pid, SchedAttr::policy(SCHED_TT)).explain("enter")?;
            let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
            sys::sleep_until(epoch + 90 * u);
            let served = device.stats(0).explain("stats")?.runtime_ns;
            ensure!(served > 4 * 6 * u, "{served} ns in nine windows of 4 units");
            ends(&device, pidfd).explain("the end")?;
            ensure_eq!(sys::affinity(child.pid), Ok(asked.clone()), "CPUs afterwards");
            let done = board.get(0);
            ensure!(sys::eventually(SECOND, || board.get(0) > done), "it does not go on");
            child.kill(SECOND)?;
            let _ = device.remove();
        }
    }
    Ok(())
}

/// Checks changes of the affinity while bound: the table determines the CPUs. An accepted change takes effect when the
/// membership ends.
pub fn affinity_while_bound() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(256));
    let mut last: Vec<u32> = (0..sys::nr_cpus()).collect();
    alternating(u).install(&device)?;
    let child = periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let masks: [&[u32]; 4] = [&[0], &[1], &[0, 1], &[1]];
    for (round, asked) in (0..20).zip(masks.iter().cycle()) {
        // The calls are in all phases of the cycle.
        sys::sleep_until(epoch + round * 27 * u);
        match sys::set_affinity(child.pid, asked) {
            Ok(()) => last = asked.to_vec(),
            Err(errno) => ensure_eq!(errno, libc::EBUSY, "affinity to {asked:?}"),
        }
    }
    sys::sleep_until(epoch + 30 * 20 * u - u);
    ensure_eq!(log.count(), 60, "jobs in thirty cycles");
    Grid::alternating(epoch, u).ensure_all(&log.jobs(), 0)?;
    device.stop().explain("stop")?;
    let cpus = sys::affinity(child.pid).explain("affinity")?;
    ensure!(!cpus.is_empty() && cpus.iter().all(|cpu| *cpu < 2), "CPUs while it is bound: {cpus:?}");
    device.unbind(sys::pidfd_open(child.pid, 0).explain("pidfd")?).explain("unbind")?;
    ensure_eq!(sys::affinity(child.pid), Ok(last), "CPUs afterwards");
    Ok(())
}

/// Checks that a thread's own changes of its affinity, in its windows and while it moves, have no effect.
pub fn affinity_by_itself() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(256));
    alternating(u).install(&device)?;
    let child = member("t", move |device| loop {
        match device.wait() {
            Ok(wait) => log.push(&wait),
            Err(errno) => return errno,
        }
        for asked in [&[0][..], &[1], &[0, 1]] {
            if sys::set_affinity(0, asked).is_err_and(|errno| errno != libc::EBUSY) {
                return 1;
            }
        }
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - u);
    ensure!(child.poll().is_none(), "an error that is not EBUSY, or a wait that failed");
    ensure_eq!(log.count(), 40, "jobs in twenty cycles");
    Grid::alternating(epoch, u).ensure_all(&log.jobs(), 0)
}

/// Checks a thread that leaves the class in a job, is an ordinary thread for some windows, and returns with the next
/// wait.
pub fn leaves_and_returns() -> Check {
    let u = unit_ns();
    outside_for_windows(alternating(u), |epoch, jobs| Grid::alternating(epoch, u).ensure_on(jobs))
}

/// Checks a thread that unbinds itself in a job and binds itself again, on any CPU. Its first job is always the next
/// one.
pub fn binds_itself_again() -> Check {
    const ROUNDS: u64 = 20;
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let all: Vec<u32> = (0..sys::nr_cpus()).collect();
    alternating(u).install(&device)?;
    let child = member("t", |device| {
        for round in 0..ROUNDS {
            match device.wait() {
                Ok(wait) => log.push(&wait),
                Err(errno) => return errno,
            }
            let left = device.unbind(-1);
            let free = sys::affinity(0).is_ok_and(|cpus| cpus == all);
            let ordinary = sys::sched(0).is_ok_and(|attr| attr.policy == libc::SCHED_OTHER as u32);
            if left.is_err() || !free || !ordinary {
                return 200;
            }
            // The CPUs alternate.
            let _ = sys::set_affinity(0, &[round as u32 % 2]);
            sys::spin(round * u);
            let _ = sys::set_affinity(0, &all);
            if let Err(errno) = device.bind(-1, "t") {
                return errno;
            }
        }
        0
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    child.succeed(5 * SECOND)?;
    let (jobs, stats) = (log.jobs(), device.stats(0).explain("stats")?);
    ensure_eq!(jobs.len() as u64, ROUNDS, "jobs");
    Grid::alternating(epoch, u).ensure_on(&jobs)?;
    ensure!(jobs.iter().all(|job| job.lost == 0), "activations lost while it was not bound: {jobs:?}");
    ensure_eq!((stats.nr_threads, stats.misses, stats.lost), (0, 0, 0), "threads, misses and lost");
    Ok(())
}
