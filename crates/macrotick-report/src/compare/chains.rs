//! The chains of several runs, side by side.

use macrotick_model::Backend;
use serde::Serialize;

use crate::chains::{ChainLatency, ChainReport};
use crate::report::Report;

/// One chain in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainComparison {
    /// The chain's name.
    pub name: String,
    /// Its tasks, from cause to effect.
    pub path: Vec<String>,
    /// One entry per run that has the chain.
    pub rows: Vec<ChainRow>,
}

/// One chain in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainRow {
    /// The label of the run.
    pub label: String,
    /// The backend that dispatched the jobs.
    pub backend: Backend,
    /// Reaction time and its bound.
    pub reaction: ChainLatency,
    /// Data age and its bound.
    pub age: ChainLatency,
    /// The number of its colour.
    #[serde(skip)]
    pub(super) colour: usize,
}

impl ChainRow {
    /// Returns both latencies with their names.
    pub fn latencies(&self) -> [(&'static str, &ChainLatency); 2] {
        [("reaction time", &self.reaction), ("data age", &self.age)]
    }
}

/// Puts the chains of runs side by side; `colours` has one number per run.
pub(super) fn side_by_side(runs: &[(&str, &Report)], colours: &[usize]) -> Vec<ChainComparison> {
    let mut chains: Vec<ChainComparison> = Vec::new();
    for ((label, report), &colour) in runs.iter().zip(colours) {
        for chain in &report.chains {
            let row = row(label, report.backend, colour, chain);
            match chains.iter_mut().find(|entry| entry.name == chain.name) {
                Some(entry) => entry.rows.push(row),
                None => {
                    let (name, path) = (chain.name.clone(), chain.path.clone());
                    chains.push(ChainComparison { name, path, rows: vec![row] });
                }
            }
        }
    }
    chains
}

fn row(label: &str, backend: Backend, colour: usize, chain: &ChainReport) -> ChainRow {
    ChainRow { label: label.into(), backend, reaction: chain.reaction.clone(), age: chain.age.clone(), colour }
}
