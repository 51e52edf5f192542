//! Resource limits of the container's first process, which what it executes and forks has, too; and of its control group.

use std::io;

use crate::cgroup::ControlGroup;
use crate::error::HookError;
use crate::undo::Undo;

/// What threads may ask for without a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The highest real-time priority.
    pub rtprio: u64,
    /// Bytes of memory that may be locked; `None`: any.
    pub memlock: Option<u64>,
    /// Control groups below the container's; `None`: as few, and as deep, as are harmless.
    pub descendants: Option<u32>,
}

/// Bounds the control groups below the container's, which goes away with the container.
pub fn bound(group: &ControlGroup, limits: Limits, undo: &mut Undo) -> Result<(), HookError> {
    let [(descendants, most), (depth, deepest)] = macrotick_node::BOUNDS;
    group.write(descendants, &limits.descendants.unwrap_or(most).to_string(), undo)?;
    match limits.descendants {
        // Who says how many may have them as they like.
        Some(_) => Ok(()),
        None => group.write(depth, &deepest.to_string(), undo),
    }
}

/// Sets both, as soft and hard limits.
pub fn raise(pid: i32, limits: Limits, undo: &mut Undo) -> Result<(), HookError> {
    set(pid, "RLIMIT_RTPRIO", libc::RLIMIT_RTPRIO, limits.rtprio, undo)?;
    set(pid, "RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK, limits.memlock.unwrap_or(libc::RLIM_INFINITY), undo)
}

fn set(
    pid: i32,
    limit: &'static str,
    which: libc::__rlimit_resource_t,
    to: u64,
    undo: &mut Undo,
) -> Result<(), HookError> {
    let failed = |source| HookError::Limit { limit, pid, source };
    let before = exchange(pid, which, &libc::rlimit { rlim_cur: to, rlim_max: to }).map_err(failed)?;
    // The process may be gone when it comes to that.
    undo.later(move || drop(exchange(pid, which, &before)));
    Ok(())
}

/// Sets a limit, and returns what it was.
fn exchange(pid: i32, which: libc::__rlimit_resource_t, to: &libc::rlimit) -> io::Result<libc::rlimit> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: prlimit reads one structure and writes the other, both alive.
    match unsafe { libc::prlimit(pid, which, to, &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lowering one's own limit takes no privilege; the hard limit cannot be raised again by everybody.
    #[test]
    fn a_limit_is_exchanged_and_given_back() {
        let pid = std::process::id() as i32;
        let read = || exchange_nothing(pid);
        let before = read();
        let lower = libc::rlimit { rlim_cur: before.rlim_cur.min(4096), rlim_max: before.rlim_max };
        exchange(pid, libc::RLIMIT_MEMLOCK, &lower).unwrap();
        assert_eq!(read().rlim_cur, lower.rlim_cur);
        exchange(pid, libc::RLIMIT_MEMLOCK, &before).unwrap();
        assert_eq!(read().rlim_cur, before.rlim_cur);
    }

    fn exchange_nothing(pid: i32) -> libc::rlimit {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: nothing is set; `now` is written.
        assert_eq!(unsafe { libc::prlimit(pid, libc::RLIMIT_MEMLOCK, std::ptr::null(), &mut now) }, 0);
        now
    }
}
