//! Clocks, sleeps, and wake-ups of threads that sleep on a word of memory.

use std::io;
use std::sync::atomic::AtomicU32;

use macrotick_model::{Duration, Instant};

/// Returns the present instant on `CLOCK_MONOTONIC`.
pub fn now() -> Instant {
    Instant::from_nanos(time_of(libc::CLOCK_MONOTONIC).as_nanos())
}

/// Returns the present instant on `CLOCK_REALTIME`, in nanoseconds since 1970. Setting this clock moves it.
pub fn unix_now() -> i64 {
    time_of(libc::CLOCK_REALTIME).as_nanos()
}

/// Returns the clock of the calling thread's processor time. Other threads may read it while the thread lives.
pub fn cpu_clock() -> io::Result<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: writes one number for the calling thread.
    match unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) } {
        0 => Ok(clock),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Returns the time of a clock, or zero if the clock no longer exists.
pub fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &mut time) };
    // The fields' types differ between targets.
    #[allow(clippy::unnecessary_cast)]
    Duration::from_nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

/// Converts an instant or length to the kernel's format.
pub fn timespec(ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Sleeps until an instant of `CLOCK_MONOTONIC`. Signals do not end the sleep.
pub fn sleep_until(at: Instant) {
    let until = timespec(at.as_nanos().max(0));
    // SAFETY: reads one timespec.
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) }
        == libc::EINTR
    {}
}

/// Sleeps for a length.
pub fn sleep(length: Duration) {
    sleep_until(now() + length);
}

/// Wakes up all waiters of a futex word that processes share.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word lives as long as the reference.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_reaches_the_instant() {
        let at = now() + Duration::from_millis(2);
        sleep_until(at);
        assert!(now() >= at);
    }
}
