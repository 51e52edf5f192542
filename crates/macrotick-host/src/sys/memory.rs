//! Memory that processes share, and memory that never causes a page fault.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

use super::check;
use super::process::is_root;

/// Makes an anonymous file in memory.
pub fn memory_file(name: &CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a terminated name; the returned descriptor is ours.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags))?;
        Ok(File::from_raw_fd(fd as i32))
    }
}

/// Forbids a memory file to change its size: writes beyond its end fail.
pub fn seal_size(file: &File) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW | libc::F_SEAL_SHRINK) }.into())
        .map(drop)
}

/// Locks all present memory of the process. For root it also locks future memory; for other users a mapping beyond the
/// limit would fail. If the kernel refuses, the process works, but is less deterministic.
pub fn lock_memory() {
    let what = if is_root() { libc::MCL_CURRENT | libc::MCL_FUTURE } else { libc::MCL_CURRENT };
    // SAFETY: no memory is passed.
    unsafe { libc::mlockall(what) };
}
