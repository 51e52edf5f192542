//! Network namespaces.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_namespace_is_refused() {
        let file = File::open("/proc/self/stat").unwrap();
        assert!(in_network_namespace(&file, || ()).is_err());
    }
}
