//! A control group that another program has made: systemd's driver, or a runtime's own driver.

use std::fs;
use std::path::{Path, PathBuf};

use super::controller::disable_unless_used;
use super::{CONTROL, EFFECTIVE_CPUS, ROOT};
use crate::error::HostFailure;
use crate::file;
use crate::undo::Undo;

/// A control group that another program has made. Each change of it has an undo.
pub struct Existing {
    root: PathBuf,
    path: PathBuf,
}

impl Existing {
    /// Returns the group of that path below the root of the hierarchy. This reads nothing.
    pub fn new(below_root: &str) -> Existing {
        Existing::below(Path::new(ROOT), below_root)
    }

    fn below(root: &Path, path: &str) -> Existing {
        Existing { root: root.to_owned(), path: root.join(path) }
    }

    /// Returns its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the CPUs of its processes, as a list. `None`: this kernel does not provide the list.
    pub fn cpus(&self) -> Option<String> {
        let groups = self.path.ancestors().take_while(|path| path.starts_with(&self.root));
        let list = groups.filter_map(|group| fs::read_to_string(group.join(EFFECTIVE_CPUS)).ok()).next();
        list.map(|list| list.trim().to_owned())
    }

    /// Enables a controller for each group on the way down. Runtimes and systemd have usually enabled the cpu
    /// controller. The caller holds the [`turn`](super::turn) until the undo has run or is forgotten.
    pub fn enable(&self, controller: &'static str, undo: &mut Undo) -> Result<(), HostFailure> {
        let ancestors: Vec<&Path> =
            self.path.ancestors().skip(1).take_while(|path| path.starts_with(&self.root)).collect();
        for group in ancestors.into_iter().rev() {
            let file = group.join(CONTROL);
            let enabled = file::read(&file)?;
            if enabled.split_whitespace().any(|one| one == controller) {
                continue;
            }
            fs::write(&file, format!("+{controller}"))
                .map_err(HostFailure::file("enable a controller in", file.as_path()))?;
            // The undo keeps the controller if another group uses it by then.
            let group = group.to_owned();
            undo.later(move || disable_unless_used(&group, controller));
        }
        Ok(())
    }

    /// Writes one of its files.
    pub fn write(&self, file: &str, text: &str, undo: &mut Undo) -> Result<(), HostFailure> {
        file::change(&self.path.join(file), &format!("{text}\n"), undo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files of control groups, and the group at the end of `a/b`.
    fn tree(name: &str, enabled: [&str; 2]) -> (PathBuf, Existing) {
        let root = std::env::temp_dir().join(format!("macrotick-existing-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(CONTROL), enabled[0]).unwrap();
        fs::write(root.join("a").join(CONTROL), enabled[1]).unwrap();
        let group = Existing::below(&root, "a/b");
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

    /// The other group is a sibling, or a sibling of a group above.
    #[test]
    fn what_others_have_come_to_use_meanwhile_stays_enabled() {
        for (other, file, controller, stays) in [
            ("a/c", "cpu.ds.budget", "cpu", ["-cpu", "+cpu"]),
            ("c", "cpu.ds.budget", "cpu", ["+cpu", "-cpu"]),
            ("a/c", "cpu.tt.entity", "cpu", ["-cpu", "+cpu"]),
            ("a/c", "cpuset.cpus", "cpuset", ["-cpuset", "+cpuset"]),
            ("a/c", "cpuset.cpus", "cpu", ["-cpu", "-cpu"]),
        ] {
            let (root, group) = tree("others", ["", ""]);
            let mut undo = Undo::default();
            group.enable(controller, &mut undo).unwrap();
            fs::create_dir(root.join(other)).unwrap();
            fs::write(root.join(other).join(file), "1\n").unwrap();
            drop(undo);
            let now = [&root, &root.join("a")].map(|group| fs::read_to_string(group.join(CONTROL)).unwrap());
            assert_eq!(now, stays, "{file} of {other}, {controller}");
            fs::remove_dir_all(root).unwrap();
        }
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
        assert_eq!(lacking.errno(), Some(libc::ENOENT), "{lacking}");
        assert!(!root.join("a/b/cpu.ds.budget").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
