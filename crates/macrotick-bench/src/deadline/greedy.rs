//! Greedy tasks beside periodic ones (section 4.1 and figure 3 of the paper).

use std::fmt::Write as _;

use macrotick_lab::Flavor;
use macrotick_report::Figure;

use super::play::{self, Machine, Outcome, Player, Policy, Turn};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::scale::Scale;

const MILLIS: u64 = 2000;
const QUICK_MILLIS: u64 = 200;
/// The width of a column of the picture in microseconds, and the number of columns.
const COLUMN_US: u64 = 500;
const COLUMNS: u64 = 80;
/// The greatest share of its reservation that a greedy task may have. It is a little above 1, because the kernel
/// throttles at ticks.
const BEYOND: f64 = 1.02;

/// A task of the experiment.
struct Task {
    name: &'static str,
    period_us: u32,
    runtime_us: u32,
    /// The processor time of a job; `None` for a greedy task.
    work_us: Option<u32>,
}

/// The paper's three tasks in the order of their periods, and one of ours. The added task has the longest period, and
/// therefore the lowest priority under SCHED_FIFO.
const TASKS: [Task; 4] = [
    Task { name: "periodic", period_us: 4000, runtime_us: 1100, work_us: Some(1000) },
    Task { name: "greedy 1", period_us: 6000, runtime_us: 1000, work_us: None },
    Task { name: "greedy 2", period_us: 10_000, runtime_us: 1000, work_us: None },
    Task { name: "slow", period_us: 20_000, runtime_us: 2200, work_us: Some(2000) },
];

const CASES: [(Sched, Flavor); 4] = [
    (Sched::Deadline, Flavor::Pristine),
    (Sched::Deadline, Flavor::Patched),
    (Sched::Fifo, Flavor::Patched),
    (Sched::Other, Flavor::Patched),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sched {
    Deadline,
    Fifo,
    Other,
}

impl Sched {
    fn name(self) -> &'static str {
        match self {
            Sched::Deadline => "SCHED_DEADLINE",
            Sched::Fifo => "SCHED_FIFO",
            Sched::Other => "SCHED_OTHER",
        }
    }

    /// Returns the policy of the task of this index. Priorities of SCHED_FIFO are rate monotonic.
    fn policy(self, index: usize) -> Policy {
        match self {
            Sched::Deadline => Policy::Deadline(TASKS[index].runtime_us),
            Sched::Fifo => Policy::Fifo(50 - index as u32),
            Sched::Other => Policy::Other,
        }
    }
}

fn millis(scale: Scale) -> u64 {
    scale.of(MILLIS, QUICK_MILLIS)
}

/// Returns the milliseconds of each case.
pub fn extent(scale: Scale) -> Vec<u64> {
    vec![millis(scale); CASES.len()]
}

/// The outcomes of the tasks, by case.
pub struct Greedy {
    /// The milliseconds of a run.
    millis: u64,
    outcomes: Vec<Vec<Outcome>>,
}

impl Greedy {
    /// Runs all cases.
    pub fn measure(bench: &Bench) -> Result<Greedy, BenchError> {
        let millis = millis(bench.scale);
        let mut outcomes = Vec::new();
        for (sched, flavor) in CASES {
            let player = |(index, task): (usize, &Task)| Player {
                policy: sched.policy(index),
                cpu: None,
                period_us: task.period_us,
                work_us: task.work_us,
            };
            let tasks = TASKS.iter().enumerate().map(player).collect();
            let turn = Turn { tasks, millis, spans: true };
            let machine = Machine { flavor, cpus: 1, shift: 0 };
            outcomes.extend(play::play(bench.name, machine, &[turn])?.outcomes);
        }
        Ok(Greedy { millis, outcomes })
    }

    fn under(&self, sched: Sched) -> impl Iterator<Item = &Vec<Outcome>> {
        CASES.iter().zip(&self.outcomes).filter(move |((found, _), _)| *found == sched).map(|(_, outcomes)| outcomes)
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let misses: u64 = self.under(Sched::Deadline).flatten().map(|outcome| outcome.misses).sum();
        let greedy = |outcomes: &Vec<Outcome>| {
            let pairs = TASKS.iter().zip(outcomes).filter(|(task, _)| task.work_us.is_none());
            pairs.map(|(task, outcome)| self.share(outcome) / task.share()).fold(0.0, f64::max)
        };
        let most = self.under(Sched::Deadline).map(greedy).fold(0.0, f64::max);
        vec![
            Aim {
                what: "misses beside greedy tasks under SCHED_DEADLINE".into(),
                unit: "jobs",
                value: misses as f64,
                limit: 0.0,
            },
            Aim {
                what: "what a greedy task had, of its reservation".into(),
                unit: "ratio",
                value: most,
                limit: BEYOND,
            },
        ]
    }

    /// Returns a table with a row for each task and case, and the paper's figure.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "### Figure 3: greedy tasks\n\n{} s.\n\n\
             | policy, kernel | task | reserved | had | jobs | misses | longest response |\n\
             |---|---|---:|---:|---:|---:|---:|\n",
            self.millis as f64 / 1e3
        );
        for ((sched, flavor), outcomes) in CASES.iter().zip(&self.outcomes) {
            for (task, outcome) in TASKS.iter().zip(outcomes) {
                let Outcome { due, misses, .. } = outcome;
                let response = match task.work_us {
                    Some(_) if outcome.response_ns > 0 => format!("{:.3} ms", outcome.response_ns as f64 / 1e6),
                    Some(_) => "never done".into(),
                    None => "-".into(),
                };
                let (reserved, had) = (task.share() * 100.0, self.share(outcome) * 100.0);
                let reserved = if *sched == Sched::Deadline { format!("{reserved:.1} %") } else { "-".into() };
                let _ = writeln!(
                    text,
                    "| {}, {} | {} | {reserved} | {had:.1} % | {due} | {misses} | {response} |",
                    sched.name(),
                    flavor.name(),
                    task.name
                );
            }
        }
        let first = self.under(Sched::Deadline).last().map_or(String::new(), |outcomes| picture(outcomes));
        let (width, length) = (COLUMN_US as f64 / 1e3, COLUMN_US * COLUMNS / 1000);
        text + &format!(
            "\nThe first {length} ms under SCHED_DEADLINE on our kernel. A column is {width} ms: `#` where the task \
             ran for at least half of it, `+` for at least a tenth; `|` marks other columns with a release and the \
             end of a period.\n\n```text\n{first}```\n"
        )
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for ((sched, flavor), outcomes) in CASES.iter().zip(&self.outcomes) {
            for (task, outcome) in TASKS.iter().zip(outcomes) {
                let case = format!("{} {} {}", sched.name(), flavor.name(), task.name).to_lowercase();
                let figure = |figure: &str, value, unit: &str| Figure {
                    figure: format!("greedy: {figure}"),
                    case: case.clone(),
                    value,
                    unit: unit.into(),
                };
                figures.push(figure("share", self.share(outcome) * 100.0, "%"));
                if task.work_us.is_some() {
                    figures.push(figure("misses", outcome.misses as f64, "jobs"));
                    figures.push(figure("longest response", outcome.response_ns as f64 / 1e6, "ms"));
                }
            }
        }
        figures
    }

    /// Returns a task's share of the CPU.
    fn share(&self, outcome: &Outcome) -> f64 {
        outcome.took_ns as f64 / (self.millis as f64 * 1e6)
    }
}

impl Task {
    /// Returns the task's reserved share of the CPU.
    fn share(&self) -> f64 {
        f64::from(self.runtime_us) / f64::from(self.period_us)
    }
}

/// Returns a text with a line for each task.
fn picture(outcomes: &[Outcome]) -> String {
    let line = |(task, outcome): (&Task, &Outcome)| {
        let columns: String = (0..COLUMNS).map(|column| mark(task, outcome, column * COLUMN_US)).collect();
        format!("{:>9} {}\n", task.name, columns.trim_end())
    };
    TASKS.iter().zip(outcomes).map(line).collect()
}

/// Returns the mark of a task in the column that starts at this instant.
fn mark(task: &Task, outcome: &Outcome, begin: u64) -> char {
    let end = begin + COLUMN_US;
    let inside = |&(from, until): &(u64, u64)| until.min(end).saturating_sub(from.max(begin));
    match outcome.spans.iter().map(inside).sum::<u64>() {
        ran if 2 * ran >= COLUMN_US => '#',
        ran if 10 * ran >= COLUMN_US => '+',
        _ if begin % u64::from(task.period_us) == 0 => '|',
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(took_ns: u64, misses: u64, spans: Vec<(u64, u64)>) -> Outcome {
        Outcome { due: 10, misses, took_ns, spans, ..Outcome::default() }
    }

    #[test]
    fn a_greedy_task_that_has_more_than_it_reserved_is_seen() {
        let fair = || vec![outcome(500_000_000, 0, vec![]), outcome(333_000_000, 0, vec![])];
        let more = || vec![outcome(500_000_000, 1, vec![]), outcome(400_000_000, 0, vec![])];
        let met = |outcomes| Greedy { millis: MILLIS, outcomes }.aims().iter().map(Aim::is_met).collect::<Vec<_>>();
        assert_eq!(met(vec![fair(), fair(), more(), more()]), [true, true], "only under SCHED_DEADLINE");
        assert_eq!(met(vec![fair(), more(), fair(), fair()]), [false, false]);
    }

    #[test]
    fn a_picture_shows_who_ran() {
        let picture = picture(&[outcome(0, 0, vec![(0, 1000), (4100, 4600)]), outcome(0, 0, vec![])]);
        let lines: Vec<&str> = picture.lines().collect();
        assert!(lines[0].starts_with(" periodic ##      #+      |"), "{picture}");
        assert!(lines[1].starts_with(" greedy 1 |           |"), "{picture}");
    }
}
