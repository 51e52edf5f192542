//! Measured responses beside the checker's bounds.

use std::fmt::Write as _;

use macrotick_lab::{Flavor, GuestJob};
use macrotick_model::Duration;
use macrotick_report::Figure;

use super::group_guest::RUN;
use super::play::Play;
use super::sets::{Bound, Set};
use crate::error::BenchError;
use crate::kit::aims::Aim;
use crate::kit::bench::Bench;
use crate::kit::lab;
use crate::kit::scale::Scale;

const PLAYS: &str = "/tmp/plays.json";
/// The percentage by which the worst response may stay below its bound.
const SLACK_PERCENT: f64 = 3.0;

/// A set, the bound of its measured task, and the responses.
struct Row {
    play: Play,
    bound: Bound,
    /// One response for each phase, in nanoseconds.
    responses: Vec<u64>,
}

fn plays(scale: Scale) -> (Vec<Play>, Vec<Bound>) {
    let of = |set: Set| {
        let bound = set.bound();
        (Play::new(set, bound.response.as_nanos() as u64, scale), bound)
    };
    Set::all().into_iter().map(of).unzip()
}

/// Returns the number of measured jobs.
pub fn jobs(scale: Scale) -> u64 {
    plays(scale).0.iter().map(|play| play.phases_ns.len() as u64).sum()
}

/// The results of all plays.
pub struct Responses(Vec<Row>);

impl Responses {
    /// Plays all sets in one guest.
    pub fn measure(bench: &Bench) -> Result<Responses, BenchError> {
        let (plays, bounds) = plays(bench.scale);
        lab::announce(&format!("{}: {} sets", bench.name, plays.len()));
        let fits = |seen: &Vec<Vec<u64>>| {
            let expected = plays.iter().map(|play| play.phases_ns.len());
            seen.iter().map(Vec::len).eq(expected) && seen.iter().flatten().all(|&response| response > 0)
        };
        let seen = lab::read(&job(&plays), "responses", |output| {
            let seen: Option<Vec<Vec<u64>>> = output.lines().map(|line| serde_json::from_str(line).ok()).collect();
            seen.filter(fits)
        })?;
        let rows = plays.into_iter().zip(bounds).zip(seen);
        Ok(Responses(rows.map(|((play, bound), responses)| Row { play, bound, responses }).collect()))
    }

    /// Returns the aims: no job exceeds its bound, and the worst response is near it.
    pub fn aims(&self) -> Vec<Aim> {
        let beyond: usize = self.0.iter().map(Row::beyond).sum();
        let slack = self.0.iter().map(Row::slack_percent).fold(0.0, f64::max);
        vec![
            Aim { what: "responses beyond the bound".into(), unit: "jobs", value: beyond as f64, limit: 0.0 },
            Aim { what: "bound above the worst response, most".into(), unit: "%", value: slack, limit: SLACK_PERCENT },
        ]
    }

    /// Returns tables with a row for each set and arrival.
    pub fn markdown(&self) -> String {
        let mut text = "### responses, in us\n\n| set | arrival | jobs | best | median | worst | its phase | bound | \
                        worst / bound |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for row in &self.0 {
            let (worst, phase) = row.worst();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {:.4} |",
                row.play.set.name,
                row.play.set.arrival(),
                row.responses.len(),
                us(row.sorted()[0]),
                us(row.sorted()[row.responses.len() / 2]),
                us(worst),
                us(phase),
                us(row.bound_ns()),
                worst as f64 / row.bound_ns() as f64
            );
        }
        text + &self.sets()
    }

    /// Returns a table that describes the sets.
    fn sets(&self) -> String {
        let mut text =
            "\n| set | budgets above | budget | tasks: execution time, period, release jitter; the last one \
                        is measured |\n|---|---|---:|---|\n"
                .to_owned();
        for row in self.0.iter().filter(|row| !row.play.set.bound) {
            let Set { name, above_us, budget_us, tasks, .. } = &row.play.set;
            let above = above_us.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let one = |task: &super::sets::Task| format!("{}, {}, {}", task.wcet_us, task.period_us, task.jitter_us);
            let tasks = tasks.iter().map(one).collect::<Vec<_>>().join("; ");
            let _ = writeln!(text, "| {name} | {above} | {budget_us} | {tasks} |");
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |row: &Row, figure: &str, value: u64| Figure {
            figure: figure.into(),
            case: format!("{}, {}", row.play.set.name, row.play.set.arrival()),
            value: value as f64,
            unit: "ns".into(),
        };
        let of = |row: &Row| [figure(row, "worst response", row.worst().0), figure(row, "bound", row.bound_ns())];
        self.0.iter().flat_map(of).collect()
    }
}

impl Row {
    fn bound_ns(&self) -> u64 {
        self.bound.response.as_nanos() as u64
    }

    fn beyond(&self) -> usize {
        self.responses.iter().filter(|&&response| response > self.bound_ns()).count()
    }

    fn sorted(&self) -> Vec<u64> {
        let mut sorted = self.responses.clone();
        sorted.sort_unstable();
        sorted
    }

    /// Returns the longest response, and the phase of its release.
    fn worst(&self) -> (u64, u64) {
        let both = self.responses.iter().copied().zip(self.play.phases_ns.iter().copied());
        both.max().expect("every play has phases")
    }

    fn slack_percent(&self) -> f64 {
        (1.0 - self.worst().0 as f64 / self.bound_ns() as f64) * 100.0
    }
}

fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn job(plays: &[Play]) -> GuestJob {
    let mut job = lab::job(Flavor::Patched, [RUN, PLAYS]);
    job.files.push((PLAYS.into(), serde_json::to_vec(plays).expect("plays are plain data")));
    job.wall_limit = Duration::from_secs(3600);
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_beyond_its_bound_is_told() {
        let row = |set: Set, factor: f64| {
            let bound = set.bound();
            let play = Play::new(set, bound.response.as_nanos() as u64, Scale::Full);
            let response = (bound.response.as_nanos() as f64 * factor) as u64;
            Row { responses: vec![response; play.phases_ns.len()], play, bound }
        };
        let [first, second, ..] = &Set::all()[..] else { panic!("sets") };
        let aims = |factor| Responses(vec![row(first.clone(), 0.99), row(second.clone(), factor)]).aims();
        assert!(aims(0.98).iter().all(Aim::is_met));
        assert!(!aims(1.001)[0].is_met() && !aims(0.9)[1].is_met());
        let text = Responses(vec![row(first.clone(), 1.0)]).markdown();
        assert!(text.contains("| alone | unbound | ") && text.contains("| 1.0000 |"), "{text}");
    }
}
