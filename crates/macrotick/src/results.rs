//! Reading what runs left behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use macrotick_model::files::FileError;
use macrotick_model::Observation;
use macrotick_report::Report;
use serde::de::IgnoredAny;
use serde::Deserialize;

use crate::error::CliError;

/// The file of a run's folder that has the records, without which there are no distributions.
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

    /// In the order given.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.runs.iter().map(|(_, report)| report)
    }

    /// What the runs are called: by backend where that tells them apart, else by folder, else as they were given.
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

/// The name of the folder that has the result.
fn folder(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    folder.and_then(Path::file_name).map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

/// The keys that tell the documents apart.
#[derive(Deserialize)]
struct Shape {
    plan: Option<IgnoredAny>,
    verdict: Option<IgnoredAny>,
}

/// Where the records of a result are. A report has none itself; `macrotick run` leaves them beside it.
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

/// The observation of a result: a folder of `macrotick run`, its `report.json` or `observation.json`, or another
/// observation.
pub fn observation(path: &Path) -> Result<Observation, CliError> {
    // What is no result at all is told with the place where it is no observation.
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

/// Output of what the plan does not start. Files are called by these names.
fn strange_output(observation: &Observation) -> Vec<String> {
    let known: BTreeSet<String> = process_names(observation).collect();
    let strange = observation.output.iter().enumerate().filter(|(_, output)| !known.contains(&output.name));
    strange
        .map(|(index, output)| format!("output[{index}]: `{}` is no task or process of the plan", output.name))
        .collect()
}

/// What the processes of a run are called.
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
