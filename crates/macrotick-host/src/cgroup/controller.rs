//! Controllers of the groups below the root.

use std::fs;
use std::path::{Path, PathBuf};

use super::{turn, GroupFault, Owner, CONTROL, CPUS, ENTITY, PARTITION, ROOT, ROOT_USER};
use crate::budgets::BUDGET;
use crate::error::HostFailure;
use crate::lock::runtime_path;

/// A controller for the groups below the root. The last one to be dropped disables what the first one had enabled.
pub struct Controller {
    name: &'static str,
}

/// The suffix of the file that lists the enabled controllers, one name per line. The last user disables them, or the
/// program that removes the groups of a killed one.
const RECORD: &str = ".controllers";

impl Controller {
    /// The controller of budgets and windows.
    pub const CPU: &'static str = "cpu";
    /// The controller of partitions.
    pub const CPUSET: &'static str = "cpuset";

    /// Enables the controller if it is not enabled. Waits for the turn, because another program may be about to revert
    /// its own enabling.
    pub fn enable(owner: &Owner, name: &'static str) -> Result<Controller, HostFailure> {
        let root = Path::new(ROOT);
        let fault = |fault| HostFailure::Group { owner: owner.clone(), fault };
        let Ok(known) = fs::read_to_string(root.join("cgroup.controllers")) else {
            return Err(fault(GroupFault::NoHierarchy));
        };
        if !has_word(&known, name) {
            return Err(fault(GroupFault::NoController(name)));
        }
        let _turn = turn()?;
        let path = root.join(CONTROL);
        let failed = |what| HostFailure::group_file(owner, what, &path);
        if has_word(&fs::read_to_string(&path).map_err(failed("read"))?, name) {
            return Ok(Controller { name });
        }
        fs::write(&path, format!("+{name}")).map_err(failed("enable a controller in"))?;
        note(&record(), name);
        Ok(Controller { name })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        disable_noted(&[self.name]);
    }
}

/// Disables controllers that a killed runner or supervisor had enabled, if no group needs them.
pub(super) fn disable_left() {
    disable_noted(&[Controller::CPU, Controller::CPUSET]);
}

/// Disables the recorded controllers. They stay enabled if the turn is not available, because another program may be
/// about to use them.
fn disable_noted(names: &[&str]) {
    if let Ok(_turn) = turn() {
        names.iter().for_each(|name| disable_if_noted(Path::new(ROOT), &record(), name));
    }
}

fn disable_if_noted(root: &Path, record: &Path, name: &str) {
    if has_word(&noted(record), name) && !is_used(root, name) {
        disable_unless_used(root, name);
        let left: Vec<String> =
            noted(record).split_whitespace().filter(|other| *other != name).map(String::from).collect();
        // No file means that no controller was enabled.
        let _ = if left.is_empty() { fs::remove_file(record) } else { fs::write(record, left.join("\n") + "\n") };
    }
}

fn record() -> PathBuf {
    runtime_path(ROOT_USER, RECORD)
}

/// Records a controller. If this fails, the controller stays enabled.
fn note(record: &Path, name: &str) {
    let names = noted(record);
    let _ = fs::write(record, format!("{names}{name}\n"));
}

fn noted(record: &Path) -> String {
    fs::read_to_string(record).unwrap_or_default()
}

/// The values that a group would lose with a controller: the controller, a file, and the file's first word in an
/// unconfigured group.
const OWN: [(&str, &str, &str); 9] = [
    (Controller::CPU, BUDGET, "0"),
    (Controller::CPU, ENTITY, ""),
    (Controller::CPU, "cpu.max", "max"),
    (Controller::CPU, "cpu.weight", "100"),
    (Controller::CPU, "cpu.idle", "0"),
    (Controller::CPUSET, CPUS, ""),
    (Controller::CPUSET, "cpuset.mems", ""),
    (Controller::CPUSET, "cpuset.cpus.exclusive", ""),
    (Controller::CPUSET, PARTITION, "member"),
];

/// Disables a controller for the groups directly below one, unless one of them would lose a value of its own. The
/// caller holds the [`turn`](super::turn). The kernel protects groups further below: it does not disable a controller
/// that a group below has enabled for its own children. It gives no warning about the other values.
pub(super) fn disable_unless_used(parent: &Path, name: &str) {
    if !is_used(parent, name) {
        let _ = fs::write(parent.join(CONTROL), format!("-{name}"));
    }
}

fn is_used(parent: &Path, name: &str) -> bool {
    let says_more = |folder: &Path, file: &str, nothing: &str| {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.split_whitespace().next().is_some_and(|word| word != nothing)
    };
    let uses = |folder: PathBuf| OWN.iter().any(|(of, file, nothing)| *of == name && says_more(&folder, file, nothing));
    fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path()).any(uses)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_whole_words() {
        assert!(has_word("cpuset cpu io\n", "cpu"));
        assert!(!has_word("cpuset io\n", "cpu"));
    }

    /// The same as with a deployment that has groups and pools, or after the program that enabled the controller was
    /// killed.
    #[test]
    fn whoever_needs_it_last_disables_what_was_enabled() {
        let root = std::env::temp_dir().join(format!("macrotick-controllers-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("a")).unwrap();
        let record = root.join("record");
        let enabled = || fs::read_to_string(root.join(CONTROL)).unwrap();
        fs::write(root.join(CONTROL), "+cpu").unwrap();
        disable_if_noted(&root, &record, "cpu");
        assert_eq!(enabled(), "+cpu", "somebody else had enabled it");
        note(&record, "cpuset");
        note(&record, "cpu");
        fs::write(root.join("a/cpu.ds.budget"), "0=500\n").unwrap();
        disable_if_noted(&root, &record, "cpu");
        assert_eq!((enabled().as_str(), noted(&record).as_str()), ("+cpu", "cpuset\ncpu\n"), "a group needs it");
        fs::write(root.join("a/cpu.ds.budget"), "0\n").unwrap();
        disable_if_noted(&root, &record, "cpu");
        assert_eq!((enabled().as_str(), noted(&record).as_str()), ("-cpu", "cpuset\n"));
        disable_if_noted(&root, &record, "cpuset");
        assert!(!record.exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_a_group_has_of_its_own_is_told_from_what_every_group_says() {
        let root = std::env::temp_dir().join(format!("macrotick-controller-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("a/b")).unwrap();
        let as_made = [
            ("cpu.ds.budget", "0\n"),
            ("cpu.tt.entity", "\n"),
            ("cpu.max", "max 100000\n"),
            ("cpu.weight", "100\n"),
            ("cpu.idle", "0\n"),
            ("cpuset.cpus", "\n"),
            ("cpuset.mems", "\n"),
            ("cpuset.cpus.exclusive", "\n"),
            ("cpuset.cpus.partition", "member\n"),
        ];
        let write = |file: &str, text: &str| fs::write(root.join("a").join(file), text).unwrap();
        let used = || [Controller::CPU, Controller::CPUSET].map(|name| is_used(&root, name));
        assert_eq!(used(), [false, false], "it has no files");
        as_made.iter().for_each(|(file, text)| write(file, text));
        assert_eq!(used(), [false, false], "it was just made");
        for (place, own) in
            ["2=500 3=0", "web", "10000 100000", "79", "1", "0-1", "0", "1", "isolated"].iter().enumerate()
        {
            let (file, text) = as_made[place];
            write(file, own);
            assert_eq!(used(), [place < 5, place >= 5], "{file} says {own}");
            write(file, text);
        }
        fs::remove_dir_all(root).unwrap();
    }
}
