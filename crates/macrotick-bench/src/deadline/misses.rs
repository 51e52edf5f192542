//! Missed deadlines of random task sets, by load and policy (tables I to III of the paper).

use std::fmt::Write as _;

use macrotick_lab::Flavor;
use macrotick_report::Figure;

use super::ideal::{self, Rule};
use super::papers::Table;
use super::play::{self, Machine, Outcome, Player, Policy, Turn};
use super::sets::{Placement, TaskSet, Theory};
use super::sweep::{Sweep, DEADLINE};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::scale::Scale;

/// One nanosecond per instruction. With 4 ns, a task would notice the end of its job about 100 us late, with its
/// runtime exhausted.
const SHIFT: u32 = 0;
/// The greatest missing part of a virtual CPU's equal share.
const EVEN: f64 = 0.02;
const SCHED: [&str; 3] = ["SCHED_DEADLINE", "SCHED_FIFO", "SCHED_OTHER"];
/// The ideal schedules of these policies.
const RULES: [Option<Rule>; 3] = [Some(Rule::Edf), Some(Rule::Fixed), None];

/// Returns the milliseconds of each turn.
pub fn extent(scale: Scale) -> Vec<u64> {
    let sweep = Sweep::at(scale);
    let turns = |(_, _, loads, scheds): &(_, _, Vec<u32>, &[usize])| loads.len() * scheds.len() * sweep.sets as usize;
    vec![sweep.millis; sweep.parts().iter().map(turns).sum()]
}

/// A set, the way in which it was played, and its outcomes.
struct Play {
    set: TaskSet,
    theory: Theory,
    /// An index of [`SCHED`].
    sched: usize,
    outcomes: Vec<Outcome>,
    /// Misses in an ideal schedule, for a policy that has one.
    ideal: Option<u64>,
}

/// A table of the paper on one kernel.
struct Played {
    table: &'static Table,
    flavor: Flavor,
    plays: Vec<Play>,
    evenness: f64,
}

/// All tables.
pub struct Misses {
    played: Vec<Played>,
}

impl Misses {
    /// Draws the sets and plays them.
    pub fn measure(bench: &Bench) -> Result<Misses, BenchError> {
        let sweep = Sweep::at(bench.scale);
        let parts = sweep.parts().into_iter();
        let played =
            parts.map(|(table, flavor, loads, scheds)| measure(bench.name, sweep, table, flavor, &loads, scheds));
        Ok(Misses { played: played.collect::<Result<_, _>>()? })
    }

    fn on(&self, flavor: Flavor) -> impl Iterator<Item = &Played> {
        self.played.iter().filter(move |played| played.flavor == flavor)
    }

    fn under_deadline(&self, of: impl Fn(&Play) -> bool) -> Vec<&Play> {
        let plays = self.played.iter().flat_map(|played| &played.plays);
        plays.filter(|play| play.sched == DEADLINE && of(play)).collect()
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let partitioned = self.under_deadline(|play| play.set.kind.placement == Placement::Partitioned);
        let passing = self.under_deadline(|play| play.set.kind.placement == Placement::Global && play.theory.passes);
        let global = self.under_deadline(|play| play.theory.bounds_ns.is_some());
        let refused = partitioned.iter().filter(|play| !play.theory.passes).count();
        let of_bound = global.iter().map(|play| play.of_bound()).fold(0.0, f64::max);
        let uneven = self.played.iter().map(|played| 1.0 - played.evenness).fold(0.0, f64::max);
        let aim = |what: &str, unit, value, limit| Aim { what: what.into(), unit, value, limit };
        let misses = |plays: &[&Play]| Sum::of(plays.iter().copied()).misses as f64;
        vec![
            aim("partitioned sets that the demand test refuses", "sets", refused as f64, 0.0),
            aim("misses of partitioned sets under SCHED_DEADLINE", "jobs", misses(&partitioned), 0.0),
            aim("misses of global sets that pass the density test", "jobs", misses(&passing), 0.0),
            aim("longest tardiness under global SCHED_DEADLINE, of its bound", "ratio", of_bound, 1.0),
            aim("what a busy virtual CPU lacked of its part", "ratio", uneven, EVEN),
        ]
    }

    /// Returns the tables of the paper with its numbers beside ours, and the tardiness of jobs.
    pub fn markdown(&self) -> String {
        let tables: String = self.on(Flavor::Patched).map(Played::markdown).collect();
        tables + &self.kernels()
    }

    fn kernels(&self) -> String {
        let mut text = "### the pristine kernel\n\nThe same sets under SCHED_DEADLINE.\n\n\
                        | | load | jobs | misses, pristine | misses, ours |\n|---|---:|---:|---:|---:|\n"
            .to_owned();
        for (pristine, ours) in self.on(Flavor::Pristine).zip(self.on(Flavor::Patched)) {
            let (load, name) = (pristine.table.most(), ours.table.name);
            let [pristine, ours] = [pristine, ours].map(|played| played.sum(load, DEADLINE));
            let (jobs, theirs) = (pristine.due, pristine.percent());
            let _ = writeln!(text, "| {name} | {load} % | {jobs} | {theirs:.3} % | {:.3} % |", ours.percent());
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        self.played.iter().flat_map(Played::figures).collect()
    }
}

fn measure(
    bench: &str,
    sweep: Sweep,
    table: &'static Table,
    flavor: Flavor,
    loads: &[u32],
    scheds: &[usize],
) -> Result<Played, BenchError> {
    let draw = |&load: &u32| (0..sweep.sets).map(move |index| TaskSet::draw(table.kind(load), index));
    let sets: Vec<TaskSet> = loads.iter().flat_map(draw).collect();
    let pairs = || sets.iter().flat_map(|set| scheds.iter().map(move |&sched| (set, sched)));
    let turns: Vec<Turn> = pairs().map(|(set, sched)| turn(set, sched, sweep.millis)).collect();
    let machine = Machine { flavor, cpus: table.cpus, shift: SHIFT };
    let played = play::play(bench, machine, &turns)?;
    let play = |((set, sched), outcomes): ((&TaskSet, usize), Vec<Outcome>)| Play {
        set: set.clone(),
        theory: set.theory(),
        sched,
        outcomes,
        ideal: RULES[sched].map(|rule| ideal::misses(set, rule, sweep.millis)),
    };
    let plays = pairs().zip(played.outcomes).map(play).collect();
    Ok(Played { table, flavor, plays, evenness: played.evenness })
}

fn turn(set: &TaskSet, sched: usize, millis: u64) -> Turn {
    let priorities = set.priorities();
    let player = |(task, priority): (&super::sets::Task, u32)| Player {
        policy: [Policy::Deadline(task.runtime_us()), Policy::Fifo(priority), Policy::Other][sched],
        cpu: task.cpu,
        period_us: task.period_us,
        work_us: Some(task.wcet_us),
    };
    Turn { tasks: set.tasks.iter().zip(priorities).map(player).collect(), millis, spans: false }
}

impl Play {
    /// Returns the greatest tardiness of a job as a share of its task's bound, or 0 without a tardy job. If the bound
    /// is 0, any tardiness gives infinity.
    fn of_bound(&self) -> f64 {
        let bounds = self.theory.bounds_ns.iter().flatten();
        let of = |(outcome, &bound): (&Outcome, &u64)| match outcome.tardiest_ns {
            0 => 0.0,
            tardiest => tardiest as f64 / bound as f64,
        };
        self.outcomes.iter().zip(bounds).map(of).fold(0.0, f64::max)
    }
}

/// The sums over some plays.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sets: usize,
    passing: usize,
    due: u64,
    misses: u64,
    /// The greatest tardiness and the sum, in periods of the task.
    tardiest: f64,
    tardiness: f64,
    of_bound: f64,
    ideal: Option<u64>,
}

impl Sum {
    fn of<'a>(plays: impl Iterator<Item = &'a Play>) -> Sum {
        let mut sum = Sum::default();
        for play in plays {
            sum.sets += 1;
            sum.passing += usize::from(play.theory.passes);
            sum.of_bound = sum.of_bound.max(play.of_bound());
            sum.ideal = play.ideal.map(|misses| sum.ideal.unwrap_or(0) + misses);
            for (task, outcome) in play.set.tasks.iter().zip(&play.outcomes) {
                let period_ns = f64::from(task.period_us) * 1e3;
                sum.due += outcome.due;
                sum.misses += outcome.misses;
                sum.tardiest = sum.tardiest.max(outcome.tardiest_ns as f64 / period_ns);
                sum.tardiness += outcome.tardiness_ns as f64 / period_ns;
            }
        }
        sum
    }

    fn percent(&self) -> f64 {
        self.share(self.misses)
    }

    fn share(&self, jobs: u64) -> f64 {
        jobs as f64 * 100.0 / self.due as f64
    }

    /// Returns a cell with the measured, the ideal and the paper's percentage.
    fn cell(&self, paper: Option<f64>) -> String {
        let ideal = self.ideal.map_or("-".into(), |misses| format!("{:.3}", self.share(misses)));
        let paper = paper.map_or("-".into(), |percent| percent.to_string());
        format!("**{:.3}**, {ideal}, {paper}", self.percent())
    }

    fn mean(&self) -> f64 {
        self.tardiness * 100.0 / self.due as f64
    }
}

impl Played {
    /// Returns the loads that were played, with the paper's numbers.
    fn rows(&self) -> impl Iterator<Item = &'static (u32, Option<[f64; 3]>)> + '_ {
        let is_played = |load: u32| self.plays.iter().any(|play| play.set.kind.load == load);
        self.table.rows.iter().filter(move |(load, _)| is_played(*load))
    }

    fn sum(&self, load: u32, sched: usize) -> Sum {
        Sum::of(self.plays.iter().filter(|play| play.set.kind.load == load && play.sched == sched))
    }

    fn markdown(&self) -> String {
        let table = self.table;
        let test = match table.placement {
            Placement::Partitioned => "processor demand",
            Placement::Global => "density",
        };
        let mut text = format!(
            "### {}\n\nMissed deadlines in percent: measured, in an ideal schedule, in the paper.\n\n\
             | load | jobs | sets that pass the test by {test} | {} | {} | {} |\n|---:|---:|---:|---:|---:|---:|\n",
            table.name, SCHED[0], SCHED[1], SCHED[2]
        );
        for (load, paper) in self.rows() {
            let sums = [0, 1, 2].map(|sched| self.sum(*load, sched));
            let cells = [0, 1, 2].map(|sched| sums[sched].cell(paper.map(|paper| paper[sched])));
            let Sum { sets, passing, due, .. } = sums[0];
            let _ = writeln!(text, "| {load} % | {due} | {passing} of {sets} | {} |", cells.join(" | "));
        }
        text + &self.tardiness()
    }

    fn tardiness(&self) -> String {
        let mut text = format!(
            "\nTardiness in percent of the task's period: the greatest, and the mean of all jobs.\n\n\
             | load | {} | {} | {} | most under {}, of its bound |\n|---:|---:|---:|---:|---:|\n",
            SCHED[0], SCHED[1], SCHED[2], SCHED[0]
        );
        for (load, _) in self.rows() {
            let sums = [0, 1, 2].map(|sched| self.sum(*load, sched));
            let cells = sums.map(|sum| format!("{:.1}, {:.3}", sum.tardiest * 100.0, sum.mean()));
            let of_bound = match self.table.placement {
                Placement::Partitioned => "-".into(),
                Placement::Global => format!("{:.3}", sums[DEADLINE].of_bound),
            };
            let _ = writeln!(text, "| {load} % | {} | {of_bound} |", cells.join(" | "));
        }
        text + "\n"
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (load, _) in self.rows() {
            for (sched, name) in SCHED.iter().enumerate() {
                let sum = self.sum(*load, sched);
                if sum.sets == 0 {
                    continue;
                }
                let case =
                    format!("{:?} {} {load} {name} {}", self.table.placement, self.table.cpus, self.flavor.name());
                let figure = |figure: &str, value, unit: &str| Figure {
                    figure: figure.into(),
                    case: case.to_lowercase(),
                    value,
                    unit: unit.into(),
                };
                figures.push(figure("missed deadlines", sum.percent(), "%"));
                if let Some(misses) = sum.ideal {
                    figures.push(figure("missed deadlines, ideally", sum.share(misses), "%"));
                }
                figures.push(figure("most tardiness", sum.tardiest * 100.0, "% of the period"));
                figures.push(figure("mean tardiness", sum.mean(), "% of the period"));
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::super::papers::TABLES;
    use super::*;

    fn played(which: usize, misses: u64, tardiest_ns: u64, evenness: f64) -> Misses {
        let table = &TABLES[which];
        let set = TaskSet::draw(table.kind(table.most()), 0);
        let outcome = Outcome { due: 100, misses, tardiest_ns, ..Outcome::default() };
        let outcomes = vec![outcome; set.tasks.len()];
        let plays = vec![Play { theory: set.theory(), set, sched: DEADLINE, outcomes, ideal: Some(3) }];
        Misses { played: vec![Played { table, flavor: Flavor::Patched, plays, evenness }] }
    }

    fn met(misses: &Misses) -> Vec<bool> {
        misses.aims().iter().map(Aim::is_met).collect()
    }

    #[test]
    fn a_miss_counts_where_theory_has_none() {
        assert_eq!(met(&played(0, 0, 0, 1.0)), [true; 5]);
        assert_eq!(met(&played(0, 1, 1000, 1.0)), [true, false, true, true, true]);
        assert_eq!(met(&played(2, 1, 1000, 1.0)), [true; 5], "the density test passes no set of that load");
        assert_eq!(met(&played(2, 1, 10_000_000_000, 0.97)), [true, true, true, false, false]);
    }

    #[test]
    fn misses_stand_beside_those_of_the_paper() {
        let text = played(2, 1, 1000, 1.0).markdown();
        assert!(text.contains("| 590 % | 1500 | 0 of 1 | **1.000**, 0.200, 1.295 |"), "{text}");
    }
}
