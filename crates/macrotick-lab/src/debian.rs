//! Debian packages of a built tree, by the kernel's own `bindeb-pkg`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cache;
use crate::command;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::tree::{compiler, complaints, make};

/// Finds the programs that make packages, before a long build.
pub(crate) fn find_tools() -> Result<(), LabError> {
    for (program, package) in [("dpkg-buildpackage", "dpkg-dev"), ("dh_builddeb", "debhelper")] {
        command::find(program, package)?;
    }
    Ok(())
}

/// Makes packages of a built tree: of the kinds `image` and `headers`. The headers for libc belong to the distribution.
/// `(name, release)` is the name of the kernel and the point release of its source.
pub(crate) fn package(
    layout: &Layout,
    dir: &Path,
    (name, release): (&'static str, &str),
    kinds: &[&str],
    progress: &mut dyn Progress,
) -> Result<Vec<PathBuf>, LabError> {
    for old in files(dir)? {
        cache::remove(&old)?;
    }
    progress.begin(&format!("package the {name} kernel {release}"));
    let log = dir.join("package.log");
    let file = File::create(&log).context("create", &log)?;
    let mut succeeded = true;
    for kind in kinds {
        let mut make = make(layout.arch(), dir)?;
        make.arg(compiler(layout)).arg("bindeb-pkg").env("MACROTICK_WARNINGS", "1");
        make.arg(format!("DPKG_FLAGS=--rules-target=binary-{kind} --no-check-builddeps"));
        make.arg("KDEB_SOURCENAME=linux-macrotick");
        make.arg(format!("KDEB_PKGVERSION={release}+macrotick{}-1", env!("CARGO_PKG_VERSION")));
        make.arg("KDEB_CHANGELOG_DIST=unstable").env("DEBFULLNAME", "Macrotick developers");
        make.env("DEBEMAIL", "macrotick@example.org").env("KBUILD_VERBOSE", "0");
        let [out, errors] = [file.try_clone(), file.try_clone()].map(|copy| copy.context("open", &log));
        make.stdin(Stdio::null()).stdout(out?).stderr(errors?);
        succeeded &= make.status().context("start", Path::new("make"))?.success();
    }
    progress.end();
    let mut made = Vec::new();
    for kind in kinds {
        let is_of_kind = |path: &PathBuf| path.to_string_lossy().contains(&format!("/linux-{kind}-"));
        let is_package = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "deb");
        made.extend(files(dir)?.into_iter().find(|path| is_of_kind(path) && is_package(path)));
    }
    match succeeded && made.len() == kinds.len() {
        true => Ok(made),
        false => Err(LabError::Build { flavor: name, tail: complaints(&log), log }),
    }
}

/// Returns the files of earlier packages.
fn files(dir: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(dir).context("list", dir)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_one =
        |path: &PathBuf| ["/linux-image-", "/linux-headers-"].iter().any(|name| path.to_string_lossy().contains(name));
    Ok(paths.filter(is_one).collect())
}
