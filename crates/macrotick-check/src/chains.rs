//! End-to-end times of chains, by following values through a replay of several cycles.
//!
//! A job reads when it starts and writes when its DEADLINE window ends; a value written at an instant is there for
//! who reads at that instant, and stays until the next one. Reaction time and data age as in Feiertag et al. 2008 and
//! Becker et al. 2017 (`docs/system-yaml.md`, "Chains").

use macrotick_model::{Chain, Duration, Plan};

use crate::jobs::Job;
use crate::{ChainVerdict, Verdict, Violation};

pub(crate) fn check(plan: &Plan, jobs: &[Vec<Job>], verdict: &mut Verdict) {
    for chain in &plan.system.chains {
        let times = unroll(plan, chain, jobs, &mut verdict.violations);
        let reaction = times.as_ref().map(|times| reaction(plan.cycle, times));
        let age = times.as_ref().map(|times| age(plan.cycle, times));
        let name = || chain.name.clone();
        if let (Some(reaction), Some(bound)) = (reaction, chain.reaction) {
            if reaction > bound {
                verdict.violations.push(Violation::Reaction { chain: name(), reaction, bound });
            }
        }
        if let (Some(age), Some(bound)) = (age, chain.age) {
            if age > bound {
                verdict.violations.push(Violation::Age { chain: name(), age, bound });
            }
        }
        let (reaction_bound, age_bound) = (chain.reaction, chain.age);
        verdict.chains.push(ChainVerdict { name: name(), reaction, reaction_bound, age, age_bound });
    }
}

/// The replay of a chain's tasks: for each task (read, write) of all jobs over enough cycles.
struct Times {
    tasks: Vec<Vec<(Duration, Duration)>>,
    /// Jobs that start in `[from, from + cycle)` are looked at: values have come through by then, and there are
    /// cycles left for them to get through.
    from: Duration,
}

/// A value passes a task within two cycles: it waits for at most one period and one response.
fn unroll(plan: &Plan, chain: &Chain, jobs: &[Vec<Job>], violations: &mut Vec<Violation>) -> Option<Times> {
    let warm_up = 2 * chain.path.len() as i64;
    let mut tasks = Vec::new();
    for name in &chain.path {
        let index = plan.system.tasks.iter().position(|task| task.name == *name);
        let Some(jobs) = index.map(|index| &jobs[index]).filter(|jobs| !jobs.is_empty()) else {
            violations.push(Violation::ChainBroken { chain: chain.name.clone(), task: name.clone() });
            return None;
        };
        let mut times = Vec::with_capacity(jobs.len() * (2 * warm_up as usize + 1));
        for turn in 0..=2 * warm_up {
            let shift = plan.cycle * turn;
            times.extend(jobs.iter().map(|job| (job.start + shift, job.end + shift)));
        }
        tasks.push(times);
    }
    Some(Times { tasks, from: plan.cycle * warm_up })
}

/// Reaction time: an input appears just after the first task has read. The next job reads it; each further task takes
/// it up with its first job that starts when the value, or a newer one, is there. Until the last task has written.
fn reaction(cycle: Duration, times: &Times) -> Duration {
    let mut longest = Duration::ZERO;
    for pair in times.tasks[0].windows(2) {
        let (missed, (read, written)) = (pair[0].0, pair[1]);
        if read < times.from || read >= times.from + cycle {
            continue;
        }
        let mut value = written;
        for task in &times.tasks[1..] {
            let next = task.partition_point(|&(read, _)| read < value);
            value = task[next].1;
        }
        longest = longest.max(value - missed);
    }
    longest
}

/// Data age: from the reading behind an output of the last task to that output, followed backwards: each job used the
/// newest value that was there when it started.
fn age(cycle: Duration, times: &Times) -> Duration {
    let mut oldest = Duration::ZERO;
    let last = times.tasks.len() - 1;
    for &(read, written) in &times.tasks[last] {
        if read < times.from || read >= times.from + cycle {
            continue;
        }
        let mut sampled = read;
        for task in times.tasks[..last].iter().rev() {
            let newer = task.partition_point(|&(_, write)| write <= sampled);
            sampled = task[newer - 1].0;
        }
        oldest = oldest.max(written - sampled);
    }
    oldest
}
