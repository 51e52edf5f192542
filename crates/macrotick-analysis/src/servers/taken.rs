//! The time of one CPU that its table takes, and the time that it leaves.

use macrotick_model::{CpuTable, Duration, Window};

/// The time that windows and their leads take of a cycle: the intervals `[start, end)`, which repeat for ever.
#[derive(Clone, Debug)]
pub struct Taken {
    cycle: Duration,
    /// Ascending, not overlapping and not abutting, within the cycle.
    spans: Vec<(Duration, Duration)>,
    /// For each span, the time that the spans before it take.
    before: Vec<Duration>,
    /// The time that all of them take.
    all: Duration,
}

impl Taken {
    /// Makes it for a table with windows within the cycle. `None`: nothing is taken.
    pub fn new(cycle: Duration, lead: Duration, table: Option<&CpuTable>) -> Taken {
        let windows = table.map_or(&[][..], |table| &table.windows);
        Taken::of_spans(cycle, windows.iter().flat_map(|window| pieces(cycle, lead, window)).collect())
    }

    fn of_spans(cycle: Duration, spans: Vec<(Duration, Duration)>) -> Taken {
        let spans = merged(spans);
        let mut all = Duration::ZERO;
        let mut before = Vec::with_capacity(spans.len());
        for (start, end) in &spans {
            before.push(all);
            all += *end - *start;
        }
        Taken { cycle, spans, before, all }
    }

    /// Whether there is no window.
    pub(crate) fn is_nothing(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the windows of one entity, without the leads before windows of others.
    pub(crate) fn of_entity(cycle: Duration, lead: Duration, table: &CpuTable, name: &str) -> Taken {
        let (own, others): (Vec<&Window>, Vec<&Window>) = table.windows.iter().partition(|window| window.task == name);
        let others = merged(others.into_iter().flat_map(|window| pieces(cycle, lead, window)).collect());
        let own = own.into_iter().map(|window| (window.offset, window.end()));
        Taken::of_spans(cycle, own.flat_map(|span| without(span, &others)).collect())
    }

    /// Returns the share of all time that is taken, for a first guess only.
    pub(crate) fn share(&self) -> f64 {
        match self.cycle {
            Duration::ZERO => 0.0,
            cycle => self.all.as_secs_f64() / cycle.as_secs_f64(),
        }
    }

    /// Returns the time taken of one cycle.
    pub fn per_cycle(&self) -> Duration {
        self.all
    }

    /// Returns the time taken of `[from, from + length)`. `from` counts from the start of a cycle and is not negative.
    pub(crate) fn within(&self, from: Duration, length: Duration) -> Duration {
        self.up_to(from + length) - self.up_to(from)
    }

    /// Returns the most time taken of any interval of this length.
    ///
    /// An interval with the most can be moved to the start of a span without loss.
    pub(crate) fn at_most(&self, length: Duration) -> Duration {
        self.spans.iter().map(|&(start, _)| self.within(start, length)).max().unwrap_or(Duration::ZERO)
    }

    /// Returns the least time taken of any interval of this length. Such an interval begins with the end of a span.
    pub(crate) fn at_least(&self, length: Duration) -> Duration {
        self.spans.iter().map(|&(_, end)| self.within(end, length)).min().unwrap_or(Duration::ZERO)
    }

    /// Returns the least time after `from` in which `amount` is left, which is positive. `None`: no time is ever left.
    pub(crate) fn until_left(&self, from: Duration, amount: Duration) -> Option<Duration> {
        if self.is_nothing() {
            return Some(amount);
        }
        let target = from - self.up_to(from) + amount;
        let left = self.cycle - self.all;
        if left == Duration::ZERO {
            return None;
        }
        let cycles = (target - Duration::from_nanos(1)) / left;
        let rest = target - left * cycles;
        // The first span that begins only after this much was left, or the end of the cycle.
        let next = first(&self.spans, |index, &(start, _)| start - self.before[index] >= rest);
        let taken = self.before.get(next).copied().unwrap_or(self.all);
        Some(self.cycle.checked_mul(cycles)? + rest + taken - from)
    }

    /// Returns the same time from the worst instant.
    pub(crate) fn until_left_at_worst(&self, amount: Duration) -> Option<Duration> {
        if self.is_nothing() {
            return Some(amount);
        }
        let mut worst = Duration::ZERO;
        for &(start, _) in &self.spans {
            worst = worst.max(self.until_left(start, amount)?);
        }
        Some(worst)
    }

    /// Returns the time taken of `[0, time)`.
    fn up_to(&self, time: Duration) -> Duration {
        if self.is_nothing() {
            return Duration::ZERO;
        }
        let (cycles, rest) = (time / self.cycle, time % self.cycle);
        let begun = self.spans.partition_point(|&(start, _)| start < rest);
        let partly = match begun.checked_sub(1) {
            Some(last) => self.before[last] + (rest.min(self.spans[last].1) - self.spans[last].0),
            None => Duration::ZERO,
        };
        self.all * cycles + partly
    }
}

/// Returns the index of the first item with `true` for `test`, which stays `true` from there on.
fn first<T>(items: &[T], test: impl Fn(usize, &T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if test(middle, &items[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns a window with its lead. The lead of the first window may lie at the end of the cycle before.
fn pieces(cycle: Duration, lead: Duration, window: &Window) -> Vec<(Duration, Duration)> {
    let start = if window.activate { window.offset - lead } else { window.offset };
    if start >= Duration::ZERO {
        return vec![(start, window.end())];
    }
    vec![(Duration::ZERO.max(start + cycle), cycle), (Duration::ZERO, window.end())]
}

/// Returns the parts of a span that lie in no other one. The others ascend and do not overlap.
fn without((start, end): (Duration, Duration), others: &[(Duration, Duration)]) -> Vec<(Duration, Duration)> {
    let (mut from, mut left) = (start, Vec::new());
    for &(other, until) in others.iter().filter(|&&(other, until)| until > start && other < end) {
        left.push((from, other));
        from = until;
    }
    left.push((from, end));
    left.retain(|(from, until)| from < until);
    left
}

fn merged(mut spans: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    spans.sort_unstable();
    let mut merged: Vec<(Duration, Duration)> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{ns, table};

    use super::*;

    fn window(offset: i64, length: i64, activate: bool) -> Window {
        Window { activate, ..Window::new("w", ns(offset), ns(length)) }
    }

    /// `[2, 5)` and `[7, 9)` of 10, or with a lead of 3 `[0, 5)`, `[7, 10)`.
    fn taken(lead: i64) -> Taken {
        Taken::new(ns(10), ns(lead), Some(&table(0, [window(2, 3, true), window(7, 2, false)])))
    }

    #[test]
    fn what_is_taken_is_counted_by_the_nanosecond() {
        for lead in [0, 1, 3] {
            let taken = taken(lead);
            let is = |time: i64| matches!((lead, time % 10), (_, 2..5 | 7..9) | (1, 1) | (3, 0 | 1 | 9));
            for from in 0..25 {
                for length in 0..35 {
                    let counted = (from..from + length).filter(|&time| is(time)).count() as i64;
                    assert_eq!(taken.within(ns(from), ns(length)), ns(counted), "lead {lead}: {length} from {from}");
                }
                for amount in 1..25 {
                    let until = (1..).find(|&length| length - taken.within(ns(from), ns(length)).as_nanos() >= amount);
                    assert_eq!(taken.until_left(ns(from), ns(amount)), until.map(ns), "{amount} from {from}");
                }
            }
            for length in 1..35 {
                let most = (0..10).map(|from| taken.within(ns(from), ns(length))).max();
                assert_eq!(Some(taken.at_most(ns(length))), most);
                let least = (0..10).map(|from| taken.within(ns(from), ns(length))).min();
                assert_eq!(Some(taken.at_least(ns(length))), least);
                let worst = (0..10).map(|from| taken.until_left(ns(from), ns(length))).max();
                assert_eq!(Some(taken.until_left_at_worst(ns(length))), worst);
            }
        }
    }

    #[test]
    fn an_entity_has_its_windows_but_for_the_leads_of_others() {
        let of = |name: &str, offset, length| Window { task: name.into(), ..window(offset, length, name == "x") };
        let windows = [of("own", 0, 3), of("x", 4, 1), of("own", 5, 3), of("x", 9, 1)];
        let own = Taken::of_entity(ns(10), ns(2), &table(0, windows), "own");
        assert_eq!(own.spans, [(ns(0), ns(2)), (ns(5), ns(7))]);
    }

    #[test]
    fn nothing_is_left_of_a_cycle_that_is_full_and_all_of_an_empty_one() {
        let full = Taken::new(ns(10), ns(0), Some(&table(0, [window(0, 10, true)])));
        assert_eq!((full.until_left(ns(3), ns(1)), full.until_left_at_worst(ns(1))), (None, None));
        let empty = Taken::new(ns(0), ns(0), None);
        assert_eq!((empty.until_left(ns(3), ns(7)), empty.within(ns(3), ns(7))), (Some(ns(7)), ns(0)));
    }
}
