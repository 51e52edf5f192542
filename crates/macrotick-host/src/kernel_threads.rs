//! Threads of the kernel, found by name.

use std::fs;
use std::io;
use std::path::PathBuf;

use macrotick_model::{GroupThread, KernelThread};

use crate::cgroup::{Group, Owner};
use crate::error::HostFailure;
use crate::proc;
use crate::sys::{self, SchedAttr, Standing, Tid};
use crate::Undo;

/// A group's file of its kernel threads.
const LIST: &str = "cpu.ds.kthreads";
/// The priority for a thread without a real-time priority. It is that of the threads of interrupts (`sched_set_fifo` in
/// `kernel/sched/syscalls.c`).
const PRIORITY: u8 = 50;

/// Returns the threads of these names. The kernel and its devices decide which threads exist. For a missing thread it
/// adds a remark.
pub fn find(
    owner: &Owner,
    names: impl Iterator<Item = String>,
    remarks: &mut Vec<String>,
) -> Result<Vec<(Tid, String)>, HostFailure> {
    let mut threads = Vec::new();
    for name in names {
        match find_one(&name).map_err(HostFailure::file("read", "/proc"))? {
            Some(tid) => threads.push((tid, name)),
            None => remarks.push(format!("{owner}: this kernel has no thread {name}")),
        }
    }
    Ok(threads)
}

fn find_one(name: &str) -> io::Result<Option<Tid>> {
    Ok(find_all(|other| other == name)?.first().map(|(tid, _)| *tid))
}

/// Returns the threads with these names, with their names.
pub(crate) fn find_all(matches: impl Fn(&str) -> bool) -> io::Result<Vec<(Tid, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(tid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match proc::name(tid) {
            Some(name) if matches(&name) && is_kernel_thread(tid) => found.push((tid, name)),
            _ => {}
        }
    }
    Ok(found)
}

/// Sets the policy of a thread. The undo restores the former one.
pub(crate) fn set_standing(tid: Tid, name: &str, standing: Standing, undo: &mut Undo) -> Result<(), HostFailure> {
    let before = sys::sched_attr(tid).map_err(HostFailure::system("reading the policy of a kernel thread"))?;
    let refused = |source| HostFailure::Policy { name: name.to_owned(), standing, source };
    sys::set_standing(tid, standing).map_err(refused)?;
    let name = name.to_owned();
    undo.later(move || {
        if is_kernel_thread(tid) && has_name(tid, &name) {
            let _ = sys::set_sched_attr(tid, &before);
        }
    });
    Ok(())
}

/// Returns the kernel's name for the thread of a CPU.
pub fn full_name(thread: KernelThread, cpu: u32) -> String {
    format!("{}/{cpu}", thread.name())
}

/// Returns the kernel's names for the threads that a group with these CPUs serves. Gate threads are left out: those of
/// two namespaces can have the same name (`net::gate_thread` finds them).
pub fn full_names<'a>(threads: &'a [GroupThread], cpus: &'a [u32]) -> impl Iterator<Item = String> + 'a {
    threads.iter().flat_map(|thread| match thread {
        GroupThread::EachCpu(thread) => cpus.iter().map(|cpu| full_name(*thread, *cpu)).collect(),
        GroupThread::Interrupt(name) => vec![name.clone()],
        GroupThread::Gate(_) => Vec::new(),
    })
}

/// Returns all threads of the kernel with their names.
pub(crate) fn all() -> Vec<(Tid, String)> {
    let threads = proc::processes().filter(|tid| is_kernel_thread(*tid));
    threads.filter_map(|tid| Some((tid, proc::name(tid)?))).collect()
}

/// Whether this is a thread of the kernel with this name.
pub(crate) fn is_still(tid: Tid, name: &str) -> bool {
    is_kernel_thread(tid) && has_name(tid, name)
}

fn has_name(tid: Tid, name: &str) -> bool {
    proc::name(tid).is_some_and(|other| other == name)
}

/// Whether a thread has no command line. A process can choose its name, but it has a command line. An exiting process
/// has no command line either, but it is gone before the runner could bind it.
fn is_kernel_thread(tid: Tid) -> bool {
    fs::read(format!("/proc/{tid}/cmdline")).is_ok_and(|line| line.is_empty())
}

/// A kernel thread that a group serves. Dropping it removes it from the group's list, and restores its policy.
pub struct ServedThread {
    tid: Tid,
    name: String,
    list: PathBuf,
    before: SchedAttr,
}

impl ServedThread {
    /// Adds a thread to the list of a group with a budget. With `fifo`, the budget serves a SCHED_FIFO thread as it is.
    /// Such a thread keeps its policy, even if the runner is killed. Other threads get SCHED_DS.
    pub fn new(group: &Group, (tid, name): (Tid, String), fifo: bool) -> Result<ServedThread, HostFailure> {
        let before = sys::sched_attr(tid).map_err(HostFailure::system("reading the policy of a kernel thread"))?;
        group.write(LIST, &tid.to_string())?;
        let served = ServedThread { tid, name, list: group.path().join(LIST), before };
        let priority = before.real_time_priority();
        if !fifo || priority.is_none() {
            let standing = Standing::Budget(priority.unwrap_or(PRIORITY));
            let refused = |source| HostFailure::Policy { name: served.name.clone(), standing, source };
            sys::set_standing(tid, standing).map_err(refused)?;
        }
        Ok(served)
    }

    /// Whether the thread is on the list of a group with that path.
    pub fn is_of(&self, group: &Group) -> bool {
        self.list.parent() == Some(group.path())
    }

    /// Adds the thread to the list again, after the group was created again. Returns a remark if this fails.
    pub fn serve_again(&self) -> Option<String> {
        let refused = fs::write(&self.list, format!("{}\n", self.tid)).err()?;
        Some(format!("kernel thread {}: no longer served: {}: {refused}", self.name, self.list.display()))
    }
}

impl Drop for ServedThread {
    fn drop(&mut self) {
        // The thread of an interrupt ends with its device, and another thread may have its number by then.
        if is_still(self.tid, &self.name) {
            let _ = sys::set_sched_attr(self.tid, &self.before);
            let _ = fs::write(&self.list, format!("-{}\n", self.tid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_that_name_is_no_kernel_thread() {
        let tid = std::process::id() as Tid;
        let comm = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap();
        assert!(has_name(tid, comm.trim_end()) && !is_kernel_thread(tid));
        let mut remarks = Vec::new();
        let names = [full_name(KernelThread::Ksoftirqd, u32::MAX)].into_iter();
        assert_eq!(find(&Owner::Group("g".into()), names, &mut remarks).unwrap(), []);
        assert_eq!(remarks, ["group `g`: this kernel has no thread ksoftirqd/4294967295"]);
    }

    #[test]
    fn names_are_the_kernels() {
        let gate = GroupThread::Gate("left".into());
        let threads = [GroupThread::EachCpu(KernelThread::Rcuc), GroupThread::Interrupt("irq/30-eth0".into()), gate];
        let names: Vec<String> = full_names(&threads, &[1, 3]).collect();
        assert_eq!(names, ["rcuc/1", "rcuc/3", "irq/30-eth0"]);
    }
}
