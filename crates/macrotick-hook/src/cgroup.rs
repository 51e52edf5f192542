//! A container's control group in the hierarchy of version 2, whoever made it: systemd's driver or a runtime's own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::Group;
use macrotick_node::settings::Holder;

use crate::error::HookError;
use crate::undo::Undo;

/// Where the hierarchy is mounted.
pub const ROOT: &str = "/sys/fs/cgroup";
const CONTROL: &str = "cgroup.subtree_control";

/// The group that a container's processes are in.
pub struct ControlGroup {
    root: PathBuf,
    path: PathBuf,
}

impl ControlGroup {
    /// The group of a process.
    pub fn of(pid: i32) -> Result<ControlGroup, HookError> {
        let below = below_root_of(&pid.to_string())?.ok_or(HookError::NoHierarchy(pid))?;
        if below.is_empty() {
            return Err(HookError::Root);
        }
        let group = ControlGroup::below(Path::new(ROOT), &below);
        // This very process is where the runtime is.
        let ours = below_root_of("self")?.unwrap_or_default();
        match group.root.join(ours).starts_with(&group.path) {
            true => Err(HookError::Shared(group.path)),
            false => Ok(group),
        }
    }

    fn below(root: &Path, path: &str) -> ControlGroup {
        ControlGroup { root: root.to_owned(), path: root.join(path) }
    }

    /// The CPUs that its processes may run on, as a list; `None` where this kernel does not say so.
    pub fn cpus(&self) -> Option<String> {
        let groups = self.path.ancestors().take_while(|path| path.starts_with(&self.root));
        let list = groups.filter_map(|group| fs::read_to_string(group.join("cpuset.cpus.effective")).ok()).next();
        list.map(|list| list.trim().to_owned())
    }

    /// Enables a controller on the whole way down. Runtimes and systemd mostly have done so with that of cpu.
    pub fn enable(&self, controller: &'static str, undo: &mut Undo) -> Result<(), HookError> {
        let ancestors: Vec<&Path> =
            self.path.ancestors().skip(1).take_while(|path| path.starts_with(&self.root)).collect();
        for file in ancestors.into_iter().rev().map(|group| group.join(CONTROL)) {
            let enabled = fs::read_to_string(&file).map_err(HookError::file("read", &file))?;
            if enabled.split_whitespace().any(|one| one == controller) {
                continue;
            }
            fs::write(&file, format!("+{controller}")).map_err(HookError::file("enable a controller in", &file))?;
            // Whoever has made a group meanwhile that uses it keeps it.
            undo.later(move || drop(fs::write(file, format!("-{controller}"))));
        }
        Ok(())
    }

    /// Writes a file of the group. An error of the kernel's is named by its file.
    pub fn write(&self, file: &str, text: &str, undo: &mut Undo) -> Result<(), HookError> {
        let path = self.path.join(file);
        let before = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => HookError::NoClass(path.clone()),
            _ => HookError::file("read", &path)(error),
        })?;
        fs::write(&path, format!("{text}\n")).map_err(HookError::file("write to", &path))?;
        undo.later(move || drop(fs::write(path, before)));
        Ok(())
    }

    /// The container, as what needs settings of the host for as long as the group is there.
    pub fn holder(&self, container: &str) -> Result<Holder, HookError> {
        Holder::group(container, &self.path).map_err(HookError::file("look at", &self.path))
    }

    /// Notes what is declared to run in it, for whoever is admitted later.
    pub fn declare(&self, declaration: &Group) -> Result<(), HookError> {
        macrotick_node::declare(&self.path, declaration).map_err(HookError::file("note the tasks at", &self.path))
    }
}

fn below_root_of(process: &str) -> Result<Option<String>, HookError> {
    let file = PathBuf::from(format!("/proc/{process}/cgroup"));
    let text = fs::read_to_string(&file).map_err(HookError::file("read", file))?;
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
    fn the_group_is_that_of_version_2() {
        assert_eq!(
            below_root("0::/system.slice/runc-a.scope/container\n"),
            Some("system.slice/runc-a.scope/container")
        );
        assert_eq!(below_root("4:cpu:/x\n0::/\n"), Some(""));
        assert_eq!(below_root("4:cpu,cpuacct:/docker/x\n"), None);
    }

    /// A folder with the files of control groups, and the group at the end of `a/b`.
    fn tree(name: &str, enabled: [&str; 2]) -> (PathBuf, ControlGroup) {
        let root = std::env::temp_dir().join(format!("macrotick-hook-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(CONTROL), enabled[0]).unwrap();
        fs::write(root.join("a").join(CONTROL), enabled[1]).unwrap();
        let group = ControlGroup::below(&root, "a/b");
        (root, group)
    }

    #[test]
    fn the_controller_is_enabled_where_it_is_not() {
        let (root, group) = tree("enable", ["cpuset cpu io\n", "cpuset\n"]);
        let mut undo = Undo::default();
        group.enable("cpu", &mut undo).unwrap();
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        assert_eq!((read(CONTROL).as_str(), read("a/cgroup.subtree_control").as_str()), ("cpuset cpu io\n", "+cpu"));
        drop(undo);
        assert_eq!(read("a/cgroup.subtree_control"), "-cpu");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_cpus_are_those_of_the_nearest_group_that_says_so() {
        let (root, group) = tree("cpus", ["", ""]);
        assert_eq!(group.cpus(), None);
        fs::write(root.join("cpuset.cpus.effective"), "0-3\n").unwrap();
        assert_eq!(group.cpus().as_deref(), Some("0-3"));
        fs::write(root.join("a/cpuset.cpus.effective"), "1\n").unwrap();
        assert_eq!(group.cpus().as_deref(), Some("1"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_was_written_is_written_back() {
        let (root, group) = tree("write", ["cpu", "cpu"]);
        let file = root.join("a/b/cpu.ds.priority");
        fs::write(&file, "1\n").unwrap();
        let mut undo = Undo::default();
        group.write("cpu.ds.priority", "7", &mut undo).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "7\n");
        drop(undo);
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        let lacking = group.write("cpu.ds.budget", "7", &mut Undo::default()).unwrap_err();
        assert!(matches!(&lacking, HookError::NoClass(path) if path.ends_with("cpu.ds.budget")), "{lacking}");
        assert!(!root.join("a/b/cpu.ds.budget").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
