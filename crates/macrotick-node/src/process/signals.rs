//! The signals that end a run cleanly. The runner sleeps on a descriptor that their handler writes to.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use macrotick_host::sys;
use macrotick_model::{Duration, Instant};

/// The handler's data: the eventfd to write to, and the signal that came. The run's lock allows only one run at a time
/// in a process.
static EVENT: AtomicI32 = AtomicI32::new(-1);
static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// The caught signals with their names. SIGHUP comes when a terminal is closed or a connection is lost.
const HANDLED: [(libc::c_int, &str); 4] =
    [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP"), (libc::SIGQUIT, "SIGQUIT")];
/// Signals that stay ignored if they are ignored at the start, for example under nohup(1) or in a script's background.
const MAY_BE_IGNORED: [libc::c_int; 2] = [libc::SIGHUP, libc::SIGQUIT];

extern "C" fn handle(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::Relaxed);
    let one = 1u64;
    // SAFETY: write(2) is async-signal-safe; the handler restores errno for the interrupted code.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(EVENT.load(Ordering::Relaxed), std::ptr::addr_of!(one).cast(), 8);
        *libc::__errno_location() = errno;
    }
}

/// Returns whether a signal came.
pub fn has_caught() -> bool {
    CAUGHT.load(Ordering::Relaxed) != 0
}

/// Sleeps until the descriptor is readable, until an instant of `CLOCK_MONOTONIC` in nanoseconds, or until a caught
/// signal comes to this thread.
pub fn wait(descriptor: &OwnedFd, until: i64) {
    let left = Duration::from_nanos(until.saturating_sub(sys::now().as_nanos()).max(0));
    poll(&mut [readable(descriptor.as_raw_fd())], left);
}

/// Blocks the caught signals in the calling thread. Another thread handles them while this one waits.
pub fn block() -> io::Result<Blocked> {
    // SAFETY: zeroed sets are valid, and written within their size.
    unsafe {
        let (mut before, mut set): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut set);
        HANDLED.iter().for_each(|(signal, _)| _ = libc::sigaddset(&mut set, *signal));
        match libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) {
            0 => Ok(Blocked { before }),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// A guard: while it exists, the caught signals do not come to the thread that blocked them.
pub struct Blocked {
    before: libc::sigset_t,
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: reads a set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Unblocks all signals in a new process. It only makes a system call and is safe after fork.
pub fn unblock() {
    // SAFETY: a zeroed set is valid and empty.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Restores the default actions in a forked process that executes no program: the caught signals end it. It shares the
/// runner's descriptor. It only makes system calls and is safe after fork.
pub fn let_go() {
    unblock();
    for (signal, _) in HANDLED {
        // SAFETY: the default action needs no memory except the sigaction, which is zeroed and therefore valid.
        unsafe {
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &default, std::ptr::null_mut());
        }
    }
}

/// A guard: while it exists, the signals that end a run are caught.
pub struct Signals {
    event: OwnedFd,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Signals {
    /// Installs the handlers.
    pub fn catch() -> io::Result<Signals> {
        let event = event()?;
        CAUGHT.store(0, Ordering::Relaxed);
        EVENT.store(event.as_raw_fd(), Ordering::Relaxed);
        let mut signals = Signals { event, before: Vec::new() };
        for (signal, _) in HANDLED {
            // SAFETY: zeroed sigactions are valid; the handler is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as *const () as libc::sighandler_t;
                let mut before: libc::sigaction = std::mem::zeroed();
                let is = libc::sigaction(signal, std::ptr::null(), &mut before);
                if before.sa_sigaction == libc::SIG_IGN && MAY_BE_IGNORED.contains(&signal) {
                    continue;
                }
                if is < 0 || libc::sigaction(signal, &action, std::ptr::null_mut()) < 0 {
                    return Err(io::Error::last_os_error());
                }
                signals.before.push((signal, before));
            }
        }
        Ok(signals)
    }

    /// Returns the name of the signal that came, if one came.
    pub fn caught(&self) -> Option<&'static str> {
        let caught = CAUGHT.load(Ordering::Relaxed);
        HANDLED.iter().find(|(signal, _)| *signal == caught).map(|(_, name)| *name)
    }

    /// Sleeps until an instant, or until a signal. Returns the name of the signal.
    pub fn sleep_until(&self, at: Instant) -> Option<&'static str> {
        loop {
            let left = at - sys::now();
            if self.caught().is_some() || left <= Duration::ZERO {
                return self.caught();
            }
            self.rest(&[], left);
        }
    }

    /// Sleeps until an instant, a signal, or until one of the descriptors is readable. May return early.
    pub fn sleep_until_readable(&self, at: Instant, descriptors: &[RawFd]) {
        let left = at - sys::now();
        if self.caught().is_none() && left > Duration::ZERO {
            self.rest(descriptors, left);
        }
    }

    /// Sleeps once. A child that gets a signal before it executes its program has the runner's handler and descriptor,
    /// but not its memory. It writes to the descriptor. The runner reads this event away if it has caught no signal
    /// itself, or it would not sleep again.
    fn rest(&self, descriptors: &[RawFd], left: Duration) {
        let all = [self.event.as_raw_fd()].into_iter().chain(descriptors.iter().copied());
        poll(&mut all.map(readable).collect::<Vec<_>>(), left);
        if self.caught().is_none() {
            let mut count = 0u64;
            // SAFETY: eight bytes are written; the descriptor never blocks.
            unsafe { libc::read(self.event.as_raw_fd(), std::ptr::addr_of_mut!(count).cast(), 8) };
        }
    }
}

/// Returns the indices of the descriptors that are readable at this instant.
pub fn readable_now(descriptors: &[RawFd]) -> Vec<usize> {
    let mut all: Vec<libc::pollfd> = descriptors.iter().copied().map(readable).collect();
    poll(&mut all, Duration::ZERO);
    all.iter().enumerate().filter(|(_, one)| one.revents != 0).map(|(place, _)| place).collect()
}

/// Makes an eventfd. A read of it does not wait.
pub fn event() -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is fresh and ours.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Returns whether an eventfd had a signal, which it no longer has.
pub fn take_event(event: &OwnedFd) -> bool {
    let mut count = [0u8; 8];
    // SAFETY: the buffer has the size of the call.
    unsafe { libc::read(event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) > 0 }
}

fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn poll(descriptors: &mut [libc::pollfd], left: Duration) {
    let timeout = sys::timespec(left.as_nanos());
    // SAFETY: the given number of pollfds and one timespec, all alive.
    unsafe {
        libc::ppoll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, &timeout, std::ptr::null());
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: restores the value that sigaction returned.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        EVENT.store(-1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_the_sleep() {
        let signals = Signals::catch().unwrap();
        let soon = sys::now() + Duration::from_millis(1);
        assert_eq!(signals.sleep_until(soon), None);
        let far = sys::now() + Duration::from_secs(3600);
        // The process descriptor becomes readable at the end of the process.
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pidfd = sys::pidfd_open(child.id() as sys::Tid, child.id() as sys::Tid).unwrap();
        signals.sleep_until_readable(far, &[pidfd.as_raw_fd()]);
        assert_eq!(readable_now(&[signals.event.as_raw_fd(), pidfd.as_raw_fd()]), [1]);
        assert!(child.try_wait().unwrap().is_some());
        // A child with the runner's handler writes like this when it catches a signal. It does not count as a signal
        // for the runner, and wakes it once.
        let one = 1u64;
        // SAFETY: reads eight bytes.
        unsafe { libc::write(signals.event.as_raw_fd(), std::ptr::addr_of!(one).cast(), 8) };
        assert_eq!(signals.sleep_until(sys::now() + Duration::from_millis(1)), None);
        assert_eq!(readable_now(&[signals.event.as_raw_fd()]), [0; 0]);
        // SAFETY: sends a caught signal to this process.
        unsafe { libc::raise(libc::SIGTERM) };
        signals.sleep_until_readable(far, &[]);
        assert_eq!(signals.sleep_until(far), Some("SIGTERM"));
        drop(signals);
        // As under nohup(1).
        // SAFETY: a disposition without a handler, and a signal that is then ignored.
        let signals = unsafe {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            let signals = Signals::catch().unwrap();
            libc::raise(libc::SIGHUP);
            signals
        };
        assert_eq!(signals.caught(), None);
        drop(signals);
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    }
}
