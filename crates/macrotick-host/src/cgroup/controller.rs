//! Controllers of the groups below the root.

use std::fs;
use std::path::{Path, PathBuf};

use super::{GroupFault, Owner, CONTROL, ENTITY, ROOT};
use crate::budgets::BUDGET;
use crate::error::HostFailure;

/// A controller for the groups below the root. Dropping it disables what it had enabled.
pub struct Controller {
    name: &'static str,
    enabled: bool,
}

impl Controller {
    /// What budgets and windows of control groups come with.
    pub const CPU: &'static str = "cpu";
    /// What partitions come with.
    pub const CPUSET: &'static str = "cpuset";

    /// Enables it where it is not.
    pub fn enable(owner: &Owner, name: &'static str) -> Result<Controller, HostFailure> {
        let root = Path::new(ROOT);
        let fault = |fault| HostFailure::Group { owner: owner.clone(), fault };
        let Ok(known) = fs::read_to_string(root.join("cgroup.controllers")) else {
            return Err(fault(GroupFault::NoHierarchy));
        };
        if !has_word(&known, name) {
            return Err(fault(GroupFault::NoController(name)));
        }
        let path = root.join(CONTROL);
        let failed = |what| HostFailure::group_file(owner, what, &path);
        if has_word(&fs::read_to_string(&path).map_err(failed("read"))?, name) {
            return Ok(Controller { name, enabled: false });
        }
        fs::write(&path, format!("+{name}")).map_err(failed("enable a controller in"))?;
        Ok(Controller { name, enabled: true })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if self.enabled && !is_used_by_others() {
            let _ = fs::write(Path::new(ROOT).join(CONTROL), format!("-{}", self.name));
        }
    }
}

/// Whether somebody else has made a group below the root that has a budget or is a pool: without the controller it would lose that.
fn is_used_by_others() -> bool {
    let groups = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let uses = |folder: PathBuf| {
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        !matches!(read(BUDGET).trim(), "" | "0") || !read(ENTITY).trim().is_empty()
    };
    groups.map(|entry| entry.path()).any(uses)
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
}
