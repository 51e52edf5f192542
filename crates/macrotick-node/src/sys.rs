//! The system calls that a run needs, as safe functions.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::AtomicU32;

use macrotick_model::{CpuSet, Duration, Instant};

/// A thread or process id of the kernel.
pub type Tid = i32;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The instant now on `CLOCK_MONOTONIC`.
pub fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    // The fields' types differ between targets.
    #[allow(clippy::unnecessary_cast)]
    Instant::from_nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

/// An instant or length as the kernel wants it.
pub fn timespec(ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Sleeps until an instant of `CLOCK_MONOTONIC`, whatever signals come.
pub fn sleep_until(at: Instant) {
    let until = timespec(at.as_nanos().max(0));
    // SAFETY: reads one timespec.
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) }
        == libc::EINTR
    {}
}

/// Sleeps for a length.
pub fn sleep(length: Duration) {
    sleep_until(now() + length);
}

/// Wakes all waiters of a futex word that is shared between processes.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives as long as the reference.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// An anonymous file in memory.
pub fn memory_file(name: &CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a terminated name; the returned descriptor is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags))?;
        Ok(File::from_raw_fd(fd as i32))
    }
}

/// Forbids a memory file to change its size: writes beyond its end fail.
pub fn seal_size(file: &File) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW | libc::F_SEAL_SHRINK) }.into())
        .map(drop)
}

/// Whose this process is.
pub fn user() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() }
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    user() == 0
}

/// Locks all present and future memory of the process; the future only for root, because for others a mapping that
/// cannot be locked any more would fail. A refusal costs determinism, not function.
pub fn lock_memory() {
    let what = if is_root() { libc::MCL_CURRENT | libc::MCL_FUTURE } else { libc::MCL_CURRENT };
    // SAFETY: no memory is passed.
    unsafe { libc::mlockall(what) };
}

/// Lets the process live on when the kernel class signals a miss.
pub fn ignore_miss_signal() {
    // SAFETY: sets a disposition; there is no handler.
    unsafe { libc::signal(libc::SIGXCPU, libc::SIG_IGN) };
}

/// Has this process signalled when the one that started it ends.
pub fn signal_on_parent_death(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) }.into()).map(drop)
}

/// Names the calling thread.
pub fn set_thread_name(name: &str) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: a terminated name; the kernel copies at most 15 bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Under which policy, and how, a thread is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// `SCHED_OTHER` with a nice value.
    Other(i8),
    /// `SCHED_IDLE`: a very small share beside `SCHED_OTHER`.
    Idle,
    /// `SCHED_FIFO` with a priority.
    Fifo(u8),
    /// `SCHED_DS` with a priority: served by the budget of its group.
    Budget(u8),
    /// `SCHED_DEADLINE`.
    Deadline {
        /// Budget per period.
        runtime: Duration,
        /// Relative deadline.
        deadline: Duration,
        /// Period.
        period: Duration,
    },
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Standing::Other(nice) => write!(f, "SCHED_OTHER with nice {nice}"),
            Standing::Idle => write!(f, "SCHED_IDLE"),
            Standing::Fifo(priority) => write!(f, "SCHED_FIFO with priority {priority}"),
            Standing::Budget(priority) => write!(f, "SCHED_DS with priority {priority}"),
            Standing::Deadline { runtime, deadline, period } => {
                write!(f, "SCHED_DEADLINE with {runtime} in {deadline} every {period}")
            }
        }
    }
}

/// `struct sched_attr` up to its first published size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SchedAttr {
    size: u32,
    /// A number as `sched_setattr(2)` has it.
    pub policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
const SCHED_BATCH: u32 = 3;
const SCHED_IDLE: u32 = 5;
const SCHED_DEADLINE: u32 = 6;
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;

/// What a policy is called.
pub fn policy_name(policy: u32) -> &'static str {
    match policy {
        SCHED_OTHER => "SCHED_OTHER",
        SCHED_FIFO => "SCHED_FIFO",
        SCHED_RR => "SCHED_RR",
        SCHED_BATCH => "SCHED_BATCH",
        SCHED_IDLE => "SCHED_IDLE",
        SCHED_DEADLINE => "SCHED_DEADLINE",
        macrotick_uapi::SCHED_DS => "SCHED_DS",
        macrotick_uapi::SCHED_TT => "SCHED_TT",
        _ => "another policy",
    }
}

impl SchedAttr {
    /// The attributes of a standing. With `reset_on_fork` children start under `SCHED_OTHER`.
    pub fn new(standing: Standing, reset_on_fork: bool) -> Self {
        let flags = if reset_on_fork { SCHED_FLAG_RESET_ON_FORK } else { 0 };
        let base = SchedAttr { size: size_of::<SchedAttr>() as u32, flags, ..Default::default() };
        match standing {
            Standing::Other(nice) => SchedAttr { policy: SCHED_OTHER, nice: nice.into(), ..base },
            Standing::Idle => SchedAttr { policy: SCHED_IDLE, ..base },
            Standing::Fifo(priority) => SchedAttr { policy: SCHED_FIFO, priority: priority.into(), ..base },
            Standing::Budget(priority) => {
                SchedAttr { policy: macrotick_uapi::SCHED_DS, priority: priority.into(), ..base }
            }
            Standing::Deadline { runtime, deadline, period } => SchedAttr {
                policy: SCHED_DEADLINE,
                // A deadline task may only fork when its children leave the class.
                flags: SCHED_FLAG_RESET_ON_FORK,
                runtime: runtime.as_nanos() as u64,
                deadline: deadline.as_nanos() as u64,
                period: period.as_nanos() as u64,
                ..base
            },
        }
    }
}

/// Threads of the kernel with a reservation that is none: they do not count in admission (`SCHED_FLAG_SUGOV`).
const UNCOUNTED: u64 = 0x1000_0000;
/// Bandwidths are in parts of a CPU of two to this power, as the kernel's `BW_SHIFT`.
const BANDWIDTH_SHIFT: u32 = 20;

impl SchedAttr {
    /// Under SCHED_FIFO, SCHED_RR and SCHED_DS.
    pub fn real_time_priority(&self) -> Option<u8> {
        u8::try_from(self.priority).ok().filter(|priority| *priority > 0)
    }

    /// Whether it comes before all of SCHED_OTHER without a window or a budget, or after all of it.
    pub fn is_no_ordinary_thread(&self) -> bool {
        [SCHED_FIFO, SCHED_RR, SCHED_DEADLINE, SCHED_IDLE].contains(&self.policy)
    }

    /// What SCHED_DEADLINE has promised, rounded down as by the kernel (`to_ratio()`); `None` under another policy.
    pub fn bandwidth(&self) -> Option<u64> {
        let counts = self.policy == SCHED_DEADLINE && self.flags & UNCOUNTED == 0;
        let period = if self.period > 0 { self.period } else { self.deadline };
        counts.then(|| ((u128::from(self.runtime) << BANDWIDTH_SHIFT) / u128::from(period.max(1))) as u64)
    }
}

/// Sets the attributes of a thread; 0 is the caller.
pub fn set_sched_attr(tid: Tid, attr: &SchedAttr) -> io::Result<()> {
    // SAFETY: reads one sched_attr of the size it tells.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, attr as *const SchedAttr, 0) }).map(drop)
}

/// The attributes of a thread; 0 is the caller.
pub fn sched_attr(tid: Tid) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: writes at most the size that is passed.
    check(unsafe {
        libc::syscall(libc::SYS_sched_getattr, tid, &mut attr as *mut SchedAttr, size_of::<SchedAttr>(), 0)
    })?;
    Ok(attr)
}

/// Puts a thread under a policy; 0 is the caller.
pub fn set_standing(tid: Tid, standing: Standing) -> io::Result<()> {
    set_sched_attr(tid, &SchedAttr::new(standing, false))
}

/// Pins a thread to a CPU, or to several.
pub fn pin(tid: Tid, cpus: &[u32]) -> io::Result<()> {
    // SAFETY: the set is plain bits; CPU_SET ignores what lies beyond.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu as usize, &mut set));
        check(libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &set).into()).map(drop)
    }
}

/// The CPUs that a thread may run on; 0 is the caller.
pub fn affinity(tid: Tid) -> io::Result<CpuSet> {
    // SAFETY: the set is plain bits, and written within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(tid, size_of::<libc::cpu_set_t>(), &mut set).into())?;
        Ok((0..libc::CPU_SETSIZE as u32).filter(|&cpu| libc::CPU_ISSET(cpu as usize, &set)).collect())
    }
}

/// Whether a process without any privilege is given a clock of perf_event_open(2), which interrupts its CPU. A child tries.
pub fn may_sample_unprivileged() -> bool {
    /// `struct perf_event_attr`, as first published.
    #[repr(C)]
    struct Attr {
        kind: u32,
        size: u32,
        config: u64,
        period: u64,
        sample: u64,
        read: u64,
        flags: u64,
        rest: [u64; 2],
    }
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;
    const DISABLED_WITHOUT_KERNEL: u64 = 1 | (1 << 5) | (1 << 6);
    const NOBODY: libc::c_long = 65_534;
    let attr = Attr {
        kind: SOFTWARE,
        size: size_of::<Attr>() as u32,
        config: CPU_CLOCK,
        period: 1_000_000_000,
        sample: 0,
        read: 0,
        flags: DISABLED_WITHOUT_KERNEL,
        rest: [0; 2],
    };
    // SAFETY: the child makes system calls and nothing else; one reads the structure; the parent waits for its own child.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => {
                let has_none = libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0
                    && libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0;
                let is_given = has_none && libc::syscall(libc::SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0;
                libc::_exit(i32::from(!is_given))
            }
            child => {
                let mut status = 0;
                while libc::waitpid(child, &mut status, 0) < 0 && *libc::__errno_location() == libc::EINTR {}
                status == 0
            }
        }
    }
}

/// A descriptor of a thread, for which it need not be the first of its process.
pub fn pidfd_open(pid: Tid, tid: Tid) -> io::Result<OwnedFd> {
    const PIDFD_THREAD: libc::c_int = libc::O_EXCL;
    let flags = if tid == pid { 0 } else { PIDFD_THREAD };
    // SAFETY: no memory is passed; the returned descriptor is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_open, tid, flags))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// How a child of ours ended, if it did. It is not reaped, so that its number stays taken.
pub fn exited(pid: Tid) -> Option<ExitStatus> {
    ended(libc::P_PID, pid as libc::id_t)
}

/// Whether a child of this process has ended and is not reaped yet.
pub fn has_ended_child() -> bool {
    ended(libc::P_ALL, 0).is_some()
}

fn ended(kind: libc::idtype_t, id: libc::id_t) -> Option<ExitStatus> {
    // SAFETY: zeroed memory is a valid siginfo; waitid fills it for a child of ours.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if libc::waitid(kind, id, &mut info, flags) < 0 || info.si_pid() == 0 {
            return None;
        }
        Some(ExitStatus::from_raw(wait_status(info.si_code, info.si_status())))
    }
}

/// Reaps a child of ours, if it has ended.
pub fn reap(pid: Tid) {
    // SAFETY: writes nothing.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

/// Kills a process.
pub fn kill(pid: Tid) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Whether orphans below this process become its children.
pub fn is_subreaper() -> bool {
    let mut is: libc::c_int = 0;
    // SAFETY: writes one int.
    unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &mut is) == 0 && is != 0 }
}

/// Has them become its children, or not.
pub fn set_subreaper(on: bool) {
    // SAFETY: takes a number.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(on)) };
}

/// The status as wait(2) gives it, from what waitid(2) gives.
fn wait_status(code: i32, status: i32) -> i32 {
    match code {
        libc::CLD_EXITED => status << 8,
        libc::CLD_DUMPED => status | 0x80,
        _ => status,
    }
}

/// An extended attribute of a file; `None`: it has none.
pub fn attribute(path: &Path, name: &CStr) -> Option<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut value = vec![0u8; MOST_OF_ATTRIBUTE];
    // SAFETY: terminated names, and so many bytes to write to.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

/// Sets an extended attribute of a file.
pub fn set_attribute(path: &Path, name: &CStr, value: &[u8]) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: terminated names, and so many bytes to read.
    let result = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    check(result.into()).map(drop)
}

/// The kernel's own bound (`XATTR_SIZE_MAX`).
const MOST_OF_ATTRIBUTE: usize = 64 << 10;

/// The CPUs of a list like `0-2,5`.
pub fn parse_cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// These CPUs, as the kernel reads a list.
pub fn cpu_list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The CPUs that are online.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    std::fs::read_to_string("/sys/devices/system/cpu/online").map(|text| parse_cpu_list(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_cpu_list("0\n"), [0]);
        assert_eq!(cpu_list(&[0, 2]), "0,2");
    }

    #[test]
    fn a_bandwidth_is_in_parts_of_a_cpu() {
        let ms = Duration::from_millis;
        let deadline = Standing::Deadline { runtime: ms(1), deadline: ms(2), period: ms(3) };
        let attr = SchedAttr::new(deadline, false);
        assert_eq!(attr.bandwidth(), Some((1 << 20) / 3));
        // Without a period it is the deadline.
        assert_eq!(SchedAttr { period: 0, ..attr }.bandwidth(), Some(1 << 19));
        assert_eq!(SchedAttr { flags: UNCOUNTED, ..attr }.bandwidth(), None);
        assert_eq!(SchedAttr::new(Standing::Fifo(1), false).bandwidth(), None);
    }

    #[test]
    fn sleeping_reaches_the_instant() {
        let at = now() + Duration::from_millis(2);
        sleep_until(at);
        assert!(now() >= at);
    }
}
