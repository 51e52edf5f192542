//! The shared libraries that a program of the host needs; a guest gets them at the same paths.

use std::path::Path;
use std::process::Command;

use crate::command;
use crate::error::LabError;

/// Variables for the host's loader that the guest's loader does not have.
const HOST_ONLY: [&str; 2] = ["LD_LIBRARY_PATH", "LD_PRELOAD"];

/// The loader's index of libraries outside of its own directories. In a guest without it, the loader searches without
/// an index.
pub const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// Returns the loader and the shared libraries of a program or of a library, by the paths under which they are
/// searched. For a static program the list is empty.
pub fn of(program: &Path) -> Result<Vec<String>, LabError> {
    let mut ldd = Command::new(command::find("ldd", "libc-bin")?);
    for variable in HOST_ONLY {
        ldd.env_remove(variable);
    }
    let listing = command::output(ldd.arg(program))?;
    let libraries = parse(&listing);
    let absent = libraries.iter().map(String::as_str).find(|library| !Path::new(library).exists());
    match missing(&listing).or(absent) {
        Some(library) => Err(LabError::Library { program: program.into(), library: library.into() }),
        None => Ok(libraries),
    }
}

/// Parses `name => /path (address)` or `/path (address)`; the kernel's own `linux-vdso` has no path. If ldd replaces a
/// program's loader by its own, the line is `/path => /path (address)`.
fn parse(listing: &str) -> Vec<String> {
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    listing.lines().filter_map(path).collect()
}

/// Returns the first library that the host does not have.
fn missing(listing: &str) -> Option<&str> {
    listing.lines().find_map(|line| line.trim().strip_suffix(" => not found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_understood() {
        let listing =
            "\tlinux-vdso.so.1 (0x00007fff)\n\tlibnuma.so.1 => /lib/x86_64-linux-gnu/libnuma.so.1 (0x00007f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(parse(listing), ["/lib/x86_64-linux-gnu/libnuma.so.1", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(missing(listing), None);
        assert_eq!(parse("\t/lib/ld-other.so.1 => /lib64/ld-linux-x86-64.so.2 (0x00007f)\n"), ["/lib/ld-other.so.1"]);
        assert!(parse("\tstatically linked\n").is_empty());
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        assert_eq!(missing("\tlibc.so.6 => /lib/libc.so.6 (0x1)\n\tlibx.so.1 => not found\n"), Some("libx.so.1"));
    }
}
