//! An ideal scheduler without any cost plays a task set. It separates misses of the policy from misses of the kernel.

use super::sets::{Placement, Task, TaskSet};

/// The order of ready tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The earliest deadline first.
    Edf,
    /// The highest of [`TaskSet::priorities`] first.
    Fixed,
}

/// Returns the number of jobs of a set that miss their deadlines in `millis` milliseconds. It counts as the guest does:
/// late jobs, and jobs that were due and did not complete.
pub fn misses(set: &TaskSet, rule: Rule, millis: u64) -> u64 {
    let priorities = set.priorities();
    let all: Vec<(Task, u32)> = set.tasks.iter().copied().zip(priorities).collect();
    let of = |cpu: Option<u32>, cpus: usize| {
        let here: Vec<(Task, u32)> = all.iter().filter(|(task, _)| task.cpu == cpu).copied().collect();
        play(&here, cpus, rule, millis * 1000)
    };
    match set.kind.placement {
        Placement::Partitioned => (0..set.kind.cpus).map(|cpu| of(Some(cpu), 1)).sum(),
        Placement::Global => of(None, set.kind.cpus as usize),
    }
}

/// The current job of a task. Late jobs run one after the other.
#[derive(Clone, Copy)]
struct Job {
    release: u64,
    left: u64,
    done: u64,
    late: u64,
}

/// Advances from one release or end of a job to the next, in microseconds. Returns the number of misses.
fn play(tasks: &[(Task, u32)], cpus: usize, rule: Rule, end: u64) -> u64 {
    let first = |(task, _): &(Task, u32)| Job { release: 0, left: task.wcet_us.into(), done: 0, late: 0 };
    let mut jobs: Vec<Job> = tasks.iter().map(first).collect();
    let mut now = 0;
    while now < end {
        let mut ready: Vec<usize> = (0..jobs.len()).filter(|&index| jobs[index].release <= now).collect();
        ready.sort_by_key(|&index| match rule {
            Rule::Edf => jobs[index].release + u64::from(tasks[index].0.period_us),
            Rule::Fixed => u64::MAX - u64::from(tasks[index].1),
        });
        ready.truncate(cpus);
        let releases = jobs.iter().map(|job| job.release).filter(|&release| release > now);
        let ends = ready.iter().map(|&index| now + jobs[index].left);
        let next = releases.chain(ends).min().map_or(end, |next| next.min(end));
        for index in ready {
            jobs[index].run(next - now, next, &tasks[index].0);
        }
        now = next;
    }
    let missed = |(job, (task, _)): (&Job, &(Task, u32))| {
        let due = (end - 1) / u64::from(task.period_us);
        job.late + due.saturating_sub(job.done)
    };
    jobs.iter().zip(tasks).map(missed).sum()
}

impl Job {
    fn run(&mut self, time: u64, now: u64, task: &Task) {
        self.left -= time;
        if self.left == 0 {
            self.done += 1;
            self.late += u64::from(now > self.release + u64::from(task.period_us));
            self.release += u64::from(task.period_us);
            self.left = task.wcet_us.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sets::Kind;
    use super::*;

    fn set(placement: Placement, cpus: u32, of: &[(Option<u32>, u32, u32)]) -> TaskSet {
        let tasks = of.iter().map(|&(cpu, wcet_us, period_us)| Task { cpu, period_us, wcet_us }).collect();
        TaskSet { kind: Kind { placement, cpus, load: 0 }, index: 0, tasks }
    }

    /// Each task needs two thirds of a CPU: the third task waits for the first two, and is late by one.
    #[test]
    fn three_tasks_on_two_cpus_are_late() {
        let three = set(Placement::Global, 2, &[(None, 2000, 3000); 3]);
        assert_eq!(misses(&three, Rule::Edf, 6), 1, "of the first three jobs");
        let two = set(Placement::Global, 2, &[(None, 2000, 3000); 2]);
        assert_eq!(misses(&two, Rule::Edf, 60), 0);
    }

    /// Liu and Layland's example: with rate monotonic priorities, the second task is late at a load of 0.97.
    #[test]
    fn edf_meets_what_rate_monotonic_misses() {
        let of = [(Some(0), 2000, 5000), (Some(0), 4000, 7000)];
        let set = set(Placement::Partitioned, 1, &of);
        assert_eq!(misses(&set, Rule::Edf, 35), 0);
        assert!(misses(&set, Rule::Fixed, 35) > 0);
    }

    #[test]
    fn what_is_never_done_is_missed() {
        let of = [(Some(0), 3000, 3000), (Some(0), 1000, 4000)];
        assert_eq!(misses(&set(Placement::Partitioned, 1, &of), Rule::Fixed, 13), 3);
    }
}
