//! Forked processes.

use std::os::fd::AsRawFd;

use macrotick_uapi::{Device, SCHED_TT};

use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::sys;
use crate::{ensure, ensure_eq};

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ended with an exit code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
}

/// A child of this process. Dropping it does not end it: the runner ends the processes that a scenario leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its process id.
    pub pid: i32,
}

/// Runs a function in a new process. The result of the function is the exit code.
pub fn fork(body: impl FnOnce() -> i32) -> Child {
    try_fork(body).unwrap_or_else(|errno| panic!("fork: errno {errno}"))
}

/// Does the same where the fork may fail.
pub fn try_fork(body: impl FnOnce() -> i32) -> Result<Child, i32> {
    // SAFETY: scenarios fork from processes with only one thread, or from threads that hold no lock of the allocator.
    match unsafe { libc::fork() } {
        0 => {
            let code = body();
            // SAFETY: ends this process without running the parent's handlers.
            unsafe { libc::_exit(code) }
        }
        pid => sys::done(pid).map(|_| Child { pid }),
    }
}

/// Forks a child that sleeps.
pub fn sleeper() -> Child {
    fork(|| loop {
        // SAFETY: takes nothing.
        unsafe { libc::pause() };
    })
}

/// Forks a child that starts in a control group.
pub fn fork_into(group: &str, body: impl FnOnce() -> i32) -> Check<Child> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let dir = std::fs::File::open(group).map_err(|error| format!("{group}: {error}"))?;
    let arguments = libc::clone_args {
        flags: CLONE_INTO_CGROUP,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: dir.as_raw_fd() as u64,
        // SAFETY: plain numbers.
        ..unsafe { std::mem::zeroed() }
    };
    // SAFETY: as fork(2), without a stack of its own.
    match unsafe { libc::syscall(libc::SYS_clone3, &arguments, size_of::<libc::clone_args>()) } {
        0 => {
            let code = body();
            // SAFETY: ends this process without running the parent's handlers.
            unsafe { libc::_exit(code) }
        }
        pid => sys::done(pid).map(|pid| Child { pid: pid as i32 }).explain("clone3"),
    }
}

/// Runs a check in a new process, and returns its verdict.
pub fn check_in_child(limit_ns: u64, body: impl FnOnce() -> Check) -> Check {
    let mut pipe = [0; 2];
    // SAFETY: writes two descriptors.
    sys::done(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }).explain("pipe")?;
    let child = fork(|| match body() {
        Ok(()) => 0,
        Err(reason) => {
            // SAFETY: reads the text.
            unsafe { libc::write(pipe[1], reason.as_ptr().cast(), reason.len().min(4000)) };
            1
        }
    });
    // SAFETY: our copy of the writing end.
    unsafe { libc::close(pipe[1]) };
    let ended = child.wait(limit_ns);
    let mut text = [0u8; 4096];
    let length = match ended {
        // SAFETY: writes at most the buffer's length; other processes hold the writing end only for a short time.
        Ok(Ended::Exited(1)) => unsafe { libc::read(pipe[0], text.as_mut_ptr().cast(), text.len()) },
        _ => 0,
    };
    // SAFETY: our descriptor.
    unsafe { libc::close(pipe[0]) };
    match ended? {
        Ended::Exited(0) => Ok(()),
        Ended::Exited(1) => Err(String::from_utf8_lossy(&text[..length.max(0) as usize]).into_owned()),
        other => Err(format!("the process ended with {other:?}")),
    }
}

impl Child {
    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: takes numbers.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits for the end, for at most this time.
    pub fn wait(&self, limit_ns: u64) -> Check<Ended> {
        let mut ended = None;
        sys::eventually(limit_ns, || {
            ended = self.poll();
            ended.is_some()
        });
        ended.ok_or_else(|| format!("process {} did not end: {}", self.pid, self.describe()))
    }

    /// Returns the end of the process, if it has ended.
    pub fn poll(&self) -> Option<Ended> {
        let mut status = 0;
        // SAFETY: writes the status.
        let pid = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) };
        (pid == self.pid).then(|| {
            if libc::WIFEXITED(status) {
                Ended::Exited(libc::WEXITSTATUS(status))
            } else {
                Ended::Signaled(libc::WTERMSIG(status))
            }
        })
    }

    /// Kills the process, and waits for at most this time until it is gone.
    pub fn kill(&self, limit_ns: u64) -> Check {
        self.signal(libc::SIGKILL);
        ensure_eq!(self.wait(limit_ns)?, Ended::Signaled(libc::SIGKILL), "the end of a killed process");
        Ok(())
    }

    /// Waits for the end. An end that is no success is an error.
    pub fn succeed(&self, limit_ns: u64) -> Check {
        ensure_eq!(self.wait(limit_ns)?, Ended::Exited(0), "the end of process {}", self.pid);
        Ok(())
    }

    /// Returns the process's line of `/proc/PID/stat`, for messages.
    pub fn describe(&self) -> String {
        let path = format!("/proc/{}/stat", self.pid);
        std::fs::read_to_string(path).unwrap_or_default().trim().chars().take(80).collect()
    }
}

/// Forks a process that joins an entity and then runs a function. Returns after the process has joined. The process
/// takes its page faults before: in its first jobs they would take more time than most windows leave.
pub fn member(entity: &str, body: impl FnOnce(&Device) -> i32) -> Check<Child> {
    let joined = Board::new(1);
    let child = fork(|| {
        let Ok(device) = Device::open() else { return 100 };
        // With several CPUs, prefaulting would delay other processes meanwhile, which is worse.
        if sys::nr_cpus() == 1 {
            sys::prefault();
        }
        match device.bind(-1, entity) {
            Ok(()) => joined.set(0, 1),
            Err(errno) => joined.set(0, 1000 + errno as u64),
        }
        if joined.get(0) == 1 {
            body(&device)
        } else {
            101
        }
    });
    ensure!(sys::eventually(5_000_000_000, || joined.get(0) != 0), "the process for {entity} did not begin");
    ensure_eq!(joined.get(0), 1, "joining {entity} (1000 + errno)");
    Ok(child)
}

/// Forks a member that does the same work in each of its jobs, endlessly.
pub fn periodic(entity: &str, log: Log, work_ns: u64) -> Check<Child> {
    member(entity, move |device| loop {
        match device.wait() {
            Ok(wait) => log.push(&wait),
            Err(errno) => return errno,
        }
        sys::spin(work_ns);
    })
}

/// Waits for jobs without any work, after another process has bound the caller. Returns the error that ends this. The
/// caller runs on CPU 0 alone; the board's first word is 1 when the caller is ready to be bound there.
pub fn wait_once_bound(ready: Board, log: Log) -> i32 {
    let (Ok(device), Ok(())) = (Device::open(), sys::set_affinity(0, &[0])) else { return 100 };
    if sys::nr_cpus() == 1 {
        sys::prefault();
    }
    ready.set(0, 1);
    loop {
        match device.wait() {
            Ok(wait) => log.push(&wait),
            Err(libc::ENOTCONN) => sys::sleep(1_000_000),
            Err(errno) => return errno,
        }
    }
}

/// Forks a process that computes endlessly under a policy.
pub fn hog(attr: sys::SchedAttr) -> Child {
    fork(|| match sys::set_sched(0, attr) {
        Ok(()) => sys::hog(),
        Err(errno) => errno,
    })
}

/// Forks a member of an entity that enters the class by its policy, without a job, and computes endlessly.
pub fn member_hog(entity: &str) -> Check<Child> {
    member(entity, |_| match sys::set_sched(0, sys::SchedAttr::policy(SCHED_TT)) {
        Ok(()) => sys::hog(),
        Err(errno) => errno,
    })
}

/// Makes orphaned descendants children of this process.
pub fn adopt() {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Kills all descendants, and reaps those that have ended. Returns whether there were no descendants.
pub fn end_all() -> bool {
    end_all_but(None)
}

/// Does the same, except for one process.
pub fn end_all_but(kept: Option<i32>) -> bool {
    let left: Vec<i32> = descendants().into_iter().map(|(pid, _)| pid).filter(|pid| Some(*pid) != kept).collect();
    left.iter().for_each(|pid| Child { pid: *pid }.signal(libc::SIGKILL));
    reap();
    left.is_empty()
}

/// Reaps all children that have ended.
pub fn reap() {
    // SAFETY: ignores the status.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Returns the entries of a directory of `/proc` that are numbers.
pub fn numbers_in(directory: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the threads of a process, or an empty list if the process is gone.
pub fn threads_of(pid: i32) -> Vec<i32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// Returns the effective priority of a process from `/proc/PID/stat`: 20 for a nice value of 0, or -1 minus the
/// real-time priority.
pub fn priority(pid: i32) -> Option<i64> {
    stat_field(pid, 18)
}

/// Returns the state of a process, as in proc(5): `R`, `S`, `D`, `Z` and others.
pub fn state(pid: i32) -> Option<char> {
    stat_field(pid, 3)
}

/// Returns the CPU on which a process runs or last ran.
pub fn cpu(pid: i32) -> Option<u32> {
    stat_field(pid, 39)
}

/// Returns the CPU time of all threads of a process, in nanoseconds.
pub fn cpu_ns(pid: i32) -> Check<u64> {
    let mut clock = 0;
    // SAFETY: writes a clock's number.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => Ok(sys::read_clock(clock)),
        errno => Err(format!("the processor time of process {pid}: errno {errno}")),
    }
}

/// Returns a field of `/proc/PID/stat` after the name, by its number in proc(5).
fn stat_field<T: std::str::FromStr>(pid: i32, number: usize) -> Option<T> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(number - 3)?.parse().ok()
}

/// Returns the descendants of this process: process ids and lines of `/proc/PID/stat`.
pub fn descendants() -> Vec<(i32, String)> {
    let mut parents = std::collections::BTreeMap::new();
    for pid in numbers_in("/proc") {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).to_owned();
        if let Some(parent) = fields.split(' ').nth(1).and_then(|field| field.parse::<i32>().ok()) {
            parents.insert(pid, (parent, stat));
        }
    }
    let ours = std::process::id() as i32;
    let below = |mut pid: i32| loop {
        match parents.get(&pid) {
            Some((parent, _)) if *parent == ours => return true,
            Some((parent, _)) => pid = *parent,
            None => return false,
        }
    };
    parents.iter().filter(|(pid, _)| below(**pid)).map(|(pid, (_, stat))| (*pid, stat.trim().to_owned())).collect()
}

/// Returns the first kernel thread with this name.
pub fn kernel_thread(name: &str) -> Check<i32> {
    let has_name =
        |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name);
    numbers_in("/proc").into_iter().find(has_name).ok_or_else(|| format!("no kernel thread {name}"))
}
