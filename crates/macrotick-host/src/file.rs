//! Reads, writes and restores the files of this host.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::HostFailure;
use crate::lock::ROOT;
use crate::sys;
use crate::undo::Undo;

/// Reads a whole file.
pub fn read(path: &Path) -> Result<String, HostFailure> {
    fs::read_to_string(path).map_err(HostFailure::file("read", path))
}

/// Reads a file with a single number.
pub(crate) fn read_number(path: &Path) -> io::Result<i64> {
    fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

/// Reads a file of this program in a directory for temporary files. `None`: there is none, or another user made it.
pub(crate) fn read_own(path: &Path) -> Option<String> {
    let meta = fs::symlink_metadata(path).ok()?;
    let is_own = meta.is_file() && (meta.uid() == ROOT || meta.uid() == sys::user());
    is_own.then(|| fs::read_to_string(path).ok()).flatten()
}

/// Replaces the contents of a file as a whole. If this fails, the old file stays. Without a text, there is no file
/// afterwards.
pub(crate) fn replace(path: &Path, text: Option<&str>) -> io::Result<()> {
    let Some(text) = text else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let partial = path.with_extension("partial");
    let _ = fs::remove_file(&partial);
    File::create_new(&partial)?.write_all(text.as_bytes())?;
    fs::rename(&partial, path)
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
