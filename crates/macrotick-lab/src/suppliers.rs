//! The places of an image's programs: this host, or unpacked packages of another architecture.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arch::Arch;
use crate::command;
use crate::engines;
use crate::error::LabError;
use crate::layout::Layout;
use crate::libraries;
use crate::progress::Progress;

/// Where programs and their libraries come from.
pub(crate) enum Supplier {
    /// This host's installed programs.
    Host,
    /// A directory with Debian's packages of the architecture.
    Packages(Arch, PathBuf),
}

/// Directories with programs, below a root.
const PROGRAMS: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];

impl Supplier {
    /// Returns the supplier for an architecture. Unpacks `packages` if it is not the host's.
    pub fn new(layout: &Layout, packages: &[&str], progress: &mut dyn Progress) -> Result<Supplier, LabError> {
        match layout.arch() {
            Arch::X86_64 => Ok(Supplier::Host),
            arch => Ok(Supplier::Packages(arch, engines::unpacked(&layout.lab(), arch.name(), packages, progress)?)),
        }
    }

    /// Returns the place of a program, or an error with its Debian package.
    pub fn program(&self, name: &str, package: &'static str) -> Result<PathBuf, LabError> {
        let Supplier::Packages(_, root) = self else { return command::find(name, package) };
        let mut places = PROGRAMS.iter().filter_map(|dir| file_below(root, &root.join(dir).join(name)));
        places.next().ok_or_else(|| LabError::Missing { what: name.into(), package })
    }

    /// Returns the shared libraries of a program: path in the guest, and place.
    pub fn libraries(&self, program: &Path) -> Result<Vec<(String, PathBuf)>, LabError> {
        match self {
            Supplier::Host => {
                let libraries = libraries::of(program)?.into_iter();
                Ok(libraries.map(|path| (path.trim_start_matches('/').to_owned(), path.into())).collect())
            }
            Supplier::Packages(arch, root) => {
                let mut found = BTreeMap::new();
                let mut left = vec![program.to_owned()];
                while let Some(file) = left.pop() {
                    for name in needed(*arch, &file)? {
                        if found.contains_key(&name) {
                            continue;
                        }
                        let places = arch.libraries().map(|dir| root.join(dir).join(&name));
                        let at = places.iter().find_map(|at| file_below(root, at));
                        let missing = || LabError::Library { program: program.into(), library: name.clone() };
                        let at = at.ok_or_else(missing)?;
                        left.push(at.clone());
                        found.insert(name, at);
                    }
                }
                let loader = file_below(root, &root.join(arch.loader())).filter(|_| !found.is_empty());
                let loader = loader.map(|at| (arch.loader().to_owned(), at));
                let place = |(name, at)| (format!("{}/{name}", arch.libraries()[0]), at);
                Ok(found.into_iter().map(place).chain(loader).collect())
            }
        }
    }
}

/// Returns the file that a path below a root names. An absolute link counts from the root: it must not lead to the host's
/// files.
fn file_below(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => match target.strip_prefix("/") {
                Ok(inside) => path = root.join(inside),
                Err(_) => path = path.parent()?.join(target),
            },
            Err(_) => return path.is_file().then_some(path),
        }
    }
    None
}

/// The most links that a path may follow.
const MOST_LINKS: usize = 8;

/// Returns the names of the libraries that a program or a library names itself.
fn needed(arch: Arch, file: &Path) -> Result<Vec<String>, LabError> {
    let (objdump, package) = arch.tool("objdump");
    let listing = command::output(Command::new(command::find(&objdump, package)?).arg("-p").arg(file))?;
    let name = |line: &str| line.trim().strip_prefix("NEEDED").map(|name| name.trim().to_owned());
    Ok(listing.lines().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_below_the_root() {
        let root = std::env::temp_dir().join(format!("macrotick-suppliers-{}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("sbin")).unwrap();
        fs::write(root.join("bin/own"), "").unwrap();
        for (target, link) in [("/bin/own", "sbin/absolute"), ("../bin/own", "sbin/relative"), ("/bin/sh", "sbin/host")]
        {
            symlink(target, root.join(link)).unwrap();
        }
        symlink("/sbin/loop", root.join("sbin/loop")).unwrap();
        for (link, wanted) in [("absolute", true), ("relative", true), ("host", false), ("loop", false)] {
            let found = file_below(&root, &root.join("sbin").join(link));
            assert_eq!(
                found.map(|path| path.canonicalize().unwrap()),
                wanted.then(|| root.join("bin/own").canonicalize().unwrap()),
                "{link}"
            );
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
