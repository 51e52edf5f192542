//! Control groups whose threads are a pool.

use std::fs;

use crate::check::Check;
use crate::sys;

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "mt-";

/// A control group. It stays when dropped: the runner removes what a scenario leaves.
#[derive(Clone, Debug)]
pub struct Group(String);

impl Group {
    /// Makes a group below the root, with the cpu controller.
    pub fn new(name: &str) -> Check<Group> {
        write(&format!("{ROOT}/cgroup.subtree_control"), "+cpu")?;
        Group::root().child(&format!("{PREFIX}{name}"))
    }

    /// The group of everybody else.
    pub fn root() -> Group {
        Group(ROOT.into())
    }

    /// Makes a group below this one.
    pub fn child(&self, name: &str) -> Check<Group> {
        let path = format!("{}/{name}", self.0);
        fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Group(path))
    }

    /// The group as a directory.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Writes one of its files.
    pub fn set(&self, file: &str, value: &str) -> Check {
        write(&format!("{}/{file}", self.0), value)
    }

    /// Reads one of its files.
    pub fn get(&self, file: &str) -> Check<String> {
        let path = format!("{}/{file}", self.0);
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }

    /// Removes it, if nobody is in it.
    pub fn remove(&self) -> Check {
        fs::remove_dir(&self.0).map_err(|error| format!("{}: {error}", self.0))
    }

    /// Names the entity whose windows serve it; an empty name: none.
    pub fn serve(&self, entity: &str) -> Check {
        self.set("cpu.tt.entity", &format!("{entity}\n"))
    }

    /// Moves a process into it; 0 is the caller.
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
    // The last thread is reaped before it has left the group.
    let gone = sys::eventually(1_000_000_000, || fs::remove_dir(path).is_ok());
    gone.then_some(()).ok_or_else(|| format!("{path} cannot be removed"))
}

/// Removes the groups that a scenario left, whose processes are gone.
pub fn remove_all() -> Check {
    for entry in fs::read_dir(ROOT).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            remove_tree(&entry.path().to_string_lossy())?;
        }
    }
    // Who has a cpuset of its own does not take bound threads, as other scenarios' groups do.
    let _ = write(&format!("{ROOT}/cgroup.subtree_control"), "-cpuset");
    Ok(())
}
