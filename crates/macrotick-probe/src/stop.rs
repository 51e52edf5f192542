//! Waiting: for input, for an instant, and for the end of the run.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;

use crate::port::Receipt;

/// How often a wait that spins looks whether the run shall end.
const SPINS: u32 = 1024;

/// The end of a run: by a signal, or by another thread.
#[derive(Debug)]
pub struct Stop {
    descriptor: Descriptor,
    told: AtomicBool,
}

#[derive(Debug)]
enum Descriptor {
    Signals(SignalFd),
    Event(EventFd),
}

impl Stop {
    /// Makes one that another thread uses.
    pub fn by_hand() -> io::Result<Stop> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Stop { descriptor: Descriptor::Event(event), told: AtomicBool::new(false) })
    }

    /// Makes one for SIGINT and SIGTERM, which this thread and its later threads block from now on.
    pub fn by_signal() -> io::Result<Stop> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block()?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Stop { descriptor: Descriptor::Signals(signals), told: AtomicBool::new(false) })
    }

    /// Ends the run of another thread; without effect for one that a signal ends.
    pub fn stop(&self) {
        if let Descriptor::Event(event) = &self.descriptor {
            // It fails only if the counter is full: the run ends anyway.
            let _ = event.write(1);
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Descriptor::Signals(signals) => signals.as_fd(),
            Descriptor::Event(event) => event.as_fd(),
        }
    }

    /// Whether the end was told to the run.
    fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    fn tell(&self) -> Receipt {
        self.told.store(true, Ordering::Relaxed);
        Receipt::Stopped
    }
}

/// The waiting of a port. A run learns of its end once. Afterwards a run can still fetch what is on its way.
#[derive(Debug)]
pub struct Wait {
    stop: std::sync::Arc<Stop>,
    spins: bool,
    spun: u32,
    /// It has waited since the last timeout, and looked for the end then.
    has_waited: bool,
}

impl Wait {
    /// `spins`: a wait looks again and again instead of sleeping.
    pub fn new(stop: std::sync::Arc<Stop>, spins: bool) -> Wait {
        Wait { stop, spins, spun: 0, has_waited: false }
    }

    /// Waits until a socket has input, at most `ns` nanoseconds. `None`: it may have input now.
    pub fn input(&mut self, socket: BorrowedFd, ns: i64) -> io::Result<Option<Receipt>> {
        let has_waited = std::mem::replace(&mut self.has_waited, ns > 0);
        if ns <= 0 {
            // A run that is behind never waits; the end must reach it, too. Others have no time for the question now.
            let is_stopped = !has_waited && self.is_stopped()?;
            return Ok(Some(if is_stopped { self.stop.tell() } else { Receipt::Timeout }));
        }
        if self.spins {
            self.spun = self.spun.wrapping_add(1);
            if self.spun % SPINS != 0 {
                std::hint::spin_loop();
                return Ok(None);
            }
        }
        let (told, spins) = (self.stop.is_told(), self.spins);
        let mut all = [PollFd::new(socket, PollFlags::POLLIN), PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        let watched = if told { &mut all[..1] } else { &mut all[..] };
        let ns = if spins { 0 } else { ns };
        match ppoll(watched, Some(TimeSpec::new((ns / 1_000_000_000) as _, (ns % 1_000_000_000) as _)), None) {
            Ok(0) if !spins => return Ok(Some(Receipt::Timeout)),
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let has = |index: usize, flag| all[index].revents().is_some_and(|events| events.contains(flag));
        if !told && has(1, PollFlags::POLLIN) {
            return Ok(Some(self.stop.tell()));
        }
        // The error queue, or an error: input has the precedence.
        if has(0, PollFlags::POLLERR) && !has(0, PollFlags::POLLIN) {
            return Ok(Some(Receipt::Stamps));
        }
        Ok(None)
    }

    fn is_stopped(&self) -> io::Result<bool> {
        if self.stop.is_told() {
            return Ok(false);
        }
        let mut stop = [PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut stop, Some(TimeSpec::new(0, 0)), None) {
            Ok(count) => Ok(count > 0),
            Err(nix::Error::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_wait_ends_with_input_time_or_the_run() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for spins in [false, true] {
            let stop = Arc::new(Stop::by_hand().unwrap());
            let mut wait = Wait::new(stop.clone(), spins);
            assert_eq!(wait.input(socket.as_fd(), 0).unwrap(), Some(Receipt::Timeout));
            let timeout = (!spins).then_some(Receipt::Timeout);
            assert_eq!(wait.input(socket.as_fd(), 1_000).unwrap(), timeout);
            stop.stop();
            let end = (0..=SPINS).find_map(|_| wait.input(socket.as_fd(), 1_000_000_000).unwrap());
            assert_eq!(end, Some(Receipt::Stopped));
            assert_eq!(wait.input(socket.as_fd(), 0).unwrap(), Some(Receipt::Timeout), "it is told once");
        }
    }

    #[test]
    fn a_run_that_never_waits_is_stopped_too() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stop = Arc::new(Stop::by_hand().unwrap());
        stop.stop();
        assert_eq!(Wait::new(stop, false).input(socket.as_fd(), -1).unwrap(), Some(Receipt::Stopped));
    }
}
