//! The overview of a comparison: misses of each run, one table over all tasks, one over all chains.

use super::render::METRICS;
use super::{ChainRow, Comparison, Row, Run};
use crate::chains::{BoundVerdict, ChainLatency};
use crate::report::Metric;
use crate::table::{cut, toned, Cell, Table, Tone};
use crate::terminal::bad_if_any;
use crate::words::{self, Decimals};

impl Comparison {
    /// Returns the misses of each run, in a line: `other (SCHED_OTHER): 1178 of 1560 missed; kernel (SCHED_TT): none`.
    pub fn headline(&self) -> String {
        let told = self.runs.first().map(|run| run.released);
        let clause = |(index, run): (usize, &Run)| {
            // The number of jobs appears once, as long as it is the same.
            let short = index > 0 && told == Some(run.released);
            format!("{}: {}", self.spoken_name(run), words::missed(run.missed, run.released, short))
        };
        self.runs.iter().enumerate().map(clause).collect::<Vec<_>>().join("; ")
    }

    /// Adds the policy to the name of a run that is labelled by its backend alone.
    fn spoken_name(&self, run: &Run) -> String {
        let by_backend = run.label == run.backend.name();
        match by_backend {
            true => format!("{} ({})", run.label, words::policy_of(run.backend)),
            false => run.label.clone(),
        }
    }

    /// Returns the comparison as text of at most about `width` columns, with one table for all tasks: the output of
    /// `macrotick compare`. Times are in microseconds.
    pub fn summary(&self, colour: bool, width: usize) -> String {
        let mut text = self.head(colour, width);
        text.push_str(&format!("\n{}\n", Tone::Strong.paint(TASKS_TITLE, colour)));
        text.push_str(&self.task_table().text(colour, width));
        text.push_str(&self.chain_text(colour, width));
        text.push_str(&self.notes_text(colour, width));
        text
    }

    /// Returns a table of all tasks in all runs.
    pub(super) fn task_table(&self) -> Table {
        let mut table = Table::new(2, &["task", "run", "jobs", "misses", "mean", "p99", "max", "mean", "p99", "max"]);
        table.above = vec![(4, 3, "lateness".into()), (7, 3, "response".into())];
        let rows = || self.tasks.iter().flat_map(|task| &task.rows);
        let decimals = METRICS.map(|metric| decimals(rows(), metric));
        for task in &self.tasks {
            let names = std::iter::once(cut(&task.name, 20)).chain(std::iter::repeat(String::new()));
            table.rows.extend(task.rows.iter().zip(names).map(|(row, name)| task_cells(name, row, decimals)));
        }
        table
    }

    /// Returns a table of all latencies of all chains in all runs.
    pub(super) fn chain_table(&self) -> Table {
        let mut table =
            Table::new(3, &["chain", "latency", "run", "paths", "mean", "p99", "max", "bound", "lost", "verdict"]);
        let latencies =
            self.chains.iter().flat_map(|chain| &chain.rows).flat_map(|row| row.latencies().map(|each| each.1));
        let times = latencies.flat_map(|each| each.bound_ns.into_iter().chain(each.measured.map(|s| s.max_ns)));
        let decimals = Decimals::for_largest(times.max().unwrap_or(0));
        for chain in &self.chains {
            for which in 0..2 {
                let head = |row: &ChainRow| [cut(&chain.name, 20), row.latencies()[which].0.into()];
                let heads = chain.rows.iter().take(1).map(head).chain(std::iter::repeat(Default::default()));
                let cells = |(row, head): (&ChainRow, _)| chain_cells(head, row, row.latencies()[which].1, decimals);
                table.rows.extend(chain.rows.iter().zip(heads).map(cells));
            }
        }
        table
    }
}

/// The title of [`Comparison::task_table`] in a text.
const TASKS_TITLE: &str = "Tasks [us]";

/// Returns the number of decimals for the times of a metric in all these rows.
pub(super) fn decimals<'a>(rows: impl Iterator<Item = &'a Row>, metric: Metric) -> Decimals {
    let largest = rows.filter_map(|row| row.statistics(metric)).map(|s| s.max_ns).max();
    Decimals::for_largest(largest.unwrap_or(0))
}

fn task_cells(name: String, row: &Row, decimals: [Decimals; 2]) -> Vec<Cell> {
    let mut cells: Vec<Cell> =
        vec![name.into(), row.label.as_str().into(), words::grouped(row.released).into(), bad_if_any(row.missed)];
    for (metric, decimals) in METRICS.into_iter().zip(decimals) {
        cells.extend(
            match row.statistics(metric) {
                Some(s) => [decimals.us_of_tenths(s.mean_ns), decimals.us(s.p99_ns), decimals.us(s.max_ns)],
                None => ["-", "-", "-"].map(String::from),
            }
            .map(Cell::from),
        );
    }
    cells
}

fn chain_cells([chain, name]: [String; 2], row: &ChainRow, latency: &ChainLatency, decimals: Decimals) -> Vec<Cell> {
    let measured = latency.measured;
    let time = |ns: Option<i64>| Cell::from(ns.map_or("-".into(), |ns| decimals.us(ns)));
    let over = latency.verdict == BoundVerdict::Broken && latency.over > 0;
    let max = measured.map_or("-".into(), |s| decimals.us(s.max_ns));
    vec![
        chain.into(),
        name.into(),
        row.label.as_str().into(),
        words::grouped(measured.map_or(0, |s| s.count)).into(),
        measured.map_or("-".into(), |s| decimals.us_of_tenths(s.mean_ns)).into(),
        time(measured.map(|s| s.p99_ns)),
        toned(max, if over { Tone::Bad } else { Tone::Plain }),
        time(latency.bound_ns),
        bad_if_any(latency.lost),
        toned(words::bound(latency.verdict), latency.verdict.tone()),
    ]
}
