//! The kernel source: Debian's package, unpacked once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Key, Lock};
use crate::command;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;

/// The variable with another tarball.
const TARBALL_VARIABLE: &str = "MACROTICK_LINUX_SOURCE";

/// An unpacked, unpatched source tree.
#[derive(Clone, Debug)]
pub struct Source {
    /// The tree.
    pub tree: PathBuf,
    /// The point release, such as `6.12.117`.
    pub release: String,
    /// The hash that identifies the tarball.
    pub key: String,
}

/// Returns the tarball to build from.
fn tarball(layout: &Layout) -> Result<PathBuf, LabError> {
    match std::env::var_os(TARBALL_VARIABLE).map(PathBuf::from) {
        Some(path) => Ok(path),
        None => layout.linux().tarball(&layout.build()),
    }
}

/// Returns the identity of the tarball, without unpacking it.
pub fn key(layout: &Layout) -> Result<String, LabError> {
    Ok(Key::new().with_identity(&tarball(layout)?)?.finish())
}

/// Unpacks the tarball, unless it is already unpacked.
pub fn unpack(layout: &Layout, progress: &mut dyn Progress) -> Result<Source, LabError> {
    let dir = layout.source();
    let tree = dir.join("linux");
    let stamp = dir.join("stamp");
    let key = key(layout)?;
    let _lock = Lock::take(&dir.join("lock"))?;
    if !cache::is_fresh(&stamp, &key) {
        progress.begin("unpack the kernel source");
        cache::remove(&stamp)?;
        cache::remove(&tree)?;
        fs::create_dir_all(&tree).context("make", &tree)?;
        let mut tar = Command::new(command::find("tar", "tar")?);
        tar.args(["--extract", "--strip-components=1", "--use-compress-program=xz -T0", "--file"]);
        command::output(tar.arg(tarball(layout)?).arg("--directory").arg(&tree))?;
        cache::stamp(&stamp, &key)?;
        progress.end();
    }
    Ok(Source { release: release(&tree)?, tree, key })
}

/// Returns the point release in a tree's Makefile.
fn release(tree: &Path) -> Result<String, LabError> {
    let makefile = tree.join("Makefile");
    let text = fs::read_to_string(&makefile).context("read", &makefile)?;
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('=')).unwrap_or("").trim()
    };
    Ok(format!("{}.{}.{}", field("VERSION"), field("PATCHLEVEL"), field("SUBLEVEL")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_the_makefile() {
        let dir = std::env::temp_dir().join(format!("macrotick-source-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("Makefile"), "# x\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n").unwrap();
        assert_eq!(release(&dir).unwrap(), "6.12.117");
        fs::remove_dir_all(&dir).unwrap();
    }
}
