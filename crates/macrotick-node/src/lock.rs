//! The lock that keeps two runs on one host apart.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::error::NodeError;
use crate::sys;

/// Held for as long as it lives; the kernel gives it back when the process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// `/run` where it exists (not in every minimal image) and is ours, else the directory for temporary files.
fn default_path() -> PathBuf {
    let run = Path::new("/run");
    if sys::is_root() && run.is_dir() {
        return run.join("macrotick.lock");
    }
    // SAFETY: no arguments.
    let user = unsafe { libc::geteuid() };
    std::env::temp_dir().join(format!("macrotick-{user}.lock"))
}

impl Lock {
    /// Takes the lock, or tells who has it.
    pub fn take(path: Option<&Path>) -> Result<Lock, NodeError> {
        let path = path.map_or_else(default_path, Path::to_path_buf);
        let failed = |source| NodeError::Lock { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        // SAFETY: no memory is passed.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EWOULDBLOCK) {
                return Err(failed(error));
            }
            let mut pid = String::new();
            file.read_to_string(&mut pid).map_err(failed)?;
            return Err(NodeError::Busy { pid: pid.trim().into(), path });
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_was_first() {
        let path = std::env::temp_dir().join(format!("macrotick-lock-test-{}", std::process::id()));
        let first = Lock::take(Some(&path)).unwrap();
        match Lock::take(Some(&path)) {
            Err(NodeError::Busy { pid, .. }) => assert_eq!(pid, std::process::id().to_string()),
            other => panic!("{other:?}"),
        }
        drop(first);
        Lock::take(Some(&path)).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
