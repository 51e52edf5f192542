//! Whose a control group is, and why it can be nobody's.

use std::fmt;
use std::path::PathBuf;

use macrotick_model::CpuSet;

use super::{CONTROL, ENTITY, PARTITION, ROOT};
use crate::budgets::{BUDGET, FIFO, LEAD, PRIORITY};

/// Whose control group it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A pool, of that name.
    Pool(String),
    /// A group.
    Group(String),
    /// Tasks of SCHED_DEADLINE, named by their CPUs.
    Domain(String),
}

impl Owner {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Owner::Pool(name) | Owner::Group(name) | Owner::Domain(name) => name,
        }
    }

    /// The files that tell the kernel what serves it. Written back in this order.
    pub(super) fn files(&self) -> &'static [&'static str] {
        match self {
            Owner::Pool(_) => &[ENTITY],
            Owner::Group(_) => &[BUDGET, PRIORITY, FIFO, LEAD, ENTITY],
            Owner::Domain(_) => &[PARTITION],
        }
    }

    /// What is wrong with a kernel that has none of them.
    pub(super) fn lacking(&self, path: PathBuf) -> GroupFault {
        match self {
            Owner::Pool(_) => GroupFault::NoPools(path),
            Owner::Group(_) => GroupFault::NoBudgets(path),
            Owner::Domain(_) => GroupFault::NoPartition(path, format!("no {PARTITION}")),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Pool(name) => write!(f, "pool `{name}`"),
            Owner::Group(name) => write!(f, "group `{name}`"),
            Owner::Domain(name) => write!(f, "deadline tasks on {}", name.trim_start_matches('.')),
        }
    }
}

/// Why a pool or a group has no control group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupFault {
    /// No hierarchy of version 2.
    #[error("no cgroup v2 hierarchy is mounted at {ROOT}")]
    NoHierarchy,
    /// The controller belongs to a hierarchy of version 1, or is switched off.
    #[error("the cgroup v2 hierarchy at {ROOT} has no {0} controller (is cgroup v1 using it?)")]
    NoController(&'static str),
    /// The controller is not enabled for a group that was given.
    #[error("the cpu controller is not enabled for {0} (write +cpu to {CONTROL} of the group above it)")]
    NotEnabled(PathBuf),
    /// The kernel knows nothing of pools.
    #[error("this kernel has no pools: {0} has no {ENTITY}")]
    NoPools(PathBuf),
    /// The kernel knows nothing of budgets.
    #[error("this kernel has no groups with a budget: {0} has no cpu.ds.budget")]
    NoBudgets(PathBuf),
    /// A group that was given is not there.
    #[error("there is no control group {0}")]
    Missing(PathBuf),
    /// A group that was given is the root.
    #[error("{0} is the root of the hierarchy, which cannot be a pool or a group")]
    Root(PathBuf),
    /// The kernel did not make a partition of its CPUs, for the reason that it gives.
    #[error("{0} did not become a partition of its own: `{1}`")]
    NoPartition(PathBuf, String),
    /// A group that was given cannot get to the CPUs of a partition.
    #[error(
        "{path} is a control group of its own, and CPU {cpus} is a partition for deadline tasks, which only groups of the runner \
         can be in"
    )]
    Apart {
        /// The group.
        path: PathBuf,
        /// The partition's CPUs.
        cpus: CpuSet,
    },
    /// The runner would be in the pool.
    #[error("this program itself runs in {0}, which would decide when it runs")]
    Own(PathBuf),
}
