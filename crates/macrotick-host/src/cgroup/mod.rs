//! Control groups (cgroup v2): those of pools and groups, and those that somebody else has made.

mod controller;
mod existing;
mod group;
mod owner;
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
pub use group::Group;
pub use owner::{GroupFault, Owner};
pub use promise::Promised;

/// Where the hierarchy is mounted.
pub const ROOT: &str = "/sys/fs/cgroup";
/// Of the control groups that the runner makes; the pool's or group's name follows.
const PREFIX: &str = "macrotick-";
/// Names the entity whose windows serve a group.
pub const ENTITY: &str = "cpu.tt.entity";
/// Whether a group's CPUs are a scheduling domain of their own.
pub const PARTITION: &str = "cpuset.cpus.partition";
/// The CPUs that a group is bound to.
pub const CPUS: &str = "cpuset.cpus";
/// The CPUs that its processes may run on.
pub(crate) const EFFECTIVE_CPUS: &str = "cpuset.cpus.effective";
/// The controllers of the groups below one.
pub const CONTROL: &str = "cgroup.subtree_control";
/// The processes of a group; who writes there enters it.
pub const PROCESSES: &str = "cgroup.procs";
/// Of the names of partitions, which no pool and no group can have.
pub const DOMAIN: &str = ".cpus-";
/// How many control groups there may be below one: each takes part in the interrupt in which `cpu.max` of one above it begins or
/// ceases to hold it back.
const DESCENDANTS: &str = "cgroup.max.descendants";
/// And how deep: whoever nests groups with `cpu.max` may have all of them in one interrupt.
const DEPTH: &str = "cgroup.max.depth";
/// What bounds a control group, for itself and for each container in it.
pub const BOUNDS: [(&str, u32); 2] = [(DESCENDANTS, 16), (DEPTH, 4)];
/// Of the lock that whoever gives control groups something takes.
const LOCK: &str = "-admission.lock";
/// How long the last process of a group may take to be gone.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the runner makes the control group of a pool or a group of that name there: below the root, or in a partition.
pub(crate) fn is_default_path(path: &Path, name: &str) -> bool {
    let is_partition = |parent: &&Path| {
        let own = parent.file_name().is_some_and(|own| own.to_string_lossy().starts_with(&format!("{PREFIX}{DOMAIN}")));
        own && parent.parent() == Some(Path::new(ROOT))
    };
    let parent = path.parent().filter(is_partition).unwrap_or(Path::new(ROOT));
    path == path_in(parent, name)
}

/// Where the runner makes the control group of that name: below the root, or in a partition.
pub fn path_of(partition: Option<&Group>, name: &str) -> PathBuf {
    path_in(partition.map_or(Path::new(ROOT), Group::path), name)
}

fn path_in(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{PREFIX}{name}"))
}

/// Waits for the others that enable controllers, or give control groups budgets or windows; while it lives, nobody else does. Of two
/// the second is to know of the first; and what the first takes back when it is refused, the second is not to rely on.
pub fn turn() -> Result<Turn, HostFailure> {
    Turn::take(&runtime_path(ROOT_USER, LOCK))
}

/// Makes a control group, about which nothing is said yet. It has no undo of its own: [`remove`] is it.
pub fn create(path: &Path) -> Result<(), HostFailure> {
    fs::create_dir(path).map_err(HostFailure::file("make", path))
}

/// Removes a control group that is to be empty: nothing ends for it.
pub fn remove_empty(path: &Path) -> Result<(), HostFailure> {
    fs::remove_dir(path).map_err(HostFailure::file("remove", path))
}

/// Removes the groups that a killed runner left behind, and disables what it had enabled for them.
pub fn remove_left() {
    for entry in fs::read_dir(ROOT).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    controller::disable_left();
}

/// Ends all processes of a group and of those below, and removes these groups. Nothing can be done about a failure.
pub fn remove(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // A process leaves its group only when its last thread is gone.
    let give_up = sys::now() + GRACE;
    while fs::remove_dir(path).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) && sys::now() < give_up {
        sys::sleep(Duration::from_millis(1));
    }
}

/// The threads in a group and in those below; one may vanish meanwhile.
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

/// All control groups but the root, parents before children. One may vanish meanwhile.
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

/// A file of a control group. `None`: it is not there: without the controller a group has none of its files, and a group that
/// was just removed has no device.
pub fn read_file(group: &Path, file: &str) -> Result<Option<String>, HostFailure> {
    let path = group.join(file);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        result => result.map(Some).map_err(HostFailure::file("read", path)),
    }
}

/// The group of a process, `self` or its number, in the hierarchy of version 2, as a path below its root; empty in that. `None`:
/// it is in none.
pub fn below_root_of(process: &str) -> Result<Option<String>, HostFailure> {
    let text = file::read(&PathBuf::from(format!("/proc/{process}/cgroup")))?;
    Ok(below_root(&text).map(str::to_owned))
}

/// The path of `/proc/PID/cgroup` in the hierarchy of version 2; empty in its root.
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
