//! The time that a CPU, or a reservation on it, is sure to give.

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::{DeadlineError, LONGEST};

/// The time that tasks are sure to get in any interval in which they always have work.
pub trait Supply {
    /// Returns the least time in an interval of this length (the supply bound function). It never decreases with the
    /// length.
    fn least(&self, interval: Duration) -> Duration;

    /// Returns the shortest interval in which this amount is sure: the inverse of [`least`](Supply::least). The amount
    /// is not negative.
    fn wait(&self, amount: Duration) -> Duration;

    /// Returns the supply in the long run.
    fn rate(&self) -> Rate;
}

/// The supply in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The amount per period. An interval at least as long as the lag gives this much more if it is a period longer.
    pub given: Duration,
    /// The period of `given`.
    pub period: Duration,
    /// An interval of `t` gives at least `(t - lag) given / period`.
    pub lag: Duration,
}

/// A CPU without other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor;

impl Supply for Processor {
    fn least(&self, interval: Duration) -> Duration {
        interval
    }

    fn wait(&self, amount: Duration) -> Duration {
        amount
    }

    fn rate(&self) -> Rate {
        let one = Duration::from_nanos(1);
        Rate { given: one, period: one, lag: Duration::ZERO }
    }
}

/// A budget in each period, available by a deadline.
///
/// This is the explicit deadline periodic resource (Easwaran, Anand, Lee: Compositional analysis framework using EDP
/// resource models, RTSS 2007, section 3). With the deadline at the end of the period it is the periodic resource
/// (Shin, Lee: Periodic resource model for compositional real-time guarantees, RTSS 2003).
///
/// In the worst case the budget is used up at the start of one period, and comes as late as possible in all following
/// ones:
///
/// ```text
///    |<----- period ----->|<----- period ----->|<-----
///    |[bud]               |        [bud]|      |        [bud]
///          |<---- lag ------------>|    deadline
/// ```
///
/// SCHED_DEADLINE with the deadline at the end of the period is a hard constant bandwidth server. It gives at least
/// this, also to a task that sleeps in between. At a wake-up, the remaining budget stays valid only if it is at most
/// its share of the time to the deadline (`update_dl_entity` in `kernel/sched/deadline.c`). Therefore the following
/// wait is no longer than the lag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    budget: Duration,
    deadline: Duration,
    period: Duration,
}

impl Reservation {
    /// Makes a reservation, if `0 < budget <= deadline <= period`.
    ///
    /// # Errors
    ///
    /// [`DeadlineError::Reservation`] otherwise.
    pub fn new(budget: Duration, deadline: Duration, period: Duration) -> Result<Reservation, DeadlineError> {
        match Duration::ZERO < budget && budget <= deadline && deadline <= period && period <= LONGEST {
            true => Ok(Reservation { budget, deadline, period }),
            false => Err(DeadlineError::Reservation { budget, deadline, period }),
        }
    }

    /// Returns the longest time without supply.
    fn lag(&self) -> Duration {
        (self.period - self.budget) + (self.deadline - self.budget)
    }
}

impl Supply for Reservation {
    fn least(&self, interval: Duration) -> Duration {
        let after = interval - self.lag();
        if after <= Duration::ZERO {
            return Duration::ZERO;
        }
        self.budget * (after / self.period) + (after % self.period).min(self.budget)
    }

    fn wait(&self, amount: Duration) -> Duration {
        if amount <= Duration::ZERO {
            return Duration::ZERO;
        }
        // The last budget may be needed as a whole.
        let before = (amount - Duration::from_nanos(1)) / self.budget;
        self.lag() + self.period * before + (amount - self.budget * before)
    }

    fn rate(&self) -> Rate {
        Rate { given: self.budget, period: self.period, lag: self.lag() }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::ns;

    use super::*;

    /// Returns the least supply over all places of an interval and all behaviours of a reservation, unit by unit.
    fn played(budget: i64, deadline: i64, period: i64, interval: i64) -> i64 {
        let early = |at: i64| at % period < budget && at < period;
        let late = |at: i64| at >= period && (deadline - budget..deadline).contains(&(at % period));
        let given = |at: &i64| early(*at) || late(*at);
        (0..2 * period).map(|begin| (begin..begin + interval).filter(given).count() as i64).min().unwrap()
    }

    #[test]
    fn a_reservation_gives_what_its_worst_case_gives() {
        for (budget, deadline, period) in [(1, 4, 4), (2, 3, 5), (3, 3, 7), (5, 5, 5), (3, 7, 8)] {
            let supply = Reservation::new(ns(budget), ns(deadline), ns(period)).unwrap();
            for interval in 0..4 * period {
                let seen = played(budget, deadline, period, interval);
                assert_eq!(supply.least(ns(interval)), ns(seen), "{interval} of {supply:?}");
            }
        }
    }

    #[test]
    fn a_wait_is_the_inverse() {
        let supplies: [&dyn Supply; 3] = [
            &Processor,
            &Reservation::new(ns(2), ns(3), ns(5)).unwrap(),
            &Reservation::new(ns(4), ns(4), ns(4)).unwrap(),
        ];
        for supply in supplies {
            for amount in 1..30 {
                let wait = supply.wait(ns(amount));
                assert_eq!(supply.least(wait), ns(amount));
                assert!(supply.least(wait - ns(1)) < ns(amount));
            }
            assert_eq!(supply.wait(Duration::ZERO), Duration::ZERO);
            let Rate { given, period, lag } = supply.rate();
            for t in 0..40 {
                let bound = (ns(t) - lag).as_nanos() * given.as_nanos();
                assert!(supply.least(ns(t)).as_nanos() * period.as_nanos() >= bound, "{t}");
                let longer = ns(t) + lag;
                assert_eq!(supply.least(longer + period), supply.least(longer) + given);
            }
        }
    }

    #[test]
    fn a_reservation_that_cannot_be_is_refused() {
        for (budget, deadline, period) in [(0, 1, 1), (2, 1, 3), (1, 4, 3)] {
            let refused = Reservation::new(ns(budget), ns(deadline), ns(period));
            assert!(matches!(refused, Err(DeadlineError::Reservation { .. })), "{refused:?}");
        }
    }
}
