//! The job's way to the guest: QEMU's firmware configuration device, read through its I/O ports.
//!
//! The device is not part of the guest's memory. A guest can therefore be saved before it has its job, and resumed with
//! any job (see `snapshot`). Reading the device does not depend on the time at which the host delivers data. Layout:
//! QEMU `docs/specs/fw_cfg.rst`.

/// The name of the job in QEMU's device.
pub const JOB: &str = "opt/macrotick/job";
/// The port of the panic device (QEMU `docs/specs/pvpanic.rst`). If the device exists, a write stops the machine at
/// once: this is the moment to save it. Without the device, the write has no effect.
pub const CHECKPOINT_PORT: u16 = 0x505;

/// 16-bit port that selects an item, and 8-bit port that reads it byte by byte.
const SELECT: u16 = 0x510;
const DATA: u16 = 0x511;
/// The item that lists the files.
const DIRECTORY: u16 = 0x19;
/// One entry of the list: size (4), item (2), reserved (2), name (56), in big-endian order.
const ENTRY: usize = 64;

/// Passes the checkpoint, then reads the job.
pub fn fetch_job() -> Result<Vec<u8>, String> {
    let _access = PortAccess::acquire()?;
    write8(CHECKPOINT_PORT, 1);
    let mut count = [0; 4];
    select(DIRECTORY);
    read(&mut count);
    let mut listing = vec![0; u32::from_be_bytes(count) as usize * ENTRY];
    read(&mut listing);
    let (item, size) = find(&listing, JOB).ok_or_else(|| format!("QEMU offers no {JOB}"))?;
    let mut job = vec![0; size];
    select(item);
    read(&mut job);
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

/// Permission for the ports, which is revoked at the end: it makes switches of the thread slower, and children inherit
/// it.
struct PortAccess;

impl PortAccess {
    fn acquire() -> Result<PortAccess, String> {
        match set_access(true) {
            true => Ok(PortAccess),
            false => Err(format!("no access to I/O ports: {}", std::io::Error::last_os_error())),
        }
    }
}

impl Drop for PortAccess {
    fn drop(&mut self) {
        set_access(false);
    }
}

fn set_access(on: bool) -> bool {
    // SAFETY: ioperm changes only which ports this thread may use.
    [(CHECKPOINT_PORT, 1), (SELECT, 2)]
        .into_iter()
        .all(|(port, count)| unsafe { libc::ioperm(port.into(), count, on.into()) } == 0)
}

fn select(item: u16) {
    // SAFETY: a write to the device's selector, permitted by `PortAccess`; it changes no memory.
    unsafe { std::arch::asm!("out dx, ax", in("dx") SELECT, in("ax") item, options(nomem, nostack, preserves_flags)) }
}

fn read(buffer: &mut [u8]) {
    // SAFETY: reads exactly `buffer.len()` bytes into `buffer`; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!("rep insb", in("dx") DATA, inout("rdi") buffer.as_mut_ptr() => _,
                        inout("rcx") buffer.len() => _, options(nostack, preserves_flags));
    }
}

fn write8(port: u16, value: u8) {
    // SAFETY: a write to a port permitted by `PortAccess`. The host may save the memory here, so it must be up to date.
    unsafe { std::arch::asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) }
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
