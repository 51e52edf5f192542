//! Limits of processes: how many files the runner may have open, as each process that it starts takes some; and what another
//! process may do without a privilege.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::undo::Undo;

/// What was before, for the processes that are started meanwhile: select(2) knows 1024 files.
static BEFORE: Mutex<Option<libc::rlimit>> = Mutex::new(None);

/// What is asked for: more than any system of the description's limits needs.
const WANTED: libc::rlim_t = 65536;

/// While it lives, this process may have many files open.
pub struct OpenFiles {
    before: libc::rlimit,
}

impl OpenFiles {
    /// As many as it may, and more where it may have more.
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

/// What a new process is to have, if this one has another.
pub fn of_a_new_process() -> Option<libc::rlimit> {
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives it to the calling process. Async-signal-safe.
pub fn set(limit: &libc::rlimit) -> bool {
    // SAFETY: reads one rlimit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 }
}

/// How many this process may have open now.
pub fn most() -> u64 {
    limit().rlim_cur
}

fn limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit
}

/// A limit of a process, which what it executes and forks has, too.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// As setrlimit(2) has it.
    pub name: &'static str,
    number: libc::__rlimit_resource_t,
}

impl Limit {
    /// The highest real-time priority.
    pub const PRIORITY: Limit = Limit { name: "RLIMIT_RTPRIO", number: libc::RLIMIT_RTPRIO };
    /// Bytes of memory that may be locked.
    pub const MEMORY: Limit = Limit { name: "RLIMIT_MEMLOCK", number: libc::RLIMIT_MEMLOCK };

    /// Sets it for a process, soft and hard; `None`: any amount.
    pub fn set(self, pid: i32, to: Option<u64>, undo: &mut Undo) -> io::Result<()> {
        let to = to.unwrap_or(libc::RLIM_INFINITY);
        let before = self.exchange(pid, Some(&libc::rlimit { rlim_cur: to, rlim_max: to }))?;
        // The process may be gone when it comes to that.
        undo.later(move || drop(self.exchange(pid, Some(&before))));
        Ok(())
    }

    /// Sets it, if it is to be set, and returns what it was.
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

    /// Lowering one's own limit takes no privilege; the hard limit cannot be raised again by everybody.
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
