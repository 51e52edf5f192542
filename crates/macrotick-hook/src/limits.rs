//! Resource limits of the container's first process, which its children and programs inherit, and limits of its control
//! group.

use macrotick_host::cgroup::{Existing, BOUNDS};
use macrotick_host::limits::Limit;
use macrotick_host::Undo;

use crate::cgroup;
use crate::error::HookError;

/// The resources that threads can use without a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The highest real-time priority.
    pub rtprio: u64,
    /// Bytes of memory that threads may lock; `None`: no limit.
    pub memlock: Option<u64>,
    /// Control groups below the container's; `None`: a harmless number and depth.
    pub descendants: Option<u32>,
}

/// Limits the control groups below the container's. The limits end with the container's group.
pub fn bound(group: &Existing, limits: Limits, undo: &mut Undo) -> Result<(), HookError> {
    let [(descendants, most), (depth, deepest)] = BOUNDS;
    cgroup::write(group, descendants, &limits.descendants.unwrap_or(most).to_string(), undo)?;
    match limits.descendants {
        // A user that chooses the number can use any depth.
        Some(_) => Ok(()),
        None => cgroup::write(group, depth, &deepest.to_string(), undo),
    }
}

/// Sets both limits, each as soft and hard limit.
pub fn raise(pid: i32, limits: Limits, undo: &mut Undo) -> Result<(), HookError> {
    [(Limit::PRIORITY, Some(limits.rtprio)), (Limit::MEMORY, limits.memlock)].into_iter().try_for_each(|(limit, to)| {
        limit.set(pid, to, undo).map_err(|source| HookError::Limit { limit: limit.name, pid, source })
    })
}
