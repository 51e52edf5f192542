//! Skips work if its inputs have not changed: content hashes, stamps and locks.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Context, LabError};

/// A hash over named inputs. A length precedes every part, so neighbours cannot be confused.
#[derive(Default)]
pub struct Key(Sha256);

impl Key {
    /// Returns a key over no input.
    pub fn new() -> Key {
        Key::default()
    }

    /// Adds a piece of text or data.
    pub fn with(mut self, bytes: impl AsRef<[u8]>) -> Key {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a file's content (not its name).
    pub fn with_file(mut self, path: &Path) -> Result<Key, LabError> {
        let mut file = File::open(path).context("open", path)?;
        let length = file.metadata().context("stat", path)?.len();
        self.0.update(length.to_le_bytes());
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut buffer).context("read", path)?;
            if read == 0 {
                return Ok(self);
            }
            self.0.update(&buffer[..read]);
        }
    }

    /// Adds all files below a directory with their relative names, in the order of their names.
    pub fn with_tree(self, dir: &Path) -> Result<Key, LabError> {
        self.with_tree_but(dir, &[])
    }

    /// Adds the same, except some directories.
    pub fn with_tree_but(mut self, dir: &Path, without: &[&str]) -> Result<Key, LabError> {
        let counts = |path: &PathBuf| !without.iter().any(|left_out| path.starts_with(left_out));
        for path in files_below(dir)?.into_iter().filter(counts) {
            self = self.with(path.as_os_str().as_encoded_bytes()).with_file(&dir.join(&path))?;
        }
        Ok(self)
    }

    /// Adds the identity of a large file without reading it: name, size and time of change.
    pub fn with_identity(self, path: &Path) -> Result<Key, LabError> {
        let meta = fs::metadata(path).context("stat", path)?;
        let changed = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        let text = format!("{} {} {:?}", path.display(), meta.len(), changed);
        Ok(self.with(text))
    }

    /// Returns the key as hexadecimal text.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the regular files below `dir`, relative to it, sorted.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        let here = dir.join(&relative);
        for entry in fs::read_dir(&here).context("list", &here)? {
            let entry = entry.context("list", &here)?;
            let path = relative.join(entry.file_name());
            if entry.file_type().context("stat", &here)?.is_dir() {
                pending.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the stamp at `path` holds `key`.
pub fn is_fresh(path: &Path, key: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text == key)
}

/// Writes a stamp. Callers do this last: an interrupted step has no stamp and is repeated.
pub fn stamp(path: &Path, key: &str) -> Result<(), LabError> {
    fs::write(path, key).context("write", path)
}

/// Writes a file unless it has that content already: then `make` sees no change. It replaces a hard link and does not
/// write through it.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<bool, LabError> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).context("replace", path),
        _ => {}
    }
    make_parent(path)?;
    fs::write(path, content).context("write", path)?;
    Ok(true)
}

/// Creates the directory of `path`.
pub(crate) fn make_parent(path: &Path) -> Result<(), LabError> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent).context("make", parent),
        None => Ok(()),
    }
}

/// Removes a file or a directory; a missing one is no error.
pub fn remove(path: &Path) -> Result<(), LabError> {
    let result = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}

/// Marks a file as used at the present time. Returns whether it exists.
pub fn touch(path: &Path) -> bool {
    File::open(path).and_then(|file| file.set_modified(std::time::SystemTime::now())).is_ok()
}

/// Removes all files of `dir` with the given `prefix` of their names, except the newest `keep`.
pub fn keep_newest(dir: &Path, prefix: &str, keep: usize) -> Result<(), LabError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).context("list", dir)? {
        let entry = entry.context("list", dir)?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            match entry.metadata().and_then(|meta| meta.modified()) {
                Ok(changed) => found.push((changed, entry.path())),
                // Another process may clean up at the same time.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                error => drop(error.context("stat", &entry.path())?),
            }
        }
    }
    found.sort();
    let surplus = found.len().saturating_sub(keep);
    found[..surplus].iter().try_for_each(|(_, path)| remove(path))
}

/// An exclusive lock between processes, released when it is dropped.
pub struct Lock(#[allow(dead_code)] File);

impl Lock {
    /// Waits for the lock on `path`.
    pub fn take(path: &Path) -> Result<Lock, LabError> {
        make_parent(path)?;
        let file = File::create(path).context("create", path)?;
        // SAFETY: flock takes a descriptor that `file` keeps open, and no memory.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
            0 => Ok(Lock(file)),
            _ => Err(std::io::Error::last_os_error()).context("lock", path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_parts_do_not_run_into_each_other() {
        assert_ne!(Key::new().with("ab").with("c").finish(), Key::new().with("a").with("bc").finish());
        assert_eq!(Key::new().with("ab").finish(), Key::new().with("ab").finish());
    }

    #[test]
    fn what_is_left_out_of_a_tree_decides_nothing() {
        let dir = std::env::temp_dir().join(format!("macrotick-key-{}", std::process::id()));
        let key = || Key::new().with_tree_but(&dir, &["tools"]).unwrap().finish();
        let write = |path: &str, text: &str| write_if_changed(&dir.join(path), text.as_bytes()).unwrap();
        write("kernel/a.c", "a");
        write("tools/b.c", "b");
        let before = key();
        write("tools/b.c", "c");
        assert_eq!(key(), before);
        write("kernel/tools.c", "d");
        assert_ne!(key(), before);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_hard_link_is_replaced_and_an_equal_file_left_alone() {
        let dir = std::env::temp_dir().join(format!("macrotick-cache-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (first, second) = (dir.join("first"), dir.join("second"));
        fs::write(&first, "old").unwrap();
        fs::hard_link(&first, &second).unwrap();
        assert!(!write_if_changed(&second, b"old").unwrap());
        assert!(write_if_changed(&second, b"new").unwrap());
        assert_eq!(fs::read_to_string(&first).unwrap(), "old");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn several_may_clean_up_at_once() {
        let dir = std::env::temp_dir().join(format!("macrotick-clean-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        std::thread::scope(|scope| {
            for one in 0..4 {
                let dir = &dir;
                scope.spawn(move || {
                    for round in 0..300 {
                        fs::write(dir.join(format!("state-{one}-{round}")), "").unwrap();
                        keep_newest(dir, "state-", 2).unwrap();
                    }
                });
            }
        });
        keep_newest(&dir, "state-", 2).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
        fs::remove_dir_all(&dir).unwrap();
    }
}
