//! Forked processes.

use std::os::fd::AsRawFd;

use macrotick_uapi::{Device, SCHED_TT};

use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::sys;
use crate::{ensure, ensure_eq};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
}

/// A child of this process. It is not ended when dropped: the runner ends whatever a scenario leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its process id.
    pub pid: i32,
}

/// Runs a function in a process of its own; its result is the exit code.
pub fn fork(body: impl FnOnce() -> i32) -> Child {
    try_fork(body).unwrap_or_else(|errno| panic!("fork: errno {errno}"))
}

/// The same where the fork may be refused.
pub fn try_fork(body: impl FnOnce() -> i32) -> Result<Child, i32> {
    // SAFETY: scenarios fork from processes with one thread only, or from threads that hold no lock of the allocator's.
    match unsafe { libc::fork() } {
        0 => {
            let code = body();
            // SAFETY: ends this process without running the parent's handlers.
            unsafe { libc::_exit(code) }
        }
        pid => sys::done(pid).map(|_| Child { pid }),
    }
}

/// A child that sleeps.
pub fn sleeper() -> Child {
    fork(|| loop {
        // SAFETY: takes nothing.
        unsafe { libc::pause() };
    })
}

/// A child that is born in a control group.
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

/// Runs a check in a process of its own, and returns its verdict.
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
        // SAFETY: writes at most the buffer's length; nobody else holds the writing end for long.
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

    /// Waits for the end, at most so long.
    pub fn wait(&self, limit_ns: u64) -> Check<Ended> {
        let mut ended = None;
        sys::eventually(limit_ns, || {
            ended = self.poll();
            ended.is_some()
        });
        ended.ok_or_else(|| format!("process {} did not end: {}", self.pid, self.describe()))
    }

    /// How it ended, if it has.
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

    /// Kills it, and waits until it is gone, at most so long.
    pub fn kill(&self, limit_ns: u64) -> Check {
        self.signal(libc::SIGKILL);
        ensure_eq!(self.wait(limit_ns)?, Ended::Signaled(libc::SIGKILL), "the end of a killed process");
        Ok(())
    }

    /// Waits for the end, which must be a success.
    pub fn succeed(&self, limit_ns: u64) -> Check {
        ensure_eq!(self.wait(limit_ns)?, Ended::Exited(0), "the end of process {}", self.pid);
        Ok(())
    }

    /// What the kernel says of its state, for messages.
    pub fn describe(&self) -> String {
        let path = format!("/proc/{}/stat", self.pid);
        std::fs::read_to_string(path).unwrap_or_default().trim().chars().take(80).collect()
    }
}

/// Forks a process that joins an entity and then runs a function; returns once it has joined. It takes its page faults
/// before, or they would take from its first jobs more than most windows leave.
pub fn member(entity: &str, body: impl FnOnce(&Device) -> i32) -> Check<Child> {
    let joined = Board::new(1);
    let child = fork(|| {
        let Ok(device) = Device::open() else { return 100 };
        // With several CPUs they would be kept from running meanwhile, which is worse.
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

/// A member that does the same work in each of its jobs for ever.
pub fn periodic(entity: &str, log: Log, work_ns: u64) -> Check<Child> {
    member(entity, move |device| loop {
        match device.wait() {
            Ok(wait) => log.push(&wait),
            Err(errno) => return errno,
        }
        sys::spin(work_ns);
    })
}

/// Does no work in each of its jobs for ever, once somebody has bound the caller; returns what ends that. The board's first
/// word tells when it is ready, on CPU 0 alone, so that whoever binds it finds it there.
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

/// A process that is busy for ever under a policy.
pub fn hog(attr: sys::SchedAttr) -> Child {
    fork(|| match sys::set_sched(0, attr) {
        Ok(()) => sys::hog(),
        Err(errno) => errno,
    })
}

/// A member of an entity that enters the class by policy, without a job, and is busy for ever.
pub fn member_hog(entity: &str) -> Check<Child> {
    member(entity, |_| match sys::set_sched(0, sys::SchedAttr::policy(SCHED_TT)) {
        Ok(()) => sys::hog(),
        Err(errno) => errno,
    })
}

/// What descendants leave behind becomes a child of this process.
pub fn adopt() {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Kills all descendants and reaps those that have ended. Whether there was none.
pub fn end_all() -> bool {
    end_all_but(None)
}

/// The same, but for one.
pub fn end_all_but(kept: Option<i32>) -> bool {
    let left: Vec<i32> = descendants().into_iter().map(|(pid, _)| pid).filter(|pid| Some(*pid) != kept).collect();
    left.iter().for_each(|pid| Child { pid: *pid }.signal(libc::SIGKILL));
    reap();
    left.is_empty()
}

/// Reaps those children that have ended.
pub fn reap() {
    // SAFETY: ignores the status.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// The entries of a directory of `/proc` that are numbers.
pub fn numbers_in(directory: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The threads of a process; none if it is gone.
pub fn threads_of(pid: i32) -> Vec<i32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// The effective priority of a process as `/proc/PID/stat` has it: 20 for a nice value of 0, -1 minus a real-time one.
pub fn priority(pid: i32) -> Option<i64> {
    stat_field(pid, 18)
}

/// What a process does, by proc(5): `R`, `S`, `D`, `Z` and others.
pub fn state(pid: i32) -> Option<char> {
    stat_field(pid, 3)
}

/// Where a process runs, or ran last.
pub fn cpu(pid: i32) -> Option<u32> {
    stat_field(pid, 39)
}

/// The processor time of all threads of a process, in nanoseconds.
pub fn cpu_ns(pid: i32) -> Check<u64> {
    let mut clock = 0;
    // SAFETY: writes a clock's number.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => Ok(sys::read_clock(clock)),
        errno => Err(format!("the processor time of process {pid}: errno {errno}")),
    }
}

/// A field of `/proc/PID/stat` behind the name, by its number in proc(5).
fn stat_field<T: std::str::FromStr>(pid: i32, number: usize) -> Option<T> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(number - 3)?.parse().ok()
}

/// The processes below this one: process id and `/proc/PID/stat`.
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

/// The first kernel thread with a name.
pub fn kernel_thread(name: &str) -> Check<i32> {
    let has_name =
        |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name);
    numbers_in("/proc").into_iter().find(has_name).ok_or_else(|| format!("no kernel thread {name}"))
}
