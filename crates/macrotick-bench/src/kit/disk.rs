//! A disk in the guest's memory, for loads that write: a block device with ext4. Its journal and writeback run in
//! kernel threads. It has no interrupts, and its runs repeat to the bit.

use std::ffi::CString;
use std::fs;
use std::process::{Command, Stdio};

use super::process::last_error;

/// The mount point in the guest.
pub const PATH: &str = "/disk";
const DEVICE: &str = "/dev/ram0";
/// A program that [`mount`] needs in the guest. Under this name it is not busybox's program, which has no ext4.
pub const MAKER: &str = "/sbin/mkfs.ext4";
/// The identity of the file system. Without it, mkfs draws one at random.
const IDENTITY: &str = "6d616372-6f74-4963-8b6b-000000000001";

/// Makes a file system in the guest and mounts it, unless it is mounted.
pub fn mount() -> Result<(), String> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| format!("/proc/self/mounts: {error}"))?;
    if mounts.lines().any(|mount| mount.split(' ').nth(1) == Some(PATH)) {
        return Ok(());
    }
    let identity = ["-U", IDENTITY, "-E", &format!("hash_seed={IDENTITY}")].map(String::from);
    let mut maker = Command::new(MAKER);
    maker.arg("-q").args(identity).arg(DEVICE).stdin(Stdio::null()).stdout(Stdio::null());
    let status = maker.status().map_err(|error| format!("{MAKER}: {error}"))?;
    if !status.success() {
        return Err(format!("{MAKER} {DEVICE}: {status}"));
    }
    fs::create_dir_all(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let [device, path] = [DEVICE, PATH].map(|text| CString::new(text).expect("no zero byte"));
    // SAFETY: strings; there are no options.
    match unsafe { libc::mount(device.as_ptr(), path.as_ptr(), c"ext4".as_ptr(), 0, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(last_error("mounting the disk")),
    }
}
