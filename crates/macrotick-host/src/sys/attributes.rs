//! Extended attributes of files.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::check;

/// Returns an extended attribute of a file; `None`: it has none.
pub fn attribute(path: &Path, name: &CStr) -> Option<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut value = vec![0u8; MOST_OF_ATTRIBUTE];
    // SAFETY: terminated names, and a buffer of this length to write to.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

/// Sets an extended attribute of a file.
pub fn set_attribute(path: &Path, name: &CStr, value: &[u8]) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: terminated names, and a buffer of this length to read.
    let result = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    check(result.into()).map(drop)
}

/// The kernel's limit (`XATTR_SIZE_MAX`).
const MOST_OF_ATTRIBUTE: usize = 64 << 10;
