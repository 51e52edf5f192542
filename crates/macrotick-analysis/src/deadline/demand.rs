//! The processor demand test of EDF on one CPU.

use macrotick_model::Duration;

use super::share::{ceil, Shares};
use super::{validate, DeadlineError, Supply, Task, LONGEST};

/// Checks that the tasks meet all their deadlines under EDF with this supply, whenever their jobs arrive.
///
/// The work with arrival and deadline inside an interval must not exceed the least supply in it. This is the test of
/// Baruah, Mok, Rosier: Preemptively scheduling hard-real-time sporadic tasks on one processor, RTSS 1990. With a
/// supply it is that of Shin and Lee 2003. The test starts from a bound on the length of a faulty interval, and goes
/// downwards. It skips the intervals that the last one also covers. (Zhang, Burns: Schedulability analysis for
/// real-time systems with EDF scheduling, IEEE Transactions on Computers 58(9), 2009.)
///
/// # Errors
///
/// The reason why a task may miss, or why there is no answer.
pub fn demand(tasks: &[Task], supply: &dyn Supply) -> Result<(), DeadlineError> {
    validate(tasks)?;
    let mut next = last_deadline(tasks, horizon(tasks, supply)?);
    while let Some(interval) = next {
        let demand = demand_of(tasks, interval);
        let enough = supply.wait(demand);
        if enough > interval {
            return Err(DeadlineError::Exceeded { interval, demand, given: supply.least(interval) });
        }
        // Intervals between `enough` and `interval` have no more demand than `interval`, and no less supply than
        // `enough`.
        next = last_deadline(tasks, enough.min(interval - Duration::from_nanos(1)));
    }
    Ok(())
}

/// Returns the most work with arrival and deadline in an interval (the demand bound function).
fn demand_of(tasks: &[Task], interval: Duration) -> Duration {
    let inside = tasks.iter().filter(|task| task.deadline <= interval);
    inside.map(|task| task.wcet * ((interval - task.deadline) / task.period + 1)).sum()
}

/// Returns the last deadline up to an instant, counted from the common arrival of all tasks.
fn last_deadline(tasks: &[Task], until: Duration) -> Option<Duration> {
    let reached = tasks.iter().filter(|task| task.deadline <= until);
    reached.map(|task| task.deadline + task.period * ((until - task.deadline) / task.period)).max()
}

/// Returns a length that the test must try: if any interval is faulty, one of at most this length is.
///
/// Let `U` be the tasks' share of a CPU, and `r` the supply's share. The demand in `t` is at most
/// `U t + sum of U_i (T_i - D_i)`, over the tasks with `D_i < T_i`. The supply is at least `r (t - lag)`. With `U < r`
/// the two lines meet. With `U = r` both grow alike in each hyperperiod, from the point on from which both repeat.
fn horizon(tasks: &[Task], supply: &dyn Supply) -> Result<Duration, DeadlineError> {
    let rate = supply.rate();
    let mut of: Vec<(Duration, Duration)> = tasks.iter().map(|task| (task.wcet, task.period)).collect();
    of.push((rate.given, rate.period));
    let shares = Shares::new(&of);
    let (given, parts) = shares.parts.split_last().expect("the supply has a share");
    let (given, needed) = (given - i128::from(!shares.exact), parts.iter().sum::<i128>());
    if needed < given {
        let early = tasks.iter().map(|task| i128::from((task.period - task.deadline).max(Duration::ZERO).as_nanos()));
        let start: i128 = parts.iter().zip(early).map(|(part, early)| part * early).sum();
        let bound = ceil(start + given * i128::from(rate.lag.as_nanos()), given - needed);
        return i64::try_from(bound).map(Duration::from_nanos).map_err(|_| DeadlineError::Undecided);
    }
    // Rounded up, each part is too large by less than one.
    let surely = if shares.exact { needed } else { needed - parts.len() as i128 };
    if surely > given + i128::from(!shares.exact) {
        return Err(DeadlineError::Overload { given: rate.given, period: rate.period });
    }
    let hyperperiod = i64::try_from(shares.whole).map(Duration::from_nanos).ok().filter(|_| shares.exact);
    let hyperperiod = hyperperiod.filter(|&length| length <= LONGEST).ok_or(DeadlineError::Undecided)?;
    let deadlines = tasks.iter().map(|task| task.deadline);
    Ok(hyperperiod + deadlines.fold(rate.lag, Duration::max))
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::ns;
    use macrotick_model::SplitMix64;

    use super::super::{Processor, Reservation};
    use super::*;

    fn task((wcet, period, deadline): (i64, i64, i64)) -> Task {
        Task { wcet: ns(wcet), period: ns(period), deadline: ns(deadline) }
    }

    #[test]
    fn a_cpu_is_enough_up_to_its_last_part() {
        let full = [task((1, 2, 2)), task((1, 3, 3)), task((1, 6, 6))];
        assert_eq!(demand(&full, &Processor), Ok(()));
        let over = [full[0], full[1], task((2, 11, 11))];
        assert_eq!(demand(&over, &Processor), Err(DeadlineError::Overload { given: ns(1), period: ns(1) }));
    }

    #[test]
    fn a_short_deadline_is_missed_at_little_load() {
        let tasks = [task((2, 10, 3)), task((2, 10, 3))];
        let exceeded = DeadlineError::Exceeded { interval: ns(3), demand: ns(4), given: ns(3) };
        assert_eq!(demand(&tasks, &Processor), Err(exceeded));
        assert_eq!(demand(&[tasks[0], task((2, 10, 4))], &Processor), Ok(()));
    }

    #[test]
    fn a_reservation_has_a_gap() {
        let reservation = |budget| Reservation::new(ns(budget), ns(5), ns(5)).unwrap();
        let tasks = [task((1, 4, 4)), task((1, 10, 10))];
        let exceeded = DeadlineError::Exceeded { interval: ns(4), demand: ns(1), given: ns(0) };
        assert_eq!(demand(&tasks, &reservation(3)), Err(exceeded));
        assert_eq!(demand(&tasks, &reservation(4)), Ok(()));
    }

    #[test]
    fn what_would_take_for_ever_is_told() {
        let prime = 999_999_999_989;
        let tasks = [task((1, 2, 2)), task((prime / 2, prime, prime)), task((1, 2 * prime, 2 * prime))];
        assert_eq!(
            demand(&tasks, &Processor),
            Err(DeadlineError::Length { index: 2, what: "the period", length: ns(2 * prime) })
        );
        let two = [task((1, 2, 2)), task((prime / 2 + 1, prime, prime))];
        assert_eq!(demand(&two, &Processor), Err(DeadlineError::Overload { given: ns(1), period: ns(1) }));
        let nearly = [task((1, 3, 3)), task((2 * prime / 3, prime, prime))];
        assert_eq!(demand(&nearly, &Processor), Ok(()));
    }

    /// Plays EDF unit by unit on the worst supply. All tasks arrive at the start, where the supply is at its worst.
    fn misses(tasks: &[Task], supply: &dyn Supply, until: i64) -> bool {
        let mut left: Vec<(i64, i64)> = Vec::new();
        for now in 0..until {
            let arrivals = tasks.iter().filter(|task| now % task.period.as_nanos() == 0);
            left.extend(arrivals.map(|task| (now + task.deadline.as_nanos(), task.wcet.as_nanos())));
            if supply.least(ns(now + 1)) > supply.least(ns(now)) {
                if let Some(first) = left.iter_mut().min() {
                    first.1 -= 1;
                }
            }
            left.retain(|&(_, work)| work > 0);
            if left.iter().any(|&(due, _)| due <= now + 1) {
                return true;
            }
        }
        false
    }

    #[test]
    fn the_answer_is_what_happens() {
        let mut random = SplitMix64::new(5);
        let mut below = |n: u64| (random.bits() % n) as i64;
        let mut seen = [0, 0];
        for _ in 0..3000 {
            let tasks: Vec<Task> = (0..1 + below(3))
                .map(|_| {
                    let period = [2, 3, 4, 6, 12, 24][below(6) as usize];
                    task((1 + below(3), period, 1 + below(30)))
                })
                .collect();
            let period = [3, 4, 6][below(3) as usize];
            let deadline = 1 + below(period as u64);
            let reservation = Reservation::new(ns(1 + below(deadline as u64)), ns(deadline), ns(period)).unwrap();
            let supply: &dyn Supply = if below(2) == 0 { &Processor } else { &reservation };
            // Tasks that exceed the supply do so by at least 1/24 of a CPU, and no deadline is longer than 30.
            let late = misses(&tasks, supply, 1500);
            assert_eq!(demand(&tasks, supply).is_err(), late, "{tasks:?} with {reservation:?} {:?}", supply.rate());
            seen[usize::from(late)] += 1;
        }
        assert!(seen[0] > 300 && seen[1] > 300, "{seen:?}");
    }
}
