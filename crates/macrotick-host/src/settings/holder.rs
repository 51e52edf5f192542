//! The holders of settings, and the time for which they hold them.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::HostFailure;
use crate::proc;
use crate::sys::Tid;

/// A holder of settings, with the time for which it holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// It holds them as long as a process lives.
    Process {
        /// The purpose of the process.
        name: String,
        /// Its id.
        id: u32,
        /// Its start time. A later process with the same id has a later one.
        start: u64,
    },
    /// It holds them as long as a control group exists.
    Group {
        /// The container's name.
        name: String,
        /// Its directory.
        path: PathBuf,
        /// The directory's inode number. A later directory of the same path has another one.
        inode: u64,
    },
}

impl Holder {
    /// Returns the holder for this process.
    pub fn this_process(name: &str) -> Holder {
        let id = std::process::id();
        Holder::Process { name: name.into(), id, start: start_of(id).unwrap_or(0) }
    }

    /// Returns the holder for a container, by its control group.
    pub fn group(name: &str, path: &Path) -> Result<Holder, HostFailure> {
        let inode = fs::metadata(path).map_err(HostFailure::file("look at", path))?.ino();
        Ok(Holder::Group { name: name.into(), path: path.into(), inode })
    }

    /// Whether it is the container of this name, and its control group has no process. Another runtime may have a running
    /// container of the same name.
    pub(crate) fn is_ended(&self, container: &str) -> bool {
        let is_idle = |group: &Path| {
            let events = fs::read_to_string(group.join("cgroup.events"));
            events.is_ok_and(|events| events.lines().any(|line| line == "populated 0"))
        };
        matches!(self, Holder::Group { name, path, .. } if name == container && is_idle(path))
    }

    pub(crate) fn is_there(&self) -> bool {
        match self {
            Holder::Process { id, start, .. } => start_of(*id) == Some(*start),
            Holder::Group { path, inode, .. } => fs::metadata(path).is_ok_and(|meta| meta.ino() == *inode),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Process { name, id, .. } => write!(f, "{name} (process {id})"),
            Holder::Group { name, .. } => write!(f, "container {name}"),
        }?;
        f.write_str(if self.is_there() { "" } else { ", which is gone" })
    }
}

/// Returns the start time of a process, in ticks since the boot. `None`: it is dead.
pub(super) fn start_of(process: u32) -> Option<u64> {
    let process = process as Tid;
    proc::started(process).filter(|_| !proc::has_ended(process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_start() {
        let own = Holder::this_process("own");
        assert!(own.is_there());
        let Holder::Process { id, start, .. } = own else { panic!() };
        assert!(!Holder::Process { name: "later".into(), id, start: start + 1 }.is_there());
    }
}
