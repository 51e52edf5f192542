//! Reads, writes and restores the files of this host.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::HostFailure;
use crate::undo::Undo;

/// Reads a whole file.
pub fn read(path: &Path) -> Result<String, HostFailure> {
    fs::read_to_string(path).map_err(HostFailure::file("read", path))
}

/// Reads a file with a single number.
pub(crate) fn read_number(path: &Path) -> io::Result<i64> {
    fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

/// Writes exactly this text. It has no undo: use it only for files that end with their control group or with the
/// machine, such as a lab's guest. For all other files use [`change`].
pub fn write(path: &Path, text: &str) -> Result<(), HostFailure> {
    fs::write(path, text).map_err(HostFailure::file("write", path))
}

/// Writes exactly this text. The undo writes the former contents.
pub fn change(path: &Path, text: &str, undo: &mut Undo) -> Result<(), HostFailure> {
    let before = read(path)?;
    fs::write(path, text).map_err(HostFailure::file("write to", path))?;
    let path = path.to_owned();
    undo.later(move || drop(fs::write(path, before)));
    Ok(())
}
