//! Swaps: another table replaces the installed one.

use macrotick_uapi::{self as abi, error, state, Device, SCHED_TT};

use super::jobs::ensure_regular;
use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::process::{hog, member, periodic, Ended};
use crate::sys::{self, SchedAttr};
use crate::table::{Refusal, Table};
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("swap_keeps_threads", keeps_threads).punctual(),
    Scenario::new("swap_other_cycle", other_cycle).punctual(),
    Scenario::new("swap_to_a_lead", to_a_lead).punctual(),
    Scenario::new("swap_come_and_go", come_and_go).punctual(),
    Scenario::new("swap_tells_the_last_miss", tells_the_last_miss).punctual(),
    Scenario::new("swap_while_stopped", while_stopped),
    Scenario::new("swap_called_off", called_off),
    Scenario::new("swap_and_remove", and_remove),
    Scenario::new("swap_nobody_there", nobody_there),
    Scenario::new("swap_in_a_job", in_a_job).punctual(),
    Scenario::new("swap_refused", refused),
    Scenario::new("swap_moves_entities", moves_entities).on(2),
    Scenario::new("swap_several_cpus", several_cpus).on(2),
    Scenario::new("swap_storm", storm).punctual().fair(),
    Scenario::new("swap_storm_several_cpus", storm_several_cpus).on(2),
];

/// The expected jobs of a running table: `t` at `offset` of `cycle`, since the epoch.
struct Phase {
    epoch: u64,
    cycle: u64,
    offset: u64,
}

/// Checks that job numbers continue across swaps, and each job has the nominal instant of the table of its time.
fn ensure_phases(jobs: &[Job], phases: &[Phase]) -> Check {
    let mut first = 0;
    for (i, phase) in phases.iter().enumerate() {
        let until = phases.get(i + 1).map_or(u64::MAX, |next| next.epoch);
        let here: Vec<Job> =
            jobs.iter().filter(|job| (phase.epoch..until).contains(&job.nominal_ns)).copied().collect();
        let epoch = phase.epoch.wrapping_sub(first * phase.cycle);
        ensure_regular(&here, first, epoch, phase.cycle, phase.offset)?;
        if until < u64::MAX {
            ensure_eq!(here.len() as u64, (until - phase.epoch) / phase.cycle, "jobs under table {i}");
        }
        first += here.len() as u64;
    }
    ensure_eq!(first as usize, jobs.len(), "jobs under all tables");
    Ok(())
}

fn swap(device: &Device, table: &Table) -> Check<u64> {
    table.swap(device).map_err(|refusal| format!("swap: {refusal:?}"))
}

fn running_cycle(device: &Device) -> Check<u64> {
    let get = device.get().explain("get")?;
    ensure_eq!(get.state, state::RUNNING, "state");
    Ok(get.cycle_ns)
}

fn keeps_threads() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    hog(SchedAttr::other());
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 70 * u);
    let second = swap(&device, &Table::single(20 * u, 0, 10 * u, 4 * u))?;
    ensure_eq!(second, epoch + 80 * u, "the instant of the swap");
    sys::sleep_until(second + 99 * u);
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.epoch_ns), (state::RUNNING, second), "state and epoch after the swap");
    ensure_phases(
        &log.jobs(),
        &[Phase { epoch, cycle: 20 * u, offset: 2 * u }, Phase { epoch: second, cycle: 20 * u, offset: 10 * u }],
    )?;
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(
        (stats.activations, stats.completions, stats.nr_threads),
        (9, 9, 1),
        "activations, completions, threads"
    );
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

fn other_cycle() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    let mut phases =
        vec![Phase { epoch: device.start(sys::now_ns() + 10 * u).explain("start")?, cycle: 20 * u, offset: 2 * u }];
    for (cycle, offset) in [(30 * u, 0), (9 * u, 5 * u), (9 * u + 1, 0), (20 * u, 16 * u)] {
        let last = phases.last().map_or(0, |phase| phase.epoch);
        sys::sleep_until(last + 65 * u);
        let epoch = swap(&device, &Table::single(cycle, 0, offset, 4 * u))?;
        phases.push(Phase { epoch, cycle, offset });
    }
    sys::sleep_until(phases[4].epoch + 100 * u - u);
    ensure_eq!(running_cycle(&device)?, 20 * u, "the cycle");
    ensure_phases(&log.jobs(), &phases)?;
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

/// Checks a swap to a table with a lead. Its first window has no room for the lead, and its job is a little late. The
/// next jobs are not.
fn to_a_lead() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 0, 15 * u, 5 * u).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 30 * u);
    let second = swap(&device, &Table::single(20 * u, 0, 0, 4 * u).lead(u / 2))?;
    sys::sleep_until(second + 90 * u);
    ensure_phases(
        &log.jobs(),
        &[Phase { epoch, cycle: 20 * u, offset: 15 * u }, Phase { epoch: second, cycle: 20 * u, offset: 0 }],
    )?;
    let stats = device.stats(0).explain("stats")?;
    ensure!(stats.late <= 1 && stats.held_ns > 0, "{} late, {} ns held", stats.late, stats.held_ns);
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

fn come_and_go() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    let logs = [Log::new(64), Log::new(64)];
    Table::single(20 * u, 0, 2 * u, 4 * u).window("goes", 0, 8 * u, 4 * u, 3).install(&device)?;
    periodic("t", logs[0], u)?;
    let goes = member("goes", move |device| {
        while device.wait().is_ok() {}
        board.set(0, device.wait().err().unwrap_or(0) as u64);
        board.set(1, u64::from(sys::sched(0).map_or(99, |attr| attr.policy)));
        0
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 62 * u);
    let next = Table::single(20 * u, 0, 2 * u, 4 * u).window("comes", 0, 8 * u, 4 * u, 3);
    let second = swap(&device, &next)?;
    // A thread may join before the swap. It then waits for the table that has its entity.
    let comes = member("comes", move |device| loop {
        match device.wait() {
            Ok(wait) => logs[1].push(&wait),
            Err(errno) => return errno,
        }
    })?;
    goes.succeed(20_000 * u)?;
    ensure_eq!(board.get(0), libc::ENOTCONN as u64, "the second wait of a thread whose entity has gone");
    ensure_eq!(board.get(1), libc::SCHED_OTHER as u64, "its policy");
    let joined = sys::now_ns().max(second) + 60 * u;
    sys::sleep_until(joined);
    ensure_regular(&logs[0].jobs(), 0, epoch, 20 * u, 2 * u)?;
    let jobs = logs[1].jobs();
    ensure!(!jobs.is_empty(), "no job of an entity that came");
    let first = jobs[0].number;
    ensure_regular(&jobs, first, second, 20 * u, 8 * u)?;
    ensure!(comes.poll().is_none(), "a thread of an entity that came has ended");
    ensure_eq!(device.bind(-1, "goes"), Err(libc::ENOENT), "binding to an entity that has gone");
    Ok(())
}

/// Checks that a miss in the last window of an entity that is removed has the usual effect.
fn tells_the_last_miss() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let now = Table::single(20 * u, 0, 2 * u, 4 * u).window("goes", 0, 16 * u, 4 * u, 3).misses(abi::MISS_KILL, 0);
    now.install(&device)?;
    let goes = member("goes", |device| loop {
        if device.wait().is_ok_and(|wait| wait.job == 3) {
            sys::hog();
        }
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 65 * u);
    let second = swap(&device, &Table::single(20 * u, 0, 2 * u, 4 * u))?;
    ensure_eq!(second, epoch + 80 * u, "the instant of the swap");
    ensure_eq!(goes.wait(1_000_000_000)?, Ended::Signaled(libc::SIGKILL), "the end of a process that missed");
    Ok(())
}

fn while_stopped() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::single(20 * u, 0, 2 * u, 4 * u).window("goes", 0, 8 * u, 4 * u, 3).install(&device)?;
    periodic("t", log, u)?;
    let goes = member("goes", |device| device.wait().err().unwrap_or(0))?;
    ensure_eq!(swap(&device, &Table::single(10 * u, 0, 2 * u, 4 * u))?, 0, "the instant of a swap while stopped");
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.cycle_ns), (state::STOPPED, 10 * u), "state and cycle");
    ensure!(sys::eventually(1_000_000_000, || goes.poll().is_some()), "a thread of no entity still waits");
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 49 * u);
    ensure_eq!(log.count(), 5, "jobs");
    ensure_regular(&log.jobs(), 0, epoch, 10 * u, 2 * u)
}

/// Checks that a stop before its instant cancels a swap.
fn called_off() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let cycle = 2000 * u;
    Table::single(cycle, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    let begun = device.start(sys::now_ns() + 10 * u).explain("start")?;
    // Before its first cycle, the table would be replaced at its epoch.
    sys::sleep_until(begun + 10 * u);
    swap(&device, &Table::single(20 * u, 0, 2 * u, 4 * u).window("comes", 0, 8 * u, 4 * u, 3))?;
    let comes = member("comes", |device| device.wait().err().unwrap_or(0))?;
    device.stop().explain("stop")?;
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.cycle_ns), (state::STOPPED, cycle), "state and cycle");
    ensure!(sys::eventually(1_000_000_000, || comes.poll().is_some()), "a thread of no entity still waits");
    let done = log.count();
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + cycle + 10 * u);
    let jobs = log.jobs();
    ensure_regular(&jobs[done..], 0, epoch, cycle, 2 * u)?;
    ensure_eq!(jobs.len() - done, 2, "jobs of the table that stayed");
    // Afterwards a swap is possible as usual.
    let second = swap(&device, &Table::single(20 * u, 0, 2 * u, 4 * u))?;
    sys::sleep_until(second + 10 * u);
    ensure_eq!(running_cycle(&device)?, 20 * u, "the cycle");
    Ok(())
}

fn and_remove() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    for after in [0, 1950, 2050] {
        Table::single(2000 * u, 0, 2 * u, 4 * u).install(&device)?;
        let child = member("t", |device| loop {
            if let Err(errno) = device.wait() {
                return errno;
            }
        })?;
        let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
        sys::sleep_until(epoch + 10 * u);
        swap(&device, &Table::single(20 * u, 0, 2 * u, 4 * u).window("comes", 0, 8 * u, 4 * u, 3))?;
        sys::sleep_until(epoch + after * u);
        device.remove().explain("remove")?;
        child.wait(1_000_000_000)?;
        ensure_eq!(device.get().explain("get")?.state, state::EMPTY, "state");
    }
    Ok(())
}

/// Checks that without any thread no interrupt is needed, except for the swap.
fn nobody_there() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep(5000 * u);
    let second = swap(&device, &Table::single(30 * u, 0, 2 * u, 4 * u))?;
    sys::sleep_until(second + 10 * u);
    ensure_eq!(running_cycle(&device)?, 30 * u, "the cycle");
    Ok(())
}

/// Checks that an incomplete job continues in the new windows, and has no deadline there.
fn in_a_job() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    Table::new(20 * u).window("t", 0, 16 * u, 4 * u, abi::ACTIVATE).install(&device)?;
    let child = member("t", move |device| {
        while let Ok(wait) = device.wait() {
            log.push(&wait);
            sys::spin(if wait.job == 1 { 6 * u } else { u });
        }
        0
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 30 * u);
    // The first window ends before the old job is complete.
    let next = Table::new(20 * u).window("t", 0, 0, u, abi::DEADLINE).window("t", 0, 2 * u, 4 * u, 3);
    let second = swap(&device, &next)?;
    ensure_eq!(second, epoch + 40 * u, "the instant of the swap");
    sys::sleep_until(second + 90 * u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost), (0, 0), "misses and lost");
    let nominal: Vec<u64> = log.jobs().iter().map(|job| job.nominal_ns - epoch).collect();
    let wanted = [16 * u, 36 * u, 42 * u, 62 * u, 82 * u, 102 * u, 122 * u];
    ensure_eq!(nominal[..], wanted[..nominal.len()], "nominal instants");
    ensure!(nominal.len() >= 6 && child.poll().is_none(), "{} jobs", nominal.len());
    Ok(())
}

fn refused() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    let table = Table::single(2000 * u, 0, 2 * u, 4 * u);
    let busy = Refusal { errno: libc::EBUSY, error: error::INSTALLED, index: 0, other: 0 };
    let missing = Refusal { errno: libc::ENOENT, error: error::NONE, index: 0, other: 0 };
    ensure_eq!(table.swap(&device), Err(missing), "a swap without a table");
    table.install(&device)?;
    member("t", move |device| {
        let _ = device.wait();
        let errno = Table::single(1000, 0, 0, 1000).swap(device).map_err(|refusal| refusal.errno);
        board.set(0, errno.map_or_else(|errno| errno as u64, |_| 1000));
        while device.wait().is_ok() {}
        0
    })?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 10 * u);
    // The device checks the table before it checks the caller.
    ensure_eq!(board.get(0), libc::EINVAL as u64, "a wrong table from a thread of the class");
    let wrong = Refusal { errno: libc::EINVAL, error: error::WINDOW_RANGE, index: 0, other: 0 };
    ensure_eq!(Table::single(20 * u, 0, 18 * u, 4 * u).swap(&device), Err(wrong), "a wrong table");
    ensure_eq!(running_cycle(&device)?, 2000 * u, "the cycle after a refusal");
    swap(&device, &table)?;
    ensure_eq!(table.swap(&device), Err(busy), "a swap while one is under way");
    ensure_eq!(table.try_install(&device), Err(busy), "an install while a swap is under way");
    ensure_eq!(device.start(0), Err(libc::EBUSY), "a start while a swap is under way");
    device.stop().explain("stop")?;
    swap(&device, &table)?;
    frozen_caller(&device, u)
}

/// Checks that a thread of the class cannot swap: it would wait for its next window while it holds the table's lock.
fn frozen_caller(device: &Device, u: u64) -> Check {
    let board = Board::new(1);
    device.remove().explain("remove")?;
    Table::single(20 * u, 0, 2 * u, 4 * u).install(device)?;
    member("t", move |device| {
        let _ = sys::set_sched(0, SchedAttr::policy(SCHED_TT));
        let errno = Table::single(20 * u, 0, 2 * u, 4 * u).swap(device).map_err(|refusal| refusal.errno);
        board.set(0, errno.map_or_else(|errno| errno as u64, |_| 1000));
        0
    })?;
    ensure!(sys::eventually(1_000_000_000, || board.get(0) != 0), "no answer");
    ensure_eq!(board.get(0), libc::EDEADLK as u64, "a swap by a thread of the class");
    Ok(())
}

fn moves_entities() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let on = |cpu| Table::new(20 * u).window("a", cpu, 2 * u, 4 * u, 3).window("b", 1, 8 * u, 4 * u, 3);
    on(0).install(&device)?;
    let a = periodic("a", log, u)?;
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    let stays = Refusal { errno: libc::EBUSY, error: error::SWAP_CPU, index: 0, other: 0 };
    ensure_eq!(on(1).swap(&device), Err(stays), "moving an entity with a thread");
    a.kill(1_000_000_000)?;
    ensure!(sys::eventually(1_000_000_000, || device.stats(0).is_ok_and(|stats| stats.nr_threads == 0)), "a thread");
    let second = swap(&device, &on(1))?;
    sys::sleep_until(second + 10 * u);
    ensure_eq!(device.stats(0).explain("stats")?.cpu, 1, "the CPU");
    let log = Log::new(64);
    periodic("a", log, u)?;
    sys::sleep(200 * u);
    let jobs = log.jobs();
    ensure!(!jobs.is_empty(), "no job on the other CPU");
    ensure!(jobs.iter().all(|job| job.nominal_ns == second + job.number * 20 * u + 2 * u), "{jobs:?} since {second}");
    Ok(())
}

/// Checks that all CPUs change tables at one instant: CPUs of both tables, of the old one alone, and of the new one
/// alone.
fn several_cpus() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let both = Table::new(40 * u).window("a", 0, 2 * u, 4 * u, 3).window("b", 1, 2 * u, 4 * u, 3);
    let one = |cpu: u32, name: &str| Table::new(40 * u).window(name, cpu, 20 * u, 4 * u, 3);
    one(0, "a").install(&device)?;
    let log = Log::new(256);
    periodic("a", log, u)?;
    let mut epochs = vec![device.start(sys::now_ns() + 10 * u).explain("start")?];
    for table in [both.clone(), one(0, "a"), both] {
        sys::sleep(50 * u);
        let at = swap(&device, &table)?;
        ensure!(sys::eventually(1_000_000_000, || device.get().is_ok_and(|get| get.epoch_ns == at)), "no swap");
        epochs.push(at);
    }
    sys::sleep(100 * u);
    for job in log.jobs() {
        let table = epochs.iter().rposition(|&epoch| epoch <= job.nominal_ns).unwrap_or(0);
        let offset = if table % 2 == 0 { 20 * u } else { 2 * u };
        ensure_eq!((job.nominal_ns - epochs[table]) % (40 * u), offset, "phase of job {} in table {table}", job.number);
    }
    // `a` leaves its CPU's table while its thread is in it.
    let at = swap(&device, &one(1, "b"))?;
    ensure!(sys::eventually(1_000_000_000, || device.get().is_ok_and(|get| get.epoch_ns == at)), "no last swap");
    sys::set_online(1, false).err().map_or(Err("a CPU with windows went".into()), |errno| {
        ensure_eq!(errno, libc::EBUSY, "taking CPU 1 off line");
        Ok(())
    })
}

/// Checks many swaps beside load, with a witness in all tables.
fn storm() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(4096));
    let a = Table::single(20 * u, 0, 2 * u, 4 * u).window("x", 0, 10 * u, 3 * u, 3);
    let b = Table::new(15 * u).window("y", 0, 2 * u, 3 * u, 3).window("t", 0, 7 * u, 4 * u, 3).lead(u / 5);
    a.install(&device)?;
    periodic("t", log, u)?;
    hog(SchedAttr::other());
    let mut phases =
        vec![Phase { epoch: device.start(sys::now_ns() + 10 * u).explain("start")?, cycle: 20 * u, offset: 2 * u }];
    for round in 0..if is_slow() { 12 } else { 60 } {
        let (table, cycle, offset) = if round % 2 == 0 { (&b, 15 * u, 7 * u) } else { (&a, 20 * u, 2 * u) };
        let epoch = swap(&device, table)?;
        phases.push(Phase { epoch, cycle, offset });
        // Threads come, wait and leave with their entities.
        let other = if round % 2 == 0 { "y" } else { "x" };
        let _ = member(other, |device| device.wait().err().unwrap_or(0));
        sys::sleep_until(epoch + 2 * u);
        ensure!(sys::eventually(1_000_000_000, || device.get().is_ok_and(|get| get.epoch_ns == epoch)), "swap {round}");
    }
    sys::sleep(40 * u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost), (0, 0), "misses and lost");
    ensure_phases(&log.jobs(), &phases)
}

/// Checks many swaps that affect both CPUs, or one of them. With several CPUs, the lab cannot show whether jobs are in
/// time.
fn storm_several_cpus() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let logs = [Log::new(1), Log::new(1)];
    let both = |cycle: u64| Table::new(cycle).window("a", 0, 2 * u, 4 * u, 3).window("b", 1, 3 * u, 4 * u, 3);
    let tables = [
        both(20 * u).window("c", 1, 10 * u, 4 * u, 3),
        both(15 * u).lead(u / 5),
        Table::new(10 * u).window("x", 0, 0, u, 0).window("a", 0, 2 * u, 4 * u, 3).window("b", 1, 5 * u, 4 * u, 3),
    ];
    tables[0].install(&device)?;
    periodic("a", logs[0], u)?;
    periodic("b", logs[1], u)?;
    // A swap before the first cycle has the same epoch. The epoch could not show whether the swap is over.
    sys::sleep_until(device.start(sys::now_ns() + 10 * u).explain("start")?);
    for round in 1..=30 {
        let epoch = swap(&device, &tables[round % 3])?;
        let other = ["c", "b", "x"][round % 3];
        let _ = member(other, |device| device.wait().err().unwrap_or(0));
        ensure!(sys::eventually(5_000_000_000, || device.get().is_ok_and(|get| get.epoch_ns == epoch)), "swap {round}");
    }
    for log in logs {
        let before = log.count();
        ensure!(sys::eventually(5_000_000_000, || log.count() > before + 3), "no jobs after {before}");
    }
    Ok(())
}
