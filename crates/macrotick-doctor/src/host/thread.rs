//! The threads of a host.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Thread {
    /// Its number.
    pub tid: i32,
    /// The number of its process.
    pub process: i32,
    /// Its name.
    pub name: String,
    /// Whether it belongs to the kernel.
    #[serde(rename = "kernel")]
    pub is_kernel: bool,
    /// Its policy with the priority.
    pub policy: Policy,
    /// The CPUs that it may run on, as a list of the kernel.
    pub cpus: String,
    /// The CPU on which it ran last.
    pub last: u32,
    /// The memory of a process with a real-time thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// A policy with its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_FIFO` with a priority.
    Fifo(u8),
    /// `SCHED_RR` with a priority.
    Rr(u8),
    /// `SCHED_DEADLINE`.
    Deadline,
    /// `SCHED_TT`.
    Tt,
    /// `SCHED_DS` with a priority.
    Ds(u8),
    /// Another policy of Linux: `SCHED_OTHER`, `SCHED_BATCH`, `SCHED_IDLE`, `SCHED_EXT`.
    Other,
}

impl Policy {
    /// Returns the priority under `SCHED_FIFO` or `SCHED_RR`, else 0.
    pub fn priority(self) -> u8 {
        match self {
            Policy::Fifo(priority) | Policy::Rr(priority) => priority,
            _ => 0,
        }
    }

    /// Whether the thread runs before all ordinary ones.
    pub fn is_real_time(self) -> bool {
        self != Policy::Other
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Policy::Rr(priority) => write!(f, "SCHED_RR {priority}"),
            Policy::Deadline => f.write_str("SCHED_DEADLINE"),
            Policy::Tt => f.write_str("SCHED_TT"),
            Policy::Ds(priority) => write!(f, "SCHED_DS {priority}"),
            Policy::Other => f.write_str("SCHED_OTHER"),
        }
    }
}

/// The memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Memory {
    /// Memory that stays, in KiB (`VmLck`).
    pub locked_kib: u64,
    /// Memory that is present, in KiB (`VmRSS`).
    pub present_kib: u64,
    /// Page faults that read a disk, since the process started.
    pub major_faults: u64,
}
