//! This process and its children.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::{check, Tid};

/// Returns the calling thread.
pub fn own_tid() -> Tid {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// Returns the effective user of this process.
pub fn user() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() }
}

/// Whether the effective user is root.
pub fn is_root() -> bool {
    user() == 0
}

/// Keeps the process alive when the kernel class signals a miss.
pub fn ignore_miss_signal() {
    // SAFETY: sets a disposition; there is no handler.
    unsafe { libc::signal(libc::SIGXCPU, libc::SIG_IGN) };
}

/// Makes the kernel send this process a signal when its parent ends.
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

/// Returns a descriptor of a thread, which need not be the first one of its process.
pub fn pidfd_open(pid: Tid, tid: Tid) -> io::Result<OwnedFd> {
    const PIDFD_THREAD: libc::c_int = libc::O_EXCL;
    let flags = if tid == pid { 0 } else { PIDFD_THREAD };
    // SAFETY: no memory is passed; the returned descriptor is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_open, tid, flags))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Returns the exit status of a child, if it has ended. Does not reap it, so its id stays in use.
pub fn exited(pid: Tid) -> Option<ExitStatus> {
    ended(libc::P_PID, pid as libc::id_t)
}

/// Whether a child of this process has ended and is not reaped.
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

/// Reaps a child, if it has ended.
pub fn reap(pid: Tid) {
    // SAFETY: writes nothing.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

/// Kills a process.
pub fn kill(pid: Tid) {
    signal(pid, libc::SIGKILL);
}

/// Sends a signal to a process.
pub fn signal(pid: Tid, signal: libc::c_int) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, signal) };
}

/// Whether orphans below this process become its children.
pub fn is_subreaper() -> bool {
    let mut is: libc::c_int = 0;
    // SAFETY: writes one int.
    unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &mut is) == 0 && is != 0 }
}

/// Sets whether orphans below this process become its children.
pub fn set_subreaper(on: bool) {
    // SAFETY: takes a number.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(on)) };
}

/// Converts the result of waitid(2) to a status of wait(2).
fn wait_status(code: i32, status: i32) -> i32 {
    match code {
        libc::CLD_EXITED => status << 8,
        libc::CLD_DUMPED => status | 0x80,
        _ => status,
    }
}
