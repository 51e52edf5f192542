//! Deadline misses of both containers, over all sets (figure 7 of the paper).

use std::fmt::Write as _;

use macrotick_report::Figure;

use super::play::{self, Outcome, Outcomes, Scenario, Turn, LOADS};
use super::sets::TaskSet;
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::scale::Scale;

/// The sets that are played.
#[derive(Clone, Copy)]
struct Sweep {
    /// The loads in percent of the CPU.
    totals: &'static [u32],
    /// The number of sets of each total; the loads take turns.
    sets: u32,
    /// The seconds that each set plays.
    seconds: u64,
}

const ALL: Sweep = Sweep { totals: &[50, 55, 60, 65, 70], sets: 30, seconds: 30 };
const QUICK: Sweep = Sweep { totals: &[50, 70], sets: LOADS.len() as u32, seconds: 1 };
const SCENARIOS: [Scenario; 2] = [Scenario::LowHi, Scenario::Loaded];

/// Returns the milliseconds of each set.
pub fn extent(scale: Scale) -> Vec<u64> {
    let Sweep { totals, sets, seconds } = scale.of(ALL, QUICK);
    vec![seconds * 1000; totals.len() * sets as usize * SCENARIOS.len()]
}

const LOW: usize = 0;
const HIGH: usize = 1;

/// The outcomes of one scenario.
struct Played {
    scenario: Scenario,
    turns: Vec<Turn>,
    outcomes: Vec<Outcomes>,
}

/// The outcomes of all scenarios.
pub struct Misses {
    sweep: Sweep,
    played: Vec<Played>,
}

impl Misses {
    /// Draws the sets and plays them.
    pub fn measure(bench: &Bench) -> Result<Misses, BenchError> {
        let sweep = bench.scale.of(ALL, QUICK);
        let draw = |&total: &u32| (0..sweep.sets).map(move |index| TaskSet::draw(total, index));
        let sets: Vec<TaskSet> = sweep.totals.iter().flat_map(draw).collect();
        let mut played = Vec::new();
        for scenario in SCENARIOS {
            let turn = |set: &TaskSet| Turn::new(set.clone(), scenario, sweep.seconds);
            let turns: Vec<Turn> = sets.iter().map(turn).collect();
            let outcomes = play::play(bench.name, &turns)?;
            played.push(Played { scenario, turns, outcomes });
        }
        Ok(Misses { sweep, played })
    }

    fn of(&self, scenario: Scenario) -> &Played {
        self.played.iter().find(|played| played.scenario == scenario).expect("both scenarios are played")
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        let (low_hi, loaded) = (self.of(Scenario::LowHi), self.of(Scenario::Loaded));
        let aim = |what: &str, value: u64| Aim { what: what.into(), unit: "jobs", value: value as f64, limit: 0.0 };
        let both = |of: fn(&Outcome) -> u64| loaded.sum(LOW, of) + loaded.sum(HIGH, of);
        vec![
            aim("misses of the low container, the high one taking 1.8 times what it says", low_hi.sum(LOW, misses)),
            aim("misses beside loads, both containers", both(misses)),
            aim(
                "responses beyond the checker's bound where everybody keeps to what he says",
                low_hi.sum(LOW, |outcome| outcome.beyond) + both(|outcome| outcome.beyond),
            ),
        ]
    }

    /// Returns the tables: the paper's figure, and the loads.
    pub fn markdown(&self) -> String {
        let low_hi = self.of(Scenario::LowHi);
        let Sweep { totals, sets, seconds } = self.sweep;
        let mut text = format!(
            "### deadline misses, the high container taking 1.8 times what it says\n\n\
             {sets} sets for each total, {seconds} s each. Misses by set: least, quartiles, most.\n\n\
             | total | jobs | low | high, by set | sets with misses | longest response of low, of its bound |\n\
             |---|---:|---:|---|---:|---:|\n"
        );
        for &total in totals {
            let chosen: Vec<&Outcomes> = low_hi.with(|turn| turn.set.total == total).collect();
            let mut high: Vec<u64> = chosen.iter().map(|outcomes| outcomes[HIGH].misses).collect();
            high.sort_unstable();
            let jobs: u64 = chosen.iter().flat_map(|outcomes| outcomes.iter()).map(|outcome| outcome.due).sum();
            let low: u64 = chosen.iter().map(|outcomes| outcomes[LOW].misses).sum();
            let worst = chosen.iter().map(|outcomes| outcomes[LOW].of_bound).fold(0.0, f64::max);
            let hit = high.iter().filter(|&&misses| misses > 0).count();
            let _ = writeln!(text, "| {total} % | {jobs} | {low} | {} | {hit} | {worst:.3} |", quartiles(&high));
        }
        text += "\n### deadline misses beside loads\n\n\
                 | load | sets | jobs | low | high | longest response, of its bound |\n|---|---:|---:|---:|---:|---:|\n";
        let loaded = self.of(Scenario::Loaded);
        for load in LOADS {
            let chosen: Vec<&Outcomes> = loaded.with(|turn| turn.load == load.name()).collect();
            let all = || chosen.iter().flat_map(|outcomes| outcomes.iter());
            let jobs: u64 = all().map(|outcome| outcome.due).sum();
            let sum = |which: usize| chosen.iter().map(|outcomes| outcomes[which].misses).sum::<u64>();
            let worst = all().map(|outcome| outcome.of_bound).fold(0.0, f64::max);
            let (sets, low, high) = (chosen.len(), sum(LOW), sum(HIGH));
            let _ = writeln!(text, "| {} | {sets} | {jobs} | {low} | {high} | {worst:.3} |", load.name());
        }
        let [took, excess] = [self.of(Scenario::Loaded).took(), low_hi.took()];
        let _ = writeln!(
            text,
            "\nProcessor time of all jobs, divided by their declared times: {:.3} (low) and {:.3} (high) beside \
             loads, {:.3} and {:.3} where the high container takes more. The excess above 1 and 1.8 is interrupts, \
             which the kernel charges to the running thread.",
            took[LOW], took[HIGH], excess[LOW], excess[HIGH]
        );
        text
    }

    /// Returns the same values as figures, by set.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for played in &self.played {
            for (turn, outcomes) in played.turns.iter().zip(&played.outcomes) {
                for (container, outcome) in turn.set.containers.iter().zip(outcomes) {
                    let scenario = if played.scenario == Scenario::LowHi { "low-hi" } else { &turn.load };
                    let case = format!("{scenario} {} {} {}", turn.set.total, turn.set.index, container.name);
                    let figure = |figure: &str, value, unit: &str| Figure {
                        figure: figure.into(),
                        case: case.clone(),
                        value,
                        unit: unit.into(),
                    };
                    figures.push(figure("misses", outcome.misses as f64, "jobs"));
                    figures.push(figure("longest response", outcome.of_bound, "of its bound"));
                }
            }
        }
        figures
    }

    /// Returns the misses of the high container in the paper's scenario, for the comparison with the paper.
    pub fn of_high(&self) -> u64 {
        self.of(Scenario::LowHi).sum(HIGH, misses)
    }
}

fn misses(outcome: &Outcome) -> u64 {
    outcome.misses
}

/// Returns least value, quartiles and greatest value of numbers in ascending order.
fn quartiles(sorted: &[u64]) -> String {
    let at = |quarter: usize| sorted.get((sorted.len().saturating_sub(1)) * quarter / 4).copied().unwrap_or(0);
    (0..5).map(|quarter| at(quarter).to_string()).collect::<Vec<_>>().join(", ")
}

impl Played {
    fn with<'a>(&'a self, of: impl Fn(&Turn) -> bool + 'a) -> impl Iterator<Item = &'a Outcomes> {
        self.turns.iter().zip(&self.outcomes).filter(move |(turn, _)| of(turn)).map(|(_, outcomes)| outcomes)
    }

    fn sum(&self, which: usize, of: impl Fn(&Outcome) -> u64) -> u64 {
        self.outcomes.iter().map(|outcomes| of(&outcomes[which])).sum()
    }

    /// Returns the ratio of used to declared processor time of both containers, averaged over the sets.
    fn took(&self) -> [f64; 2] {
        [LOW, HIGH].map(|which| {
            self.outcomes.iter().map(|outcomes| outcomes[which].of_declared).sum::<f64>() / self.outcomes.len() as f64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_of_the_low_container_is_seen() {
        let outcome = |misses, of_bound| Outcome { due: 10, misses, beyond: misses, of_bound, of_declared: 1.0 };
        let played = |scenario, low| {
            let turns = [50, 70].map(|total| Turn::new(TaskSet::draw(total, 0), scenario, 30)).to_vec();
            Played { scenario, outcomes: vec![[outcome(0, 0.5), outcome(4, 2.0)], [low, outcome(0, 0.7)]], turns }
        };
        let misses =
            |low| Misses { sweep: ALL, played: vec![played(Scenario::LowHi, low), played(Scenario::Loaded, low)] };
        let met = |low| misses(low).aims().iter().map(Aim::is_met).collect::<Vec<_>>();
        assert_eq!(met(outcome(0, 0.9)), [true, false, false]);
        assert_eq!(met(outcome(1, 1.1)), [false, false, false]);
        let text = misses(outcome(1, 1.1)).markdown();
        assert!(text.contains("| 50 % | 20 | 0 | 4, 4, 4, 4, 4 | 1 | 0.500 |"), "{text}");
        assert!(text.contains("| 70 % | 20 | 1 | 0, 0, 0, 0, 0 | 0 | 1.100 |"), "{text}");
    }

    #[test]
    fn quartiles_of_numbers() {
        assert_eq!(quartiles(&[1, 2, 3, 4, 5]), "1, 2, 3, 4, 5");
        assert_eq!(quartiles(&[]), "0, 0, 0, 0, 0");
    }
}
