//! Locks of files: one that keeps two runs on one host apart, and those that all programs wait for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::HostFailure;
use crate::sys;

/// A lock that is held as long as the value lives. The kernel releases it when the process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Returns the path of a user's file that exists while something runs. It is in `/run` if that exists (not in every
/// minimal image) and the user is root. Otherwise it is in the directory for temporary files. `suffix` distinguishes
/// such files.
pub(crate) fn runtime_path(user: u32, suffix: &str) -> PathBuf {
    let run = Path::new("/run");
    match user == ROOT && run.is_dir() {
        true => run.join(format!("macrotick{suffix}")),
        false => std::env::temp_dir().join(format!("macrotick-{user}{suffix}")),
    }
}

/// The user that runs plans on the kernel's table.
pub const ROOT: u32 = 0;
/// The suffix of the lock's file.
const SUFFIX: &str = ".lock";

impl Lock {
    /// Takes the lock, or fails with the process that holds it.
    pub fn take(path: Option<&Path>) -> Result<Lock, HostFailure> {
        let path = path.map_or_else(|| runtime_path(sys::user(), SUFFIX), Path::to_path_buf);
        let failed = |source| HostFailure::file("use the lock file", &path)(source);
        // Other users may read which process has it.
        let mut file = open(&path, 0o644).map_err(failed)?;
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

    /// Returns the process that holds the lock of a user, if there is one. This does not touch the lock.
    pub fn holder(user: u32) -> Option<u32> {
        holder(&runtime_path(user, SUFFIX), user)
    }
}

/// A lock that programs wait for. It is held as long as the value lives.
#[derive(Debug)]
pub struct Turn {
    _file: File,
}

impl Turn {
    /// Waits for other programs that hold the lock of this file. Creates the file if it is missing.
    pub fn take(path: &Path) -> Result<Turn, HostFailure> {
        let file = open(path, 0o600).map_err(HostFailure::file("use the lock file", path))?;
        flock(&file, libc::LOCK_EX).map_err(HostFailure::file("lock", path))?;
        Ok(Turn { _file: file })
    }
}

/// A file with a text that is locked as long as the value lives.
#[derive(Debug)]
pub(crate) struct Held {
    _file: File,
}

impl Held {
    /// Writes the text, and locks the file. The caller sees to it that no other program does so at the same time.
    pub(crate) fn take(path: &Path, text: &str) -> Result<Held, HostFailure> {
        let mut file = open(path, 0o600).map_err(HostFailure::file("use the lock file", path))?;
        flock(&file, libc::LOCK_EX | libc::LOCK_NB).map_err(HostFailure::file("lock", path))?;
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(HostFailure::file("write", path))?;
        Ok(Held { _file: file })
    }
}

/// Whether a living process holds the lock of a file that is there.
pub(crate) fn is_held(path: &Path) -> Result<bool, HostFailure> {
    let file = File::open(path).map_err(HostFailure::file("open", path))?;
    match flock(&file, libc::LOCK_SH | libc::LOCK_NB) {
        Ok(()) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(true),
        Err(error) => Err(HostFailure::file("lock", path)(error)),
    }
}

/// Opens the file of a lock, and creates it if it is missing. In a directory for temporary files, another user may have
/// placed something there. A link would redirect the writes to another file. The open of a foreign pipe would block for
/// ever.
fn open(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(mode);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    match (meta.is_file() && meta.nlink() <= 1, [ROOT, sys::user()].contains(&meta.uid())) {
        (true, true) => Ok(file),
        (true, false) => Err(io::Error::other(format!("it belongs to user {}", meta.uid()))),
        (false, _) => Err(io::Error::other("it is not a regular file with a single name")),
    }
}

fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::flock(file.as_raw_fd(), operation) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the process in the lock file, if `/proc/locks` has a lock of this process on this file. Ignores a file that
/// another user owns.
fn holder(path: &Path, user: u32) -> Option<u32> {
    let meta = fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.uid() == user)?;
    let told: u32 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    let inode = meta.ino();
    // With this capacity the first read is a long one. The kernel continues a further read by the position in its list, and
    // skips a lock if another program released one meanwhile.
    let mut locks = String::with_capacity(1 << 16);
    File::open("/proc/locks").ok()?.read_to_string(&mut locks).ok()?;
    locks.lines().any(|line| is_lock_of(line, told, inode)).then_some(told)
}

/// Whether the line describes this lock: `1: FLOCK  ADVISORY  WRITE 1234 00:1b:5678 0 EOF`
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

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("macrotick-lock-{name}-{}", std::process::id()))
    }

    #[test]
    fn the_second_is_told_who_was_first() {
        let path = path("test");
        let first = Lock::take(Some(&path)).unwrap();
        match Lock::take(Some(&path)) {
            Err(HostFailure::Busy { pid, .. }) => assert_eq!(pid, std::process::id().to_string()),
            other => panic!("{other:?}"),
        }
        let holder = |user| holder(&path, user);
        assert_eq!(holder(sys::user()), Some(std::process::id()));
        assert_eq!(holder(sys::user() + 1), None, "it is not that user's");
        drop(first);
        assert_eq!(holder(sys::user()), None);
        Lock::take(Some(&path)).unwrap();
        fs::remove_file(&path).unwrap();
    }

    /// In the place of a lock's file, any user may have put something before.
    #[test]
    fn what_lies_in_the_place_of_a_lock_is_not_written_to() {
        let [own, place] = ["victim", "place"].map(path);
        fs::write(&own, "precious").unwrap();
        type Lay = fn(&Path, &Path) -> io::Result<()>;
        let lays: [Lay; 3] = [
            |own, place| std::os::unix::fs::symlink(own, place),
            |own, place| fs::hard_link(own, place),
            |_, place| {
                let place = std::ffi::CString::new(place.as_os_str().as_encoded_bytes()).unwrap();
                // SAFETY: a terminated string.
                assert_eq!(unsafe { libc::mkfifo(place.as_ptr(), 0o600) }, 0);
                Ok(())
            },
        ];
        for (lay, said) in
            lays.iter().zip(["Too many levels of symbolic links", "not a regular file", "not a regular file"])
        {
            let _ = fs::remove_file(&place);
            lay(&own, &place).unwrap();
            for taken in [Lock::take(Some(&place)).map(drop), Turn::take(&place).map(drop)] {
                let refused = taken.unwrap_err().to_string();
                assert!(refused.contains(said), "{refused}");
            }
            assert_eq!(fs::read_to_string(&own).unwrap(), "precious");
        }
        [own, place].iter().for_each(|path| fs::remove_file(path).unwrap());
    }

    /// Only root can change the owner of a file.
    #[test]
    fn the_lock_of_somebody_else_is_not_used() {
        let path = path("foreign");
        fs::write(&path, "").unwrap();
        if sys::user() == ROOT {
            std::os::unix::fs::chown(&path, Some(7), None).unwrap();
            let refused = Lock::take(Some(&path)).unwrap_err().to_string();
            // Linux itself may refuse it in a directory for temporary files (fs.protected_regular).
            assert!(refused.contains("it belongs to user 7") || refused.contains("Permission denied"), "{refused}");
        }
        fs::remove_file(&path).unwrap();
    }
}
