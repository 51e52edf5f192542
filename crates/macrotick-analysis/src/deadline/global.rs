//! Global EDF: the jobs with the earliest deadlines run, on any of the CPUs.

use macrotick_model::Duration;

use super::share::{ceil, Shares};
use super::{validate, DeadlineError, Task};

/// Whether the densities of the tasks, `C / min(D, T)`, are low enough that no task misses a deadline under global EDF.
/// Their sum must be at most `m - (m - 1)` times the greatest. This is theorem 5 of Goossens, Funk, Baruah:
/// Priority-driven scheduling of periodic task systems on multiprocessors, Real-Time Systems 25, 2003. With densities
/// it is by Bertogna, Cirinei, Lipari, ECRTS 2005. The test is sufficient, not necessary: tasks that do not pass may
/// meet all deadlines.
///
/// # Errors
///
/// [`DeadlineError::Length`] for an invalid time.
pub fn density_test(tasks: &[Task], cpus: u32) -> Result<bool, DeadlineError> {
    validate(tasks)?;
    let of: Vec<_> = tasks.iter().map(|task| (task.wcet, task.deadline.min(task.period))).collect();
    let shares = Shares::new(&of);
    let (cpus, most) = (i128::from(cpus), shares.parts.iter().max().copied().unwrap_or(0));
    // A task with a density of more than one CPU is late on its own. The right-hand side does not show that.
    Ok(most <= shares.whole && shares.sum() <= cpus * shares.whole - (cpus - 1).max(0) * most)
}

/// Returns the longest lateness of each task's jobs under global EDF, in the order of the tasks, rounded up. `None`:
/// the CPUs are not enough in the long run, and there is no bound.
///
/// The bound is `x + C_i` (Devi, Anderson: Tardiness bounds under global EDF scheduling on a multiprocessor, Real-Time
/// Systems 38, 2008, theorem 2). The dividend of `x` is the sum of the `n` greatest execution times without the least
/// of all. The divisor is `m` without the sum of the `n - 1` greatest utilisations. `n` is the sum of all utilisations,
/// rounded up, less one. All bounds are zero if [`density_test`] passes.
///
/// # Errors
///
/// An invalid time, or a deadline that is not at the end of the period, as the theorem requires.
pub fn tardiness_bounds(tasks: &[Task], cpus: u32) -> Result<Option<Vec<Duration>>, DeadlineError> {
    validate(tasks)?;
    if let Some(index) = tasks.iter().position(|task| task.deadline != task.period) {
        return Err(DeadlineError::NotImplicit { index });
    }
    if density_test(tasks, cpus)? {
        return Ok(Some(vec![Duration::ZERO; tasks.len()]));
    }
    let of: Vec<_> = tasks.iter().map(|task| (task.wcet, task.period)).collect();
    let Shares { mut parts, whole, .. } = Shares::new(&of);
    let sum: i128 = parts.iter().sum();
    if sum > i128::from(cpus) * whole || parts.iter().any(|&part| part > whole) {
        return Ok(None);
    }
    let n = (ceil(sum, whole) - 1) as usize;
    parts.sort_unstable_by(|a, b| b.cmp(a));
    let mut times: Vec<i128> = tasks.iter().map(|task| i128::from(task.wcet.as_nanos())).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    let least = times.last().copied().unwrap_or(0);
    let excess = (times[..n].iter().sum::<i128>() - least).max(0);
    let room = i128::from(cpus) * whole - parts[..n.saturating_sub(1)].iter().sum::<i128>();
    let x = Duration::from_nanos(ceil(excess * whole, room) as i64);
    Ok(Some(tasks.iter().map(|task| x + task.wcet).collect()))
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::ns;
    use std::collections::HashSet;

    use super::*;

    fn tasks(of: &[(i64, i64)]) -> Vec<Task> {
        of.iter().map(|&(wcet, period)| Task::implicit(ns(wcet), ns(period))).collect()
    }

    #[test]
    fn densities_up_to_the_bound_pass() {
        let thirds = tasks(&[(1, 3); 6]);
        assert_eq!(density_test(&thirds[..5], 2), Ok(true), "5/3 = 2 - 1/3");
        assert_eq!(density_test(&thirds, 2), Ok(false));
        assert_eq!(density_test(&tasks(&[(1, 2), (1, 2)]), 1), Ok(true));
        let heavy = tasks(&[(1, 10), (1, 10), (10, 11)]);
        assert_eq!(density_test(&heavy, 2), Ok(false), "Dhall's effect");
        let short = Task { wcet: ns(1), period: ns(3), deadline: ns(1) };
        assert_eq!(density_test(&[thirds[0], short], 2), Ok(false));
        assert_eq!(density_test(&tasks(&[(4, 3)]), 1), Ok(false));
    }

    /// Two tasks of 2 in 3 and one of 4 in 6 on two CPUs: `x = (4 - 2) / 2`.
    #[test]
    fn an_example_by_hand_is_late_by_so_much_at_most() {
        let three = tasks(&[(2, 3), (2, 3), (4, 6)]);
        assert_eq!(tardiness_bounds(&three, 2), Ok(Some(vec![ns(3), ns(3), ns(5)])));
        assert_eq!(tardiness_bounds(&three[..2], 2), Ok(Some(vec![ns(0), ns(0)])), "by their densities");
        assert_eq!(tardiness_bounds(&three, 1), Ok(None));
        assert_eq!(tardiness_bounds(&tasks(&[(4, 3)]), 2), Ok(None));
        let early = [Task { deadline: ns(2), ..three[0] }];
        assert_eq!(tardiness_bounds(&early, 2), Err(DeadlineError::NotImplicit { index: 0 }));
    }

    /// Plays global EDF unit by unit, from the common arrival of all tasks.
    fn latest(tasks: &[Task], cpus: usize, until: i64) -> i64 {
        let (mut left, mut latest): (Vec<(i64, usize, i64)>, i64) = (Vec::new(), 0);
        for now in 0..until {
            let arrivals = tasks.iter().enumerate().filter(|(_, task)| now % task.period.as_nanos() == 0);
            left.extend(arrivals.map(|(index, task)| (now + task.deadline.as_nanos(), index, task.wcet.as_nanos())));
            left.sort_unstable();
            // Of each task, only the earliest job runs.
            let mut run = HashSet::new();
            left.iter_mut().filter(|job| run.insert(job.1)).take(cpus).for_each(|job| job.2 -= 1);
            let done = left.iter().filter(|job| job.2 == 0).map(|&(due, ..)| now + 1 - due);
            latest = latest.max(done.max().unwrap_or(0));
            left.retain(|&(.., work)| work > 0);
        }
        latest
    }

    #[test]
    fn nothing_is_later_than_its_bound() {
        let mut random = macrotick_model::SplitMix64::new(11);
        let mut below = |n: u64| (random.bits() % n) as i64;
        let (mut late, mut passed) = (0, 0);
        for _ in 0..2000 {
            let cpus = 2 + below(2) as u32;
            let of: Vec<(i64, i64)> = (0..i64::from(cpus) + 1 + below(3))
                .map(|_| {
                    let period = [4, 6, 8, 12, 24][below(5) as usize];
                    (1 + below(period as u64), period)
                })
                .collect();
            let tasks = tasks(&of);
            let Some(bounds) = tardiness_bounds(&tasks, cpus).unwrap() else { continue };
            let seen = latest(&tasks, cpus as usize, 480);
            let bound = bounds.iter().max().unwrap().as_nanos();
            assert!(seen <= bound, "{seen} of {bound}: {of:?} on {cpus}");
            late += usize::from(seen > 0);
            passed += usize::from(bound == 0);
        }
        assert!(late > 20 && passed > 100, "{late} {passed}");
    }
}
