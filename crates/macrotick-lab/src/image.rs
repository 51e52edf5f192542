//! The guest's file system: one initramfs with busybox, the agent, rt-tests and iproute2. ([`crate::engines`] is another.)

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Key, Lock};
use crate::command;
use crate::cpio::Archive;
use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::libraries;

/// The first program: mounts, loopback, then the agent.
const INIT: &str = include_str!("init.sh");
/// Where the agent's binary lies in the guest.
const AGENT: &str = "bin/macrotick";
const BUSYBOX: &str = "bin/busybox";
/// Programs taken from the host: path in the guest, Debian package. Their shared libraries come along.
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
/// Mount points that the init script uses.
const DIRECTORIES: [&str; 6] = ["proc", "sys", "dev", "tmp", "root", "run"];

/// Which image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// Busybox, and what is measured with.
    Small,
    /// Debian with systemd and container engines: `engines`.
    Engines,
}

/// An image on disk.
#[derive(Clone, Debug)]
pub struct Image {
    /// The initramfs. It is not compressed: unpacking in the guest would take longer than loading it.
    pub path: PathBuf,
    /// What identifies its content.
    pub key: String,
}

/// Builds the image around the agent's binary, or finds that it is built.
pub fn build(layout: &Layout, agent: &Path) -> Result<Image, LabError> {
    let dir = layout.lab();
    let _lock = Lock::take(&dir.join("image.lock"))?;
    let inputs = inputs(agent)?;
    let mut key = Key::new().with(INIT).with("stripped");
    for (target, source) in &inputs {
        key = key.with(target).with_file(source)?;
    }
    let key = key.finish();
    let path = dir.join(format!("image-{}.cpio", &key[..16]));
    if !path.exists() {
        remove_older(&dir)?;
        let unfinished = dir.join("image.new");
        fs::write(&unfinished, archive(&inputs, &dir)?.to_bytes()).context("write", &unfinished)?;
        fs::rename(&unfinished, &path).context("rename", &unfinished)?;
    }
    Ok(Image { path, key })
}

/// Images of earlier binaries are of no use any more, but one that a run is about to boot must stay: keep a few.
fn remove_older(dir: &Path) -> Result<(), LabError> {
    crate::cache::keep_newest(dir, "image-", 3)
}

/// Every file of the image that comes from the host: path in the guest and on the host.
fn inputs(agent: &Path) -> Result<Vec<(String, PathBuf)>, LabError> {
    let mut inputs =
        vec![(AGENT.to_owned(), agent.to_owned()), (BUSYBOX.to_owned(), command::find("busybox", "busybox-static")?)];
    let mut libraries = BTreeSet::new();
    for (target, package) in PROGRAMS {
        let name = target.rsplit('/').next().expect("a path has a last part");
        let source = command::find(name, package)?;
        libraries.extend(libraries::of(&source)?);
        inputs.push((target.to_owned(), source));
    }
    for library in libraries {
        inputs.push((library.trim_start_matches('/').to_owned(), PathBuf::from(library)));
    }
    Ok(inputs)
}

/// The absolute paths of all programs of an image. Which they are depends on the host's busybox only.
pub fn programs() -> Result<BTreeSet<String>, LabError> {
    let paths = own_programs().map(str::to_owned).chain(applets()?);
    Ok(paths.map(|path| format!("/{path}")).collect())
}

/// The programs that are files of their own.
fn own_programs() -> impl Iterator<Item = &'static str> {
    [AGENT, BUSYBOX].into_iter().chain(PROGRAMS.iter().map(|(target, _)| *target))
}

/// The paths of busybox's applets.
pub(crate) fn applets() -> Result<Vec<String>, LabError> {
    let busybox = command::find("busybox", "busybox-static")?;
    let listing = command::output(Command::new(busybox).arg("--list-full"))?;
    // What came from the host counts more than busybox's version of it, in whatever directory that would be.
    let shadowed = |path: &str| {
        let name = path.rsplit('/').next().expect("a path has a last part");
        own_programs().any(|target| target.ends_with(&format!("/{name}")))
    };
    Ok(listing.lines().filter(|path| path.contains('/') && !shadowed(path)).map(str::to_owned).collect())
}

/// The agent without its debugging information: that is most of it, would be unpacked at each boot, and varies with the
/// directory it was built in, so that no two checkouts' guests would be alike.
pub(crate) fn stripped(agent: &Path, dir: &Path) -> Result<Vec<u8>, LabError> {
    let smaller = dir.join("agent.new");
    let mut strip = Command::new(command::find("strip", "binutils")?);
    command::output(strip.arg("--strip-debug").arg("-o").args([&smaller, agent]))?;
    let bytes = fs::read(&smaller).context("read", &smaller)?;
    fs::remove_file(&smaller).context("remove", &smaller)?;
    Ok(bytes)
}

fn archive(inputs: &[(String, PathBuf)], dir: &Path) -> Result<Archive, LabError> {
    let mut archive = Archive::new();
    archive.file("init", 0o755, INIT.as_bytes().to_vec());
    DIRECTORIES.iter().for_each(|directory| archive.directory(directory));
    for (target, source) in inputs {
        let bytes = if target == AGENT { stripped(source, dir)? } else { fs::read(source).context("read", source)? };
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
