//! Response times under global EDF, from the interference of other tasks.
//!
//! Bertogna, Cirinei: Response-time analysis for globally scheduled symmetric multiprocessor platforms, RTSS 2007. On `m`
//! CPUs, a job waits in an interval for at most the m-th part of the time in which other jobs run. A task counts for no
//! more than the wait itself, since its jobs do not run in parallel. The analysis begins without slack. The slack of each
//! task that meets its deadlines lowers the interference on the others, until nothing changes.
//!
//! Bertogna, Cirinei and Lipari (BCL, IEEE Transactions on Parallel and Distributed Systems 20(4), 2009) test the
//! interference at the deadline only. A set that passes their test passes here.

use macrotick_model::Duration;

use super::{validate, DeadlineError, Task};

/// The most steps for the response time of one task, and the most rounds over all tasks. Each ends much earlier unless
/// the tasks need nearly all of the time.
const STEPS: usize = 1000;
const ROUNDS: usize = 100;

/// Returns bounds on the response times of all tasks under global EDF, in the order of the tasks. `None`: the test has no
/// bound for a task, or only one beyond its deadline. The test is sufficient, not necessary.
///
/// A task with a deadline after the end of its period has no bound.
///
/// # Errors
///
/// [`DeadlineError::Length`] for an invalid time.
pub fn response_bounds(tasks: &[Task], cpus: u32) -> Result<Option<Vec<Duration>>, DeadlineError> {
    validate(tasks)?;
    if cpus == 0 || tasks.iter().any(|task| task.deadline > task.period) {
        return Ok(tasks.is_empty().then(Vec::new));
    }
    let times = |task: &Task| Times {
        wcet: task.wcet.as_nanos().into(),
        period: task.period.as_nanos().into(),
        deadline: task.deadline.as_nanos().into(),
        slack: 0,
    };
    let mut all: Vec<Times> = tasks.iter().map(times).collect();
    for _ in 0..ROUNDS {
        let bounds: Vec<Option<i128>> = (0..all.len()).map(|index| response(&all, index, cpus.into())).collect();
        let mut changed = false;
        for (task, bound) in all.iter_mut().zip(&bounds) {
            let slack = bound.map_or(0, |bound| task.deadline - bound);
            changed |= slack > task.slack;
            task.slack = task.slack.max(slack);
        }
        if bounds.iter().all(Option::is_some) {
            let nanos = |bound: i128| Duration::from_nanos(bound as i64);
            return Ok(Some(bounds.into_iter().flatten().map(nanos).collect()));
        }
        if !changed {
            return Ok(None);
        }
    }
    Ok(None)
}

/// A task in nanoseconds.
struct Times {
    wcet: i128,
    period: i128,
    deadline: i128,
    /// The time from the end of a job to its deadline, at least.
    slack: i128,
}

impl Times {
    /// Returns the most time in which jobs run in an interval. The first one ends as late as its slack allows, and the
    /// others begin as early as possible.
    fn workload(&self, interval: i128) -> i128 {
        let behind = interval + self.deadline - self.wcet - self.slack;
        let jobs = behind.div_euclid(self.period);
        jobs * self.wcet + self.wcet.min(behind - jobs * self.period)
    }

    /// Returns the most time in which jobs run in an interval, with deadlines up to its end. The worst case is a job with
    /// its deadline there.
    fn before_deadline(&self, interval: i128) -> i128 {
        let jobs = ((interval - self.deadline).div_euclid(self.period) + 1).max(0);
        jobs * self.wcet + self.wcet.min((interval - jobs * self.period - self.slack).max(0))
    }
}

/// Returns the bound for one task, `None` if there is none up to its deadline.
///
/// A response time `C + x - 1` is a bound if the others, each counted for at most `x`, run for less than `m x` in it. For
/// a longer one, the job would have to wait for `x`. The least `x` for the interference of an interval is computed at
/// once, because steps of one nanosecond would be too many.
fn response(all: &[Times], index: usize, cpus: i128) -> Option<i128> {
    let task = &all[index];
    let mut wait = 1;
    for _ in 0..STEPS {
        let response = task.wcet + wait - 1;
        if response > task.deadline {
            return None;
        }
        let others = all.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let mut interference: Vec<i128> =
            others.map(|other| other.workload(response).min(other.before_deadline(task.deadline))).collect();
        let least = least_wait(&mut interference, cpus);
        if wait >= least {
            return Some(response);
        }
        wait = least;
    }
    None
}

/// Returns the least `x` with `sum(min(I, x)) < m x`. The sum is the least over `j` of `j x` and all but the `j` greatest
/// terms, so one `j` below `m` has to satisfy the condition.
fn least_wait(interference: &mut [i128], cpus: i128) -> i128 {
    interference.sort_unstable_by(|one, other| other.cmp(one));
    let mut rest: i128 = interference.iter().sum();
    let mut least = rest / cpus + 1;
    for (counted, term) in (1..cpus).zip(interference.iter()) {
        rest -= term;
        least = least.min(rest / (cpus - counted) + 1);
    }
    least
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::ns;

    use super::super::density_test;
    use super::*;

    fn task(wcet: i64, deadline: i64, period: i64) -> Task {
        Task { wcet: ns(wcet), period: ns(period), deadline: ns(deadline) }
    }

    fn bounds(tasks: &[Task], cpus: u32) -> Option<Vec<i64>> {
        let bounds = response_bounds(tasks, cpus).unwrap();
        bounds.map(|bounds| bounds.into_iter().map(Duration::as_nanos).collect())
    }

    #[test]
    fn as_many_tasks_as_cpus_wait_for_nothing() {
        let tasks = [task(9, 10, 10), task(10, 10, 10), task(3, 4, 7)];
        assert_eq!(bounds(&tasks, 3), Some(vec![9, 10, 3]));
        assert_eq!(bounds(&[], 2), Some(vec![]));
        assert_eq!(bounds(&tasks, 0), None);
        assert_eq!(bounds(&[task(11, 10, 10)], 2), None);
        assert_eq!(bounds(&[task(1, 11, 10)], 2), None, "a deadline after the period");
    }

    /// The densities are too high for their test. The slack of the first two tasks leaves the last one alone.
    #[test]
    fn slack_makes_others_pass() {
        let tasks = [task(8, 38, 40), task(5, 10, 10), task(4, 6, 10)];
        assert_eq!(density_test(&tasks, 2), Ok(false));
        assert_eq!(bounds(&tasks, 2), Some(vec![16, 5, 4]));
        assert_eq!(bounds(&tasks, 1), None);
    }

    /// Nanoseconds are no steps: a set near its limit is decided at once.
    #[test]
    fn long_times_take_no_more_steps() {
        let second = 1_000_000_000;
        let tasks =
            [task(second / 2, second, second), task(second / 2, second, second), task(second / 2, second, second)];
        let begin = std::time::Instant::now();
        assert_eq!(bounds(&tasks, 2), Some(vec![second; 3]));
        assert!(begin.elapsed().as_secs() < 1);
    }

    /// Plays global EDF unit by unit. Each task begins at its offset, and its jobs arrive up to `late` after a period.
    /// Returns the longest response time of each task.
    fn longest(tasks: &[Task], cpus: usize, until: i64, mut arrival: impl FnMut(usize, i64) -> i64) -> Vec<i64> {
        let mut next: Vec<i64> = (0..tasks.len()).map(|index| arrival(index, 0)).collect();
        let mut longest = vec![0; tasks.len()];
        // Deadline, task, arrival, work.
        let mut left: Vec<(i64, usize, i64, i64)> = Vec::new();
        for now in 0..until {
            for (index, task) in tasks.iter().enumerate().filter(|(index, _)| next[*index] == now).collect::<Vec<_>>() {
                left.push((now + task.deadline.as_nanos(), index, now, task.wcet.as_nanos()));
                next[index] = now + arrival(index, task.period.as_nanos());
            }
            left.sort_unstable();
            left.iter_mut().take(cpus).for_each(|job| job.3 -= 1);
            for &(_, index, from, _) in left.iter().filter(|job| job.3 == 0) {
                longest[index] = longest[index].max(now + 1 - from);
            }
            left.retain(|job| job.3 > 0);
        }
        longest
    }

    /// Ten thousand small sets: what passes a test keeps its bounds in a play of global EDF, periodic and sporadic.
    #[test]
    fn no_job_takes_longer_than_its_bound() {
        let mut random = macrotick_model::SplitMix64::new(29);
        let mut below = move |n: i64| (random.bits() % n as u64) as i64;
        let (mut passed, mut beyond, mut reached) = (0, 0, 0);
        for _ in 0..10_000 {
            let cpus = 2 + below(2) as u32;
            let tasks: Vec<Task> = (0..i64::from(cpus) + 1 + below(3))
                .map(|_| {
                    let period = [5, 6, 8, 10, 12][below(5) as usize];
                    let deadline = period - below(period / 2);
                    task(1 + below((deadline * 3 / 4).max(1)), deadline, period)
                })
                .collect();
            let Some(bounds) = bounds(&tasks, cpus) else { continue };
            passed += 1;
            beyond += usize::from(density_test(&tasks, cpus) == Ok(false));
            for late in [0, 0, 3] {
                let seen = longest(&tasks, cpus as usize, 240, |_, after| match after {
                    0 => below(12),
                    period => period + if late > 0 { below(late) } else { 0 },
                });
                for ((seen, bound), task) in seen.iter().zip(&bounds).zip(&tasks) {
                    assert!(
                        seen <= bound && *bound <= task.deadline.as_nanos(),
                        "{seen} of {bound}: {tasks:?} on {cpus}"
                    );
                    reached += usize::from(seen == bound && *bound > task.wcet.as_nanos());
                }
            }
        }
        assert!(passed > 2000 && beyond > 300 && reached > 100, "{passed} {beyond} {reached}");
    }
}
