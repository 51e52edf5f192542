//! The intervals of one interface on a circle of one cycle.

use macrotick_model::Duration;

/// An interval in which only one class may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// The start, within the cycle. The interval may extend over the end of the cycle.
    pub start: Duration,
    pub length: Duration,
    /// The name of the class.
    pub class: String,
}

/// Disjoint intervals in one cycle.
///
/// The kernel refuses entries that are shorter than a frame. So between two intervals there is no time, or at least that
/// of the shortest frame. The start of the cycle cuts entries too: its distance to starts and ends has the same rule.
#[derive(Clone, Debug)]
pub(crate) struct Circle {
    pub cycle: Duration,
    /// The time of the shortest frame.
    pub shortest: Duration,
    intervals: Vec<Interval>,
}

impl Circle {
    pub fn new(cycle: Duration, shortest: Duration) -> Circle {
        Circle { cycle, shortest, intervals: Vec::new() }
    }

    /// Returns the intervals in the order of their starts.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Returns the earliest start from `ready` on at which `length` is free, within one cycle. It counts from the same
    /// instant as `ready`, and may lie in a later cycle.
    pub fn earliest(&self, ready: Duration, length: Duration) -> Option<Duration> {
        if length > self.cycle {
            return None;
        }
        let mut start = ready;
        while start - ready <= self.cycle {
            match self.obstacle(start, length) {
                Some(step) => start += step,
                None => return Some(start),
            }
        }
        None
    }

    /// Returns how much later an interval must start at least; `None` if it can have this start.
    fn obstacle(&self, start: Duration, length: Duration) -> Option<Duration> {
        let at = Duration::from_nanos(start.as_nanos().rem_euclid(self.cycle.as_nanos()));
        let is_short = |gap: Duration| gap > Duration::ZERO && gap < self.shortest;
        if is_short(at) {
            return Some(self.shortest - at);
        }
        let to_end = self.cycle - at;
        // The part before the end of the cycle, or the part after it, would be too short.
        if length > to_end && (is_short(to_end) || is_short(length - to_end)) {
            return Some(to_end);
        }
        let before = self.before(at)?;
        let since = self.distance(before.start, at);
        if since < before.length {
            return Some(before.length - since);
        }
        if is_short(since - before.length) {
            return Some(self.shortest - (since - before.length));
        }
        let after = self.after(at)?;
        let until = match self.distance(at, after.start) {
            Duration::ZERO => self.cycle,
            until => until,
        };
        (until < length).then(|| until + after.length)
    }

    /// Returns the last interval that starts at or before the instant, around the circle.
    fn before(&self, at: Duration) -> Option<&Interval> {
        let index = self.intervals.partition_point(|interval| interval.start <= at);
        self.intervals[..index].last().or(self.intervals.last())
    }

    /// Returns the first interval that starts after the instant, around the circle.
    fn after(&self, at: Duration) -> Option<&Interval> {
        let index = self.intervals.partition_point(|interval| interval.start <= at);
        self.intervals.get(index).or(self.intervals.first())
    }

    fn distance(&self, from: Duration, to: Duration) -> Duration {
        Duration::from_nanos((to - from).as_nanos().rem_euclid(self.cycle.as_nanos()))
    }

    /// Takes an interval at a start that [`earliest`](Self::earliest) returned. The interval becomes longer if the time
    /// after it would be too short for an entry.
    pub fn take(&mut self, start: Duration, length: Duration, class: &str) {
        let start = Duration::from_nanos(start.as_nanos().rem_euclid(self.cycle.as_nanos()));
        let mut length = length;
        let end = (start + length) % self.cycle;
        let to_next = self.after(start).map(|next| self.distance(start, next.start)).filter(|to| *to > Duration::ZERO);
        let gaps = [to_next.map(|to| to - length), (end > Duration::ZERO).then(|| self.cycle - end)];
        let gap = gaps.into_iter().flatten().filter(|gap| *gap > Duration::ZERO).min();
        length += gap.filter(|gap| *gap < self.shortest).unwrap_or(Duration::ZERO);
        let index = self.intervals.partition_point(|interval| interval.start < start);
        self.intervals.insert(index, Interval { start, length, class: class.into() });
    }

    /// Returns the circle with one interval for several of one class that have at most `gap` between them.
    pub fn joined(&self, gap: Duration) -> Circle {
        let mut intervals: Vec<Interval> = Vec::new();
        for interval in &self.intervals {
            match intervals.last_mut().filter(|last| last.class == interval.class && until(last, interval) <= gap) {
                Some(last) if gap > Duration::ZERO => last.length = interval.start + interval.length - last.start,
                _ => intervals.push(interval.clone()),
            }
        }
        Circle { intervals, ..self.clone() }
    }

    /// Returns the times between neighbours of one class, in ascending order.
    pub fn gaps(&self) -> Vec<Duration> {
        let pairs = self.intervals.windows(2).filter(|pair| pair[0].class == pair[1].class);
        let mut gaps: Vec<Duration> = pairs.map(|pair| until(&pair[0], &pair[1])).collect();
        gaps.sort_unstable();
        gaps
    }

    /// Whether the circle consists of this many equal parts.
    fn repeats(&self, parts: i64) -> bool {
        let each = self.intervals.len() / parts as usize;
        let shift = part(self.cycle, parts);
        let next = self.intervals.iter().skip(each);
        self.cycle.as_nanos() % parts == 0
            && self.intervals.iter().zip(next).all(|(one, other)| {
                (one.start + shift, one.length, &one.class) == (other.start, other.length, &other.class)
            })
    }

    /// Returns the shortest circle with the same intervals. Its cycle divides the cycle of this one, and is at most
    /// `most` if that is possible.
    pub fn folded(&self, most: Duration) -> Circle {
        let count = self.intervals.len() as i64;
        if count == 0 {
            // Without intervals, any divisor will do. The longest one is the simplest.
            let parts = (1..=1000).find(|parts| self.cycle.as_nanos() % parts == 0 && part(self.cycle, *parts) <= most);
            return Circle::new(part(self.cycle, parts.unwrap_or(1)), self.shortest);
        }
        let divisors = (2..=count).rev().filter(|parts| count % parts == 0 && self.repeats(*parts));
        divisors.filter_map(|parts| self.first_of(parts)).next().unwrap_or_else(|| self.clone())
    }

    /// Returns the first of equal parts, if the starts of parts cut no entry too short.
    fn first_of(&self, parts: i64) -> Option<Circle> {
        let cycle = part(self.cycle, parts);
        let intervals = self.intervals[..self.intervals.len() / parts as usize].to_vec();
        let is_long = |length: Duration| length == Duration::ZERO || length >= self.shortest;
        let is_cut_well = |interval: &Interval| {
            let end = interval.start + interval.length;
            let cut = if end > cycle {
                is_long(cycle - interval.start) && is_long(end - cycle)
            } else {
                is_long(cycle - end)
            };
            interval.start < cycle && is_long(interval.start) && cut
        };
        intervals.iter().all(is_cut_well).then_some(Circle { cycle, shortest: self.shortest, intervals })
    }
}

/// Returns the time from an interval to a later one.
fn until(one: &Interval, next: &Interval) -> Duration {
    next.start - one.start - one.length
}

fn part(whole: Duration, parts: i64) -> Duration {
    Duration::from_nanos(whole.as_nanos() / parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: fn(i64) -> Duration = Duration::from_nanos;

    fn circle(intervals: &[(i64, i64)]) -> Circle {
        let mut circle = Circle::new(NS(1000), NS(10));
        for (start, length) in intervals {
            assert_eq!(circle.earliest(NS(*start), NS(*length)), Some(NS(*start)));
            circle.take(NS(*start), NS(*length), "c");
        }
        circle
    }

    #[test]
    fn an_interval_starts_at_once_or_after_another_one() {
        let circle = circle(&[(100, 50), (170, 30), (900, 150)]);
        let earliest = |ready, length| circle.earliest(NS(ready), NS(length)).map(Duration::as_nanos);
        assert_eq!(earliest(60, 40), Some(60));
        assert_eq!(earliest(60, 41), Some(200));
        assert_eq!(earliest(150, 20), Some(150));
        // The time to the interval before would be too short for an entry.
        assert_eq!((earliest(205, 20), earliest(1205, 20)), (Some(210), Some(1210)));
        // The last interval extends over the end of the cycle.
        assert_eq!((earliest(950, 20), earliest(0, 20)), (Some(1050), Some(50)));
        assert_eq!((earliest(200, 700), earliest(200, 701)), (Some(200), None));
    }

    #[test]
    fn the_start_of_the_cycle_cuts_no_entry_too_short() {
        let free = circle(&[]);
        let earliest = |ready, length| free.earliest(NS(ready), NS(length)).map(Duration::as_nanos);
        assert_eq!((earliest(0, 20), earliest(3, 20), earliest(995, 20)), (Some(0), Some(10), Some(1000)));
        assert_eq!((earliest(985, 20), earliest(990, 20)), (Some(1000), Some(990)));
        let mut circle = circle(&[]);
        circle.take(NS(970), NS(25), "c");
        assert_eq!(circle.intervals()[0].length, NS(30));
        circle.take(NS(940), NS(25), "c");
        assert_eq!(circle.intervals()[0].length, NS(30));
    }

    #[test]
    fn near_intervals_of_one_class_are_joined() {
        let mut circle = circle(&[(100, 50), (170, 30), (260, 40), (900, 150)]);
        circle.take(NS(400), NS(20), "d");
        let of = |gap| circle.joined(NS(gap)).intervals().iter().map(|one| (one.start, one.length)).collect::<Vec<_>>();
        assert_eq!(circle.gaps(), [NS(20), NS(60)]);
        assert_eq!(of(0), of(19));
        let rest = [(NS(400), NS(20)), (NS(900), NS(150))];
        assert_eq!(of(20), [&[(NS(100), NS(100)), (NS(260), NS(40))], &rest[..]].concat());
        assert_eq!(of(60), [&[(NS(100), NS(200))], &rest[..]].concat());
    }

    #[test]
    fn equal_parts_are_folded() {
        let four = circle(&[(100, 20), (350, 20), (600, 20), (850, 20)]);
        assert_eq!((four.folded(NS(1000)).cycle, four.folded(NS(1000)).intervals().len()), (NS(250), 1));
        let three = circle(&[(100, 20), (350, 20), (600, 20)]);
        assert_eq!(three.folded(NS(1000)).cycle, NS(1000));
        // The start of a part would cut the interval too short.
        assert_eq!(circle(&[(480, 20), (980, 20)]).folded(NS(1000)).cycle, NS(500));
        assert_eq!(circle(&[(505, 30), (10, 20)]).folded(NS(1000)).cycle, NS(1000));
        assert_eq!(Circle::new(NS(3000), NS(10)).folded(NS(1000)).cycle, NS(1000));
    }
}
