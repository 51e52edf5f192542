//! Signals and processes that end a reservation.

use std::fs::File;
use std::os::fd::AsFd;

use macrotick_host::HostFailure;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGINT, SIGTERM and SIGHUP, which end a reservation in order.
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks them. From then on they end nothing halfway.
    ///
    /// # Errors
    ///
    /// The kernel's reason.
    pub fn block() -> Result<Signals, HostFailure> {
        let mut signals = SigSet::empty();
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| signals.add(signal));
        let blocked = signals.thread_block().and_then(|()| SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC));
        blocked.map(Signals).map_err(|error| HostFailure::system("waiting for a signal")(error.into()))
    }

    /// Waits until one of them comes, or a descriptor has input or ends.
    pub fn wait(&self, other: &impl AsFd) {
        wait_for_either(other, &self.0);
    }
}

/// Waits until one of two descriptors has input or ends.
pub fn wait_for_either(one: &impl AsFd, other: &impl AsFd) {
    let mut both = [PollFd::new(one.as_fd(), PollFlags::POLLIN), PollFd::new(other.as_fd(), PollFlags::POLLIN)];
    while poll(&mut both, PollTimeout::NONE) == Err(nix::errno::Errno::EINTR) {}
}

/// Whether the input has ended, after a wait of at most so many milliseconds.
pub fn ends_within(input: &File, milliseconds: u16) -> bool {
    let mut one = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    poll(&mut one, milliseconds).is_ok_and(|ready| ready > 0)
}
