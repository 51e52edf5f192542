//! Kernel threads in a pool: per-CPU threads and interrupt threads.

use std::fs;
use std::io::Write;

use macrotick_uapi::{self as abi, Device};

use super::pools::Stage;
use super::{unit_ns, Scenario};
use crate::check::{Check, Explain};
use crate::console::{self, Interrupt, DEVICE};
use crate::table::Table;
use crate::{ensure, ensure_eq, process, sys, trace};

pub const ALL: &[Scenario] = &[
    Scenario::new("pool_of_a_kernel_thread", of_each_cpu).punctual(),
    Scenario::new("pool_of_an_interrupt", of_an_interrupt).punctual(),
    Scenario::new("pool_of_an_interrupt_elsewhere", of_an_interrupt_elsewhere).on(2),
];

/// Checks a pool with slack that has all per-CPU kernel threads of this kernel at once.
fn of_each_cpu() -> Check {
    let stage = Stage::new(abi::PRIORITY | abi::SLACK, 0)?;
    // Linux 6.12 has no ktimers, and without PREEMPT_RT there is only ksoftirqd.
    let names = ["ksoftirqd/0", "rcuc/0", "backlog_napi/0", "ktimers/0"];
    let pids: Vec<i32> = names.iter().filter_map(|name| process::kernel_thread(name).ok()).collect();
    ensure!(pids.len() >= if sys::is_preempt_rt() { 3 } else { 1 }, "of {names:?} there are {}", pids.len());
    let fds: Vec<i32> = pids.iter().map(|pid| sys::pidfd_open(*pid, 0).explain("pidfd")).collect::<Check<Vec<_>>>()?;
    let attrs = || pids.iter().map(|pid| sys::sched(*pid).explain("policy")).collect::<Check<Vec<_>>>();
    let before = attrs()?;
    for fd in &fds {
        stage.device.bind(*fd, "p").explain("bind a kernel thread to a pool")?;
        ensure_eq!(stage.device.bind(*fd, "witness"), Err(libc::EBUSY), "binding it twice");
    }
    ensure!(attrs()?.iter().all(|attr| attr.policy == abi::SCHED_TT), "policies inside: {:?}", attrs()?);
    let epoch = stage.start()?;
    sys::sleep(50 * 20 * stage.u);
    for fd in &fds {
        stage.device.unbind(*fd).explain("unbind")?;
    }
    ensure_eq!(attrs()?, before, "policies and priorities afterwards");
    for fd in &fds {
        ensure_eq!(stage.device.bind(*fd, "witness"), Err(libc::EINVAL), "binding it to what has jobs");
        ensure_eq!(stage.device.unbind(*fd), Err(libc::ENOTCONN), "unbinding it twice");
    }
    stage.ensure_undisturbed(epoch)
}

/// The number of lines to the console.
const CYCLES: u64 = 20;

/// Writes a line in each cycle, long before the pool's window, as long as the chip accepts at once. Returns the
/// beginnings and ends of the stretches in which the thread of the console's interrupt ran.
fn write_lines(stage: &Stage, epoch: u64, thread: &str) -> Check<Vec<(u64, u64)>> {
    let mut console = fs::OpenOptions::new().write(true).open(DEVICE).map_err(|error| format!("{DEVICE}: {error}"))?;
    trace::start()?;
    let first = (sys::now_ns() - epoch) / (20 * stage.u) + 1;
    let written = (first..first + CYCLES).try_for_each(|cycle| {
        sys::sleep_until(epoch + cycle * 20 * stage.u + 16 * stage.u);
        console.write_all(b"..............\n").map_err(|error| format!("{DEVICE}: {error}"))
    });
    sys::sleep(20 * stage.u);
    let switches = trace::stop()?;
    written?;
    let pairs = switches.windows(2).filter(|pair| pair[0].next == thread);
    Ok(pairs.map(|pair| (pair[0].at_ns, pair[1].at_ns)).collect())
}

/// Checks a pool without slack: its interrupt thread runs only in the pool's windows, whenever the interrupt comes.
fn of_an_interrupt() -> Check {
    let stage = Stage::new(0, 0)?;
    let Ok(Interrupt { pid, name, .. }) = console::interrupt() else {
        ensure!(!sys::is_preempt_rt(), "no thread of the console's interrupt");
        return Ok(());
    };
    let (before, fd) = (sys::sched(pid).explain("policy")?, sys::pidfd_open(pid, 0).explain("pidfd")?);
    ensure_eq!(before.policy, libc::SCHED_FIFO as u32, "policy of an interrupt's thread");
    let epoch = stage.start()?;
    // Traces have a resolution of 1 us, and the end of a window takes some microseconds.
    let is_inside = |&&(begin, end): &&(u64, u64)| {
        let phase = (begin - epoch) % (20 * stage.u) + 1000;
        phase >= 4 * stage.u && phase + (end - begin) < 8 * stage.u + stage.u / 5
    };
    let free = write_lines(&stage, epoch, &name)?;
    ensure!(
        free.iter().filter(is_inside).count() < CYCLES as usize / 2,
        "it works in windows without a pool: {free:?}"
    );
    stage.device.bind(fd, "p").explain("bind an interrupt's thread to a pool")?;
    ensure_eq!(sys::sched(pid).explain("policy")?.policy, abi::SCHED_TT, "policy inside");
    let bound = write_lines(&stage, epoch, &name)?;
    stage.device.unbind(fd).explain("unbind")?;
    ensure_eq!(sys::sched(pid).explain("policy")?, before, "policy and priority afterwards");
    ensure!(bound.len() as u64 >= CYCLES, "it worked {} times", bound.len());
    ensure_eq!(bound.iter().filter(is_inside).count(), bound.len(), "stretches inside, of {bound:?}");
    stage.ensure_undisturbed(epoch)
}

/// Moves the console's interrupt to a CPU, and its thread with it.
fn move_interrupt(interrupt: &Interrupt, cpu: u32) -> Check {
    let Interrupt { number, name, pid } = interrupt;
    let write = |path: &str, text: &str| fs::write(path, text).map_err(|error| format!("{path}: {error}"));
    write(&format!("/proc/irq/{number}/smp_affinity_list"), &cpu.to_string())?;
    // The thread moves at the next interrupt.
    let follows = || write(DEVICE, "\n").is_ok() && sys::affinity(*pid).as_ref() == Ok(&vec![cpu]);
    ensure!(sys::eventually(5_000_000_000, follows), "{name} on {:?}, not on CPU {cpu}", sys::affinity(*pid));
    Ok(())
}

/// Checks that only a pool on the interrupt's own CPU accepts its thread.
fn of_an_interrupt_elsewhere() -> Check {
    let Ok(interrupt) = console::interrupt() else {
        ensure!(!sys::is_preempt_rt(), "no thread of the console's interrupt");
        return Ok(());
    };
    let (u, device, pid) = (unit_ns(), Device::open()?, interrupt.pid);
    let table = Table::new(20 * u).window("zero", 0, 4 * u, 4 * u, 0).pool(abi::SLACK, 0);
    table.window("one", 1, 4 * u, 4 * u, 0).pool(abi::SLACK, 0).install(&device)?;
    let (before, fd) = (sys::sched(pid).explain("policy")?, sys::pidfd_open(pid, 0).explain("pidfd")?);
    for (cpu, own, other) in [(1, "one", "zero"), (0, "zero", "one")] {
        move_interrupt(&interrupt, cpu)?;
        ensure_eq!(device.bind(fd, other), Err(libc::EINVAL), "binding it to a pool elsewhere");
        device.bind(fd, own).explain("bind")?;
        ensure_eq!(sys::sched(pid).explain("policy")?.policy, abi::SCHED_TT, "policy inside");
        device.unbind(fd).explain("unbind")?;
        ensure_eq!(sys::sched(pid).explain("policy")?, before, "policy and priority afterwards");
        ensure_eq!(sys::affinity(pid), Ok(vec![cpu]), "its CPUs afterwards");
    }
    Ok(())
}
