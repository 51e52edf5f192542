//! Measured reaction time and data age of cause-effect chains.
//!
//! A job reads its input at its first instruction and writes its output at its last one (implicit communication). A
//! reader gets the latest output that was written no later than its read. A job that did not complete has no output and
//! does not count. The two latencies follow Feiertag et al. 2008 ("A compositional framework for end-to-end path delay
//! calculation") and Becker et al. 2017 ("End-to-end timing analysis of cause-effect chains"):
//!
//! * **reaction time** (first to first): an input that arrives just after a sampling of the first task waits for the
//!   next one. The time counts from the previous sampling. It ends with the first job of the last task that reflects
//!   the next sampling or a later one. Two consecutive samplings give one value.
//! * **data age** (last to last): the time counts from a sampling. It ends with the last job of the last task with
//!   output that derives from the sampling. Each sampling that reached the last task gives one value.

use macrotick_model::{Chain, Duration};
use schemars::JsonSchema;
use serde::Serialize;

use crate::jobs::Outcomes;
use crate::stats::Statistics;
use crate::table::Tone;

/// The verdict on a chain's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundVerdict {
    /// Every path was within the bound, and there was at least one.
    Kept,
    /// A path took longer than the bound, or an effect did not occur.
    Broken,
    /// The run was too short for a single path.
    Unobserved,
    /// The chain has no such bound.
    Unbounded,
}

impl BoundVerdict {
    /// Returns the tone in tables.
    pub(crate) fn tone(self) -> Tone {
        match self {
            BoundVerdict::Kept => Tone::Good,
            BoundVerdict::Broken | BoundVerdict::Unobserved => Tone::Bad,
            BoundVerdict::Unbounded => Tone::Faint,
        }
    }
}

/// One latency of a chain.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ChainLatency {
    /// The bound in nanoseconds, if there is one.
    pub bound_ns: Option<i64>,
    /// The measured paths; `None` without a path.
    pub measured: Option<Statistics>,
    /// Paths that took longer than the bound.
    pub over: u64,
    /// Causes without an effect within the bound, although the records reach that far.
    pub lost: u64,
    /// The verdict.
    pub verdict: BoundVerdict,
    #[serde(skip)]
    pub(crate) samples: Vec<i64>,
}

/// The latencies of one chain.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(deny_unknown_fields)]
pub struct ChainReport {
    /// The chain's name.
    pub name: String,
    /// Its tasks, from cause to effect.
    pub path: Vec<String>,
    /// Reaction time.
    pub reaction: ChainLatency,
    /// Data age.
    pub age: ChainLatency,
}

impl ChainReport {
    /// Returns the latencies that have a bound, with their names.
    pub fn bounded(&self) -> impl Iterator<Item = (&'static str, &ChainLatency)> {
        self.latencies().into_iter().filter(|(_, latency)| latency.verdict != BoundVerdict::Unbounded)
    }
    /// Returns both latencies with their names.
    pub fn latencies(&self) -> [(&'static str, &ChainLatency); 2] {
        [("reaction time", &self.reaction), ("data age", &self.age)]
    }
    /// Whether the run showed that all bounds of the chain were kept.
    pub fn kept(&self) -> bool {
        self.bounded().all(|(_, latency)| latency.verdict == BoundVerdict::Kept)
    }
}

/// The read and the write of a complete job.
#[derive(Clone, Copy)]
struct Step {
    read: Duration,
    write: Duration,
}

/// Measures one chain; `tasks` are the outcomes of the tasks on its path, in order.
pub(crate) fn measure(chain: &Chain, tasks: &[&Outcomes]) -> ChainReport {
    let steps: Vec<Vec<Step>> = tasks.iter().map(|outcomes| completed(outcomes)).collect();
    let (reactions, lost) = reactions(chain.reaction, tasks, &steps);
    ChainReport {
        name: chain.name.clone(),
        path: chain.path.clone(),
        reaction: latency(chain.reaction, reactions, lost),
        age: latency(chain.age, ages(&steps), 0),
    }
}

fn completed(outcomes: &Outcomes) -> Vec<Step> {
    let step = |job: &crate::jobs::Outcome| Some(Step { read: job.start?, write: job.end? });
    let mut steps: Vec<Step> = outcomes.jobs.iter().filter_map(step).collect();
    steps.sort_by_key(|step| step.read);
    steps
}

/// Returns the reaction times, and the number of causes that lost their effect.
fn reactions(bound: Option<Duration>, tasks: &[&Outcomes], steps: &[Vec<Step>]) -> (Vec<i64>, u64) {
    let Some((first, rest)) = steps.split_first() else { return (Vec::new(), 0) };
    // Before the horizon every job of the path was recorded. An effect that is missing there did not occur.
    let horizon = tasks.iter().filter_map(|outcomes| outcomes.horizon).min().unwrap_or(Duration::ZERO);
    let overdue = |cause: Duration| bound.is_some_and(|bound| cause + bound <= horizon);
    if first.is_empty() {
        let asked = tasks[0].jobs.first().is_some_and(|job| overdue(job.nominal));
        return (Vec::new(), u64::from(asked));
    }
    let (mut samples, mut lost) = (Vec::new(), 0);
    for (index, previous) in first.iter().enumerate() {
        let effect = first.get(index + 1).and_then(|sampling| forward(sampling, rest));
        match effect {
            Some(effect) => samples.push((effect - previous.read).as_nanos()),
            None => lost += u64::from(overdue(previous.read)),
        }
    }
    (samples, lost)
}

/// Returns the end of the first job of the last task that reflects a sampling.
fn forward(sampling: &Step, rest: &[Vec<Step>]) -> Option<Duration> {
    rest.iter().try_fold(sampling.write, |written, readers| {
        let next = readers.partition_point(|reader| reader.read < written);
        readers.get(next).map(|reader| reader.write)
    })
}

/// Returns the data ages: for every sampling that reached the last task, up to the last output that derives from it.
fn ages(steps: &[Vec<Step>]) -> Vec<i64> {
    let Some((last, before)) = steps.split_last() else { return Vec::new() };
    let mut ages: Vec<(Duration, Duration)> = Vec::new();
    for output in last {
        let Some(cause) = backward(output, before) else { continue };
        match ages.last_mut() {
            Some((same, end)) if *same == cause => *end = output.write,
            _ => ages.push((cause, output.write)),
        }
    }
    ages.iter().map(|(cause, end)| (*end - *cause).as_nanos()).collect()
}

/// Returns the sampling from which an output derives.
fn backward(output: &Step, before: &[Vec<Step>]) -> Option<Duration> {
    before.iter().rev().try_fold(output.read, |read, writers| {
        let seen = writers.partition_point(|writer| writer.write <= read);
        seen.checked_sub(1).map(|latest| writers[latest].read)
    })
}

fn latency(bound: Option<Duration>, mut samples: Vec<i64>, lost: u64) -> ChainLatency {
    samples.sort_unstable();
    let bound_ns = bound.map(Duration::as_nanos);
    let over = bound_ns.map_or(0, |bound| samples.len() - samples.partition_point(|&x| x <= bound)) as u64;
    let verdict = match bound_ns {
        None => BoundVerdict::Unbounded,
        Some(_) if over + lost > 0 => BoundVerdict::Broken,
        Some(_) if samples.is_empty() => BoundVerdict::Unobserved,
        Some(_) => BoundVerdict::Kept,
    };
    ChainLatency { bound_ns, measured: Statistics::of_sorted(&samples), over, lost, verdict, samples }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Outcome;

    const NONE: (i64, i64) = (-1, -1);

    /// Makes outcomes of `(start, end)`; `NONE` never ran. The records are complete up to `horizon`.
    fn task(horizon: i64, jobs: &[(i64, i64)]) -> Outcomes {
        let at = |ns: i64| (ns >= 0).then(|| Duration::from_nanos(ns));
        let outcome = |(job, &(start, end)): (usize, &(i64, i64))| Outcome {
            job: job as u64,
            nominal: Duration::from_nanos(job as i64 * 10),
            deadline: Duration::from_nanos(job as i64 * 10 + 10),
            start: at(start),
            end: at(end),
        };
        let jobs = jobs.iter().enumerate().map(outcome).collect();
        Outcomes { jobs, horizon: Some(Duration::from_nanos(horizon)), ..Outcomes::default() }
    }

    fn run(reaction: Option<i64>, age: Option<i64>, tasks: &[Outcomes]) -> ChainReport {
        let chain = Chain {
            reaction: reaction.map(Duration::from_nanos),
            age: age.map(Duration::from_nanos),
            ..Chain::named("c", tasks.iter().map(|_| "t".into()).collect())
        };
        measure(&chain, &tasks.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_fast_sensor_and_a_slow_actuator() {
        // The sensor samples at 0, 10, 20, 30 (writes 2 later); the actuator reads at 5, 25 and writes at 8, 28.
        let sensor = task(40, &[(0, 2), (10, 12), (20, 22), (30, 32)]);
        let actuator = task(40, &[(5, 8), (25, 28)]);
        let report = run(Some(28), Some(8), &[sensor, actuator]);
        // Missed by 0, sampled at 10, effect at 28: 28. Missed by 10, sampled at 20: 28 - 10 = 18.
        assert_eq!(report.reaction.samples, [18, 28]);
        // 8 - 0 and 28 - 20.
        assert_eq!(report.age.samples, [8, 8]);
        assert!(report.kept());
        assert_eq!(report.reaction.verdict, BoundVerdict::Kept);
    }

    #[test]
    fn a_slow_sensor_and_a_fast_actuator() {
        let sensor = task(40, &[(0, 2), (20, 22)]);
        let actuator = task(40, &[(5, 6), (15, 16), (25, 26), (35, 36)]);
        let report = run(None, Some(15), &[sensor, actuator]);
        assert_eq!(report.reaction.samples, [26]);
        assert_eq!(report.reaction.verdict, BoundVerdict::Unbounded);
        // The sampling at 0 is used until 16, the one at 20 until 36.
        assert_eq!(report.age.samples, [16, 16]);
        assert_eq!((report.age.verdict, report.age.over), (BoundVerdict::Broken, 2));
    }

    #[test]
    fn a_reader_at_the_instant_of_the_write_sees_it() {
        let report = run(None, None, &[task(20, &[(0, 5), (10, 15)]), task(20, &[(5, 8), (15, 18)])]);
        assert_eq!(report.age.samples, [8, 8]);
        assert_eq!(report.reaction.samples, [18]);
    }

    #[test]
    fn a_chain_of_three_and_of_one() {
        let jobs = [(0, 1), (10, 11)];
        let middle = [(2, 3), (12, 13)];
        let last = [(4, 5), (14, 15)];
        let report = run(None, None, &[task(20, &jobs), task(20, &middle), task(20, &last)]);
        assert_eq!((report.reaction.samples, report.age.samples), (vec![15], vec![5, 5]));
        let report = run(None, None, &[task(20, &jobs)]);
        assert_eq!((report.reaction.samples, report.age.samples), (vec![11], vec![1, 1]));
    }

    #[test]
    fn a_sampling_that_never_completed_lengthens_the_reaction() {
        let sensor = task(30, &[(0, 1), (10, -1), (20, 21)]);
        let actuator = task(30, &[(2, 3), (12, 13), (22, 23)]);
        let report = run(Some(15), None, &[sensor, actuator]);
        assert_eq!(report.reaction.samples, [23]);
        assert_eq!((report.reaction.over, report.reaction.verdict), (1, BoundVerdict::Broken));
    }

    #[test]
    fn an_effect_that_never_came_breaks_the_bound() {
        let sensor = task(40, &[(0, 1), (10, 11), (20, 21), (30, 31)]);
        let actuator = task(40, &[(2, 3), (12, 13), NONE, NONE]);
        let report = run(Some(15), None, &[sensor, actuator]);
        // The causes after 10 and 20 had their effects due at 25 and 35; the cause after 30 has until 45.
        assert_eq!(report.reaction.samples, [13]);
        assert_eq!((report.reaction.lost, report.reaction.verdict), (2, BoundVerdict::Broken));
        // The records reach up to 40, where the effect of the cause after 20 is due.
        let sensor = task(40, &[(0, 1), (10, 11), (20, 21), (30, 31)]);
        let report = run(Some(20), None, &[sensor, task(40, &[(2, 3), (12, 13)])]);
        assert_eq!(report.reaction.lost, 2);
    }

    #[test]
    fn what_the_records_do_not_reach_is_not_held_against_a_chain() {
        let report = run(Some(15), None, &[task(20, &[(0, 1), (10, 11)]), task(20, &[(2, 3), (12, 13)])]);
        assert_eq!((report.reaction.lost, report.reaction.verdict), (0, BoundVerdict::Kept));
    }

    #[test]
    fn empty_records() {
        let report = run(Some(15), Some(15), &[task(100, &[NONE, NONE]), task(100, &[])]);
        assert_eq!((report.reaction.lost, report.reaction.verdict), (1, BoundVerdict::Broken));
        assert_eq!(report.age.verdict, BoundVerdict::Unobserved);
        let report = run(Some(15), None, &[task(10, &[]), task(10, &[])]);
        assert_eq!(report.reaction.verdict, BoundVerdict::Unobserved);
        assert_eq!(run(Some(15), None, &[]).reaction.verdict, BoundVerdict::Unobserved);
    }
}
