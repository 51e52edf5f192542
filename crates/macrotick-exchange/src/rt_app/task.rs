//! A thread that becomes tasks.

use macrotick_model::{CpuSet, Duration, ExecutionTime, Reservation, Supply, Task, Workload};

use super::policy::Class;
use super::thread::Thread;
use crate::findings::Findings;

/// The least time in microseconds that a WCET has beyond the computing time: for the dispatch and the wait call.
const LEAST_MARGIN: i64 = 20;

/// The times of a task in microseconds, and its supply.
struct Times {
    period: i64,
    deadline: i64,
    /// The most that a WCET can be.
    most: i64,
    supply: Supply,
}

/// Returns the task of a thread, under the thread's name. Returns `None` if it is refused.
pub fn task(thread: &Thread, findings: &mut Findings) -> Option<Task> {
    let times = match thread.policy.class {
        Class::Deadline => reservation(thread, findings)?,
        _ => windows(thread, findings)?,
    };
    let run = computing(thread, findings)?;
    let wcet = wcet(thread, run, &times, findings)?;
    let us = Duration::from_micros;
    let mut task = Task::named("unnamed", us(times.period), us(wcet));
    task.deadline = us(times.deadline);
    task.run = Workload::Spin(ExecutionTime::Fixed(us(run)));
    task.supply = times.supply;
    match thread.policy.class {
        Class::Deadline => reserved_keys(thread, findings),
        _ => windowed_keys(&mut task, thread, findings),
    }
    Some(task)
}

/// The values of a task with a reservation.
fn reservation(thread: &Thread, findings: &mut Findings) -> Option<Times> {
    let (path, reserved) = (&thread.path, thread.reserved);
    let timer = thread.events.timer.as_ref();
    let Some(runtime) = reserved.runtime.filter(|runtime| *runtime > 0) else {
        findings.refuse(path, "a thread of SCHED_DEADLINE needs a `dl-runtime` longer than zero");
        return None;
    };
    if timer.is_none() && !thread.events.yields {
        let text = "a thread of SCHED_DEADLINE without a timer has no jobs: run rt-app in a group";
        findings.refuse(path, text);
        return None;
    }
    let period = match (timer, reserved.period) {
        (Some(timer), Some(period)) if timer.period != period => {
            let text = format!("{period}us is not the period of the timer, {}us: a task has one period", timer.period);
            findings.refuse(&format!("{path}.dl-period"), text);
            return None;
        }
        (_, Some(period)) => period,
        (Some(timer), None) => {
            findings.remark(path, "the reservation has no `dl-period` and gets the period of the timer");
            timer.period
        }
        (None, None) => runtime,
    };
    let deadline = reserved.deadline.filter(|deadline| *deadline > 0).unwrap_or(period);
    let us = Duration::from_micros;
    let cpus = thread.cpus.iter().flatten().copied().collect();
    let supply = Supply::Deadline(Reservation { runtime: us(runtime), cpus });
    Some(Times { period, deadline, most: runtime.min(deadline), supply })
}

/// The values of a task with windows.
fn windows(thread: &Thread, findings: &mut Findings) -> Option<Times> {
    let Some(timer) = &thread.events.timer else {
        findings.refuse(&thread.path, "a task needs a timer with a period");
        return None;
    };
    let deadline = thread.own.deadline.filter(|deadline| *deadline > 0).unwrap_or(timer.period);
    Some(Times { period: timer.period, deadline, most: deadline, supply: Supply::Windows })
}

/// Returns the computing time of a job in microseconds, without the events that a job does not have.
fn computing(thread: &Thread, findings: &mut Findings) -> Option<i64> {
    let events = &thread.events;
    if events.run == 0 {
        let text = "no event computes: a task needs `run` or `runtime` longer than zero";
        findings.refuse(&thread.path, text);
        return None;
    }
    for path in &events.work {
        findings.remark(path, "writing to memory or to a device has no counterpart in a task and is left out");
    }
    if let Some(path) = &events.sleep_path {
        if events.sleeps_between {
            let text = "a built-in job cannot sleep before it computes: write a program, or run rt-app in a group";
            findings.refuse(path, text);
            return None;
        }
        findings.remark(path, "a job ends with its computation: a sleep after it is left out");
    }
    if let Some(timer) = &events.timer {
        if timer.is_relative {
            findings.remark(
                &timer.path,
                "a timer in relative mode (the default) becomes absolute: no job moves the next release",
            );
        }
        if events.yields {
            findings.remark(&thread.path, "`yield` is left out: a job ends with its computation");
        }
    }
    Some(events.run)
}

/// Returns the WCET in microseconds: that of an export, or the computing time with a margin.
fn wcet(thread: &Thread, run: i64, times: &Times, findings: &mut Findings) -> Option<i64> {
    if let Some(wcet) = thread.own.wcet {
        return Some(wcet);
    }
    let path = thread.events.run_path.as_ref().unwrap_or(&thread.path);
    if run > times.most {
        let limit = match times.most < times.deadline {
            true => "the runtime of the reservation",
            false => "the deadline",
        };
        findings.refuse(path, format!("a job computes for {run}us, longer than {limit}, {}us", times.most));
        return None;
    }
    let wanted = run + (run / 10 + i64::from(run % 10 > 0)).max(LEAST_MARGIN);
    if wanted > times.most {
        let text = "the WCET has less room than usual for the dispatch and the wait call: a job may miss";
        findings.remark(path, text);
    }
    Some(wanted.min(times.most))
}

/// Notes the keys that a task with a reservation does not have.
fn reserved_keys(thread: &Thread, findings: &mut Findings) {
    if thread.delay > 0 {
        findings.remark(format!("{}.delay", thread.path), "a task of SCHED_DEADLINE has no offset: it is left out");
    }
}

/// Fills in the keys that a task with windows has.
fn windowed_keys(task: &mut Task, thread: &Thread, findings: &mut Findings) {
    let us = Duration::from_micros;
    let path = &thread.path;
    let policy = thread.policy;
    match policy.class {
        Class::Fifo => {}
        Class::RoundRobin => findings.remark(path, "SCHED_RR becomes windows, and SCHED_FIFO under the backend `fifo`"),
        Class::Idle => findings.remark(path, "SCHED_IDLE becomes windows"),
        Class::Other | Class::Deadline if policy.priority != 0 => {
            findings.remark(format!("{path}.priority"), "a task has windows and no nice value");
        }
        Class::Other | Class::Deadline => {}
    }
    task.priority = policy.class.is_real_time().then_some(policy.priority as u8);
    task.jitter = thread.own.jitter.map(us);
    if thread.delay > 0 {
        let offset = us(thread.delay) % task.period;
        if offset != us(thread.delay) {
            let text = format!("the offset of a task is less than its period: {offset} remain");
            findings.remark(format!("{path}.delay"), text);
        }
        task.offset = Some(offset);
    }
    match thread.cpus.as_ref().map(|cpus| CpuSet::from_iter(cpus.iter().copied())) {
        Some(cpus) if cpus.is_several() => {
            task.migrate = thread.own.migrate.unwrap_or(true);
            task.cpus = cpus;
        }
        Some(cpus) => task.cpu = cpus.first(),
        None => task.migrate = thread.own.migrate.unwrap_or(false),
    }
}
