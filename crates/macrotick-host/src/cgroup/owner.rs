//! The owner of a control group, and the reasons why an owner has none.

use std::fmt;
use std::path::PathBuf;

use macrotick_model::CpuSet;

use super::{CONTROL, ENTITY, PARTITION, ROOT};
use crate::budgets::{BUDGET, FIFO, LEAD, PRIORITY};

/// The owner of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A pool of that name.
    Pool(String),
    /// A group of that name.
    Group(String),
    /// Tasks of SCHED_DEADLINE, named by their CPUs.
    Domain(String),
}

impl Owner {
    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Owner::Pool(name) | Owner::Group(name) | Owner::Domain(name) => name,
        }
    }

    /// Returns the files that select its supply. They are restored in this order.
    pub(super) fn files(&self) -> &'static [&'static str] {
        match self {
            Owner::Pool(_) => &[ENTITY],
            Owner::Group(_) => &[BUDGET, PRIORITY, FIFO, LEAD, ENTITY],
            Owner::Domain(_) => &[PARTITION],
        }
    }

    /// Returns the fault of a kernel without these files.
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
            Owner::Domain(name) => write!(f, "partition {}", name.trim_start_matches('.')),
        }
    }
}

/// The reason why a pool or a group has no control group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupFault {
    /// No hierarchy of version 2 is mounted.
    #[error("no cgroup v2 hierarchy is mounted at {ROOT}")]
    NoHierarchy,
    /// The controller belongs to a hierarchy of version 1, or is disabled.
    #[error("the cgroup v2 hierarchy at {ROOT} has no {0} controller (is cgroup v1 using it?)")]
    NoController(&'static str),
    /// The controller is not enabled for an existing group.
    #[error("the cpu controller is not enabled for {0} (write +cpu to {CONTROL} of the group above it)")]
    NotEnabled(PathBuf),
    /// The kernel does not support pools.
    #[error("this kernel has no pools: {0} has no {ENTITY}")]
    NoPools(PathBuf),
    /// The kernel does not support budgets.
    #[error("this kernel has no groups with a budget: {0} has no cpu.ds.budget")]
    NoBudgets(PathBuf),
    /// An existing group of the description is missing.
    #[error("there is no control group {0}")]
    Missing(PathBuf),
    /// An existing group of the description is the root.
    #[error("{0} is the root of the hierarchy, which cannot be a pool or a group")]
    Root(PathBuf),
    /// The kernel did not make a partition of its CPUs, for the reason that it gives.
    #[error("{0} did not become a partition of its own: `{1}`")]
    NoPartition(PathBuf, String),
    /// An existing group cannot use the CPUs of a partition.
    #[error(
        "{path} is an existing control group, but CPU {cpus} is a partition for deadline tasks, and only groups \
         of the runner can be in it"
    )]
    Apart {
        /// The group.
        path: PathBuf,
        /// The partition's CPUs.
        cpus: CpuSet,
    },
    /// The runner itself would be in the group.
    #[error("this program itself runs in {0}, so the windows or the budget would also limit it")]
    Own(PathBuf),
}
