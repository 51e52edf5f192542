//! The provenance of a page's numbers: versions of the source, of compilers and of tools.

use std::path::Path;
use std::process::Command;

/// Returns the version of this program, and the commit of its source tree.
pub fn source(root: &Path) -> String {
    let commit = commit(root).map_or(String::new(), |commit| format!(", commit {commit}"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
}

/// Documentation: no figure depends on it, and a publication itself changes pages of results.
const DOCUMENTATION: [&str; 2] = [":(exclude)docs", ":(exclude)*.md"];

/// Returns the short hash of the last commit that changed more than documentation; `None` outside a checkout. A change
/// in the work tree adds `-dirty`, unless it is one of documentation.
///
/// So the pages of one publication name one commit, even if some of them are committed before the others are made.
pub fn commit(root: &Path) -> Option<String> {
    // A copy of the source inside another repository has no commit of its own.
    let is_top = git(root, &["rev-parse", "--show-prefix"])?.is_empty();
    let last = [&["log", "-1", "--format=%h", "--", "."][..], &DOCUMENTATION].concat();
    let hash = git(root, &last).filter(|hash| is_top && !hash.is_empty())?;
    let changes = git(root, &[&["status", "--porcelain", "--", "."][..], &DOCUMENTATION].concat())?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

/// Returns whether the work tree differs from a commit in these paths; `None` if the checkout does not have the commit.
/// Files that git does not know do not count.
pub fn changes_since(root: &Path, commit: &str, paths: &[&str]) -> Option<bool> {
    let changed = [&["diff", "--name-only", commit, "--"], paths].concat();
    Some(!git(root, &changed)?.is_empty())
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    output(Command::new("git").arg("-C").arg(root).args(arguments))
}

/// Returns QEMU's version, as QEMU prints it.
pub fn qemu() -> String {
    let text = output(Command::new("qemu-system-x86_64").arg("--version")).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").replace("QEMU emulator version ", "")
}

/// Returns the version of a Debian package with programs that do not print a version.
pub fn package(name: &str) -> String {
    let version = output(Command::new("dpkg-query").args(["--show", "--showformat=${Version}", name]));
    version.unwrap_or_else(|| "unknown".into())
}

/// Returns the trimmed output of a command; `None` if it is missing or fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A repository of its own for a test; it disappears with the value.
#[cfg(test)]
pub struct Repository(std::path::PathBuf);

#[cfg(test)]
impl Repository {
    pub fn new(name: &str) -> Repository {
        let root = std::env::temp_dir().join(format!("macrotick-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        git(&root, &["init", "--quiet"]).unwrap();
        Repository(root)
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Commits all files, and returns the short hash.
    pub fn commit(&self, subject: &str) -> String {
        git(&self.0, &["add", "."]).unwrap();
        git(&self.0, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", subject]).unwrap();
        git(&self.0, &["rev-parse", "--short", "HEAD"]).unwrap()
    }
}

#[cfg(test)]
impl Drop for Repository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_is_no_part_of_the_sources() {
        let repository = Repository::new("commit");
        let root = repository.root();
        assert_eq!(commit(root), None, "nothing is committed yet");
        repository.write("crates/a.rs", "1");
        repository.write("docs/page.md", "1");
        let clean = repository.commit("one");
        assert!(clean.len() >= 7 && clean.chars().all(|c| c.is_ascii_hexdigit()), "{clean}");
        assert_eq!(commit(&root.join("docs")), None, "a folder of a repository");

        for page in ["docs/results/page.md", "docs/results/page/plot.svg", "README.md", "crates/README.md"] {
            repository.write(page, "new");
            assert_eq!(commit(root), Some(clean.clone()), "{page}");
        }
        repository.commit("two");
        assert_eq!(commit(root), Some(clean.clone()), "a commit of documentation");

        repository.write("crates/a.rs", "2");
        assert_eq!(commit(root), Some(format!("{clean}-dirty")));
        let next = repository.commit("three");
        assert_eq!(commit(root), Some(next.clone()));
        repository.write("crates/b.rs", "not known to git");
        assert_eq!(commit(root), Some(format!("{next}-dirty")));
    }

    #[test]
    fn outside_a_checkout_there_is_no_commit() {
        let folder = std::env::temp_dir().join(format!("macrotick-no-commit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(source(&folder), env!("CARGO_PKG_VERSION"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_not_installed_has_no_version() {
        assert_eq!(package("no-such-package-here"), "unknown");
    }
}
