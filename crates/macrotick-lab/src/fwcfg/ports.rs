//! The device behind I/O ports, on x86-64.

/// The port of the panic device (QEMU `docs/specs/pvpanic.rst`). If the device exists, a write stops the machine at
/// once: this is the moment to save it. Without the device, the write has no effect.
const CHECKPOINT: u16 = 0x505;
/// 16-bit port that selects an item, and 8-bit port that reads it byte by byte.
const SELECT: u16 = 0x510;
const DATA: u16 = 0x511;

/// Permission for the ports, which is revoked at the end: it makes switches of the thread slower, and children inherit
/// it.
pub struct Device(());

impl Device {
    pub fn open() -> Result<Device, String> {
        match set_access(true) {
            true => Ok(Device(())),
            false => Err(format!("no access to I/O ports: {}", std::io::Error::last_os_error())),
        }
    }

    pub fn select(&self, item: u16) {
        // SAFETY: a write to the device's selector, which this thread may use; it changes no memory.
        unsafe {
            std::arch::asm!("out dx, ax", in("dx") SELECT, in("ax") item, options(nomem, nostack, preserves_flags));
        }
    }

    pub fn read(&self, buffer: &mut [u8]) {
        // SAFETY: reads exactly `buffer.len()` bytes into `buffer`; the direction flag is clear by the ABI.
        unsafe {
            std::arch::asm!("rep insb", in("dx") DATA, inout("rdi") buffer.as_mut_ptr() => _,
                            inout("rcx") buffer.len() => _, options(nostack, preserves_flags));
        }
    }

    pub fn pass_checkpoint(&self) {
        // SAFETY: a write to a port that this thread may use. The host may save the memory here, so it must be up to date.
        unsafe {
            std::arch::asm!("out dx, al", in("dx") CHECKPOINT, in("al") 1u8, options(nostack, preserves_flags));
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        set_access(false);
    }
}

fn set_access(on: bool) -> bool {
    // SAFETY: ioperm changes only which ports this thread may use.
    [(CHECKPOINT, 1), (SELECT, 2)]
        .into_iter()
        .all(|(port, count)| unsafe { libc::ioperm(port.into(), count, on.into()) } == 0)
}
