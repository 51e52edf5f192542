//! The provenance of a page's numbers: versions of the source, of compilers and of tools.

use std::path::Path;
use std::process::Command;

/// Returns the version of this program, and the commit of its source tree.
pub fn source(root: &Path) -> String {
    let commit = commit(root).map_or(String::new(), |commit| format!(", commit {commit}"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
}

/// Returns the short hash of the checkout's commit, with `-dirty` if the work tree differs from it; `None` outside a
/// checkout.
///
/// Changes in `docs/results` do not count. A published experiment changes this folder, and a series of experiments
/// publishes one page after the other.
fn commit(root: &Path) -> Option<String> {
    // A copy of the source inside another repository has no commit of its own.
    let is_top = git(root, &["rev-parse", "--show-prefix"])?.is_empty();
    let hash = git(root, &["rev-parse", "--short", "HEAD"]).filter(|_| is_top)?;
    let changes = git(root, &["status", "--porcelain", "--", ".", ":(exclude)docs/results"])?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn repository(name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("macrotick-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("docs/results")).unwrap();
        root
    }

    #[test]
    fn a_commit_is_dirty_by_any_change_but_one_of_results() {
        let root = repository("commit");
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git(&root, &["init", "--quiet"]).unwrap();
        assert_eq!(commit(&root), None, "nothing is committed yet");
        fs::write(root.join("file"), "1").unwrap();
        git(&root, &["add", "file"]).unwrap();
        git(&root, &[&who[..], &["commit", "--quiet", "-m", "one"]].concat()).unwrap();
        let clean = commit(&root).unwrap();
        assert!(clean.len() >= 7 && clean.chars().all(|c| c.is_ascii_hexdigit()), "{clean}");
        fs::write(root.join("docs/results/page.md"), "new").unwrap();
        assert_eq!(commit(&root), Some(clean.clone()));
        assert_eq!(commit(&root.join("docs")), None, "a folder of a repository");
        fs::write(root.join("docs/other.md"), "new").unwrap();
        assert_eq!(commit(&root), Some(format!("{clean}-dirty")));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn outside_a_checkout_there_is_no_commit() {
        let root = repository("no-commit");
        assert_eq!(source(&root), env!("CARGO_PKG_VERSION"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_is_not_installed_has_no_version() {
        assert_eq!(package("no-such-package-here"), "unknown");
    }
}
