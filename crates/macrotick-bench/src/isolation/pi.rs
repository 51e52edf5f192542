//! Locks with priority inheritance (PI futexes), for attacks.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::kit::process::last_error;

/// Nobody has it when it is zero, else the thread whose number it is.
pub struct Lock(AtomicU32);

impl Lock {
    /// One that nobody has.
    pub const fn free() -> Lock {
        Lock(AtomicU32::new(0))
    }

    /// Takes it unless somebody has it.
    pub fn try_take(&self) -> bool {
        self.0.compare_exchange(0, thread_id(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Waits until it has it.
    pub fn take(&self) -> Result<(), String> {
        if self.try_take() {
            return Ok(());
        }
        self.futex(libc::FUTEX_LOCK_PI)
    }

    /// Gives it to whoever waits.
    pub fn give(&self) -> Result<(), String> {
        match self.0.compare_exchange(thread_id(), 0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(()),
            Err(_) => self.futex(libc::FUTEX_UNLOCK_PI),
        }
    }

    /// Whether somebody has it.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// Whether somebody waits for it.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::SeqCst) & libc::FUTEX_WAITERS != 0
    }

    /// Between looking and waiting the word may have changed: that is no error.
    fn futex(&self, operation: i32) -> Result<(), String> {
        loop {
            // SAFETY: the word outlives the call; no time limit.
            let done = unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, 0, 0, 0, 0) };
            match std::io::Error::last_os_error().raw_os_error() {
                _ if done == 0 => return Ok(()),
                Some(libc::EAGAIN | libc::EINTR) => {}
                _ => return Err(last_error("futex")),
            }
        }
    }
}

/// The caller, as the kernel calls it.
pub fn thread_id() -> u32 {
    // SAFETY: has no arguments.
    unsafe { libc::gettid() as u32 }
}
