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

use std::cell::{Cell, OnceCell};

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

/// Tasks of one server, each of which is looked at below all others of them.
///
/// From the second question on it is known how long all of them together are busy from each refill on. Where no second job of a task
/// comes until then, that is when its job is done, whichever task it is: so not each of many tasks is held against each other.
pub(super) struct Level<'a> {
    supply: &'a Supply<'a>,
    tasks: &'a [GroupTask],
    of: Vec<usize>,
    asked: Cell<bool>,
    busy: OnceCell<Option<Vec<Duration>>>,
}

impl<'a> Level<'a> {
    /// Those of the tasks with these indices.
    pub fn new(supply: &'a Supply<'a>, tasks: &'a [GroupTask], of: Vec<usize>) -> Level<'a> {
        Level { supply, tasks, of, asked: Cell::new(false), busy: OnceCell::new() }
    }

    /// The worst response time of the one at this place, below all others.
    pub fn worst(&self, place: usize, effort: Effort) -> Worst {
        let task = &self.tasks[self.of[place]];
        let at_once = || self.busy.get_or_init(|| self.busy()).as_ref().and_then(|busy| self.at_once(task, busy));
        self.asked.replace(true).then(at_once).flatten().unwrap_or_else(|| {
            let others = self.of.iter().enumerate().filter(|&(other, _)| other != place);
            let others: Vec<&GroupTask> = others.map(|(_, &index)| &self.tasks[index]).collect();
            worst(self.supply, task, &others, effort)
        })
    }

    /// The worst response time, unless a second job comes within a busy time.
    fn at_once(&self, task: &GroupTask, busy: &[Duration]) -> Option<Worst> {
        let mut worst = (Duration::ZERO, 0);
        for (refill, &end) in busy.iter().enumerate() {
            let response = end + ahead(self.supply, refill, task);
            if response > task.period {
                return None;
            }
            if response > worst.0 {
                worst = (response, refill);
            }
        }
        Some(Worst { response: Some(worst.0), refill: worst.1 })
    }

    /// How long all are busy from each refill on; `None` where no end is found.
    fn busy(&self) -> Option<Vec<Duration>> {
        let all: Vec<&GroupTask> = self.of.iter().map(|&index| &self.tasks[index]).collect();
        let (task, others) = all.split_last()?;
        if overloaded(self.supply, task, others) {
            return None;
        }
        (0..self.supply.refills()).map(|refill| self.end(refill, &all)).collect()
    }

    fn end(&self, refill: usize, all: &[&GroupTask]) -> Option<Duration> {
        let from = Duration::from_nanos(1);
        settled(self.supply, refill, from, &mut { MOST_STEPS }, |end| released(self.supply, refill, all, end))
    }
}

/// When the work that is there by then is done, which is not before `from`; `None` where no end is found in so many steps.
fn settled(
    supply: &Supply,
    refill: usize,
    from: Duration,
    steps: &mut usize,
    work: impl Fn(Duration) -> Option<Duration>,
) -> Option<Duration> {
    let mut end = from;
    while *steps > 0 {
        *steps -= 1;
        let next = supply.finish(refill, work(end)?)?;
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

/// The work of all jobs that are released before `end`, which counts from the refill.
fn released(supply: &Supply, refill: usize, tasks: &[&GroupTask], end: Duration) -> Option<Duration> {
    tasks.iter().try_fold(Duration::ZERO, |sum, task| {
        let count = ceil_div(end + ahead(supply, refill, task), task.period);
        sum.checked_add(task.wcet.checked_mul(count)?)
    })
}

/// How long before the refill the first job of a task that is not served yet may have arrived.
fn ahead(supply: &Supply, refill: usize, task: &GroupTask) -> Duration {
    let gap = supply.gap(refill);
    match task.arrival {
        Arrival::Unbound => task.jitter + gap,
        Arrival::Bound => {
            // It arrived at a refill. One that is released between two refills is like an unbound one, but has not
            // arrived before the refill in front of its release.
            let period = supply.period();
            let rest = task.jitter % period;
            let partly = if rest > Duration::ZERO { period.min(rest + gap) } else { Duration::ZERO };
            task.jitter - rest + partly
        }
    }
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
        settled(self.supply, self.refill, from, steps, |end| self.demand(job, end))
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
        own.checked_add(released(self.supply, self.refill, self.higher, end)?)
    }

    fn ahead(&self, task: &GroupTask) -> Duration {
        ahead(self.supply, self.refill, task)
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::ns;
    use macrotick_model::SplitMix64;

    use super::super::supply::CpuTime;
    use super::super::{Host, Phase, Refill};
    use super::*;

    /// Whichever way the worst response time is found.
    #[test]
    fn many_tasks_are_answered_as_each_of_them() {
        let mut random = SplitMix64::new(7);
        let mut below = |n: u64| (random.bits() % n) as i64;
        let (mut at_once, mut late) = (0, 0);
        for _ in 0..2000 {
            let tasks: Vec<GroupTask> = (0..2 + below(5))
                .map(|_| GroupTask {
                    name: String::new(),
                    wcet: ns(1 + below(3)),
                    period: ns([10, 20, 30, 40, 60][below(5) as usize]),
                    deadline: ns(1 + below(60)),
                    jitter: ns([0, 0, 3, 12][below(4) as usize]),
                    priority: 1,
                    arrival: if below(4) == 0 { Arrival::Bound } else { Arrival::Unbound },
                })
                .collect();
            let host = Host { refill: Refill::Lockstep(Phase::Any), cpus: vec![0], ..Host::idle(ns(10)) };
            let (time, above) = (CpuTime::new(&host, 0), [ns(below(4))]);
            let supply = time.supply(ns(1 + below(5)), &above);
            let level = Level::new(&supply, &tasks, (0..tasks.len()).collect());
            let _ = level.worst(0, Effort::Full);
            for place in 0..tasks.len() {
                let others: Vec<&GroupTask> =
                    tasks.iter().enumerate().filter(|&(other, _)| other != place).map(|(_, task)| task).collect();
                let found = level.worst(place, Effort::Full);
                let alone = worst(&supply, &tasks[place], &others, Effort::Full);
                let meets = found.meets(tasks[place].deadline);
                assert_eq!(meets, alone.meets(tasks[place].deadline), "{place} of {tasks:?}");
                assert!(!meets || found == alone, "{place} of {tasks:?}");
                let fast = level.busy.get().and_then(|busy| level.at_once(&tasks[place], busy.as_ref()?));
                at_once += usize::from(fast.is_some());
                late += usize::from(!meets);
            }
        }
        assert!(at_once > 1000 && late > 1000, "{at_once} {late}");
    }
}
