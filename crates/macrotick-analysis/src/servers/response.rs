//! Response times inside one server: equations 1 and 2 of the paper (Davis and Burns 2005), solved in their order.
//!
//! A job that has to wait for `D` of work, its own and that of higher priority, is complete when its server has had
//! `D`:
//!
//! ```text
//! v = finish(q C_i + sum over higher tasks j of ceil((v + ahead_j) / T_j) C_j)        (1) inside finish() of (2), (3)
//! R_i = max over q of  v + ahead_i - (q - 1) T_i
//! ```
//!
//! `v` counts from the refill that ends the gap. `ahead` of a task is the longest time before this refill at which a
//! pending job can have arrived. For an unbound task it is its jitter and the gap. The gap is the `J = T_S - C_S` of
//! the paper, which does not have the release jitter. For a bound task without jitter it is zero.
//!
//! The analysis considers job `q` as long as job `q - 1` is not complete when it arrives. The paper needs only `q = 1`,
//! because its deadlines are periods.

use std::cell::{Cell, OnceCell};

use macrotick_model::Duration;

use super::supply::{ceil_div, Supply};
use super::{Arrival, GroupTask};

/// The limit of steps in the search for the end of a busy time. Beyond it the task has no response time, although it
/// may have one. If the demand equals the supply, there are busy times without end in which no job is late.
const MOST_STEPS: usize = 50_000;
/// The limit of busy times. It keeps all sums far from the range of 64 bits.
const LONGEST_BUSY: Duration = Duration::from_secs(1_000_000);

/// The worst response time of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Worst {
    /// `None`: response times grow without a bound, or no end was found. For a task that misses, it is that of one job
    /// that misses.
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

/// The extent of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// The worst response time.
    Full,
    /// Whether there is a miss: the first one ends the search.
    FirstMiss,
}

/// Returns the worst response time of `task` beside `higher`: all other tasks of the server with at least its priority.
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

/// Whether the tasks need more than the supply in the long run. This is only a short cut, so it may err towards
/// `false`.
fn overloaded(supply: &Supply, task: &GroupTask, higher: &[&GroupTask]) -> bool {
    let share = |task: &GroupTask| task.wcet.as_secs_f64() / task.period.as_secs_f64();
    share(task) + higher.iter().map(|task| share(task)).sum::<f64>() > supply.rate() + 1e-6
}

/// Tasks of one server, each of which is analysed below all others.
///
/// From the second question on, the busy time of all tasks together is known from each refill on. If no second job of a
/// task arrives until its end, the job is complete then, whichever task it is. Therefore many tasks need no comparison
/// of each task with each other one.
pub(super) struct Level<'a> {
    supply: &'a Supply<'a>,
    tasks: &'a [GroupTask],
    of: Vec<usize>,
    asked: Cell<bool>,
    busy: OnceCell<Option<Vec<Duration>>>,
}

impl<'a> Level<'a> {
    /// Makes the level of the tasks with these indices.
    pub fn new(supply: &'a Supply<'a>, tasks: &'a [GroupTask], of: Vec<usize>) -> Level<'a> {
        Level { supply, tasks, of, asked: Cell::new(false), busy: OnceCell::new() }
    }

    /// Returns the worst response time of the task at this place, below all others.
    pub fn worst(&self, place: usize, effort: Effort) -> Worst {
        let task = &self.tasks[self.of[place]];
        let at_once = || self.busy.get_or_init(|| self.busy()).as_ref().and_then(|busy| self.at_once(task, busy));
        self.asked.replace(true).then(at_once).flatten().unwrap_or_else(|| {
            let others = self.of.iter().enumerate().filter(|&(other, _)| other != place);
            let others: Vec<&GroupTask> = others.map(|(_, &index)| &self.tasks[index]).collect();
            worst(self.supply, task, &others, effort)
        })
    }

    /// Returns the worst response time, unless a second job arrives within a busy time.
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

    /// Returns the busy time of all tasks from each refill on. `None`: no end was found.
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

/// Returns the end of the work that is present by then, and at least `from`. `None`: no end was found in this number of
/// steps.
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

/// Returns the work of all jobs that are released before `end`, which counts from the refill.
fn released(supply: &Supply, refill: usize, tasks: &[&GroupTask], end: Duration) -> Option<Duration> {
    tasks.iter().try_fold(Duration::ZERO, |sum, task| {
        let count = ceil_div(end + ahead(supply, refill, task), task.period);
        sum.checked_add(task.wcet.checked_mul(count)?)
    })
}

/// Returns the longest time before the refill at which the first pending job of a task may have arrived.
fn ahead(supply: &Supply, refill: usize, task: &GroupTask) -> Duration {
    let gap = supply.gap(refill);
    match task.arrival {
        Arrival::Unbound => task.jitter + gap,
        Arrival::Bound => {
            // It arrived at a refill. A job that is released between two refills is like an unbound one. But it did not
            // arrive before the refill in front of its release.
            let period = supply.period();
            let rest = task.jitter % period;
            let partly = if rest > Duration::ZERO { period.min(rest + gap) } else { Duration::ZERO };
            task.jitter - rest + partly
        }
    }
}

/// The jobs from one refill on, until no job is left.
struct Busy<'a> {
    supply: &'a Supply<'a>,
    refill: usize,
    task: &'a GroupTask,
    higher: &'a [&'a GroupTask],
}

impl Busy<'_> {
    /// Returns the longest response time, or the first one that is late.
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

    /// Returns the end of job number `job`, and at least `from`.
    fn end_of(&self, job: i64, from: Duration, steps: &mut usize) -> Option<Duration> {
        settled(self.supply, self.refill, from, steps, |end| self.demand(job, end))
    }

    /// Whether the response time is at most this; `false` if one step does not decide it.
    ///
    /// The step is a function that only grows. Its least fixed point is not above a point which the step does not
    /// raise. If the first job is complete within the period, there is no second one to consider.
    fn is_no_longer_than(&self, response: Duration) -> bool {
        let end = response - self.ahead(self.task);
        if end <= Duration::ZERO || response > self.task.period.min(self.task.deadline) {
            return false;
        }
        let next = self.demand(1, end).and_then(|demand| self.supply.finish(self.refill, demand));
        next.is_some_and(|next| next <= end)
    }

    /// Returns the work of the first `jobs` jobs of the task, and of all higher ones released before `end`.
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

    /// Both ways to the worst response time have the same result.
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
