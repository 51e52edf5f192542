//! Makes Debian from its packages, as an archive that the kernel unpacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Key, Lock};
use crate::command;
use crate::error::{Context, LabError};
use crate::progress::Progress;

/// Packages in addition to Debian's essential ones, without the packages that these only recommend.
const PACKAGES: [&str; 6] = ["systemd-sysv", "dbus", "runc", "crun", "podman", "containerd"];
/// Files that are removed at the end, because the lab does not need them: half of all files. The guest holds the
/// archive in memory. (perl is needed during the installation; perl-base stays.)
const LEFT_OUT: [&str; 12] = [
    "usr/share/man",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/perl",
    "usr/lib/x86_64-linux-gnu/perl",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/share/zoneinfo",
    "usr/lib/cni",
    "usr/bin/containerd-shim",
    "usr/bin/containerd-shim-runc-v1",
    "usr/lib/podman/rootlessport",
];
/// The variable with another suite of Debian than this host's.
const SUITE_VARIABLE: &str = "MACROTICK_DEBIAN";
/// The latest time of files: the second of the lab's clock at which it is switched on.
const EPOCH: &str = "1767225600";

/// Returns Debian's archive in `dir`, and makes it if it does not exist. The packages' versions are those of this
/// moment: remove `debian-*` to get newer ones.
pub fn debian(dir: &Path, progress: &mut dyn Progress) -> Result<PathBuf, LabError> {
    let own = own_suite()?;
    let suite = std::env::var(SUITE_VARIABLE).unwrap_or_else(|_| own.clone());
    let mut key = Key::new().with(&suite).with(EPOCH);
    for part in PACKAGES.iter().chain(&LEFT_OUT) {
        key = key.with(part);
    }
    let path = dir.join(format!("debian-{suite}-{}.cpio", &key.finish()[..16]));
    if cache::touch(&path) {
        return Ok(path);
    }
    cache::keep_newest(dir, &format!("debian-{suite}-"), 0)?;
    let (tar, unfinished) = (dir.join("unfinished-debian.tar"), dir.join("unfinished-debian.cpio"));
    progress.begin(&format!("bootstrap Debian {suite} with container engines"));
    command::output(&mut bootstrap(&suite, &sources(&own, &suite)?, &tar)?)?;
    let mut convert = Command::new(command::find("bsdtar", "libarchive-tools")?);
    command::output(convert.arg("--format=newc").arg("-cf").arg(&unfinished).arg(format!("@{}", tar.display())))?;
    cache::remove(&tar)?;
    fs::rename(&unfinished, &path).context("rename", &unfinished)?;
    progress.end();
    Ok(path)
}

/// Makes the smallest Debian of a suite that a machine has, with further packages, in a directory: for tests of packages.
/// Needs root, because the files have the owners of an installation.
pub fn debian_root(directory: &Path, suite: &str, packages: &[&str]) -> Result<(), LabError> {
    let mut command = mmdebstrap("minbase", packages)?;
    command.arg("--mode=root").arg(suite).arg(directory).args(sources(&own_suite()?, suite)?);
    command::output(&mut command).map(drop)
}

/// Unpacks packages of another architecture, and all that they depend on, without installing them. Returns the directory
/// below `dir`, and makes it if it does not exist.
pub fn unpacked(
    dir: &Path,
    architecture: &str,
    packages: &[&str],
    progress: &mut dyn Progress,
) -> Result<PathBuf, LabError> {
    let own = own_suite()?;
    let mut key = Key::new().with(&own).with(architecture);
    for package in packages {
        key = key.with(package);
    }
    let path = dir.join(format!("packages-{}", &key.finish()[..16]));
    let _lock = Lock::take(&dir.join("packages.lock"))?;
    if cache::touch(&path) {
        return Ok(path);
    }
    let (tar, unfinished) = (dir.join("unfinished-packages.tar"), dir.join("unfinished-packages"));
    progress.begin(&format!("unpack programs for {architecture}"));
    cache::remove(&unfinished)?;
    fs::create_dir_all(&unfinished).context("make", &unfinished)?;
    let mut fetch = mmdebstrap("extract", packages)?;
    fetch.arg(format!("--architectures={architecture}")).arg(&own).arg(&tar).args(sources(&own, &own)?);
    command::output(&mut fetch)?;
    let mut unpack = Command::new(command::find("tar", "tar")?);
    // Devices need privileges.
    unpack.args(["--extract", "--no-same-owner", "--exclude=./dev/*", "--file"]).arg(&tar);
    command::output(unpack.arg("--directory").arg(&unfinished))?;
    cache::remove(&tar)?;
    fs::rename(&unfinished, &path).context("rename", &unfinished)?;
    progress.end();
    Ok(path)
}

/// Returns the bootstrap's command; mmdebstrap runs as root, or in a user namespace.
fn bootstrap(suite: &str, sources: &[String], tar: &Path) -> Result<Command, LabError> {
    let mut command = mmdebstrap("essential", &PACKAGES)?;
    command.arg(format!("--customize-hook=cd \"$1\" && rm -rf {}", LEFT_OUT.join(" ")));
    command.arg(suite).arg(tar).args(sources);
    Ok(command)
}

fn mmdebstrap(variant: &str, packages: &[&str]) -> Result<Command, LabError> {
    let mut command = Command::new(command::find("mmdebstrap", "mmdebstrap")?);
    command.env("SOURCE_DATE_EPOCH", EPOCH).arg("--quiet").arg(format!("--variant={variant}"));
    command.arg(format!("--include={}", packages.join(",")));
    command.arg("--aptopt=Apt::Install-Recommends \"false\"");
    command.args(proxies()?.lines().map(|line| format!("--aptopt={line}")));
    Ok(command)
}

/// Returns this host's suite; apt has mirrors for it.
fn own_suite() -> Result<String, LabError> {
    let path = Path::new("/etc/os-release");
    let text = fs::read_to_string(path).context("read", path)?;
    Ok(text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).unwrap_or("stable").to_owned())
}

/// Returns the sources of Debian's packages of this host's apt, as lines of a `sources.list`, for another suite.
fn sources(own: &str, suite: &str) -> Result<Vec<String>, LabError> {
    let mut apt = Command::new(command::find("apt-get", "apt")?);
    apt.args(["indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]);
    let sources = debian_lines(&command::output(&mut apt)?, own, suite);
    match sources.is_empty() {
        true => Err(LabError::Sources),
        false => Ok(sources),
    }
}

/// Returns Debian's own repositories among those that apt lists. Others need keys that a bootstrap does not have. The
/// other suite replaces this host's.
fn debian_lines(listing: &str, own: &str, suite: &str) -> Vec<String> {
    let own = format!(" {own}");
    let of_debian = listing.lines().filter_map(|line| line.strip_prefix("Debian "));
    let mut lines: Vec<String> =
        of_debian.map(|rest| format!("deb {}", rest.replacen(&own, &format!(" {suite}"), 1))).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Returns the proxies of this host's apt, if there are any, as lines of an `apt.conf`.
fn proxies() -> Result<String, LabError> {
    let mut config = Command::new(command::find("apt-config", "apt")?);
    config.args(["dump", "--no-empty", "--format", "%f \"%v\";%n", "Acquire::http::Proxy", "Acquire::https::Proxy"]);
    command::output(&mut config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debians_own_repositories_count_and_each_once() {
        let listing = "Debian http://mirror/debian/ bookworm main\nSomebody http://else/ bookworm main\n\
                       Debian http://mirror/debian/ bookworm main\nDebian http://mirror/debian/ bookworm contrib\n";
        let expected = ["deb http://mirror/debian/ bookworm contrib", "deb http://mirror/debian/ bookworm main"];
        assert_eq!(debian_lines(listing, "bookworm", "bookworm"), expected);
        assert!(debian_lines("", "bookworm", "bookworm").is_empty());
    }

    #[test]
    fn another_suite_is_taken_from_the_same_places() {
        let listing = "Debian http://mirror/bookworm/ bookworm-updates main\nDebian http://other/ bookworm main\n";
        let expected = ["deb http://mirror/bookworm/ trixie-updates main", "deb http://other/ trixie main"];
        assert_eq!(debian_lines(listing, "bookworm", "trixie"), expected);
    }

    #[test]
    fn the_bootstrap_is_one_command() {
        // Without mmdebstrap there is no command to check; `make test-full` installs it.
        let sources = ["deb http://mirror/ bookworm main".to_owned()];
        let Ok(command) = bootstrap("bookworm", &sources, Path::new("debian.tar")) else { return };
        let text = command::display(&command);
        assert!(text.contains("--include=systemd-sysv,dbus,runc,crun,podman,containerd"), "{text}");
        assert!(text.ends_with("bookworm debian.tar 'deb http://mirror/ bookworm main'"), "{text}");
    }
}
