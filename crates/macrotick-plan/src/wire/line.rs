//! The busy time of one link.

use macrotick_model::Duration;

use crate::occupancy::Occupancy;

/// A frame on the link: `[start, start + length)` in every `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub flow: usize,
    pub start: Duration,
    pub length: Duration,
    pub every: Duration,
}

/// The frames on one link, and its busy time modulo each period that was asked for.
#[derive(Default)]
pub(super) struct Line {
    taken: Vec<Taken>,
    occupancy: Occupancy,
    /// The share of time that the frames take, in units of 2^-32.
    load: i64,
}

impl Taken {
    /// Returns the share of time, in units of 2^-32. A whole number can be added and subtracted exactly.
    fn share(&self) -> i64 {
        ((i128::from(self.length.as_nanos()) << 32) / i128::from(self.every.as_nanos())) as i64
    }
}

impl Line {
    pub fn take(&mut self, taken: Taken) {
        self.occupancy.take(taken.start, taken.length, taken.every);
        self.load += taken.share();
        self.taken.push(taken);
    }

    /// Releases the frame of a flow.
    pub fn release(&mut self, flow: usize) {
        let index = self.taken.iter().position(|taken| taken.flow == flow).expect("only a taken frame is released");
        let taken = self.taken.swap_remove(index);
        self.load -= taken.share();
        self.occupancy.release(taken.start, taken.length, taken.every);
    }

    /// Returns the share of time that the frames take.
    pub fn load(&self) -> f64 {
        self.load as f64 / (1i64 << 32) as f64
    }

    /// Makes the fold of a period, if the link does not have it yet.
    pub fn fold(&mut self, period: Duration) {
        let taken = self.taken.iter().map(|taken| (taken.start, taken.length, taken.every));
        self.occupancy.fold(period, taken);
    }

    /// Returns the earliest instant from `from` on at which the link is free for `length` in every `every`, which has a
    /// fold. `None` if it never is.
    pub fn earliest(&self, every: Duration, from: Duration, length: Duration) -> Option<Duration> {
        let last = from + every;
        let mut start = from;
        loop {
            let (free, mut end) = self.occupancy.next_free(every, start)?;
            start = start.max(free);
            // A free interval ends at a multiple of the period, and can continue there.
            while end - start < length && (end % every) == Duration::ZERO {
                match self.occupancy.next_free(every, end) {
                    Some((next, until)) if next == end => end = until,
                    _ => break,
                }
            }
            if end - start >= length {
                return (start < last).then_some(start);
            }
            start = end;
            if start >= last {
                return None;
            }
        }
    }

    /// Returns the first end of a frame at or after an instant, seen in every `every`.
    pub fn next_end(&self, every: Duration, from: Duration) -> Option<Duration> {
        let until = |taken: &Taken| {
            let common = every.gcd(taken.every).as_nanos();
            Duration::from_nanos((taken.start + taken.length - from).as_nanos().rem_euclid(common))
        };
        self.taken.iter().map(until).min().map(|until| from + until)
    }

    /// Returns the flows with frames in `[start, start + length)` of every `every`.
    pub fn in_the_way(&self, every: Duration, start: Duration, length: Duration) -> impl Iterator<Item = usize> + '_ {
        let meets = move |taken: &&Taken| {
            let common = every.gcd(taken.every).as_nanos();
            let distance = (taken.start - start).as_nanos().rem_euclid(common);
            distance < length.as_nanos() || distance + taken.length.as_nanos() > common
        };
        self.taken.iter().filter(meets).map(|taken| taken.flow)
    }
}
