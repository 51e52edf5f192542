//! Reads the results of runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use macrotick_model::files::FileError;
use macrotick_model::Observation;
use macrotick_report::Report;
use serde::de::IgnoredAny;
use serde::Deserialize;

use crate::error::CliError;

/// The file in a run's folder with the records; distributions need them.
const OBSERVATION: &str = "observation.json";

/// Several runs, judged.
pub struct Results {
    runs: Vec<(PathBuf, Report)>,
}

impl Results {
    /// Reads results: folders of `macrotick run`, their `report.json` or `observation.json`, or other observations.
    pub fn load(paths: &[PathBuf]) -> Result<Results, CliError> {
        let run = |path: &PathBuf| Ok((path.clone(), Report::new(&load(&observation_of(path)?)?)));
        Ok(Results { runs: paths.iter().map(run).collect::<Result<_, CliError>>()? })
    }

    /// Returns the reports in the given order.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.runs.iter().map(|(_, report)| report)
    }

    /// Returns the labels of the runs: the backend, if these differ, else the folder, else the path as given.
    pub fn labels(&self) -> Vec<String> {
        let by_backend: Vec<String> = self.reports().map(|report| report.backend.to_string()).collect();
        let by_folder: Vec<String> = self.runs.iter().map(|(path, _)| folder(path)).collect();
        let as_given = || self.runs.iter().map(|(path, _)| path.display().to_string()).collect();
        [by_backend, by_folder].into_iter().find(|labels| are_distinct(labels)).unwrap_or_else(as_given)
    }
}

fn are_distinct(labels: &[String]) -> bool {
    labels.iter().collect::<BTreeSet<_>>().len() == labels.len()
}

/// Returns the name of the folder with the result.
fn folder(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    folder.and_then(Path::file_name).map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

/// The keys that distinguish the documents.
#[derive(Deserialize)]
struct Shape {
    plan: Option<IgnoredAny>,
    verdict: Option<IgnoredAny>,
}

/// Returns the path of a result's records. A report has no records; `macrotick run` writes them beside it.
fn observation_of(path: &Path) -> Result<PathBuf, CliError> {
    if path.is_dir() {
        return Ok(path.join(OBSERVATION));
    }
    let read = |source| FileError::Read { path: path.display().to_string(), source };
    let text = std::fs::read_to_string(path).map_err(read)?;
    match serde_json::from_str(&text) {
        Ok(Shape { plan: Some(_), .. }) => Ok(path.into()),
        Ok(Shape { verdict: Some(_), .. }) => beside(path),
        _ => Err(CliError::NotAResult { path: path.into() }),
    }
}

/// Reads the observation of a result: a folder of `macrotick run`, its `report.json` or `observation.json`, or another
/// observation.
pub fn observation(path: &Path) -> Result<Observation, CliError> {
    // Loading reports the place in the file that is not valid in an observation.
    match observation_of(path) {
        Err(CliError::NotAResult { .. }) => load(path),
        found => load(&found?),
    }
}

fn load(path: &Path) -> Result<Observation, CliError> {
    let observation = Observation::load(path)?;
    let problems = strange_output(&observation);
    match problems.is_empty() {
        true => Ok(observation),
        false => Err(FileError::Invalid { path: path.display().to_string(), problems }.into()),
    }
}

/// Lists outputs of processes that are not in the plan. The names become file names.
fn strange_output(observation: &Observation) -> Vec<String> {
    let known: BTreeSet<String> = process_names(observation).collect();
    let strange = observation.output.iter().enumerate().filter(|(_, output)| !known.contains(&output.name));
    strange
        .map(|(index, output)| format!("output[{index}]: `{}` is not a task or process of the plan", output.name))
        .collect()
}

/// Returns the names of the processes of a run.
pub fn process_names(observation: &Observation) -> impl Iterator<Item = String> + '_ {
    let system = &observation.plan.system;
    let loads = system.processes().flat_map(|process| process.process_names().collect::<Vec<_>>());
    system.tasks.iter().map(|task| task.name.clone()).chain(loads)
}

fn beside(report: &Path) -> Result<PathBuf, CliError> {
    let observation = report.with_file_name(OBSERVATION);
    match observation.is_file() {
        true => Ok(observation),
        false => Err(CliError::NoRecords { report: report.into(), observation }),
    }
}
