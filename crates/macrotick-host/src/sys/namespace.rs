//! Namespaces of the network and of users.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::thread;

/// Runs a function in a network namespace, in a thread of its own. The calling thread stays in its namespace.
pub fn in_network_namespace<R: Send>(namespace: &File, run: impl FnOnce() -> R + Send) -> io::Result<R> {
    let enter = || {
        // SAFETY: the file is open, and the call changes only the new thread.
        match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(run()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Whether this process is in the user namespace that the kernel began with, or it cannot be seen. Only there, a
/// capability counts for the host.
pub fn is_in_first_user_namespace() -> bool {
    /// Its number in each kernel (`PROC_USER_INIT_INO`).
    const FIRST: u64 = 0xEFFF_FFFD;
    fs::metadata("/proc/self/ns/user").map_or(true, |file| file.ino() == FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_namespace_is_refused() {
        let file = File::open("/proc/self/stat").unwrap();
        assert!(in_network_namespace(&file, || ()).is_err());
    }
}
