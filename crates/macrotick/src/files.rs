//! The files of a call.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::CliError;

/// The files that a call reads and writes.
#[derive(Default)]
pub struct Files<'a> {
    read: Vec<&'a Path>,
    written: Vec<&'a Path>,
}

impl<'a> Files<'a> {
    /// Adds files that the call reads.
    pub fn reads(mut self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Files<'a> {
        self.read.extend(paths.into_iter().map(PathBuf::as_path));
        self
    }

    /// Adds files that the call writes.
    pub fn writes(mut self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Files<'a> {
        self.written.extend(paths.into_iter().map(PathBuf::as_path));
        self
    }

    /// Checks, before anything is read or written, that no written file replaces another file of the call. Also checks
    /// that their directories are there: a long call does not end without a place for its result.
    ///
    /// # Errors
    ///
    /// [`CliError::SameFile`] for such a file, and [`CliError::Dash`] for the name `-`, which is standard output elsewhere.
    /// [`CliError::Write`] for a file without a directory, or with a directory in its place.
    pub fn check(&self) -> Result<(), CliError> {
        let mut seen: Vec<PathBuf> = self.read.iter().copied().map(resolved).collect();
        for path in &self.written {
            if path.as_os_str() == "-" {
                return Err(CliError::Dash);
            }
            if seen.contains(&resolved(path)) {
                return Err(CliError::SameFile { path: path.to_path_buf() });
            }
            has_place(path).map_err(|source| CliError::Write { path: path.to_path_buf(), source })?;
            seen.push(resolved(path));
        }
        Ok(())
    }
}

/// Whether a file can be in this place, apart from permissions.
fn has_place(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !fs::metadata(parent)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(())
}

/// Returns the path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or(path.into())
}
