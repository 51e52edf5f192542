//! Control groups that use the windows of a pool.

use std::fs;

use crate::check::Check;
use crate::sys;

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "mt-";

/// A control group. Dropping it does not remove the group: the runner removes the groups that a scenario leaves.
#[derive(Clone, Debug)]
pub struct Group(String);

impl Group {
    /// Makes a group below the root group, with the cpu controller.
    pub fn new(name: &str) -> Check<Group> {
        write(&format!("{ROOT}/cgroup.subtree_control"), "+cpu")?;
        Group::root().child(&format!("{PREFIX}{name}"))
    }

    /// Returns the root group, which has all other processes.
    pub fn root() -> Group {
        Group(ROOT.into())
    }

    /// Makes a group below this one.
    pub fn child(&self, name: &str) -> Check<Group> {
        let path = format!("{}/{name}", self.0);
        fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Group(path))
    }

    /// Returns the directory of the group.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Writes one of the group's files.
    pub fn set(&self, file: &str, value: &str) -> Check {
        write(&format!("{}/{file}", self.0), value)
    }

    /// Reads one of the group's files.
    pub fn get(&self, file: &str) -> Check<String> {
        let path = format!("{}/{file}", self.0);
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }

    /// Removes the group. Fails if it has threads.
    pub fn remove(&self) -> Check {
        fs::remove_dir(&self.0).map_err(|error| format!("{}: {error}", self.0))
    }

    /// Gives the group the windows of the named entity; an empty name ends this.
    pub fn serve(&self, entity: &str) -> Check {
        self.set("cpu.tt.entity", &format!("{entity}\n"))
    }

    /// Moves a process into the group; 0 is the caller.
    pub fn take(&self, pid: i32) -> Check {
        self.set("cgroup.procs", &pid.to_string())
    }
}

fn write(path: &str, value: &str) -> Check {
    fs::write(path, value).map_err(|error| format!("{path}: {error}"))
}

fn remove_tree(path: &str) -> Check {
    for entry in fs::read_dir(path).map_err(|error| format!("{path}: {error}"))?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path().to_string_lossy())?;
        }
    }
    // A parent can reap the last thread before the thread has left the group.
    let gone = sys::eventually(1_000_000_000, || fs::remove_dir(path).is_ok());
    gone.then_some(()).ok_or_else(|| format!("{path} cannot be removed"))
}

/// Removes the groups that a scenario left. Their processes have ended.
pub fn remove_all() -> Check {
    for entry in fs::read_dir(ROOT).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            remove_tree(&entry.path().to_string_lossy())?;
        }
    }
    // A group with its own cpuset does not accept bound threads, but other scenarios need groups that do.
    let _ = write(&format!("{ROOT}/cgroup.subtree_control"), "-cpuset");
    Ok(())
}
