//! Response times inside one server: equations 1 and 2 of the paper (Davis and Burns 2005), solved in their order.
//!
//! A job that has to wait for `D` of work, its own and that of higher priority, is done when its server has had `D`:
//!
//! ```text
//! v = finish(q C_i + sum over higher tasks j of ceil((v + ahead_j) / T_j) C_j)        (1) inside finish() of (2), (3)
//! R_i = max over q of  v + ahead_i - (q - 1) T_i
//! ```
//!
//! `v` counts from the refill that ends the gap. `ahead` of a task is how long before this refill a job can have
//! arrived that is still to be served: for an unbound task its jitter and the gap (the `J = T_S - C_S` of the paper,
//! and the release jitter which the paper does not have), for a bound task without jitter nothing. Job `q` is looked at
//! as long as job `q - 1` was not done when it arrives; the paper needs `q = 1` alone, as its deadlines are periods.

use macrotick_model::Duration;

use super::supply::{ceil_div, Supply};
use super::{Arrival, GroupTask};

/// After so many steps the end of a busy time is not looked for any longer; the task then has no response time. It may
/// have one: where as much is asked for as is supplied, there are busy times without end in which nobody is late.
const MOST_STEPS: usize = 50_000;
/// Nor are longer busy times looked at, which keeps all sums far from the range of 64 bits.
const LONGEST_BUSY: Duration = Duration::from_secs(1_000_000);

/// The worst response time of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Worst {
    /// `None`: jobs wait for ever longer, or no end was found. Of a task that misses, that of a job that misses.
    pub response: Option<Duration>,
    /// The refill that the worst job waits for.
    pub refill: usize,
}

impl Worst {
    /// Whether no job is late.
    pub fn meets(&self, deadline: Duration) -> bool {
        self.response.is_some_and(|response| response <= deadline)
    }
}

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// The worst response time.
    Full,
    /// Whether there is a miss: the first one ends the search.
    FirstMiss,
}

/// The worst response time of `task` beside `higher`: all others of the server whose priority is not lower.
pub(super) fn worst(supply: &Supply, task: &GroupTask, higher: &[&GroupTask], effort: Effort) -> Worst {
    if overloaded(supply, task, higher) {
        return Worst { response: None, refill: 0 };
    }
    let (mut longest, mut at) = (Duration::ZERO, 0);
    for refill in 0..supply.refills() {
        let busy = Busy { supply, refill, task, higher };
        if busy.is_no_longer_than(longest) {
            continue;
        }
        let Some(response) = busy.response() else {
            return Worst { response: None, refill };
        };
        if response > longest {
            (longest, at) = (response, refill);
        }
        if effort == Effort::FirstMiss && longest > task.deadline {
            break;
        }
    }
    Worst { response: Some(longest), refill: at }
}

/// Whether more is asked for than is supplied in the long run. A short cut only, so it may err towards `false`.
fn overloaded(supply: &Supply, task: &GroupTask, higher: &[&GroupTask]) -> bool {
    let share = |task: &GroupTask| task.wcet.as_secs_f64() / task.period.as_secs_f64();
    share(task) + higher.iter().map(|task| share(task)).sum::<f64>() > supply.rate() + 1e-6
}

/// The jobs from one refill on, until none is left.
struct Busy<'a> {
    supply: &'a Supply<'a>,
    refill: usize,
    task: &'a GroupTask,
    higher: &'a [&'a GroupTask],
}

impl Busy<'_> {
    /// The longest response time, or the first that is late.
    fn response(&self) -> Option<Duration> {
        let ahead = self.ahead(self.task);
        let (mut longest, mut end, mut steps) = (Duration::ZERO, Duration::ZERO, MOST_STEPS);
        for job in 1.. {
            end = self.end_of(job, end, &mut steps)?;
            longest = longest.max(end + ahead - self.task.period * (job - 1));
            let next_arrives = self.task.period * job - ahead;
            if end <= next_arrives || longest > self.task.deadline {
                return Some(longest);
            }
        }
        unreachable!("jobs are looked at until one is done or late")
    }

    /// When job number `job` is done, which is not before `from`.
    fn end_of(&self, job: i64, from: Duration, steps: &mut usize) -> Option<Duration> {
        let mut end = from;
        while *steps > 0 {
            *steps -= 1;
            let next = self.supply.finish(self.refill, self.demand(job, end)?)?;
            if next <= end {
                return Some(end);
            }
            if next > LONGEST_BUSY {
                return None;
            }
            end = next;
        }
        None
    }

    /// Whether the response time is not longer than this; `false` where one step does not tell.
    ///
    /// The least fixed point of what only grows is not above a point which the step does not raise. Where the first job
    /// is done within the period there is no second one to look at.
    fn is_no_longer_than(&self, response: Duration) -> bool {
        let end = response - self.ahead(self.task);
        if end <= Duration::ZERO || response > self.task.period.min(self.task.deadline) {
            return false;
        }
        let next = self.demand(1, end).and_then(|demand| self.supply.finish(self.refill, demand));
        next.is_some_and(|next| next <= end)
    }

    /// The work of the first `jobs` jobs of the task, and of all higher ones released before `end`.
    fn demand(&self, jobs: i64, end: Duration) -> Option<Duration> {
        let own = self.task.wcet.checked_mul(jobs)?;
        self.higher.iter().try_fold(own, |sum, task| {
            let count = ceil_div(end + self.ahead(task), task.period);
            sum.checked_add(task.wcet.checked_mul(count)?)
        })
    }

    /// How long before the refill the first job that is not served yet may have arrived.
    fn ahead(&self, task: &GroupTask) -> Duration {
        let gap = self.supply.gap(self.refill);
        match task.arrival {
            Arrival::Unbound => task.jitter + gap,
            Arrival::Bound => {
                // It arrived at a refill. One that is released between two refills is like an unbound one, but has not
                // arrived before the refill in front of its release.
                let period = self.supply.period();
                let rest = task.jitter % period;
                let partly = if rest > Duration::ZERO { period.min(rest + gap) } else { Duration::ZERO };
                task.jitter - rest + partly
            }
        }
    }
}
