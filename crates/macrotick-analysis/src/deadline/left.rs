//! The time that windows and groups leave on a CPU for tasks of SCHED_DEADLINE, which come after them.

use macrotick_model::{CpuTable, Duration};

use super::{DeadlineError, Rate, Supply};
use crate::servers::Taken;

/// A CPU behind the windows of its table and the budgets of its groups.
///
/// Windows take the most of an interval that begins with a window, whatever they serve. Groups are trusted only to keep
/// their budgets, which are refilled at the same instants. A deferrable server may use its budget at the end of one
/// server period and again at the start of the next. (Strosnider, Lehoczky, Sha: The deferrable server algorithm, IEEE
/// Transactions on Computers 44(1), 1995.)
///
/// The result is exact without groups, or without windows. With both, the time that they take together is an upper
/// bound: the worst interval of one need not be that of the other.
#[derive(Clone, Debug)]
pub struct Left {
    cycle: Duration,
    windows: Taken,
    server_period: Duration,
    budgets: Duration,
}

impl Left {
    /// Makes the supply of a CPU with a valid table and `lead` before its ACTIVATE windows. `budgets` is the sum of the
    /// budgets in each server period.
    ///
    /// # Errors
    ///
    /// [`DeadlineError::Overload`]: no time is left in the long run.
    pub fn new(
        cycle: Duration,
        lead: Duration,
        table: Option<&CpuTable>,
        server_period: Duration,
        budgets: Duration,
    ) -> Result<Left, DeadlineError> {
        let windows = Taken::new(cycle, lead, table);
        let left = Left { cycle, windows, server_period, budgets };
        match left.rate().given > Duration::ZERO {
            true => Ok(left),
            false => Err(DeadlineError::Overload { given: Duration::ZERO, period: left.repetition() }),
        }
    }

    /// Returns the most time of an interval that groups take.
    fn taken_by_groups(&self, interval: Duration) -> Duration {
        let again = (interval - self.budgets).max(Duration::ZERO);
        let late = interval.min(self.budgets);
        let early = self.budgets * (again / self.server_period) + (again % self.server_period).min(self.budgets);
        late + early
    }

    /// Returns the end of the stretch around `interval` in which groups take all additional time. Outside of such a
    /// stretch it is `interval` itself.
    fn stretch_end(&self, interval: Duration) -> Duration {
        let again = interval - self.budgets;
        let turn = self.server_period * (again.max(Duration::ZERO) / self.server_period);
        interval.max(self.budgets * 2 + turn)
    }

    /// Returns the shortest time after which windows and refills both repeat; without windows it is a server period.
    fn repetition(&self) -> Duration {
        match (self.windows.is_nothing(), self.budgets) {
            (true, _) => self.server_period,
            (false, Duration::ZERO) => self.cycle,
            _ => self.cycle.lcm(self.server_period).unwrap_or(Duration::from_nanos(i64::MAX)),
        }
    }
}

impl Supply for Left {
    /// Searches by bisection: the time that is sure in a shorter interval is also sure in a longer one.
    fn least(&self, interval: Duration) -> Duration {
        let (mut sure, mut not) = (Duration::ZERO, interval + Duration::from_nanos(1));
        while not - sure > Duration::from_nanos(1) {
            let middle = sure + Duration::from_nanos((not - sure).as_nanos() / 2);
            match self.wait(middle) <= interval {
                true => sure = middle,
                false => not = middle,
            }
        }
        sure
    }

    /// Returns the least `t` in which this much is left beside all the time taken of `t`.
    fn wait(&self, amount: Duration) -> Duration {
        if amount <= Duration::ZERO {
            return Duration::ZERO;
        }
        let mut wait = amount;
        loop {
            let Some(longer) = self.windows.until_left_at_worst(amount + self.taken_by_groups(wait)) else {
                return Duration::from_nanos(i64::MAX);
            };
            if longer <= wait {
                return wait;
            }
            // A longer interval within the stretch leaves no more time. Without this step, the loop could need a step
            // for each missing nanosecond.
            wait = longer.max(self.stretch_end(wait));
        }
    }

    fn rate(&self) -> Rate {
        let period = self.repetition();
        let windows = match self.windows.is_nothing() {
            true => Duration::ZERO,
            false => self.windows.per_cycle() * (period / self.cycle),
        };
        let given = period - windows - self.budgets * (period / self.server_period);
        // In `t`, windows take at most one cycle's window time more than their share of it, groups at most two budgets
        // more.
        let ahead = self.windows.per_cycle() + self.budgets * 2;
        let lag =
            i128::from(ahead.as_nanos()) * i128::from(period.as_nanos()) / i128::from(given.as_nanos().max(1)) + 1;
        Rate { given, period, lag: Duration::from_nanos(i64::try_from(lag).unwrap_or(i64::MAX)) }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::{self as fixtures, ns, window};
    use macrotick_model::SplitMix64;

    use super::super::{demand, Task};
    use super::*;

    fn table(windows: &[(i64, i64)]) -> CpuTable {
        fixtures::table(0, windows.iter().map(|&(offset, length)| window("w", ns(offset), ns(length), "")))
    }

    fn left(windows: &[(i64, i64)], budgets: i64) -> Left {
        Left::new(ns(12), ns(0), Some(&table(windows)), ns(6), ns(budgets)).unwrap()
    }

    #[test]
    fn groups_come_twice_in_a_row() {
        let left = left(&[], 2);
        let least: Vec<i64> = (0..=12).map(|t| left.least(ns(t)).as_nanos()).collect();
        assert_eq!(least, [0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 5, 6]);
    }

    #[test]
    fn windows_take_what_they_take_at_worst() {
        let left = left(&[(0, 3), (5, 1)], 0);
        let least: Vec<i64> = (0..=12).map(|t| left.least(ns(t)).as_nanos()).collect();
        // From 0: 3 taken, 2 left, 1 taken, 6 left.
        assert_eq!(least, [0, 0, 0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8]);
        assert!(Left::new(ns(12), ns(0), Some(&table(&[(0, 8)])), ns(6), ns(2)).is_err());
    }

    /// The search for a missing nanosecond does not step through seconds of windows or budgets by the nanosecond.
    #[test]
    fn the_end_of_a_long_window_is_found_at_once() {
        let s = Duration::from_secs;
        let table = fixtures::table(0, [window("w", s(0), s(400), "")]);
        let left = Left::new(s(1000), ns(0), Some(&table), s(500), s(100)).unwrap();
        // 400 of the window, and three times a budget of 100.
        assert_eq!((left.wait(ns(1)), left.least(s(700))), (s(700) + ns(1), ns(0)));
        assert_eq!((left.least(s(700) + ns(1)), left.least(s(800))), (ns(1), s(100)));
    }

    /// Tries each instant of the cycle as the begin of the interval. Groups use their budgets late in the first server
    /// period, and at once in the following ones.
    fn played(windows: &[(i64, i64)], budgets: i64, interval: i64) -> i64 {
        let is_window = |at: i64| windows.iter().any(|&(from, length)| (from..from + length).contains(&(at % 12)));
        let least = |from: i64| {
            // Refills are at the multiples of 6; the interval begins at `from`.
            let (mut given, mut budget) = (0, budgets);
            for at in from..from + interval {
                if at % 6 == 0 {
                    budget = budgets;
                }
                if is_window(at) {
                    continue;
                }
                match budget > 0 {
                    true => budget -= 1,
                    false => given += 1,
                }
            }
            given
        };
        (0..12).map(least).min().unwrap()
    }

    #[test]
    fn never_more_than_what_can_happen() {
        let mut random = SplitMix64::new(23);
        let mut below = |n: u64| (random.bits() % n) as i64;
        let mut exact = 0;
        for _ in 0..300 {
            let windows = [(below(3), 1 + below(2)), (6 + below(3), 1 + below(2))];
            let budgets = below(3);
            let left = left(&windows, budgets);
            for interval in 0..40 {
                let (sure, seen) = (left.least(ns(interval)).as_nanos(), played(&windows, budgets, interval));
                assert!(sure <= seen, "{interval} of {windows:?} with {budgets}: {sure} and {seen}");
                exact += usize::from(sure == seen);
                if sure > 0 {
                    assert!(left.wait(ns(sure)) <= ns(interval) && left.wait(ns(sure + 1)) > ns(interval));
                }
                let Rate { given, period, lag } = left.rate();
                let bound = (ns(interval) - lag).as_nanos() * given.as_nanos();
                assert!(sure * period.as_nanos() >= bound, "{interval}");
            }
        }
        assert!(exact > 3000, "{exact}");
    }

    #[test]
    fn demand_is_held_against_what_is_left() {
        let task = |wcet, period, deadline| Task { wcet: ns(wcet), period: ns(period), deadline: ns(deadline) };
        let left = left(&[(0, 3)], 2);
        // 3 of windows and twice 2 of budgets, or 3 and 2 and 2 in the first 7.
        assert!(demand(&[task(1, 12, 8)], &left).is_ok());
        assert!(demand(&[task(1, 12, 7)], &left).is_err());
        assert!(demand(&[task(5, 12, 12), task(1, 12, 12)], &left).is_err());
    }
}
