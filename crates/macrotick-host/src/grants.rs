//! The reservations that a privileged helper holds for ordinary users, one file for each. Helpers count with it how much a
//! user has already.
//!
//! The owner of a thread is no such account: a thread can change its user, and keeps its reservation.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::HostFailure;
use crate::lock::{is_held, Held, Turn};

/// The directory in `/run`.
pub const FOLDER: &str = "/run/macrotick-grant";
/// The name of the file that helpers take turns with.
const TURN: &str = "turn";

/// The account, while no other helper changes it.
pub struct Grants {
    folder: PathBuf,
    _turn: Turn,
}

/// A reservation in the account. It leaves the account when it is dropped, or when its process ends.
pub struct Grant {
    path: PathBuf,
    _held: Held,
}

impl Grants {
    /// Waits for other helpers, and opens the account in this directory. Makes the directory if it is missing.
    ///
    /// # Errors
    ///
    /// The directory that cannot be used.
    pub fn open(folder: &Path) -> Result<Grants, HostFailure> {
        if !folder.is_dir() {
            let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(folder);
            made.map_err(HostFailure::file("make", folder))?;
        }
        Ok(Grants { _turn: Turn::take(&folder.join(TURN))?, folder: folder.to_owned() })
    }

    /// Returns the bandwidths of a user's reservations, in millionths of a CPU. Removes those of helpers that were killed.
    ///
    /// # Errors
    ///
    /// The directory or the file that cannot be read.
    pub fn of(&self, user: u32) -> Result<Vec<u64>, HostFailure> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(HostFailure::file("read", &self.folder))? {
            let path = entry.map_err(HostFailure::file("read", &self.folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.split_once('.').and_then(|(owner, _)| owner.parse().ok()) != Some(user) {
                continue;
            }
            match bandwidth(&path) {
                Ok(bandwidth) => all.extend(bandwidth),
                // A helper ends without its turn.
                Err(failure) if failure.errno() == Some(libc::ENOENT) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(all)
    }

    /// Adds a reservation of this process, in millionths of a CPU.
    ///
    /// # Errors
    ///
    /// The file that cannot be written.
    pub fn add(&self, user: u32, bandwidth: u64) -> Result<Grant, HostFailure> {
        let path = self.folder.join(format!("{user}.{}", std::process::id()));
        let held = Held::take(&path, &bandwidth.to_string())?;
        Ok(Grant { path, _held: held })
    }
}

/// Returns the bandwidth in a file of the account. `None`: its helper was killed, and the file is removed.
fn bandwidth(path: &Path) -> Result<Option<u64>, HostFailure> {
    if !is_held(path)? {
        fs::remove_file(path).map_err(HostFailure::file("remove", path))?;
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(HostFailure::file("read", path))?;
    // A text that is no number counts as a whole CPU.
    Ok(Some(text.trim().parse().unwrap_or(1_000_000)))
}

impl Drop for Grant {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether this file is only the administrator's to change: it belongs to root, and no other user may write it.
///
/// # Errors
///
/// The file that cannot be examined.
pub fn is_of_the_administrator(file: &File, path: &Path) -> Result<bool, HostFailure> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata().map_err(HostFailure::file("examine", path))?;
    Ok(meta.is_file() && meta.uid() == crate::lock::ROOT && meta.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_what_living_helpers_hold_for_it() {
        let folder = std::env::temp_dir().join(format!("macrotick-grants-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let grants = Grants::open(&folder).unwrap();
        assert_eq!(grants.of(1000).unwrap(), [0; 0]);
        let grant = grants.add(1000, 250_000).unwrap();
        // That of a killed helper, which holds no lock, and those of other users.
        fs::write(folder.join("1000.1"), "400000").unwrap();
        fs::write(folder.join("100.1"), "400000").unwrap();
        assert_eq!(grants.of(1000).unwrap(), [250_000]);
        assert!(!folder.join("1000.1").exists() && folder.join("100.1").exists());
        drop(grant);
        assert_eq!(grants.of(1000).unwrap(), [0; 0]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
