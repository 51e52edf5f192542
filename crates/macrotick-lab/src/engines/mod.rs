//! The second image: Debian with systemd, runc, crun, podman and containerd, for tests of real container engines.
//!
//! Debian is bootstrapped from the packages of this host's apt, into an archive of its own. A second archive with our
//! files follows; the kernel unpacks one after the other. As in the small image, all files are in memory, so the speed
//! of a disk has no influence. The saved machine has booted to the end.

mod bootstrap;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::cache::{self, Key, Lock};
use crate::command;
use crate::cpio::Archive;
use crate::error::{Context, LabError};
use crate::image::{self, Image};
use crate::layout::Layout;
use crate::libraries;
use crate::progress::Progress;

pub use bootstrap::debian_root;
pub(crate) use bootstrap::unpacked;

/// The first program: it gives systemd a root from which container engines can pivot.
const INIT: &str = include_str!("init.sh");
/// The agent as a service of systemd.
const SERVICE: &str = include_str!("lab.service");
/// The path of the agent's binary in the guest. `/bin` is a link to its directory.
const AGENT: &str = "usr/bin/macrotick";
/// A root file system for containers: busybox, and `chrt`, which busybox lacks.
const ROOT: &str = "srv/busybox";
/// Directories of a container's root in addition to those of programs.
const DIRECTORIES: [&str; 6] = [
    "srv/busybox/proc",
    "srv/busybox/sys",
    "srv/busybox/dev",
    "srv/busybox/tmp",
    "srv/busybox/root",
    "srv/busybox/etc",
];
/// Units without a purpose in the lab, which has no keyboard, no disk, no network, no modules and no second day.
const MASKED: [&str; 11] = [
    "getty.target",
    "systemd-modules-load.service",
    "systemd-networkd-wait-online.service",
    "systemd-timesyncd.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "podman-auto-update.service",
    "podman-auto-update.timer",
];
/// A fixed value: systemd would draw a random one.
const MACHINE_ID: &str = "6d6163726f7469636b6c6162656e6769\n";

/// Builds the image around the agent's binary, unless it is up to date. Without a saved bootstrap this takes some
/// minutes and needs the network.
pub fn build(layout: &Layout, agent: &Path, progress: &mut dyn Progress) -> Result<Image, LabError> {
    let dir = layout.lab();
    let _lock = Lock::take(&dir.join("engines.lock"))?;
    let debian = bootstrap::debian(&dir, progress)?;
    let ours = archive(layout, agent)?.to_bytes();
    let key = Key::new().with_file(&debian)?.with(&ours).finish();
    let path = dir.join(format!("engines-{}.cpio", &key[..16]));
    if !cache::touch(&path) {
        cache::keep_newest(&dir, "engines-", 1)?;
        let unfinished = dir.join("unfinished-engines.cpio");
        join(&debian, &ours, &unfinished).context("write", &unfinished)?;
        fs::rename(&unfinished, &path).context("rename", &unfinished)?;
    }
    Ok(Image { path, key })
}

/// Writes two archives, one after the other.
fn join(debian: &Path, ours: &[u8], path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    io::copy(&mut File::open(debian)?, &mut file)?;
    io::Write::write_all(&mut file, ours)
}

/// Returns the archive with our files.
fn archive(layout: &Layout, agent: &Path) -> Result<Archive, LabError> {
    let mut archive = Archive::new();
    archive.file("init", 0o755, INIT.as_bytes().to_vec());
    archive.file(AGENT, 0o755, image::stripped(agent, layout)?);
    archive.file("etc/machine-id", 0o444, MACHINE_ID.as_bytes().to_vec());
    archive.file("etc/hostname", 0o644, b"lab\n".to_vec());
    archive.file("etc/systemd/system/lab.service", 0o644, SERVICE.as_bytes().to_vec());
    // Not in multi-user.target: the service waits for it.
    archive.symlink("etc/systemd/system/graphical.target.wants/lab.service", "../lab.service");
    MASKED.iter().for_each(|unit| archive.symlink(&format!("etc/systemd/system/{unit}"), "/dev/null"));
    add_container_root(&mut archive)?;
    Ok(archive)
}

/// Adds a root file system for containers, from programs of this host.
fn add_container_root(archive: &mut Archive) -> Result<(), LabError> {
    DIRECTORIES.iter().for_each(|directory| archive.directory(directory));
    let mut add = |target: &str, source: &Path| -> Result<(), LabError> {
        archive.file(&format!("{ROOT}/{target}"), 0o755, fs::read(source).context("read", source)?);
        Ok(())
    };
    let chrt = command::find("chrt", "util-linux")?;
    add("bin/busybox", &command::find("busybox", "busybox-static")?)?;
    add("usr/bin/chrt", &chrt)?;
    let libraries: BTreeSet<String> = libraries::of(&chrt)?.into_iter().collect();
    for library in libraries {
        add(library.trim_start_matches('/'), &PathBuf::from(&library))?;
    }
    image::applets()?.iter().for_each(|applet| archive.symlink(&format!("{ROOT}/{applet}"), "/bin/busybox"));
    archive.file(&format!("{ROOT}/etc/passwd"), 0o644, b"root:x:0:0:root:/root:/bin/sh\n".to_vec());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_starts_the_agent() {
        assert!(SERVICE.contains(&format!("ExecStart=/{AGENT} guest\n")));
        assert!(INIT.trim_end().ends_with("/lib/systemd/systemd"));
    }

    #[test]
    fn the_machine_has_an_identity() {
        let id = MACHINE_ID.trim_end();
        assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    }
}
