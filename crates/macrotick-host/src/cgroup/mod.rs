//! Control groups (cgroup v2): those of pools and groups, and those of other programs.

mod controller;
mod existing;
mod group;
mod owner;
mod program;
mod promise;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::Duration;

use crate::error::HostFailure;
use crate::file;
use crate::lock::{runtime_path, Turn, ROOT as ROOT_USER};
use crate::sys;

pub use controller::Controller;
pub use existing::Existing;
pub use group::{Division, Group};
pub use owner::{GroupFault, Owner};
pub use program::ProgramGroup;
pub use promise::Promised;

/// The mount point of the hierarchy.
pub const ROOT: &str = "/sys/fs/cgroup";
/// The prefix of the control groups that the runner makes; the pool's or group's name follows.
const PREFIX: &str = "macrotick-";
/// The file that names the entity with windows for a group.
pub const ENTITY: &str = "cpu.tt.entity";
/// The file that makes a group's CPUs a scheduling domain of their own.
pub const PARTITION: &str = "cpuset.cpus.partition";
/// The file of the CPUs that a group is bound to.
pub const CPUS: &str = "cpuset.cpus";
/// The file of the CPUs that its processes may run on.
pub(crate) const EFFECTIVE_CPUS: &str = "cpuset.cpus.effective";
/// The file of the controllers for the groups below.
pub const CONTROL: &str = "cgroup.subtree_control";
/// The file of a group's processes. A process that writes there enters the group.
pub const PROCESSES: &str = "cgroup.procs";
/// The prefix of the names of partitions, which no pool and no group can have.
pub const DOMAIN: &str = ".cpus-";
/// The file of the limit for control groups below a group. Each of them takes part in the interrupt in which `cpu.max`
/// of a group above starts or stops to throttle it.
const DESCENDANTS: &str = "cgroup.max.descendants";
/// The file of the limit for their depth. One interrupt may handle all nested groups with `cpu.max`.
const DEPTH: &str = "cgroup.max.depth";
/// The limits of a control group, for itself and for each container in it.
pub const BOUNDS: [(&str, u32); 2] = [(DESCENDANTS, 16), (DEPTH, 4)];
/// The suffix of the lock for changes of controllers, budgets and windows.
const LOCK: &str = "-admission.lock";
/// The time that the last process of a group may take to exit.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the runner uses this path for a pool or a group of that name. It is below the root or in a partition.
pub(crate) fn is_default_path(path: &Path, name: &str) -> bool {
    let is_partition = |parent: &&Path| {
        let own = parent.file_name().is_some_and(|own| own.to_string_lossy().starts_with(&format!("{PREFIX}{DOMAIN}")));
        own && parent.parent() == Some(Path::new(ROOT))
    };
    let parent = path.parent().filter(is_partition).unwrap_or(Path::new(ROOT));
    path == path_in(parent, name)
}

/// Returns the path that the runner uses for the control group of that name, below the root or in a partition.
pub fn path_of(partition: Option<&Group>, name: &str) -> PathBuf {
    path_in(partition.map_or(Path::new(ROOT), Group::path), name)
}

fn path_in(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{PREFIX}{name}"))
}

/// Waits for other programs that enable controllers, or give control groups budgets or windows. Only one program at a
/// time holds the turn. The second program must see the changes of the first one. It must not rely on changes that the
/// first one reverts after a refusal.
pub fn turn() -> Result<Turn, HostFailure> {
    Turn::take(&runtime_path(ROOT_USER, LOCK))
}

/// Makes an unconfigured control group. Its undo is [`remove`].
pub fn create(path: &Path) -> Result<(), HostFailure> {
    fs::create_dir(path).map_err(HostFailure::file("make", path))
}

/// Removes a control group that must be empty. This ends no process.
pub fn remove_empty(path: &Path) -> Result<(), HostFailure> {
    fs::remove_dir(path).map_err(HostFailure::file("remove", path))
}

/// Removes the groups that a killed runner left behind, and disables the controllers that it had enabled.
pub fn remove_left() {
    for entry in fs::read_dir(ROOT).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    controller::disable_left();
}

/// Ends all processes of a group and of the groups below, and removes these groups. Ignores failures.
pub fn remove(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // A process leaves its group only after its last thread has exited.
    let give_up = sys::now() + GRACE;
    while fs::remove_dir(path).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) && sys::now() < give_up {
        sys::sleep(Duration::from_millis(1));
    }
}

/// Returns the threads in a group and in the groups below. Ignores a group that vanishes during the read.
pub fn threads_below(path: &Path) -> Vec<sys::Tid> {
    let text = fs::read_to_string(path.join("cgroup.threads")).unwrap_or_default();
    let mut threads: Vec<sys::Tid> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            threads.extend(threads_below(&entry.path()));
        }
    }
    threads
}

/// Calls `each` for all control groups below a path, parents before children. Ignores a group that vanishes during the
/// walk.
pub(crate) fn walk(path: &Path, each: &mut dyn FnMut(&Path) -> Result<(), HostFailure>) -> Result<(), HostFailure> {
    let below = match folders(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path != Path::new(ROOT) => return Ok(()),
        below => below.map_err(HostFailure::file("read", path))?,
    };
    below.iter().try_for_each(|folder| each(folder).and_then(|()| walk(folder, each)))
}

fn folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?.into_iter();
    Ok(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect())
}

/// Reads a file of a control group. `None`: there is no such file. Without the controller a group has none of its
/// files, and a group that was just removed returns ENODEV.
pub fn read_file(group: &Path, file: &str) -> Result<Option<String>, HostFailure> {
    let path = group.join(file);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        result => result.map(Some).map_err(HostFailure::file("read", path)),
    }
}

/// Returns the group of a process, `self` or its number, in the hierarchy of version 2. The result is a path below its
/// root, empty for the root itself. `None`: the process is in no such group.
pub fn below_root_of(process: &str) -> Result<Option<String>, HostFailure> {
    let text = file::read(&PathBuf::from(format!("/proc/{process}/cgroup")))?;
    Ok(below_root(&text).map(str::to_owned))
}

/// Returns the path in the hierarchy of version 2 from the text of `/proc/PID/cgroup`; empty for its root.
fn below_root(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_below_the_root_or_in_a_partition() {
        let is = |path: &str| is_default_path(Path::new(path), "web");
        assert!(is("/sys/fs/cgroup/macrotick-web") && is("/sys/fs/cgroup/macrotick-.cpus-1/macrotick-web"));
        assert!(!is("/sys/fs/cgroup/macrotick-other") && !is("/sys/fs/cgroup/other/macrotick-web"));
        assert!(!is("/sys/fs/cgroup/a/macrotick-.cpus-1/macrotick-web"));
    }

    #[test]
    fn the_group_of_a_process_is_that_of_version_2() {
        assert_eq!(
            below_root("0::/system.slice/runc-a.scope/container\n"),
            Some("system.slice/runc-a.scope/container")
        );
        assert_eq!(below_root("4:cpu,cpuacct:/user\n0::/user.slice/session.scope\n"), Some("user.slice/session.scope"));
        assert_eq!(below_root("4:cpu:/x\n0::/\n"), Some(""));
        assert_eq!(below_root("4:cpu,cpuacct:/docker/x\n"), None);
    }
}
