//! Opens the device of the scheduling class, `/dev/macrotick`, and reads its table.
//!
//! The module that installs a table is also its undo: it removes the table.

use std::io;

use macrotick_uapi::{self as uapi, Device};

use crate::error::HostFailure;

/// The number of reads, if the table changes during each of them.
const ATTEMPTS: u32 = 5;

/// Opens the device.
pub fn open() -> Result<Device, HostFailure> {
    Device::open().map_err(|error| match error.errno {
        libc::ENOENT => HostFailure::NoKernelClass,
        errno => HostFailure::Device(io::Error::from_raw_os_error(errno)),
    })
}

/// Makes the error of a failed call of the device.
pub fn failed(what: &str, errno: i32) -> HostFailure {
    HostFailure::Call { what: what.into(), source: io::Error::from_raw_os_error(errno) }
}

/// A table with its entities and windows.
pub type Table = (uapi::Get, Vec<uapi::Entity>, Vec<uapi::Window>);

/// Returns the installed table, or `None` if there is no table.
pub fn installed() -> Result<Option<Table>, HostFailure> {
    let device = open()?;
    unchanged(|| read_table(&device))
}

/// Reads one consistent table. If the table changes during a read, `read` returns `EAGAIN`, or the device's error for a
/// place that no longer exists.
pub fn unchanged<T>(read: impl Fn() -> Result<T, i32>) -> Result<T, HostFailure> {
    let mut last = libc::EAGAIN;
    for _ in 0..ATTEMPTS {
        match read() {
            Err(errno @ (libc::ENOENT | libc::ENOSPC | libc::EAGAIN)) => last = errno,
            result => return result.map_err(|errno| failed("return the table", errno)),
        }
    }
    Err(failed("return the table", last))
}

/// Reads the installed table. Fails with `EAGAIN` if it changed during the read.
pub fn read_table(device: &Device) -> Result<Option<Table>, i32> {
    let counts = device.get()?;
    if counts.state == uapi::state::EMPTY {
        return Ok(None);
    }
    let mut entities = vec![uapi::Entity::default(); counts.nr_entities as usize];
    let mut windows = vec![uapi::Window::default(); counts.nr_windows as usize];
    let get = device.read(&mut entities, &mut windows)?;
    if (get.nr_entities, get.nr_windows) != (counts.nr_entities, counts.nr_windows) {
        return Err(libc::EAGAIN);
    }
    Ok(Some((get, entities, windows)))
}

/// Returns an entity's name, which ends at its first zero, as text.
pub fn text(name: &[u8]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_table_that_changes_is_read_again_and_not_for_ever() {
        let left = Cell::new(2);
        let read = || match left.replace(left.get() - 1) {
            0 => Ok(7),
            _ => Err(libc::EAGAIN),
        };
        assert_eq!(unchanged(read).unwrap(), 7);
        let refused = unchanged::<()>(|| Err(libc::ENOENT)).unwrap_err();
        assert_eq!(refused.errno(), Some(libc::ENOENT));
    }

    #[test]
    fn a_name_ends_at_its_zero() {
        assert_eq!((text(b"ab\0c"), text(b"abc")), ("ab".into(), "abc".into()));
    }
}
