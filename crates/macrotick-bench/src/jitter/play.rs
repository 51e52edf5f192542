//! The release instants of a play, for the host and the guest.

use serde::{Deserialize, Serialize};

use super::sets::{Set, SERVER_PERIOD_US};
use crate::kit::scale::Scale;

const US: u64 = 1000;
/// The server period in nanoseconds.
pub const PERIOD_NS: u64 = SERVER_PERIOD_US as u64 * US;
/// Steps of the sweep over the server period, and of the sweep around the end of the budget.
const STEPS_NS: (u64, u64) = (100 * US, 2 * US);
const QUICK_STEPS_NS: (u64, u64) = (1250 * US, 10 * US);
/// The range of the fine sweep around the length of the budget. The budget ends some microseconds later than its
/// length, because of the refill's interrupt and switches.
const AROUND_NS: (u64, u64) = (10 * US, 40 * US);
/// The number of releases of a bound task.
const TIMES: usize = 40;
const QUICK_TIMES: usize = 4;
/// Server periods before the releases, for the end of the previous trial, and after the longest response.
const BEFORE: u64 = 2;
const AFTER: u64 = 2;

/// A set, and the phases of its releases, as the guest needs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Play {
    /// The set.
    pub set: Set,
    /// The time from a refill to the release of the tasks, in nanoseconds.
    pub phases_ns: Vec<u64>,
    /// The length of each trial, in server periods.
    pub length: u64,
}

impl Play {
    /// Returns the play of a set with a known bound of the worst response time.
    pub fn new(set: Set, bound_ns: u64, scale: Scale) -> Play {
        let phases_ns = match set.bound {
            true => vec![0; scale.of(TIMES, QUICK_TIMES)],
            false => sweep(u64::from(set.budget_us) * US, scale.of(STEPS_NS, QUICK_STEPS_NS)),
        };
        let length = BEFORE + bound_ns.div_ceil(PERIOD_NS) + AFTER;
        Play { set, phases_ns, length }
    }

    /// Returns the refill before the releases of a trial, in nanoseconds from the first trial's start.
    pub fn refill_ns(&self, trial: usize) -> u64 {
        (trial as u64 * self.length + BEFORE) * PERIOD_NS
    }

    /// Returns the refill from which on the groups above use all their budgets.
    pub fn crowd_ns(&self, trial: usize) -> u64 {
        self.refill_ns(trial) + if self.set.bound { 0 } else { PERIOD_NS }
    }

    /// Returns the instant at which the groups above stop.
    pub fn crowd_ends_ns(&self, trial: usize) -> u64 {
        (trial as u64 + 1) * self.length * PERIOD_NS
    }

    /// Returns the instants of a task's releases in a trial: the first one as late as its jitter allows, the others as
    /// they arrive.
    pub fn releases_ns(&self, trial: usize, task: usize) -> impl Iterator<Item = u64> {
        let (task, last) = (self.set.tasks[task], task + 1 == self.set.tasks.len());
        let first = self.refill_ns(trial) + self.phases_ns[trial];
        let end = if last { first + 1 } else { self.crowd_ends_ns(trial) - PERIOD_NS };
        let next = first + u64::from(task.period_us - task.jitter_us) * US;
        std::iter::once(first).chain((next..end).step_by(task.period_us as usize * US as usize))
    }
}

/// Returns phases over a server period, with more of them around the end of the budget.
fn sweep(budget_ns: u64, (step_ns, fine_step_ns): (u64, u64)) -> Vec<u64> {
    let fine = (budget_ns - AROUND_NS.0..budget_ns + AROUND_NS.1).step_by(fine_step_ns as usize);
    let mut phases: Vec<u64> = (0..PERIOD_NS).step_by(step_ns as usize).chain(fine).collect();
    phases.sort_unstable();
    phases.dedup();
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_over_before_the_next_one() {
        for set in Set::all() {
            let bound = set.bound().response.as_nanos() as u64;
            let tasks = set.tasks.len();
            let play = Play::new(set, bound, Scale::Full);
            for trial in 0..play.phases_ns.len() - 1 {
                assert!(play.refill_ns(trial) % PERIOD_NS == 0);
                let own: Vec<u64> = play.releases_ns(trial, tasks - 1).collect();
                assert_eq!(own, [play.refill_ns(trial) + play.phases_ns[trial]]);
                assert!(own[0] + bound < play.crowd_ends_ns(trial));
                for task in 0..tasks {
                    let releases: Vec<u64> = play.releases_ns(trial, task).collect();
                    assert!(releases.is_sorted() && releases[0] == own[0]);
                    assert!(*releases.last().unwrap() < play.refill_ns(trial + 1));
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_budget_is_among_the_phases() {
        let phases = sweep(1_000_000, STEPS_NS);
        assert!(
            phases.is_sorted() && phases.contains(&0) && phases.contains(&1_004_000) && phases.contains(&2_400_000)
        );
        assert!(phases.iter().all(|&phase| phase < PERIOD_NS));
    }
}
