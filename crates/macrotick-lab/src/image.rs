//! The guest's file system: one initramfs with busybox, the agent, rt-tests and iproute2. ([`crate::engines`] is the
//! other image.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Key, Lock};
use crate::command;
use crate::cpio::Archive;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::progress::Progress;
use crate::suppliers::Supplier;

/// The first program: it mounts file systems, sets up the loopback interface, and starts the agent.
const INIT: &str = include_str!("init.sh");
/// The path of the agent's binary in the guest.
const AGENT: &str = "bin/macrotick";
const BUSYBOX: &str = "bin/busybox";
/// Programs: path in the guest, Debian package. The image also gets their shared libraries.
const PROGRAMS: [(&str, &str); 18] = [
    ("usr/bin/cyclictest", "rt-tests"),
    ("usr/bin/cyclicdeadline", "rt-tests"),
    ("usr/bin/deadline_test", "rt-tests"),
    ("usr/bin/hackbench", "rt-tests"),
    ("usr/bin/oslat", "rt-tests"),
    ("usr/bin/pi_stress", "rt-tests"),
    ("usr/bin/pip_stress", "rt-tests"),
    ("usr/bin/pmqtest", "rt-tests"),
    ("usr/bin/ptsematest", "rt-tests"),
    ("usr/bin/rt-migrate-test", "rt-tests"),
    ("usr/bin/signaltest", "rt-tests"),
    ("usr/bin/sigwaittest", "rt-tests"),
    ("usr/bin/ssdd", "rt-tests"),
    ("usr/bin/svsematest", "rt-tests"),
    ("usr/bin/chrt", "util-linux"),
    ("usr/bin/taskset", "util-linux"),
    ("sbin/ip", "iproute2"),
    ("sbin/tc", "iproute2"),
];
/// Mount points for the init script.
const DIRECTORIES: [&str; 6] = ["proc", "sys", "dev", "tmp", "root", "run"];

/// The kind of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// Busybox, and the tools for measurements.
    Small,
    /// Debian with systemd and container engines: `engines`.
    Engines,
}

/// An image on disk.
#[derive(Clone, Debug)]
pub struct Image {
    /// The initramfs. It is not compressed: unpacking it in the guest would take longer than loading it.
    pub path: PathBuf,
    /// The hash of its content.
    pub key: String,
}

/// Builds the image around the agent's binary, unless it is up to date.
pub fn build(layout: &Layout, agent: &Path, progress: &mut dyn Progress) -> Result<Image, LabError> {
    let dir = layout.lab();
    let _lock = Lock::take(&dir.join("image.lock"))?;
    let inputs = inputs(layout, agent, progress)?;
    let mut key = Key::new().with(INIT).with("stripped");
    for (target, source) in &inputs {
        key = key.with(target).with_file(source)?;
    }
    let key = key.finish();
    let path = dir.join(format!("image-{}.cpio", &key[..16]));
    if !path.exists() {
        remove_older(&dir)?;
        let unfinished = dir.join("image.new");
        fs::write(&unfinished, archive(layout, &inputs)?.to_bytes()).context("write", &unfinished)?;
        fs::rename(&unfinished, &path).context("rename", &unfinished)?;
    }
    Ok(Image { path, key })
}

/// Removes images of earlier binaries, but keeps a few: another run may be about to boot one.
fn remove_older(dir: &Path) -> Result<(), LabError> {
    crate::cache::keep_newest(dir, "image-", 3)
}

/// Returns every file of the image that comes from the host or from packages: path in the guest and on the host.
fn inputs(layout: &Layout, agent: &Path, progress: &mut dyn Progress) -> Result<Vec<(String, PathBuf)>, LabError> {
    let mut packages: Vec<&str> = PROGRAMS.iter().map(|(_, package)| *package).chain(["busybox-static"]).collect();
    packages.sort_unstable();
    packages.dedup();
    let supplier = Supplier::new(layout, &packages, progress)?;
    let mut inputs = vec![
        (AGENT.to_owned(), agent.to_owned()),
        (BUSYBOX.to_owned(), supplier.program("busybox", "busybox-static")?),
    ];
    let mut libraries = BTreeMap::new();
    for (target, package) in PROGRAMS {
        let name = target.rsplit('/').next().expect("a path has a last part");
        let source = supplier.program(name, package)?;
        libraries.extend(supplier.libraries(&source)?);
        inputs.push((target.to_owned(), source));
    }
    inputs.extend(libraries);
    Ok(inputs)
}

/// Returns the absolute paths of all programs of an image. They depend only on the host's busybox.
pub fn programs() -> Result<BTreeSet<String>, LabError> {
    let paths = own_programs().map(str::to_owned).chain(applets()?);
    Ok(paths.map(|path| format!("/{path}")).collect())
}

/// Returns the programs that are files of their own.
fn own_programs() -> impl Iterator<Item = &'static str> {
    [AGENT, BUSYBOX].into_iter().chain(PROGRAMS.iter().map(|(target, _)| *target))
}

/// Returns the paths of busybox's applets.
pub(crate) fn applets() -> Result<Vec<String>, LabError> {
    let busybox = command::find("busybox", "busybox-static")?;
    let listing = command::output(Command::new(busybox).arg("--list-full"))?;
    // A program of the host has priority over busybox's applet, in any directory.
    let shadowed = |path: &str| {
        let name = path.rsplit('/').next().expect("a path has a last part");
        own_programs().any(|target| target.ends_with(&format!("/{name}")))
    };
    Ok(listing.lines().filter(|path| path.contains('/') && !shadowed(path)).map(str::to_owned).collect())
}

/// Returns the agent without its debugging information. This information is most of the file, and each boot would
/// unpack it. It also differs with the build directory, so guests of two checkouts would not be alike.
pub(crate) fn stripped(agent: &Path, layout: &Layout) -> Result<Vec<u8>, LabError> {
    let smaller = layout.lab().join("agent.new");
    let (strip, package) = layout.arch().tool("strip");
    let mut strip = Command::new(command::find(&strip, package)?);
    command::output(strip.arg("--strip-debug").arg("-o").args([&smaller, agent]))?;
    let bytes = fs::read(&smaller).context("read", &smaller)?;
    fs::remove_file(&smaller).context("remove", &smaller)?;
    Ok(bytes)
}

fn archive(layout: &Layout, inputs: &[(String, PathBuf)]) -> Result<Archive, LabError> {
    let mut archive = Archive::new();
    archive.file("init", 0o755, INIT.as_bytes().to_vec());
    DIRECTORIES.iter().for_each(|directory| archive.directory(directory));
    for (target, source) in inputs {
        let bytes =
            if target == AGENT { stripped(source, layout)? } else { fs::read(source).context("read", source)? };
        archive.file(target, 0o755, bytes);
    }
    applets()?.iter().for_each(|applet| archive.symlink(applet, "/bin/busybox"));
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n".to_vec());
    archive.file("etc/group", 0o644, b"root:x:0:\n".to_vec());
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_starts_the_agent() {
        assert!(INIT.starts_with("#!/bin/busybox sh\n"));
        assert!(INIT.trim_end().ends_with(&format!("exec /{AGENT} guest")));
    }
}
