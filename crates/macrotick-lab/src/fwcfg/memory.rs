//! The device in memory, on arm64: at a fixed place of QEMU's machine `virt` (`hw/arm/virt.c`).

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

/// The place of the registers in physical memory, and the size of their page.
const PLACE: libc::off_t = 0x0902_0000;
const PAGE: usize = 4096;
/// The register that reads the selected item, 1 to 8 bytes at a time in the order of the item.
const DATA: usize = 0;
/// The 16-bit register that selects an item, in big-endian order.
const SELECT: usize = 8;

/// The registers.
pub struct Device(*mut u8);

impl Device {
    pub fn open() -> Result<Device, String> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_SYNC).open("/dev/mem");
        let file = file.map_err(|error| format!("no access to the device of QEMU: /dev/mem: {error}"))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of a page that is the device's.
        let at = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, libc::MAP_SHARED, file.as_raw_fd(), PLACE) };
        match at {
            libc::MAP_FAILED => Err(format!("no access to the device of QEMU: {}", std::io::Error::last_os_error())),
            at => Ok(Device(at.cast())),
        }
    }

    pub fn select(&self, item: u16) {
        // SAFETY: a register of the device; it changes no memory.
        unsafe { self.0.add(SELECT).cast::<u16>().write_volatile(item.to_be()) }
    }

    pub fn read(&self, buffer: &mut [u8]) {
        let mut words = buffer.chunks_exact_mut(size_of::<u64>());
        for word in &mut words {
            // SAFETY: a register of the device; it changes no memory.
            word.copy_from_slice(&unsafe { self.0.add(DATA).cast::<u64>().read_volatile() }.to_ne_bytes());
        }
        for byte in words.into_remainder() {
            // SAFETY: as above.
            *byte = unsafe { self.0.add(DATA).read_volatile() };
        }
    }

    /// A machine with this processor is not saved.
    pub fn pass_checkpoint(&self) {}
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no pointer into it is left.
        unsafe { libc::munmap(self.0.cast(), PAGE) };
    }
}
