//! Signals that end a run cleanly: the runner sleeps on a descriptor that their handler writes to.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use macrotick_host::sys;
use macrotick_model::{Duration, Instant};

/// The handler's view: the eventfd to write to, and the signal that came. The run's lock makes it one at a time.
static EVENT: AtomicI32 = AtomicI32::new(-1);
static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// With their names. A terminal that is closed, or a connection that is lost, sends SIGHUP.
const CATCHED: [(libc::c_int, &str); 4] =
    [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP"), (libc::SIGQUIT, "SIGQUIT")];
/// These stay ignored where they are, as under nohup(1), or in a script's background.
const MAY_BE_IGNORED: [libc::c_int; 2] = [libc::SIGHUP, libc::SIGQUIT];

extern "C" fn handle(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::Relaxed);
    let one = 1u64;
    // SAFETY: write(2) is async-signal-safe; errno is put back for the code that was interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(EVENT.load(Ordering::Relaxed), std::ptr::addr_of!(one).cast(), 8);
        *libc::__errno_location() = errno;
    }
}

/// Whether one came.
pub fn has_caught() -> bool {
    CAUGHT.load(Ordering::Relaxed) != 0
}

/// Sleeps until there is something to read, until an instant of `CLOCK_MONOTONIC`, in nanoseconds, or until a signal that is
/// caught comes to this thread.
pub fn wait(descriptor: &OwnedFd, until: i64) {
    let left = Duration::from_nanos(until.saturating_sub(sys::now().as_nanos()).max(0));
    poll(&mut [readable(descriptor.as_raw_fd())], left);
}

/// Keeps what is caught from the calling thread: another one has it handled, whatever this one has to wait for.
pub fn block() -> io::Result<Blocked> {
    // SAFETY: zeroed sets are valid, and written within their size.
    unsafe {
        let (mut before, mut set): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut set);
        CATCHED.iter().for_each(|(signal, _)| _ = libc::sigaddset(&mut set, *signal));
        match libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) {
            0 => Ok(Blocked { before }),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// While it lives, what is caught does not come to the thread that has blocked it.
pub struct Blocked {
    before: libc::sigset_t,
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: reads a set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// In a new process: nothing is blocked. Only a system call: it is for the time after fork.
pub fn unblock() {
    // SAFETY: a zeroed set is valid and empty.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// In a process that was forked and executes nothing: what is caught here ends it. The descriptor is the runner's, too.
/// Only system calls: it is for the time after fork.
pub fn let_go() {
    unblock();
    for (signal, _) in CATCHED {
        // SAFETY: the default action needs no memory but the zeroed, and so valid, sigaction.
        unsafe {
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &default, std::ptr::null_mut());
        }
    }
}

/// While it lives, the signals that end a run are caught.
pub struct Signals {
    event: OwnedFd,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Signals {
    /// Installs the handlers.
    pub fn catch() -> io::Result<Signals> {
        // SAFETY: the descriptor is fresh and ours.
        let event = unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                -1 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        CAUGHT.store(0, Ordering::Relaxed);
        EVENT.store(event.as_raw_fd(), Ordering::Relaxed);
        let mut signals = Signals { event, before: Vec::new() };
        for (signal, _) in CATCHED {
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

    /// The name of the signal that came, if one did.
    pub fn caught(&self) -> Option<&'static str> {
        let caught = CAUGHT.load(Ordering::Relaxed);
        CATCHED.iter().find(|(signal, _)| *signal == caught).map(|(_, name)| *name)
    }

    /// Sleeps until an instant, or until a signal, whose name it returns.
    pub fn sleep_until(&self, at: Instant) -> Option<&'static str> {
        loop {
            let left = at - sys::now();
            if self.caught().is_some() || left <= Duration::ZERO {
                return self.caught();
            }
            self.rest(&[], left);
        }
    }

    /// Sleeps until an instant, a signal, or something to read on one of the descriptors; maybe not that long.
    pub fn sleep_until_readable(&self, at: Instant, descriptors: &[RawFd]) {
        let left = at - sys::now();
        if self.caught().is_none() && left > Duration::ZERO {
            self.rest(descriptors, left);
        }
    }

    /// Sleeps once. A child that a signal meets before it executes its program writes to the descriptor, too, and has our
    /// handler, but not our memory: without having caught anything we must not stay awake.
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

/// Which of the descriptors have something to read now, by their places.
pub fn readable_now(descriptors: &[RawFd]) -> Vec<usize> {
    let mut all: Vec<libc::pollfd> = descriptors.iter().copied().map(readable).collect();
    poll(&mut all, Duration::ZERO);
    all.iter().enumerate().filter(|(_, one)| one.revents != 0).map(|(place, _)| place).collect()
}

fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn poll(descriptors: &mut [libc::pollfd], left: Duration) {
    let timeout = sys::timespec(left.as_nanos());
    // SAFETY: so many pollfds and one timespec, all alive.
    unsafe {
        libc::ppoll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, &timeout, std::ptr::null());
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: puts back what sigaction returned.
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
        // The end of a process, for which its descriptor becomes readable.
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pidfd = sys::pidfd_open(child.id() as sys::Tid, child.id() as sys::Tid).unwrap();
        signals.sleep_until_readable(far, &[pidfd.as_raw_fd()]);
        assert_eq!(readable_now(&[signals.event.as_raw_fd(), pidfd.as_raw_fd()]), [1]);
        assert!(child.try_wait().unwrap().is_some());
        // What a child with our handler does that catches a signal: it is none of ours, and wakes us once.
        let one = 1u64;
        // SAFETY: reads eight bytes.
        unsafe { libc::write(signals.event.as_raw_fd(), std::ptr::addr_of!(one).cast(), 8) };
        assert_eq!(signals.sleep_until(sys::now() + Duration::from_millis(1)), None);
        assert_eq!(readable_now(&[signals.event.as_raw_fd()]), [0; 0]);
        // SAFETY: sends to ourselves what the handler catches.
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
