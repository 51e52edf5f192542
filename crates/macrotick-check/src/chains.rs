//! End-to-end times of chains, from a replay of several cycles that follows the values.
//!
//! A job reads when it starts and writes when its DEADLINE window ends. A job that reads at the same instant gets the
//! new value, which stays until the next one. Reaction time and data age are defined as in Feiertag et al. 2008 and
//! Becker et al. 2017 (`docs/reference/description.md`, "Chains").

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

/// The replay of the tasks of a chain. Each task has (read, write) of all jobs, over enough cycles.
struct Times {
    tasks: Vec<Vec<(Duration, Duration)>>,
    /// The judge looks at jobs that start in `[from, from + cycle)`. Earlier values have passed the chain by then, and
    /// later cycles remain for these values to pass.
    from: Duration,
}

/// Replays the tasks. A value passes a task within two cycles: it waits for at most one period and one response time.
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

/// Returns the longest reaction time. An input appears just after the first task has read, and its next job reads it.
/// Each further task uses its first job that starts when the value, or a newer one, is present. The time ends when the
/// last task has written.
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

/// Returns the greatest data age: from the instant at which the first task read, to the output of the last task that
/// depends on it. The search goes backwards: each job used the newest value at its start.
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
