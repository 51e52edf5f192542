//! How many files the runner may have open: each process that it starts takes some.

use std::sync::{Mutex, PoisonError};

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
