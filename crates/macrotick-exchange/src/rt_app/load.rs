//! A thread that becomes load.

use macrotick_model::{CpuSet, Duration, Load, Periodic, Policy as Stock, Process};

use super::policy::Class;
use super::thread::Thread;
use super::MOST_MICROS;
use crate::findings::Findings;

/// The nice value with the least share, in place of SCHED_IDLE.
const LEAST_SHARE: i8 = 19;
/// The highest priority of a process.
const MOST_PRIORITY: i8 = 98;
/// The most processes of one entry.
const MOST_PROCESSES: i64 = 1000;

/// Returns the process of a thread, under the thread's name. Returns `None` if it is refused.
pub fn process(thread: &Thread, findings: &mut Findings) -> Option<Process> {
    let path = &thread.path;
    if thread.instances > MOST_PROCESSES {
        let text = format!("{} processes are too many, the limit is {MOST_PROCESSES}", thread.instances);
        findings.refuse(&format!("{path}.instance"), text);
        return None;
    }
    let run = work(thread, findings)?;
    let policy = policy(thread, findings)?;
    if thread.delay > 0 {
        findings.remark(format!("{path}.delay"), "a process has no delay: it is left out");
    }
    let cpus = thread.cpus.as_ref().map(|cpus| CpuSet::from_iter(cpus.iter().copied()));
    let cpu = cpus.as_ref().filter(|cpus| !cpus.is_several()).and_then(CpuSet::first);
    if cpus.is_some() && cpu.is_none() {
        findings.remark(format!("{path}.cpus"), "a process has one CPU or all: it gets all");
    }
    Some(Process { policy, cpu, count: thread.instances as u32, ..Process::named("unnamed", run) })
}

fn work(thread: &Thread, findings: &mut Findings) -> Option<Load> {
    let events = &thread.events;
    let us = Duration::from_micros;
    if events.run == 0 {
        if events.work.is_empty() {
            findings.refuse(&thread.path, "no event computes: a process needs `run` or `runtime` longer than zero");
            return None;
        }
        let text = "a thread that writes to memory or to a device becomes `syscalls`, a load without pauses";
        findings.remark(&thread.path, text);
        return Some(Load::Syscalls);
    }
    for path in &events.work {
        findings.remark(path, "writing to memory or to a device is left out beside a computation");
    }
    if events.yields {
        findings.remark(&thread.path, "`yield` is left out");
    }
    let pause = events.sleep_path.as_ref();
    let period = match &events.timer {
        Some(timer) => {
            if let Some(path) = pause {
                findings.remark(path, "a sleep beside a timer is left out");
            }
            timer.period
        }
        None if events.sleep == 0 => return Some(Load::Hog),
        None => {
            let path = pause.unwrap_or(&thread.path);
            findings.remark(path, "a sleep becomes a period: the computing time and the sleep");
            (events.run + events.sleep).min(MOST_MICROS)
        }
    };
    Some(Load::Periodic(Periodic { period: us(period), run: us(events.run) }))
}

fn policy(thread: &Thread, findings: &mut Findings) -> Option<Stock> {
    let (path, priority) = (&thread.path, thread.policy.priority);
    match thread.policy.class {
        Class::Other => return Some(Stock::Other(priority)),
        Class::Idle => {
            findings.remark(path, format!("SCHED_IDLE becomes the nice value {LEAST_SHARE}"));
            return Some(Stock::Other(LEAST_SHARE));
        }
        Class::Deadline => {
            findings.refuse(path, "a process cannot have SCHED_DEADLINE");
            return None;
        }
        Class::RoundRobin => findings.remark(path, "SCHED_RR becomes SCHED_FIFO: equal priorities take no turns"),
        Class::Fifo => {}
    }
    if priority > MOST_PRIORITY {
        let text = format!("a process has at most {MOST_PRIORITY}: the dispatchers need priority 99");
        findings.remark(format!("{path}.priority"), text);
    }
    Some(Stock::Fifo(priority.min(MOST_PRIORITY) as u8))
}
