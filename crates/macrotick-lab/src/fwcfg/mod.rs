//! The job's way to the guest: QEMU's firmware configuration device.
//!
//! The device is not part of the guest's memory. A guest can therefore be saved before it has its job, and resumed with
//! any job (see `snapshot`). Reading the device does not depend on the time at which the host delivers data. Layout:
//! QEMU `docs/specs/fw_cfg.rst`.

#[cfg(target_arch = "aarch64")]
#[path = "memory.rs"]
mod device;
#[cfg(target_arch = "x86_64")]
#[path = "ports.rs"]
mod device;

use device::Device;

/// The name of the job in QEMU's device.
pub const JOB: &str = "opt/macrotick/job";
/// The item that lists the files.
const DIRECTORY: u16 = 0x19;
/// One entry of the list: size (4), item (2), reserved (2), name (56), in big-endian order.
const ENTRY: usize = 64;

/// Passes the checkpoint, then reads the job.
pub fn fetch_job() -> Result<Vec<u8>, String> {
    let device = Device::open()?;
    device.pass_checkpoint();
    let mut count = [0; 4];
    device.select(DIRECTORY);
    device.read(&mut count);
    let mut listing = vec![0; u32::from_be_bytes(count) as usize * ENTRY];
    device.read(&mut listing);
    let (item, size) = find(&listing, JOB).ok_or_else(|| format!("QEMU offers no {JOB}"))?;
    let mut job = vec![0; size];
    device.select(item);
    device.read(&mut job);
    Ok(job)
}

/// Returns the item and the size of a named file.
fn find(listing: &[u8], name: &str) -> Option<(u16, usize)> {
    let entry = listing.chunks_exact(ENTRY).find(|entry| {
        let end = entry[8..].iter().position(|&byte| byte == 0).unwrap_or(ENTRY - 8);
        &entry[8..8 + end] == name.as_bytes()
    })?;
    let size = u32::from_be_bytes(entry[..4].try_into().expect("four bytes"));
    Some((u16::from_be_bytes([entry[4], entry[5]]), size as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_whole_name() {
        let entry = |size: u32, item: u16, name: &str| {
            let mut entry = [&size.to_be_bytes()[..], &item.to_be_bytes(), &[0, 0], name.as_bytes()].concat();
            entry.resize(ENTRY, 0);
            entry
        };
        let listing = [entry(5, 0x20, "opt/macrotick/jobs"), entry(300, 0x21, JOB)].concat();
        assert_eq!(find(&listing, JOB), Some((0x21, 300)));
        assert_eq!(find(&listing[..ENTRY], JOB), None);
    }
}
