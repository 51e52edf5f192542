//! `CLOCK_TAI`, for tables that follow it, and the distance of a table's clock from `CLOCK_REALTIME`.

use macrotick_model::{Clock, ClockInForce, Duration, Instant};
use macrotick_uapi as uapi;

use crate::sys::time_of;

/// The estimated error, in microseconds, before a program states one (`NTP_PHASE_LIMIT` of the kernel). linuxptp states
/// none.
const UNSTATED: i64 = 16_000_000;

/// The synchronisation of a clock, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether a program synchronises the clock.
    synchronised: bool,
    /// The clock's error, as the program that synchronises it has estimated it.
    estimated_error: Option<Duration>,
    /// The offset of `CLOCK_TAI` from UTC.
    tai_offset_s: i32,
}

impl Discipline {
    /// Reads the present state.
    pub fn read() -> std::io::Result<Discipline> {
        // SAFETY: plain numbers; a call without a mode changes nothing.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: writes one structure.
        if unsafe { libc::adjtimex(&mut state) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Discipline::of(&state))
    }

    /// Whether a program synchronises the clock.
    pub fn is_synchronised(&self) -> bool {
        self.synchronised
    }

    /// Returns the clock's error, as the program that synchronises it has estimated it; `None` if it does not.
    pub fn estimated_error(&self) -> Option<Duration> {
        self.estimated_error
    }

    /// Returns the offset of `CLOCK_TAI` from UTC, in seconds. 0: no program has set it.
    pub fn tai_offset_s(&self) -> i32 {
        self.tai_offset_s
    }

    /// Decodes the structure. `adjtimex(2)` returns `TIME_ERROR` for more reasons than this flag, so it is not used.
    /// Errors are in microseconds.
    // The fields' types differ between targets.
    #[allow(clippy::unnecessary_cast)]
    fn of(state: &libc::timex) -> Discipline {
        let synchronised = state.status & libc::STA_UNSYNC == 0;
        Discipline {
            synchronised,
            estimated_error: Some(state.esterror as i64).filter(|us| *us < UNSTATED).map(Duration::from_micros),
            tai_offset_s: state.tai,
        }
    }

    /// Returns the facts about the clock of a run. `self` is the state at its begin, `end` at its end, and `table` is
    /// the table at its end.
    pub fn in_force(self, end: Discipline, table: &uapi::Get) -> ClockInForce {
        let synchronised = self.synchronised && end.synchronised;
        let length = |ns: u64| Duration::from_nanos(ns as i64);
        ClockInForce {
            synchronised,
            estimated_error: end.estimated_error.filter(|_| synchronised),
            tai_offset_s: end.tai_offset_s,
            stretched: length(table.stretched_ns),
            shrunk: length(table.shrunk_ns),
            corrections: table.corrections,
            rest: Duration::from_nanos(table.error_ns),
        }
    }
}

/// The distance of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// The time of the one minus that of the other.
    pub offset: Duration,
    /// The most by which the true distance differs.
    pub error: Duration,
}

/// The readings for a distance. The one with the least error counts.
const READINGS: usize = 200;

/// Reads the table's clock minus `CLOCK_REALTIME`, with which the kernel stamps the frames of captures. Both clocks have
/// the same rate. The distance stays as it is until `CLOCK_REALTIME` is set, the TAI offset changes, the host sleeps or
/// boots.
pub fn from_realtime(clock: &Clock) -> Distance {
    let table = match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Tai(_) => libc::CLOCK_TAI,
    };
    let reading = |_| {
        let before = time_of(libc::CLOCK_REALTIME);
        let there = time_of(table);
        let around = time_of(libc::CLOCK_REALTIME) - before;
        let half = Duration::from_nanos(around.as_nanos() / 2);
        // The clock may be set between the readings.
        Distance {
            offset: there - before - half,
            error: Duration::from_nanos(around.as_nanos().abs() - half.as_nanos().abs()),
        }
    };
    let readings = (0..READINGS).map(reading);
    readings.min_by_key(|distance| distance.error).expect("there are readings")
}

/// Returns the present instant on `CLOCK_TAI`.
fn now() -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_TAI, &mut time) };
    // The fields' types differ between targets.
    #[allow(clippy::unnecessary_cast)]
    Instant::from_nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

/// Returns the first whole multiple of the cycle on `CLOCK_TAI` that is at least `delay` away. This gives the same
/// phase on every host with a correct clock, whenever the table starts.
pub fn choose_epoch(cycle: Duration, delay: Duration) -> Instant {
    whole_cycles(now() + delay, cycle)
}

fn whole_cycles(earliest: Instant, cycle: Duration) -> Instant {
    let (earliest, cycle) = (earliest.as_nanos(), cycle.as_nanos());
    Instant::from_nanos((earliest + cycle - 1).div_euclid(cycle) * cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: i32, esterror: i64) -> libc::timex {
        // SAFETY: plain numbers.
        let state: libc::timex = unsafe { std::mem::zeroed() };
        libc::timex { status, esterror: esterror as _, ..state }
    }

    #[test]
    fn a_clock_is_synchronised_if_it_is_so_at_both_ends() {
        let (free, held) = (Discipline::of(&state(libc::STA_UNSYNC, 16_000_000)), Discipline::of(&state(0, 12)));
        let get = uapi::Get { stretched_ns: 5, shrunk_ns: 7, corrections: 2, error_ns: -3, ..Default::default() };
        let clock = held.in_force(held, &get);
        assert_eq!((clock.synchronised, clock.estimated_error), (true, Some(Duration::from_micros(12))));
        let ns = Duration::from_nanos;
        assert_eq!((clock.stretched, clock.shrunk, clock.corrections, clock.rest), (ns(5), ns(7), 2, ns(-3)));
        for clock in [free.in_force(held, &get), held.in_force(free, &get), free.in_force(free, &get)] {
            assert_eq!((clock.synchronised, clock.estimated_error), (false, None));
        }
        let by_linuxptp = Discipline::of(&state(0, 16_000_000)).in_force(held, &get);
        assert_eq!((by_linuxptp.synchronised, by_linuxptp.estimated_error), (true, Some(Duration::from_micros(12))));
        let end = libc::timex { tai: 37, ..state(0, 16_000_000) };
        let by_linuxptp = held.in_force(Discipline::of(&end), &get);
        assert_eq!((clock.tai_offset_s, by_linuxptp.tai_offset_s), (0, 37));
        assert_eq!((by_linuxptp.synchronised, by_linuxptp.estimated_error), (true, None));
    }

    #[test]
    fn the_distance_of_a_clock_repeats() {
        let (first, second) = (from_realtime(&Clock::Monotonic), from_realtime(&Clock::Monotonic));
        let differ = (first.offset - second.offset).as_nanos().abs();
        assert!(differ <= (first.error + second.error).as_nanos(), "{first:?}, {second:?}");
        assert!(first.offset < Duration::ZERO, "the host has not run since 1970: {first:?}");
    }

    #[test]
    fn epochs_are_whole_cycles() {
        let at = |ns| whole_cycles(Instant::from_nanos(ns), Duration::from_nanos(300)).as_nanos();
        assert_eq!([at(0), at(1), at(300), at(301)], [0, 300, 300, 600]);
    }
}
