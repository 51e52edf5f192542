//! Resource limits of the container's first process, which what it executes and forks has, too; and of its control group.

use macrotick_host::cgroup::{Existing, BOUNDS};
use macrotick_host::limits::Limit;
use macrotick_host::Undo;

use crate::cgroup;
use crate::error::HookError;

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
pub fn bound(group: &Existing, limits: Limits, undo: &mut Undo) -> Result<(), HookError> {
    let [(descendants, most), (depth, deepest)] = BOUNDS;
    cgroup::write(group, descendants, &limits.descendants.unwrap_or(most).to_string(), undo)?;
    match limits.descendants {
        // Who says how many may have them as they like.
        Some(_) => Ok(()),
        None => cgroup::write(group, depth, &deepest.to_string(), undo),
    }
}

/// Sets both, as soft and hard limits.
pub fn raise(pid: i32, limits: Limits, undo: &mut Undo) -> Result<(), HookError> {
    [(Limit::PRIORITY, Some(limits.rtprio)), (Limit::MEMORY, limits.memlock)].into_iter().try_for_each(|(limit, to)| {
        limit.set(pid, to, undo).map_err(|source| HookError::Limit { limit: limit.name, pid, source })
    })
}
