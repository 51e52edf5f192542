//! Reads the threads.

use std::fs;

use macrotick_host::proc;
use macrotick_host::sys;

use crate::host::{Memory, Policy, Thread};

/// Fields of `/proc/PID/stat` after the name, from the state on: major faults, the flags and the last CPU.
const MAJOR_FAULTS: usize = 9;
const FLAGS: usize = 6;
const LAST: usize = 36;
/// `PF_KTHREAD` of `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Returns all threads that this program sees.
pub(super) fn read() -> Vec<Thread> {
    proc::processes().flat_map(|process| proc::threads(process).filter_map(move |tid| one(process, tid))).collect()
}

fn one(process: i32, tid: i32) -> Option<Thread> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{tid}/stat")).ok()?;
    let (name, fields) = proc::split_stat(&stat)?;
    let fields: Vec<&str> = fields.collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let attr = sys::sched_attr(tid).ok()?;
    let policy = policy(&attr);
    let status = fs::read_to_string(format!("/proc/{process}/task/{tid}/status")).ok()?;
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let kib = |key: &str| field(key)?.split_whitespace().next()?.parse::<u64>().ok();
    let is_kernel = number(FLAGS)? & KERNEL_THREAD != 0;
    let memory = || {
        let (locked_kib, present_kib) = (kib("VmLck:")?, kib("VmRSS:")?);
        Some(Memory { locked_kib, present_kib, major_faults: number(MAJOR_FAULTS)? })
    };
    Some(Thread {
        tid,
        process,
        name: name.to_owned(),
        is_kernel,
        policy,
        cpus: field("Cpus_allowed_list:").unwrap_or_default().to_owned(),
        last: number(LAST)? as u32,
        memory: if policy.is_real_time() && !is_kernel { memory() } else { None },
    })
}

fn policy(attr: &sys::SchedAttr) -> Policy {
    let priority = attr.real_time_priority().unwrap_or(0);
    match sys::policy_name(attr.policy) {
        "SCHED_FIFO" => Policy::Fifo(priority),
        "SCHED_RR" => Policy::Rr(priority),
        "SCHED_DEADLINE" => Policy::Deadline,
        "SCHED_TT" => Policy::Tt,
        "SCHED_DS" => Policy::Ds(priority),
        _ => Policy::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_among_them() {
        let own = std::process::id() as i32;
        let threads = read();
        let thread = threads.iter().find(|thread| thread.tid == own).unwrap();
        assert!(!thread.is_kernel && thread.policy == Policy::Other && thread.memory.is_none(), "{thread:?}");
    }
}
