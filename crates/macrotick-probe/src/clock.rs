//! The grid's clock, and its distance from the clocks of the kernel's time stamps.

use macrotick_host::sys::time_of;
use macrotick_model::Duration;

use crate::packet::ClockName;

/// A change of the distance between two clocks that is no error of reading them.
const STEP: Duration = Duration::from_micros(100);

/// The grid's clock, with its present distances from the clocks that the kernel uses.
#[derive(Clone, Copy, Debug)]
pub struct GridClock {
    id: libc::clockid_t,
    /// The grid's clock minus `CLOCK_MONOTONIC`, in ns.
    from_monotonic: i64,
    /// The grid's clock minus `CLOCK_REALTIME`, on which the kernel stamps packets, in ns.
    from_realtime: i64,
    /// A clock stepped since the last but one reading: a stamp may be older than that.
    settling: bool,
}

impl GridClock {
    /// Reads the clocks.
    pub fn new(name: ClockName) -> GridClock {
        let id = match name {
            ClockName::Monotonic => libc::CLOCK_MONOTONIC,
            ClockName::Tai => libc::CLOCK_TAI,
        };
        GridClock {
            id,
            from_monotonic: distance(id, libc::CLOCK_MONOTONIC),
            from_realtime: distance(id, libc::CLOCK_REALTIME),
            settling: false,
        }
    }

    /// Returns the present instant in ns.
    pub fn now(&self) -> i64 {
        time_of(self.id).as_nanos()
    }

    /// Returns an instant of `CLOCK_MONOTONIC` on this clock, in ns.
    pub fn on_grid(&self, monotonic: i64) -> i64 {
        monotonic + self.from_monotonic
    }

    /// Returns a time stamp of the kernel on this clock, in ns. `None`: a clock has just been set, and it is unknown
    /// on which side of that the stamp is.
    pub fn stamp(&self, realtime: i64) -> Option<i64> {
        (!self.settling).then_some(realtime + self.from_realtime)
    }

    /// Reads the distances again. Returns the larger change of both, if it is a step.
    pub fn step(&mut self) -> Option<Duration> {
        let present = [distance(self.id, libc::CLOCK_MONOTONIC), distance(self.id, libc::CLOCK_REALTIME)];
        let changes = [present[0] - self.from_monotonic, present[1] - self.from_realtime];
        let change = Duration::from_nanos(*changes.iter().max_by_key(|change| change.abs()).expect("two"));
        let is_step = change > STEP || -change > STEP;
        if is_step {
            [self.from_monotonic, self.from_realtime] = present;
        }
        self.settling = is_step;
        is_step.then_some(change)
    }
}

/// Returns one clock minus another, in ns: the best of a few readings.
fn distance(one: libc::clockid_t, other: libc::clockid_t) -> i64 {
    if one == other {
        return 0;
    }
    let reading = || {
        let before = time_of(one).as_nanos();
        let middle = time_of(other).as_nanos();
        let after = time_of(one).as_nanos();
        (after - before, before + (after - before) / 2 - middle)
    };
    (0..3).map(|_| reading()).min_by_key(|(length, _)| *length).expect("three readings").1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_the_kernel_are_on_the_grid() {
        for name in [ClockName::Monotonic, ClockName::Tai] {
            let clock = GridClock::new(name);
            let before = clock.now();
            let stamp = clock.stamp(time_of(libc::CLOCK_REALTIME).as_nanos()).unwrap();
            let monotonic = clock.on_grid(time_of(libc::CLOCK_MONOTONIC).as_nanos());
            let slack = STEP.as_nanos();
            assert!((stamp - before).abs() < slack && (monotonic - before).abs() < slack, "{name:?}");
        }
        assert_eq!(GridClock::new(ClockName::Monotonic).on_grid(5), 5);
    }

    #[test]
    fn a_step_is_noticed_once_and_stamps_wait_for_it() {
        let mut clock = GridClock::new(ClockName::Tai);
        assert_eq!(clock.step(), None);
        // As if the clock had been set forward by a second.
        clock.from_realtime -= 1_000_000_000;
        let step = clock.step().unwrap();
        assert!((step.as_nanos() - 1_000_000_000).abs() < STEP.as_nanos(), "{step}");
        assert_eq!(clock.stamp(0), None);
        assert_eq!(clock.step(), None);
        assert!(clock.stamp(0).is_some());
    }
}
