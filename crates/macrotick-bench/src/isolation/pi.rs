//! Locks with priority inheritance (PI futexes), for attacks.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::kit::process::last_error;

/// A lock: zero when it is free, otherwise the owner's thread number.
pub struct Lock(AtomicU32);

impl Lock {
    /// Returns a free lock.
    pub const fn free() -> Lock {
        Lock(AtomicU32::new(0))
    }

    /// Takes the lock if it is free.
    pub fn try_take(&self) -> bool {
        self.0.compare_exchange(0, thread_id(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Waits for the lock and takes it.
    pub fn take(&self) -> Result<(), String> {
        if self.try_take() {
            return Ok(());
        }
        self.futex(libc::FUTEX_LOCK_PI)
    }

    /// Releases the lock to a waiter.
    pub fn give(&self) -> Result<(), String> {
        match self.0.compare_exchange(thread_id(), 0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(()),
            Err(_) => self.futex(libc::FUTEX_UNLOCK_PI),
        }
    }

    /// Whether the lock has an owner.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// Whether the lock has a waiter.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::SeqCst) & libc::FUTEX_WAITERS != 0
    }

    /// Calls the kernel. The word may have changed between the caller's test and the call; that is no error.
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

/// Returns the kernel's number of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: has no arguments.
    unsafe { libc::gettid() as u32 }
}
