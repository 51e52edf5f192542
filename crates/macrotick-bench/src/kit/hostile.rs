//! An unprivileged process with many timers.

use std::os::fd::RawFd;

use super::board::Board;
use super::process::last_error;

/// The number of an unprivileged user.
const USER: u32 = 65_534;
/// The number of events that one call takes.
const EVENTS: usize = 64;

/// Gives up all privileges, starts timers with these periods, and reads every expired timer, without end.
pub fn run(periods_ns: &[u64], board: &Board) -> Result<(), String> {
    become_nobody()?;
    let poll = check("epoll_create1", || unsafe { libc::epoll_create1(0) })?;
    let timers = periods_ns.iter().map(|_| watched_timer(poll)).collect::<Result<Vec<RawFd>, String>>()?;
    board.join();
    // The longest period comes first. The timers with short periods would delay the start of the others.
    for (&timer, &period) in timers.iter().zip(periods_ns).rev() {
        start(timer, period)?;
    }
    loop {
        read_expired(poll, board)?;
    }
}

fn check(what: &str, call: impl FnOnce() -> i32) -> Result<i32, String> {
    match call() {
        -1 => Err(last_error(what)),
        result => Ok(result),
    }
}

fn become_nobody() -> Result<(), String> {
    // SAFETY: the calls pass numbers.
    check("setgid", || unsafe { libc::setgid(USER) })?;
    check("setuid", || unsafe { libc::setuid(USER) }).map(drop)
}

/// Returns a timer that does not run yet, and that `poll` waits for.
fn watched_timer(poll: RawFd) -> Result<RawFd, String> {
    // SAFETY: passes numbers.
    let timer = check("timerfd_create", || unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK) })?;
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: timer as u64 };
    // SAFETY: reads one structure.
    check("epoll_ctl", || unsafe { libc::epoll_ctl(poll, libc::EPOLL_CTL_ADD, timer, &mut event) })?;
    Ok(timer)
}

fn start(timer: RawFd, period_ns: u64) -> Result<(), String> {
    let period = libc::timespec { tv_sec: 0, tv_nsec: period_ns as _ };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: reads one structure.
    check("timerfd_settime", || unsafe { libc::timerfd_settime(timer, 0, &times, std::ptr::null_mut()) }).map(drop)
}

fn read_expired(poll: RawFd, board: &Board) -> Result<(), String> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    // SAFETY: writes at most so many structures.
    let n = check("epoll_wait", || unsafe { libc::epoll_wait(poll, events.as_mut_ptr(), EVENTS as i32, -1) })?;
    for event in &events[..n as usize] {
        let mut expirations = 0u64;
        // SAFETY: writes one number. It does not block: only this process reads the timer, which has expired.
        unsafe { libc::read(event.u64 as RawFd, (&raw mut expirations).cast(), size_of::<u64>()) };
        board.count_expirations(expirations);
    }
    Ok(())
}
