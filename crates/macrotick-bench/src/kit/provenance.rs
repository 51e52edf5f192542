//! What made the numbers of a page: versions of the source, of compilers and of tools.

use std::path::Path;
use std::process::Command;

/// The version of this program, and the commit of the source it is run in.
pub fn source(root: &Path) -> String {
    let commit = commit(root).map_or(String::new(), |commit| format!(", commit {commit}"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
}

/// The short hash of the checkout's commit, with `-dirty` where the work tree differs from it; `None` outside a checkout.
///
/// What lies in `docs/results` does not count: an experiment that is published changes it, and a series of experiments
/// is published page by page.
fn commit(root: &Path) -> Option<String> {
    // A copy of the source inside some other repository has no commit of its own.
    let is_top = git(root, &["rev-parse", "--show-prefix"])?.is_empty();
    let hash = git(root, &["rev-parse", "--short", "HEAD"]).filter(|_| is_top)?;
    let changes = git(root, &["status", "--porcelain", "--", ".", ":(exclude)docs/results"])?;
    Some(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    output(Command::new("git").arg("-C").arg(root).args(arguments))
}

/// QEMU's version, as it states it.
pub fn qemu() -> String {
    let text = output(Command::new("qemu-system-x86_64").arg("--version")).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").replace("QEMU emulator version ", "")
}

/// The version of a Debian package whose programs do not state their own.
pub fn package(name: &str) -> String {
    let version = output(Command::new("dpkg-query").args(["--show", "--showformat=${Version}", name]));
    version.unwrap_or_else(|| "unknown".into())
}

/// What a command printed, without the space around it; `None` where it is missing or fails.
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
