//! Limits of processes. The runner needs many open files, because each process that it starts takes some. Other
//! processes may need limits for actions without a privilege.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::undo::Undo;

/// The limit before, for processes that start in the meantime: select(2) supports only 1024 files.
static BEFORE: Mutex<Option<libc::rlimit>> = Mutex::new(None);

/// The requested limit. No description within its own limits needs more.
const WANTED: libc::rlim_t = 65536;

/// Allows this process to have many files open, as long as the value lives.
pub struct OpenFiles {
    before: libc::rlimit,
}

impl OpenFiles {
    /// Raises the hard limit to at least `WANTED`, if this process may do so, and the soft limit to the hard limit.
    pub fn raise() -> OpenFiles {
        let before = limit();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let most = before.rlim_max.max(WANTED);
        if !set(&libc::rlimit { rlim_cur: most, rlim_max: most }) {
            set(&libc::rlimit { rlim_cur: before.rlim_max, rlim_max: before.rlim_max });
        }
        OpenFiles { before }
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        set(&self.before);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns the limit of a new process, if it differs from that of this process.
pub fn of_a_new_process() -> Option<libc::rlimit> {
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the limit of the calling process. Async-signal-safe.
pub fn set(limit: &libc::rlimit) -> bool {
    // SAFETY: reads one rlimit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 }
}

/// Returns the number of files that this process may have open.
pub fn most() -> u64 {
    limit().rlim_cur
}

fn limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit
}

/// A limit of a process, which its children and programs inherit.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The name in setrlimit(2).
    pub name: &'static str,
    number: libc::__rlimit_resource_t,
}

impl Limit {
    /// The highest real-time priority.
    pub const PRIORITY: Limit = Limit { name: "RLIMIT_RTPRIO", number: libc::RLIMIT_RTPRIO };
    /// Bytes of memory that the process may lock.
    pub const MEMORY: Limit = Limit { name: "RLIMIT_MEMLOCK", number: libc::RLIMIT_MEMLOCK };

    /// Sets the soft and the hard limit of a process; `None`: no limit.
    pub fn set(self, pid: i32, to: Option<u64>, undo: &mut Undo) -> io::Result<()> {
        let to = to.unwrap_or(libc::RLIM_INFINITY);
        let before = self.exchange(pid, Some(&libc::rlimit { rlim_cur: to, rlim_max: to }))?;
        // The process may be gone when the undo runs.
        undo.later(move || drop(self.exchange(pid, Some(&before))));
        Ok(())
    }

    /// Sets the limit if `to` has a value, and returns the limit before.
    fn exchange(self, pid: i32, to: Option<&libc::rlimit>) -> io::Result<libc::rlimit> {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let to = to.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: prlimit reads one structure, if there is one, and writes the other, both alive.
        match unsafe { libc::prlimit(pid, self.number, to, &mut before) } {
            0 => Ok(before),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process can lower its own limit without a privilege. Without one it cannot raise the hard limit again, so the
    /// test does not lower that.
    #[test]
    fn a_limit_is_exchanged_and_given_back() {
        let pid = std::process::id() as i32;
        let read = || Limit::MEMORY.exchange(pid, None).unwrap();
        let before = read();
        let lower = libc::rlimit { rlim_cur: before.rlim_cur.min(4096), rlim_max: before.rlim_max };
        Limit::MEMORY.exchange(pid, Some(&lower)).unwrap();
        assert_eq!(read().rlim_cur, lower.rlim_cur);
        Limit::MEMORY.exchange(pid, Some(&before)).unwrap();
        assert_eq!(read().rlim_cur, before.rlim_cur);
    }
}
