//! The frames that can be in each other's way at an interface.
//!
//! The frames of a class leave in the order in which they are ready. A frame can be ready at any instant of its sender's
//! job, so another frame of the class can be before it in the queue. An interval with an open gate must have time for all
//! frames that can be in the queue then. A frame that is ready when it begins has left when it ends, in every order.
//!
//! A frame can be in the queue from its earliest instant until it has surely left. Behind the first interface, gates hold
//! it, so both follow from the placement. They are assumed first, and the placement is repeated with longer stays until
//! the assumption holds ([`Assumed`]).

use std::collections::BTreeMap;

use macrotick_model::{Duration, Interface};

use super::frames::Frame;

/// The stays of each frame at each interface of its way. Keys are the number of the frame and the name of the interface.
pub(super) type Assumed<'a> = BTreeMap<(usize, &'a str), Stay>;

/// The time in which a frame can be at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    /// The earliest instant at which it can be in the queue.
    pub from: Duration,
    /// The instant at which it has surely left.
    pub left: Duration,
}

impl Stay {
    /// Returns the time from the start of both to the end of both.
    pub fn with(self, other: Stay) -> Stay {
        Stay { from: self.from.min(other.from), left: self.left.max(other.left) }
    }
}

/// The frames that cross each interface.
pub(super) struct Queues<'a> {
    cycle: Duration,
    frames: BTreeMap<&'a str, Vec<Crossing<'a>>>,
}

/// A frame at an interface.
struct Crossing<'a> {
    number: usize,
    class: &'a str,
    ready: Duration,
    stay: Stay,
    /// Its time on the link.
    time: Duration,
}

impl<'a> Queues<'a> {
    pub fn new(cycle: Duration, frames: &[(Frame<'a>, &[&'a Interface])], assumed: &Assumed<'a>) -> Queues<'a> {
        let mut queues = Queues { cycle, frames: BTreeMap::new() };
        for (frame, way) in frames {
            let mut ready = frame.ready;
            for interface in *way {
                let name = interface.name.as_str();
                let stay = assumed[&(frame.number, name)];
                queues.frames.entry(name).or_default().push(Crossing {
                    number: frame.number,
                    class: &frame.flow.class,
                    ready,
                    stay,
                    time: interface.frame_time(frame.flow.size),
                });
                ready = stay.left + interface.delay;
            }
        }
        queues
    }

    /// Returns the latest instant within a time at which a frame of a class is ready.
    pub fn last_ready(&self, interface: &str, class: &str, (from, until): Span) -> Option<Duration> {
        let last = |one: &Crossing| {
            let since = (until - one.ready).as_nanos().rem_euclid(self.cycle.as_nanos());
            until - Duration::from_nanos(if since == 0 { self.cycle.as_nanos() } else { since })
        };
        let here = self.frames[interface].iter().filter(|one| one.class == class);
        here.map(last).filter(|ready| *ready > from).max()
    }

    /// Returns the time of the longest frame of some classes.
    pub fn longest(&self, interface: &str, is_in_the_way: &dyn Fn(&str) -> bool) -> Duration {
        let here = self.frames[interface].iter().filter(|one| is_in_the_way(one.class));
        here.map(|one| one.time).max().unwrap_or(Duration::ZERO)
    }

    /// Returns the cycle after which all frames repeat.
    pub fn cycle(&self) -> Duration {
        self.cycle
    }

    /// Returns the time on the link of a frame, and of all others of some classes that can be in the queue in
    /// `[from, until)`.
    pub fn time(
        &self,
        interface: &str,
        number: usize,
        is_in_the_way: &dyn Fn(&str) -> bool,
        from: Duration,
        until: Duration,
    ) -> Duration {
        let cycle = self.cycle.as_nanos();
        let each = self.frames[interface].iter().map(|one| match one.number == number {
            true => one.time,
            false if !is_in_the_way(one.class) => Duration::ZERO,
            false => {
                // Its numbers of cycles with the end of its stay after the start, and the start of it before the end.
                let first = (from - one.stay.left).as_nanos().div_euclid(cycle) + 1;
                let before = (until - one.stay.from).as_nanos();
                let end = before.div_euclid(cycle) + i64::from(before.rem_euclid(cycle) > 0);
                one.time * (end - first).max(0)
            }
        });
        each.sum()
    }
}

/// A time in which frames can leave.
pub(super) type Span = (Duration, Duration);

/// Returns the instant at which work that begins at `at` has left in these times, which are in ascending order. At the
/// end of each, a frame that does not fit waits: up to `lost` is not used.
pub(super) fn through(
    spans: impl Iterator<Item = Span>,
    at: Duration,
    work: Duration,
    lost: Duration,
) -> Option<Duration> {
    let mut rest = work;
    for (from, until) in spans {
        let from = from.max(at);
        if until - from >= rest {
            return Some(from + rest);
        }
        rest -= (until - from - lost).max(Duration::ZERO);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_through_times_and_loses_their_ends() {
        let us = Duration::from_micros;
        let spans = || [(us(0), us(10)), (us(20), us(30)), (us(40), us(50))].into_iter();
        assert_eq!(through(spans(), us(0), us(10), us(3)), Some(us(10)));
        assert_eq!(through(spans(), us(5), us(3), us(3)), Some(us(8)));
        // Seven of the first ten, and four more in the second time.
        assert_eq!(through(spans(), us(0), us(11), us(3)), Some(us(24)));
        assert_eq!(through(spans(), us(12), us(8), us(3)), Some(us(28)));
        assert_eq!(through(spans(), us(0), us(27), us(3)), None);
        assert_eq!(through(spans(), us(8), us(1), us(3)), Some(us(9)));
    }
}
