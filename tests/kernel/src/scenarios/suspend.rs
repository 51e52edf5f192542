//! The machine suspends while a table is installed. The suspend stops just before the firmware would take over, and the
//! machine resumes by itself (`/sys/power/pm_test`).

use std::fs;

use macrotick_uapi::{self as abi, state, Device, Stats, SCHED_TT};

use super::clock::ensure_on_clock;
use super::{unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, periodic, Child};
use crate::sys;
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("full_suspend_processors", || jobs_go_on(Depth::Processors)).within(LIMIT_MS),
    Scenario::new("full_suspend_core", || jobs_go_on(Depth::Core)).within(LIMIT_MS),
    Scenario::new("full_suspend_swap", swap_is_due).within(LIMIT_MS),
    Scenario::new("full_suspend_pool", pool).within(LIMIT_MS),
    Scenario::new("full_suspend_stopped", stopped).within(LIMIT_MS),
    Scenario::new("full_suspend_clock", clock).within(LIMIT_MS),
    Scenario::new("full_suspend_by_pool", by_pool).within(LIMIT_MS),
];

pub(super) const LIMIT_MS: u64 = 120_000;
const SECOND: u64 = 1_000_000_000;

/// The depth of a suspend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Processes are frozen, devices sleep, and all CPUs except the first are offline. Time and the windows of the
    /// first CPU continue.
    Processors,
    /// Interrupts are also disabled, and `CLOCK_MONOTONIC` stands still.
    Core,
}

/// The instants of the suspend's request and of its end, on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slept {
    pub(super) began: u64,
    pub(super) ended: u64,
}

fn write(path: &str, value: &str) -> Check {
    fs::write(path, value).map_err(|error| format!("{value} to {path}: {error}"))
}

fn read(path: &str) -> Check<String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(text.trim().into())
}

/// Suspends the machine for this many seconds. All processes except the caller are frozen.
pub(super) fn suspend(depth: Depth, seconds: u64) -> Check<Slept> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    const DONE: &str = "/sys/power/suspend_stats/success";
    let (online, done) = (read(ONLINE)?, read(DONE)?);
    write("/sys/module/suspend/parameters/pm_test_delay", &seconds.to_string())?;
    write("/sys/power/mem_sleep", "deep")?;
    write("/sys/power/pm_test", if depth == Depth::Core { "core" } else { "processors" })?;
    let began = sys::now_ns();
    let written = write("/sys/power/state", "mem");
    let ended = sys::now_ns();
    write("/sys/power/pm_test", "none")?;
    written?;
    ensure!(read(DONE)? != done, "no suspend was counted besides {done}");
    ensure_eq!(read(ONLINE)?, online, "CPUs on line afterwards");
    let least = if depth == Depth::Core { 0 } else { seconds * SECOND };
    ensure!(ended - began >= least, "the suspend took {} ns only", ended - began);
    println!("# {depth:?}: {} ms on CLOCK_MONOTONIC", (ended - began) / 1_000_000);
    Ok(Slept { began, ended })
}

/// Returns how many activations had no job, and checks that jobs are in order.
pub(super) fn missing(jobs: &[Job]) -> Check<u64> {
    for pair in jobs.windows(2) {
        ensure!(pair[0].number < pair[1].number, "job {} after job {}", pair[1].number, pair[0].number);
    }
    Ok(jobs.last().map_or(0, |last| last.number + 1) - jobs.len() as u64)
}

/// Checks that jobs continue, and their thread is in the class. Returns the entity's counters from the beginning.
pub(super) fn ensure_goes_on(device: &Device, entity: u32, log: Log, child: Child) -> Check<Stats> {
    let (stats, done) = (device.stats(entity).explain("stats")?, log.count());
    let on = || log.count() >= done + 20;
    ensure!(sys::eventually(20 * SECOND, on), "{} jobs of entity {entity}: {}", log.count() - done, child.describe());
    ensure_eq!(sys::sched(child.pid).explain("getattr")?.policy, SCHED_TT, "policy of entity {entity}'s thread");
    if sys::nr_cpus() == 1 {
        let jobs = log.jobs();
        ensure_eq!(missing(&jobs[jobs.len() - 10..])?, jobs[jobs.len() - 10].number, "gaps long after the suspend");
    }
    Ok(stats)
}

/// Checks that the counters, between `then` and the current ones, account for all activations without a job. Returns
/// the number of these activations.
pub(super) fn ensure_counted(device: &Device, entity: u32, jobs: &[Job], then: &Stats) -> Check<u64> {
    let (missing, now) = (missing(jobs)?, device.stats(entity).explain("stats")?);
    ensure!(
        then.lost <= missing && missing <= now.lost + now.skipped,
        "{missing} activations of entity {entity} had no job: {} lost, then {}, and {} skipped",
        then.lost,
        now.lost,
        now.skipped
    );
    Ok(missing)
}

fn name(cpu: u32) -> String {
    format!("e{cpu}")
}

/// Returns a table with a job every 20 units on each CPU, at an offset that grows with the CPU's number. A cycle has
/// this many jobs.
fn on_all_cpus(offset: u64, jobs: u64) -> Table {
    let u = unit_ns();
    let places = (0..sys::nr_cpus()).flat_map(|cpu| (0..jobs).map(move |job| (cpu, job)));
    places.fold(Table::new(jobs * 20 * u), |table, (cpu, job)| {
        table.window(&name(cpu), cpu, (job * 20 + offset + u64::from(cpu)) * u, 4 * u, 3)
    })
}

/// Forks the threads of [`on_all_cpus`].
fn members() -> Check<Vec<(Log, Child)>> {
    let member = |cpu| {
        let log = Log::new(4096);
        Ok((log, periodic(&name(cpu), log, unit_ns() / 2)?))
    };
    (0..sys::nr_cpus()).map(member).collect()
}

/// Checks that each job has the nominal instant of its number, and started on its CPU.
fn ensure_on_grid(jobs: &[Job], cpu: u32, nominal: impl Fn(u64) -> u64) -> Check {
    for job in jobs {
        ensure_eq!(job.nominal_ns, nominal(job.number), "nominal instant of job {} on CPU {cpu}", job.number);
        ensure!(job.start_ns >= job.nominal_ns, "job {} on CPU {cpu} began early", job.number);
        ensure_eq!(job.cpu, cpu, "CPU of job {}", job.number);
    }
    Ok(())
}

/// Returns the least number of activations in a time.
fn least_in(ns: u64) -> u64 {
    ns / (20 * unit_ns()) - 2
}

fn jobs_go_on(depth: Depth) -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    on_all_cpus(2, 1).install(&device)?;
    let members = members()?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * u);
    for round in 1..=2 {
        let slept = suspend(depth, 1)?;
        for ((log, child), cpu) in members.iter().zip(0..) {
            let then = ensure_goes_on(&device, cpu, *log, *child)?;
            let jobs = log.jobs();
            let offset = (2 + u64::from(cpu)) * u;
            ensure_on_grid(&jobs, cpu, |number| epoch + number * 20 * u + offset)?;
            let missing = ensure_counted(&device, cpu, &jobs, &then)?;
            let least = if depth == Depth::Core { 0 } else { round * least_in(SECOND) };
            ensure!(missing >= least, "CPU {cpu} had jobs meanwhile: {missing} activations had none");
            ensure!(jobs.last().is_some_and(|job| job.nominal_ns > slept.ended), "no job after the suspend");
            ensure_eq!(sys::affinity(child.pid), Ok(vec![cpu]), "CPUs of the thread");
        }
    }
    device.remove().explain("remove")
}

/// Checks a swap with an instant at which all CPUs except the first are offline.
fn swap_is_due() -> Check {
    const JOBS: u64 = 100;
    const ASLEEP_S: u64 = 3;
    let (u, device) = (unit_ns(), Device::open()?);
    let cycle = JOBS * 20 * u;
    on_all_cpus(2, JOBS).install(&device)?;
    let members = members()?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 100 * u);
    let second = on_all_cpus(10, 1).swap(&device).map_err(|refusal| format!("swap: {refusal:?}"))?;
    ensure_eq!(second, epoch + cycle, "the instant of the swap");
    let slept = suspend(Depth::Processors, ASLEEP_S)?;
    let off = slept.ended - ASLEEP_S * SECOND..slept.began + ASLEEP_S * SECOND;
    ensure!(off.contains(&second), "the swap was due {second}, CPUs were off line from {off:?}");
    for ((log, child), cpu) in members.iter().zip(0..) {
        let then = ensure_goes_on(&device, cpu, *log, *child)?;
        let jobs = log.jobs();
        ensure_on_grid(&jobs, cpu, |number| {
            let offset = if number < JOBS { 2 } else { 10 } + u64::from(cpu);
            epoch + (number * 20 + offset) * u
        })?;
        let missing = ensure_counted(&device, cpu, &jobs, &then)?;
        ensure!(missing >= least_in(ASLEEP_S * SECOND), "CPU {cpu}: {missing} activations had no job");
    }
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.cycle_ns, get.epoch_ns), (state::RUNNING, 20 * u, second), "state, cycle and epoch");
    // The swap is complete, and another one may begin.
    let third = on_all_cpus(4, 1).swap(&device).map_err(|refusal| format!("second swap: {refusal:?}"))?;
    sys::sleep_until(third + 20 * u);
    ensure_eq!(device.get().explain("get")?.epoch_ns, third, "epoch after another swap");
    members.iter().zip(0..).try_for_each(|((log, child), cpu)| ensure_goes_on(&device, cpu, *log, *child).map(drop))
}

/// Checks pools of the last CPU: one with processes of a group, and one with a kernel thread that is parked meanwhile.
/// The second pool has slack: otherwise its CPU would become idle with pending softirqs. The first pool has no slack,
/// and its processes show that windows open.
fn pool() -> Check {
    let (u, device, witness, turns) = (unit_ns(), Device::open()?, Log::new(4096), Board::new(3));
    let cpu = sys::nr_cpus() - 1;
    let table = Table::new(20 * u).window("p", cpu, 4 * u, 4 * u, 0).pool(abi::RR, 0);
    let table = table.window("witness", 0, 10 * u, 4 * u, 3);
    table.window("kernel", cpu, 16 * u, 2 * u, 0).pool(abi::SLACK, 0).sorted().install(&device)?;
    let witness_child = periodic("witness", witness, u)?;
    let group = Group::new("pool")?;
    group.serve("p")?;
    let busy = |index| {
        process::fork(|| match group.take(0) {
            Ok(()) => loop {
                turns.add(index, 1);
                sys::spin(u / 10);
            },
            Err(_) => 1,
        })
    };
    let asleep = process::fork(|| match group.take(0) {
        Ok(()) => loop {
            turns.add(2, 1);
            sys::sleep(u);
        },
        Err(_) => 1,
    });
    let children = [busy(0), busy(1), asleep];
    let softirqs = process::kernel_thread(&format!("ksoftirqd/{cpu}"))?;
    let before = sys::sched(softirqs).explain("policy")?;
    let fd = sys::pidfd_open(softirqs, 0).explain("pidfd")?;
    device.bind(fd, "kernel").explain("bind a kernel thread")?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let there = || device.stats(0).is_ok_and(|stats| stats.nr_threads == 3);
    ensure!(sys::eventually(10 * SECOND, there), "not all threads entered the pool");
    for depth in [Depth::Processors, Depth::Core] {
        suspend(depth, 1)?;
        let then: [u64; 3] = std::array::from_fn(|index| turns.get(index));
        let all = || then.iter().enumerate().all(|(index, then)| turns.get(index) > then + 5);
        ensure!(sys::eventually(20 * SECOND, all), "{then:?} turns, then {:?}", [0, 1, 2].map(|one| turns.get(one)));
        for pid in children.map(|child| child.pid).into_iter().chain([softirqs]) {
            ensure_eq!(sys::sched(pid).explain("policy")?.policy, SCHED_TT, "policy of {pid} after {depth:?}");
            ensure_eq!(sys::affinity(pid), Ok(vec![cpu]), "CPUs of {pid} after {depth:?}");
        }
        ensure_goes_on(&device, 1, witness, witness_child)?;
        ensure_on_grid(&witness.jobs(), 0, |number| epoch + (number * 20 + 10) * u)?;
    }
    device.unbind(fd).explain("unbind")?;
    ensure_eq!(sys::sched(softirqs).explain("policy")?, before, "policy of the kernel thread afterwards");
    device.remove().explain("remove")
}

/// Checks a suspend by a thread in a pool. If the pool's CPU would be taken offline, the suspend fails, and all threads
/// continue. A suspend from outside then succeeds.
fn by_pool() -> Check {
    let (u, device, board) = (unit_ns(), Device::open()?, Board::new(2));
    let cpu = sys::nr_cpus() - 1;
    Table::new(20 * u).window("p", cpu, 4 * u, 8 * u, 0).pool(abi::RR, 0).install(&device)?;
    let group = Group::new("pool")?;
    group.serve("p")?;
    let child = process::fork(|| {
        let inside = || sys::sched(0).is_ok_and(|sched| sched.policy == SCHED_TT);
        if group.take(0).is_err() || !sys::eventually(20 * SECOND, inside) {
            return 1;
        }
        let slept = suspend(Depth::Processors, 1);
        let refused = slept.as_ref().is_err_and(|reason| reason.contains("os error 16"));
        board.set(0, if slept.is_ok() { SLEPT } else { u64::from(refused) });
        loop {
            board.add(1, 1);
        }
    });
    device.start(sys::now_ns() + 10 * u).explain("start")?;
    ensure!(sys::eventually(60 * SECOND, || board.get(1) > 0), "it is not back: {}", child.describe());
    ensure_eq!(board.get(0), if cpu == 0 { SLEPT } else { 1 }, "whether it slept, or was refused with EBUSY");
    ensure_eq!(sys::sched(child.pid).explain("policy")?.policy, SCHED_TT, "policy of who asked");
    suspend(Depth::Processors, 1)?;
    let done = board.get(1);
    ensure!(sys::eventually(20 * SECOND, || board.get(1) > done), "the pool does not go on");
    child.kill(20 * SECOND)?;
    device.remove().explain("remove")
}

const SLEPT: u64 = 2;

/// Checks a table that waits for its start across a suspend, one that is stopped after a suspend, and one that
/// restarts.
fn stopped() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    on_all_cpus(2, 1).install(&device)?;
    let members = members()?;
    suspend(Depth::Processors, 1)?;
    for depth in [Depth::Processors, Depth::Core] {
        let done: Vec<usize> = members.iter().map(|(log, _)| log.count()).collect();
        let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
        for ((log, child), cpu) in members.iter().zip(0..) {
            ensure_goes_on(&device, cpu, *log, *child)?;
        }
        suspend(depth, 1)?;
        device.stop().explain("stop")?;
        sys::sleep(20 * u); // until a thread that was stopped in a job waits again
        for (((log, child), cpu), done) in members.iter().zip(0..).zip(&done) {
            let jobs = log.jobs();
            let offset = (2 + u64::from(cpu)) * u;
            ensure_on_grid(&jobs[*done..], cpu, |number| epoch + number * 20 * u + offset)?;
            ensure!(child.poll().is_none(), "the thread on CPU {cpu} has ended");
        }
        let counts: Vec<usize> = members.iter().map(|(log, _)| log.count()).collect();
        suspend(depth, 1)?;
        let now: Vec<usize> = members.iter().map(|(log, _)| log.count()).collect();
        ensure_eq!(now, counts, "jobs while stopped");
    }
    device.remove().explain("remove")
}

/// Checks that the grid follows `CLOCK_TAI` over a suspend: it continues, but `CLOCK_MONOTONIC` does not.
fn clock() -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(4096));
    Table::single(20 * u, 0, 2 * u, 4 * u).sync(0, 10 * u, 3 * u, u as u32).install(&device)?;
    let child = periodic("t", log, u / 2)?;
    let epoch = device.start(sys::tai_ns() + 10 * u).explain("start")?;
    for _ in 0..2 {
        let offset = sys::tai_offset_ns();
        suspend(Depth::Core, 2)?;
        let by = sys::tai_offset_ns() - offset;
        ensure!(by > SECOND as i64 / 2, "CLOCK_TAI went on by {by} ns over a suspend of 2 s");
        let settled = || {
            device
                .get()
                .is_ok_and(|get| get.error_ns == 0 && (sys::tai_offset_ns() - get.offset_ns).abs() < u as i64 / 2)
        };
        ensure!(sys::eventually(20 * SECOND, settled), "{:?}", device.get());
        ensure_goes_on(&device, 0, log, child)?;
        missing(&log.jobs())?;
        ensure_on_clock(&device, log.jobs().last(), epoch + 2 * u)?;
    }
    Ok(())
}
