//! Threads of the kernel that every CPU has one of, by name.

use std::fs;
use std::io;

use macrotick_model::KernelThread;

use crate::sys::Tid;

/// The thread of a CPU; `None`: this kernel has none of that name (`ktimers` and `rcuc` are PREEMPT_RT's).
pub fn find(thread: KernelThread, cpu: u32) -> io::Result<Option<Tid>> {
    let name = full_name(thread, cpu);
    for entry in fs::read_dir("/proc")? {
        let Some(tid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if is_kernel_thread(tid) && comm(tid).is_some_and(|comm| comm.trim_end() == name) {
            return Ok(Some(tid));
        }
    }
    Ok(None)
}

/// What the kernel calls it.
pub fn full_name(thread: KernelThread, cpu: u32) -> String {
    format!("{}/{cpu}", thread.name())
}

fn comm(tid: Tid) -> Option<String> {
    fs::read_to_string(format!("/proc/{tid}/comm")).ok()
}

/// A process can call itself what it likes, but it has a command line; one that is ending has none, either, and is
/// gone before it could be bound.
fn is_kernel_thread(tid: Tid) -> bool {
    fs::read(format!("/proc/{tid}/cmdline")).is_ok_and(|line| line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_that_name_is_no_kernel_thread() {
        let tid = std::process::id() as Tid;
        assert!(comm(tid).is_some() && !is_kernel_thread(tid));
        assert_eq!(find(KernelThread::Ksoftirqd, u32::MAX).unwrap(), None);
    }

    #[test]
    fn names_are_the_kernels() {
        assert_eq!(full_name(KernelThread::Rcuc, 3), "rcuc/3");
    }
}
