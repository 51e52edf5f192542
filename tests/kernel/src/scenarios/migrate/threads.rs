//! Several threads in one entity, their children, and the greatest number.

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::{alternating, Grid, SECOND};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, periodic};
use crate::scenarios::forking::{child_in_the_class, raise_family, threads_in_the_class};
use crate::scenarios::unit_ns;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

const MOST: usize = abi::MAX_MIGRATING as usize;

/// Checks the greatest number of threads. All have a job in each window, and their neighbours are not affected.
pub fn crowd() -> Check {
    const CYCLES: u64 = 10;
    let (u, device, ready) = (unit_ns(), Device::open()?, Board::new(1));
    let table = Table::new(40 * u).window("t", 0, 2 * u, 16 * u, 3).migrate().window("t", 1, 20 * u, 16 * u, 3);
    let table = table.window("zero", 0, 20 * u, 4 * u, 3).window("one", 1, 2 * u, 4 * u, 3).sorted();
    table.install(&device)?;
    let (logs, neighbours) = ([(); MOST].map(|()| Log::new(64)), [Log::new(64), Log::new(64)]);
    for (name, log) in ["zero", "one"].iter().zip(neighbours) {
        periodic(name, log, u)?;
    }
    for log in logs {
        member("t", move |device| {
            // Otherwise the page faults of sixteen fresh processes would take more than a window.
            sys::prefault();
            ready.add(0, 1);
            while let Ok(wait) = device.wait() {
                log.push(&wait);
                sys::spin(u / 20);
            }
            1
        })?;
    }
    let all: Vec<u32> = (0..sys::nr_cpus()).collect();
    ensure_eq!(device.bind(-1, "t"), Err(libc::ENOSPC), "one more");
    ensure_eq!(sys::affinity(0), Ok(all), "the CPUs of the one who was refused");
    ensure!(sys::eventually(10 * SECOND, || ready.get(0) == MOST as u64), "{} of them are ready", ready.get(0));
    sys::sleep(40 * u);
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    sys::sleep_until(epoch + CYCLES * 40 * u - u);
    let grid =
        Grid { cycle: 40 * u, releases: vec![(0, 2 * u), (1, 20 * u)], length: 16 * u, ..Grid::alternating(epoch, u) };
    for log in logs {
        ensure_eq!(log.count() as u64, 2 * CYCLES, "jobs of a thread");
        grid.ensure_all(&log.jobs(), 0)?;
    }
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(stats.nr_threads as usize, MOST, "threads");
    ensure!(stats.completions >= 2 * CYCLES * MOST as u64, "{} completions", stats.completions);
    ensure_eq!((stats.misses, stats.lost), (0, 0), "misses and lost");
    for (place, log) in [(0, 20 * u), (1, 2 * u)].into_iter().zip(neighbours) {
        ensure!(log.count() as u64 >= CYCLES, "{} jobs of a neighbour", log.count());
        Grid { releases: vec![place], length: 4 * u, ..grid.clone() }.ensure_all(&log.jobs(), 0)?;
    }
    Ok(())
}

/// Checks that a child is a member, moves with its parent, and has its own jobs in the same windows.
pub fn fork_in_the_class() -> Check {
    let u = unit_ns();
    child_in_the_class(alternating(u), 2, |epoch, jobs| Grid::alternating(epoch, u).ensure_on(jobs))
}

/// Checks that children join up to the greatest number, and further ones are ordinary threads.
pub fn fork_beyond() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    let table = Table::new(40 * u).window("t", 0, 2 * u, 16 * u, 1).migrate().window("t", 1, 20 * u, 16 * u, 1);
    table.install(&device)?;
    member("t", |device| {
        let _ = device.wait();
        for _ in 0..MOST + 3 {
            process::fork(|| {
                let Ok(device) = Device::open() else { return 1 };
                loop {
                    match device.wait() {
                        Ok(_) => board.add(1, 1),
                        Err(libc::ENOTCONN) => board.add(0, 1),
                        Err(_) => return 2,
                    }
                    if sys::sched(0).is_ok_and(|attr| attr.policy != SCHED_TT) {
                        return 0;
                    }
                }
            });
            let _ = device.wait();
        }
        while device.wait().is_ok() {}
        3
    })?;
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    // Of 19 children, 15 join the parent.
    ensure!(sys::eventually(10 * SECOND, || board.get(0) == 4), "{} children were left out", board.get(0));
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads as usize, MOST, "threads");
    let jobs = board.get(1);
    ensure!(sys::eventually(SECOND, || board.get(1) > jobs + 4 * MOST as u64), "the children that joined have no jobs");
    Ok(())
}

/// Checks threads of one process, which share an address space and move together.
pub fn threads_of_a_process() -> Check {
    let u = unit_ns();
    threads_in_the_class(alternating(u), 2, |epoch, jobs| Grid::alternating(epoch, u).ensure_on(jobs))
}

/// Checks members that fork all the time. Their windows end in the middle of a fork, and continue on the other CPU.
pub fn fork_storm() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    // While a member is in the kernel on one CPU, QEMU rarely gives the other CPU its turn.
    let table = alternating(u).window("zero", 0, 6 * u, 4 * u, 3).window("one", 1, 15 * u, 4 * u, 3).sorted();
    table.install(&device)?;
    let logs = [Log::new(256), Log::new(256)];
    for (name, log) in ["zero", "one"].iter().zip(logs) {
        periodic(name, log, u)?;
    }
    for _ in 0..3 {
        member("t", |_| {
            if sys::set_sched(0, SchedAttr::policy(SCHED_TT)).is_err() {
                return 1;
            }
            loop {
                if !raise_family(board) {
                    return 2;
                }
            }
        })?;
    }
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let before = board.get(0);
    sys::sleep_until(epoch + 100 * 20 * u - 2 * u);
    let families = board.get(0);
    ensure!(families >= before + 6, "only {} families", families - before);
    for (place, log) in [(0, 6 * u), (1, 15 * u)].into_iter().zip(logs) {
        ensure!(log.count() >= 90, "{} jobs of a neighbour in 100 cycles", log.count());
        Grid { releases: vec![place], ..Grid::alternating(epoch, u) }.ensure_on(&log.jobs())?;
    }
    ensure!(sys::eventually(5 * SECOND, || board.get(0) > families), "no family after {families}");
    ensure!(device.stats(0).explain("stats")?.nr_threads <= abi::MAX_MIGRATING, "too many threads");
    device.remove().explain("remove")
}
