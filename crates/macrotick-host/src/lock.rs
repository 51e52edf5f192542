//! Locks of files: the one that keeps two runs on one host apart, and those for which everybody waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::HostFailure;
use crate::sys;

/// Held for as long as it lives; the kernel gives it back when the process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Where a user keeps what is there while something runs: in `/run` where that exists (not in every minimal image) and
/// is the user's, else in the directory for temporary files. `suffix` tells such files apart.
pub(crate) fn runtime_path(user: u32, suffix: &str) -> PathBuf {
    let run = Path::new("/run");
    match user == ROOT && run.is_dir() {
        true => run.join(format!("macrotick{suffix}")),
        false => std::env::temp_dir().join(format!("macrotick-{user}{suffix}")),
    }
}

/// The user that runs what is on the kernel's table.
pub const ROOT: u32 = 0;
/// Of the lock's file.
const SUFFIX: &str = ".lock";

impl Lock {
    /// Takes the lock, or tells who has it.
    pub fn take(path: Option<&Path>) -> Result<Lock, HostFailure> {
        let path = path.map_or_else(|| runtime_path(sys::user(), SUFFIX), Path::to_path_buf);
        let failed = |source| HostFailure::file("use the lock file", &path)(source);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        if let Err(error) = flock(&file, libc::LOCK_EX | libc::LOCK_NB) {
            if error.raw_os_error() != Some(libc::EWOULDBLOCK) {
                return Err(failed(error));
            }
            let mut pid = String::new();
            file.read_to_string(&mut pid).map_err(failed)?;
            return Err(HostFailure::Busy { pid: pid.trim().into(), path });
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Lock { _file: file })
    }

    /// The process that holds the lock of a user, if one does. It is not touched by that.
    pub fn holder(user: u32) -> Option<u32> {
        holder(&runtime_path(user, SUFFIX))
    }
}

/// A lock that is waited for, and held for as long as it lives.
#[derive(Debug)]
pub struct Turn {
    _file: File,
}

impl Turn {
    /// Waits for the others that have the lock of this file, which is made where it is not.
    pub fn take(path: &Path) -> Result<Turn, HostFailure> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(path).map_err(HostFailure::file("open", path))?;
        flock(&file, libc::LOCK_EX).map_err(HostFailure::file("lock", path))?;
        Ok(Turn { _file: file })
    }
}

fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::flock(file.as_raw_fd(), operation) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel's list says of a lock its process and its file, which says its process, too.
fn holder(path: &Path) -> Option<u32> {
    let told: u32 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    let inode = fs::metadata(path).ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().any(|line| is_lock_of(line, told, inode)).then_some(told)
}

/// `1: FLOCK  ADVISORY  WRITE 1234 00:1b:5678 0 EOF`
fn is_lock_of(line: &str, process: u32, inode: u64) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", holder, file, ..] = words[..] else { return false };
    holder.parse() == Ok(process) && file.rsplit(':').next().and_then(|text| text.parse().ok()) == Some(inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_known_by_its_process_and_its_file() {
        let line = "3: FLOCK  ADVISORY  WRITE 77 00:19:1234 0 EOF";
        assert!(is_lock_of(line, 77, 1234));
        assert!(!is_lock_of(line, 78, 1234) && !is_lock_of(line, 77, 123) && !is_lock_of("3: -> FLOCK", 77, 1234));
    }

    #[test]
    fn the_second_is_told_who_was_first() {
        let path = std::env::temp_dir().join(format!("macrotick-lock-test-{}", std::process::id()));
        let first = Lock::take(Some(&path)).unwrap();
        match Lock::take(Some(&path)) {
            Err(HostFailure::Busy { pid, .. }) => assert_eq!(pid, std::process::id().to_string()),
            other => panic!("{other:?}"),
        }
        assert_eq!(holder(&path), Some(std::process::id()));
        drop(first);
        assert_eq!(holder(&path), None);
        Lock::take(Some(&path)).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
