//! Children of threads in the class.

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::{unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, Ended};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("fork_in_the_class", fork_in_the_class),
    Scenario::new("fork_reset", fork_reset),
    Scenario::new("fork_of_a_bound_thread", fork_of_a_bound_thread),
    Scenario::new("thread_in_the_class", thread_in_the_class),
    Scenario::new("fork_storm", fork_storm),
    Scenario::new("fork_while_removing", fork_while_removing),
];

const SECOND: u64 = 1_000_000_000;

fn table(u: u64) -> Table {
    Table::single(20 * u, 0, 2 * u, 8 * u)
}

/// Checks that the child is a member, on the same CPU, and has its own jobs in the same windows.
fn fork_in_the_class() -> Check {
    let u = unit_ns();
    child_in_the_class(table(u), 1, |epoch, jobs| {
        ensure!(jobs.iter().all(|job| job.nominal_ns == epoch + job.number * 20 * u + 2 * u), "{jobs:?}");
        Ok(())
    })
}

/// Lets a thread of entity `t` fork. Checks that both have `releases` jobs in each of twenty cycles, where `on_grid`
/// expects them.
pub(super) fn child_in_the_class(table: Table, releases: u64, on_grid: impl Fn(u64, &[Job]) -> Check) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let (own, childs, policy) = (Log::new(64), Log::new(64), Board::new(1));
    table.install(&device)?;
    member("t", |device| {
        let _ = device.wait();
        process::fork(|| {
            policy.set(0, u64::from(sys::sched(0).map_or(99, |attr| attr.policy)));
            let Ok(device) = Device::open() else { return 1 };
            while let Ok(wait) = device.wait() {
                childs.push(&wait);
            }
            2
        });
        while let Ok(wait) = device.wait() {
            own.push(&wait);
        }
        2
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - 2 * u);
    ensure_eq!(policy.get(0), u64::from(SCHED_TT), "the child's policy");
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.nr_threads, stats.activations), (2, 20 * releases), "threads and activations");
    for (whose, log) in [("parent", own), ("child", childs)] {
        let jobs = log.jobs();
        ensure!(jobs.len() as u64 >= 14 * releases, "{} jobs of the {whose}", jobs.len());
        on_grid(epoch, &jobs).map_err(|error| format!("{whose}: {error}"))?;
        ensure_eq!(jobs.windows(2).find(|pair| pair[1].number != pair[0].number + 1), None, "gaps of the {whose}");
    }
    Ok(())
}

fn fork_reset() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    table(u).install(&device)?;
    let child = member("t", |device| {
        let attr = SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::policy(SCHED_TT) };
        if sys::set_sched(0, attr).is_err() || device.wait().is_err() {
            return 1;
        }
        process::fork(|| {
            board.set(0, u64::from(sys::sched(0).map_or(99, |attr| attr.policy)) + 1);
            let waited = Device::open().map(|device| device.wait().map(drop));
            board.set(1, waited.map_or(99, |waited| waited.err().unwrap_or(0) as u64));
            0
        });
        i32::from(device.wait().is_err())
    })?;
    device.start(0).explain("start")?;
    child.succeed(SECOND)?;
    ensure!(sys::eventually(SECOND, || board.get(1) != 0), "the child did not report");
    ensure_eq!(board.get(0), 1, "the child's policy, plus one");
    ensure_eq!(board.get(1), libc::ENOTCONN as u64, "the child's wait");
    Ok(())
}

/// Checks that the children of a bound thread outside of the class do not join the entity.
fn fork_of_a_bound_thread() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    table(u).install(&device)?;
    let child = member("t", |_| {
        let child = process::fork(|| {
            let waited = Device::open().map(|device| device.wait().map(drop));
            board.set(0, waited.map_or(99, |waited| waited.err().unwrap_or(98) as u64));
            0
        });
        i32::from(child.succeed(SECOND).is_err())
    })?;
    child.succeed(SECOND)?;
    ensure_eq!(board.get(0), libc::ENOTCONN as u64, "the child's wait");
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 0, "threads");
    Ok(())
}

fn thread_in_the_class() -> Check {
    let u = unit_ns();
    threads_in_the_class(table(u), 1, |epoch, jobs| {
        ensure!(jobs.iter().all(|job| job.nominal_ns == epoch + job.number * 20 * u + 2 * u), "{jobs:?}");
        Ok(())
    })
}

/// Lets a thread of entity `t` start three threads. Checks that all have `releases` jobs in each of twenty cycles,
/// where `on_grid` expects them.
pub(super) fn threads_in_the_class(table: Table, releases: u64, on_grid: impl Fn(u64, &[Job]) -> Check) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let logs = [Log::new(64), Log::new(64), Log::new(64)];
    table.install(&device)?;
    member("t", |device| {
        let _ = device.wait();
        for log in logs {
            std::thread::spawn(move || {
                let Ok(device) = Device::open() else { return };
                while let Ok(wait) = device.wait() {
                    log.push(&wait);
                    sys::spin(u / 10);
                }
            });
        }
        while device.wait().is_ok() {}
        1
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * 20 * u - 2 * u);
    for log in logs {
        let jobs = log.jobs();
        ensure!(jobs.len() as u64 >= 14 * releases, "{} jobs of a thread", jobs.len());
        on_grid(epoch, &jobs)?;
    }
    ensure_eq!(device.stats(0).explain("stats")?.nr_threads, 4, "threads");
    Ok(())
}

/// Forks a child that has a child and a thread, which counts. Returns whether all of them succeeded.
pub(super) fn raise_family(board: Board) -> bool {
    let child = process::fork(|| {
        let grandchild = process::fork(|| 0);
        let thread = std::thread::spawn(move || board.add(0, 1));
        i32::from(thread.join().is_err() || grandchild.wait(SECOND).is_err())
    });
    child.wait(10 * SECOND) == Ok(Ended::Exited(0))
}

/// Checks members that fork all the time, and members that end all the time.
fn fork_storm() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    table(u).window("witness", 0, 12 * u, 4 * u, 3).install(&device)?;
    let witness = Log::new(256);
    process::periodic("witness", witness, u)?;
    for _ in 0..3 {
        member("t", |device| loop {
            if device.wait().is_err() {
                return 1;
            }
            if !raise_family(board) {
                return 2;
            }
        })?;
    }
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * 20 * u - 2 * u);
    ensure_eq!(witness.count(), 100, "jobs of the witness");
    ensure!(board.get(0) >= 6, "only {} families", board.get(0));
    ensure_eq!(device.stats(1).explain("stats")?.misses, 0, "misses of the witness");
    Ok(())
}

/// Checks that the table can be removed again and again while its members fork.
fn fork_while_removing() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    for round in 0..10 {
        table(u).install(&device)?;
        for _ in 0..2 {
            member("t", |_| loop {
                if sys::set_sched(0, SchedAttr::policy(SCHED_TT)) == Err(libc::ENOTCONN) {
                    return 0;
                }
                if process::fork(|| 0).wait(10 * SECOND).is_err() {
                    return 2;
                }
            })?;
        }
        let epoch = device.start(sys::now_ns() + u).explain("start")?;
        sys::sleep_until(epoch + 20 * u + round * u * 7 / 10);
        device.remove().explain("remove")?;
        ensure_eq!(device.get().explain("get")?.state, abi::state::EMPTY, "state");
    }
    Ok(())
}
