//! Jobs: numbers, nominal instants, counters, epochs, and `sched_yield` as a wait.

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::process::{self, member, member_hog, periodic};
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("jobs_exact", exact),
    Scenario::new("jobs_twice_a_cycle", twice_a_cycle),
    Scenario::new("jobs_first_before_start", first_before_start),
    Scenario::new("jobs_without_work", without_work).punctual(),
    Scenario::new("yield_is_a_wait", yield_is_a_wait),
    Scenario::new("sleep_in_a_job", sleep_in_a_job).punctual(),
    Scenario::new("runtime_beside_a_wakeup", runtime_beside_a_wakeup),
    Scenario::new("epoch_past", epoch_past),
    Scenario::new("epoch_future", epoch_future),
    Scenario::new("standstill_then_join", standstill_then_join).punctual().within(60_000),
    Scenario::new("standstill_between_members", standstill_between_members),
    Scenario::new("shortest_windows", shortest_windows),
    Scenario::new("two_cpus_two_tables", two_cpus).on(2),
];

/// Checks that the log's jobs have consecutive numbers, are on the grid and not early, and that no activation was lost.
pub fn ensure_regular(jobs: &[Job], first: u64, epoch: u64, cycle: u64, offset: u64) -> Check {
    for (i, job) in jobs.iter().enumerate() {
        let number = first + i as u64;
        ensure_eq!(job.number, number, "number of job {i}");
        ensure_eq!(job.nominal_ns, epoch + number * cycle + offset, "nominal instant of job {number}");
        ensure_eq!(job.lost, 0, "activations lost before job {number}");
        ensure!(job.start_ns >= job.nominal_ns, "job {number} began {} ns early", job.nominal_ns - job.start_ns);
    }
    Ok(())
}

fn exact() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let (window, lateness, most) = if is_slow() { (8 * u, 4 * u, 2.0) } else { (4 * u, u, 1.4) };
    Table::single(20 * u, 0, 2 * u, window).install(&device)?;
    periodic("t", log, 2 * u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 5 * 20 * u - 4 * u);
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!(log.count(), 5, "jobs");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)?;
    let late = log.jobs().iter().map(|job| job.start_ns - job.nominal_ns).max();
    ensure!(late < Some(lateness), "a job began {late:?} ns late");
    ensure_eq!((stats.activations, stats.completions), (5, 5), "activations and completions");
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    ensure_eq!((stats.preemptions, stats.nr_threads, stats.cpu), (0, 1, 0), "preemptions, threads and CPU");
    let share = stats.runtime_ns as f64 / (10 * u) as f64;
    ensure!((1.0..most).contains(&share), "{} ns of processor time for 10 units of {u}", stats.runtime_ns);
    Ok(())
}

/// Checks the run time of a window when the interrupt at its end also wakes up a process. No other thread is ready, but
/// the time that the window's thread used is no idle time.
fn runtime_beside_a_wakeup() -> Check {
    const CYCLES: u64 = 10;
    let (u, device) = (unit_ns(), Device::open()?);
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    member_hog("t")?;
    let epoch = device.start(sys::now_ns() + 20 * u).explain("start")?;
    process::fork(move || {
        sys::set_timer_slack(1);
        (0..CYCLES).for_each(|cycle| sys::sleep_until(epoch + cycle * 20 * u + 6 * u - 1));
        0
    });
    sys::sleep_until(epoch + CYCLES * 20 * u);
    let stats = device.stats(0).explain("stats")?;
    let share = stats.runtime_ns as f64 / (CYCLES * 4 * u) as f64;
    ensure!((0.7..1.3).contains(&share), "{} ns in {CYCLES} windows of 4 x {u}", stats.runtime_ns);
    Ok(())
}

fn twice_a_cycle() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(64));
    let table = Table::new(20 * u).window("t", 0, 2 * u, 2 * u, abi::ACTIVATE);
    table.window("t", 0, 6 * u, 2 * u, 0).window("t", 0, 12 * u, 4 * u, 3).install(&device)?;
    periodic("t", log, u / 2)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 3 * 20 * u - u);
    let jobs = log.jobs();
    ensure_eq!(jobs.len(), 6, "jobs in three cycles");
    for (i, job) in jobs.iter().enumerate() {
        let offset = if i % 2 == 0 { 2 * u } else { 12 * u };
        ensure_eq!(job.number, i as u64, "number of job {i}");
        ensure_eq!(job.nominal_ns, epoch + (i as u64 / 2) * 20 * u + offset, "nominal instant of job {i}");
    }
    Ok(())
}

fn first_before_start() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    Table::single(20 * u, 0, 0, 4 * u).install(&device)?;
    let child = periodic("t", log, u)?;
    sys::sleep(50 * u);
    ensure_eq!(log.count(), 0, "jobs before the start");
    ensure!(child.poll().is_none(), "the waiter ended before the start");
    let epoch = device.start(sys::now_ns() + 100 * u).explain("start")?;
    sys::sleep_until(epoch - 2 * u);
    ensure_eq!(log.count(), 0, "jobs before the epoch");
    sys::sleep_until(epoch + 10 * u);
    ensure_eq!(log.count(), 1, "jobs in the first cycle");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 0)
}

fn without_work() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(128));
    Table::single(4 * u, 0, 0, 2 * u).install(&device)?;
    periodic("t", log, 0)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * 4 * u - u);
    let (stats, jobs) = (device.stats(0).explain("stats")?, log.jobs());
    ensure_eq!((jobs.len() as u64, stats.completions), (100, 100), "jobs and completions in 100 cycles");
    ensure_regular(&jobs, 0, epoch, 4 * u, 0)
}

/// Checks Algorithm 1 of the SCHED_TT paper: a loop of work and `sched_yield`.
fn yield_is_a_wait() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    process::member("t", |_| {
        if sys::set_sched(0, SchedAttr::policy(SCHED_TT)).is_err() {
            return 1;
        }
        loop {
            // SAFETY: takes nothing.
            unsafe { libc::sched_yield() };
            board.add(0, 1);
            sys::spin(u);
        }
    })?;
    sys::sleep(20 * u);
    let before = board.get(0);
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    // Before the start `sched_yield` does not wait. The first call after it waits for the first job.
    sys::sleep_until(epoch - u);
    let started = board.get(0);
    ensure!(before > 0, "yield waits although no table runs");
    sys::sleep_until(epoch + 10 * 20 * u - 4 * u);
    let jobs = board.get(0) - started;
    ensure!((10..=11).contains(&jobs), "{jobs} rounds in 10 cycles");
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.activations, stats.lost, stats.misses), (10, 0, 0), "activations, lost and misses");
    Ok(())
}

/// Checks that a job that sleeps wakes up like a real-time thread: in the interrupt and without slack.
fn sleep_in_a_job() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(1));
    Table::single(20 * u, 0, 0, 10 * u).install(&device)?;
    let child = member("t", |device| {
        (0..5).for_each(|_| {
            if let Ok(job) = device.wait() {
                let until = job.nominal_ns + 4 * u;
                sys::sleep_until(until);
                board.set(0, board.get(0).max(sys::now_ns() - until));
            }
        });
        0
    })?;
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    child.succeed(1_000_000_000)?;
    // The slack of ordinary threads alone is 50 us, half a unit on a kernel without debugging.
    let late = board.get(0);
    ensure!(late > 0 && late < u * 3 / 10, "a job woke {late} ns late");
    Ok(())
}

fn epoch_past() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    let cycle = 20 * u + 7;
    Table::single(cycle, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    for wish in [0, 1, sys::now_ns() - 123_456_789, sys::now_ns()] {
        let before = sys::now_ns();
        let epoch = device.start(wish).explain("start")?;
        ensure_eq!((epoch - wish) % cycle, 0, "whole cycles from {wish} to {epoch}");
        ensure!(epoch >= before && epoch < sys::now_ns() + cycle + 10 * u, "epoch {epoch} after {before}");
        device.stop().explain("stop")?;
    }
    let epoch = device.start(0).explain("start")?;
    sys::sleep_until(epoch + 2 * cycle);
    let jobs: Vec<Job> = log.jobs().into_iter().filter(|job| job.nominal_ns >= epoch).collect();
    ensure_eq!(jobs.len(), 2, "jobs in two cycles");
    ensure_regular(&jobs, 0, epoch, cycle, 2 * u)
}

fn epoch_future() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    let hour = 3_600_000_000_000;
    ensure_eq!(device.start(sys::now_ns() + 2 * hour), Err(libc::EINVAL), "an epoch beyond the longest cycle");
    let far = sys::now_ns() + hour / 2;
    ensure_eq!(device.start(far).explain("start in half an hour")?, far, "an epoch in half an hour");
    sys::sleep(50 * u);
    ensure_eq!(log.count(), 0, "jobs half an hour early");
    device.stop().explain("stop")?;
    let wish = sys::now_ns() + 3_000_000_000;
    ensure_eq!(device.start(wish).explain("start")?, wish, "an epoch in three seconds");
    sys::sleep_until(wish - u);
    ensure_eq!(log.count(), 0, "jobs before the epoch");
    sys::sleep_until(wish + 30 * u);
    ensure_eq!(log.count(), 2, "jobs after the epoch");
    ensure_regular(&log.jobs(), 0, wish, 20 * u, 2 * u)
}

/// Checks an entity without members for thousands of cycles: no interrupt is needed, and the numbers continue.
fn standstill_then_join() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(8));
    let cycle = 20 * u;
    Table::single(cycle, 0, 2 * u, 4 * u).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 1000 * cycle + 10 * u);
    periodic("t", log, u)?;
    let joined = (sys::now_ns() - epoch) / cycle;
    sys::sleep_until(epoch + (joined + 5) * cycle + 10 * u);
    let jobs = log.jobs();
    // The join takes some time: it may end before, in or after a window. The window of cycle 1000 was over.
    let first = jobs.first().map_or(0, |job| job.number);
    ensure!((1001..=joined + 1).contains(&first), "first job {first}, joined in cycle {joined}");
    ensure_eq!(jobs.len() as u64, joined + 6 - first, "jobs from {first} to the one of cycle {}", joined + 5);
    ensure_regular(&jobs, first, epoch, cycle, 2 * u)?;
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

fn standstill_between_members() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let cycle = 20 * u;
    Table::single(cycle, 0, 2 * u, 4 * u).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for _ in 0..3 {
        let log = Log::new(8);
        let member = periodic("t", log, u)?;
        sys::sleep(4 * cycle);
        member.kill(100_000_000)?;
        let jobs = log.jobs();
        // There is one more job if the member joins inside an open window: the activation that it finds is its first
        // job.
        ensure!((3..=5).contains(&jobs.len()), "{} jobs in four cycles", jobs.len());
        ensure_regular(&jobs, jobs[0].number, epoch, cycle, 2 * u)?;
        sys::sleep(300 * cycle + 3 * u);
    }
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
    Ok(())
}

/// Checks the shortest possible windows, without gaps: interrupts come late, but no thread hangs, and the numbers stay
/// right.
fn shortest_windows() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let cycle = 20 * u;
    let names = ["a", "b", "c", "d"];
    let table = (0..40u64).fold(Table::new(cycle), |table, i| {
        table.window(names[i as usize % 4], 0, i * abi::MIN_WINDOW_NS, abi::MIN_WINDOW_NS, if i < 4 { 3 } else { 0 })
    });
    table.window("last", 0, 10 * u, 4 * u, 3).install(&device)?;
    let logs: Vec<Log> = names.iter().map(|_| Log::new(64)).collect();
    for (name, log) in names.iter().zip(&logs) {
        periodic(name, *log, 500)?;
    }
    let last = Log::new(64);
    periodic("last", last, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 20 * cycle - 4 * u);
    let activations: Vec<u64> = (0..4).map(|i| device.stats(i).map_or(0, |stats| stats.activations)).collect();
    ensure_eq!(last.count(), 20, "jobs of the entity after the storm");
    ensure_eq!(activations, [20; 4], "activations of the entities of the storm");
    ensure_regular(&last.jobs(), 0, epoch, cycle, 10 * u)?;
    for (i, log) in logs.iter().enumerate() {
        for job in log.jobs() {
            let nominal = epoch + job.number * cycle + i as u64 * abi::MIN_WINDOW_NS;
            ensure_eq!(job.nominal_ns, nominal, "nominal instant of job {} of {}", job.number, names[i]);
        }
    }
    Ok(())
}

fn two_cpus() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let cycle = 40 * u;
    let table = Table::new(cycle).window("a", 0, 2 * u, 6 * u, 3);
    table.window("b", 1, 20 * u, 4 * u, 3).window("b", 1, 30 * u, 4 * u, 3).install(&device)?;
    let (a, b) = (Log::new(64), Log::new(64));
    let (on_zero, on_one) = (periodic("a", a, 2 * u)?, periodic("b", b, u)?);
    ensure_eq!(sys::affinity(on_zero.pid), Ok(vec![0]), "CPUs of a's thread");
    ensure_eq!(sys::affinity(on_one.pid), Ok(vec![1]), "CPUs of b's thread");
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 10 * cycle - 2 * u);
    ensure_eq!((a.count(), b.count()), (10, 20), "jobs of a and b in ten cycles");
    ensure_regular(&a.jobs(), 0, epoch, cycle, 2 * u)?;
    let odd: Vec<Job> = b.jobs().into_iter().filter(|job| job.number % 2 == 1).collect();
    ensure!(odd.iter().all(|job| job.nominal_ns == epoch + job.number / 2 * cycle + 30 * u), "jobs of b: {odd:?}");
    let stats = device.stats(1).explain("stats")?;
    ensure_eq!((stats.cpu, stats.activations, stats.misses), (1, 20, 0), "CPU, activations and misses of b");
    Ok(())
}
