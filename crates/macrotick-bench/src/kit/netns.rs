//! Network namespaces of a guest, and what the network's experiments do in them.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Command, Stdio};

use macrotick_host::{proc, sys};

use super::process::last_error;

/// Opens a namespace.
pub fn file(namespace: &str) -> Result<File, String> {
    let path = format!("/run/netns/{namespace}");
    File::open(&path).map_err(|error| format!("{path}: {error}"))
}

/// Moves the caller to a namespace.
pub fn enter(namespace: &str) -> Result<(), String> {
    let file = file(namespace)?;
    // SAFETY: the file is open.
    match unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(last_error("setns")),
    }
}

/// Executes a batch of commands of iproute2, in a namespace if one is given.
pub fn ip(namespace: Option<&str>, batch: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("/sbin/ip: {error}");
    let mut command = Command::new("/sbin/ip");
    command.args(namespace.map(|name| ["-netns", name]).into_iter().flatten()).args(["-batch", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(batch.as_bytes())).map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip: {}: {}", batch.trim_end(), String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}

/// Returns the thread of the kernel with this name.
pub fn kernel_thread(name: &str) -> Result<i32, String> {
    let has_name = |thread: &i32| proc::name(*thread).is_some_and(|other| other == name);
    proc::processes().find(has_name).ok_or_else(|| format!("no kernel thread {name}"))
}

/// Returns the time of CLOCK_TAI, the clock of the gates.
pub fn tai_ns() -> i64 {
    sys::time_of(libc::CLOCK_TAI).as_nanos()
}

/// Sleeps until an instant of CLOCK_TAI.
pub fn sleep_until_tai(at_ns: i64) {
    let until = sys::timespec(at_ns);
    // SAFETY: reads one timespec.
    unsafe { libc::clock_nanosleep(libc::CLOCK_TAI, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) };
}

/// Sets an option of a socket.
pub fn set<T>(socket: RawFd, level: i32, option: i32, value: &T) -> Result<(), String> {
    // SAFETY: reads one value of its own size.
    match unsafe { libc::setsockopt(socket, level, option, std::ptr::from_ref(value).cast(), size_of::<T>() as u32) } {
        0 => Ok(()),
        _ => Err(last_error("setsockopt")),
    }
}
