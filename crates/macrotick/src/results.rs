//! Reading what runs left behind, to set them side by side.

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
        let run = |path: &PathBuf| Ok((path.clone(), Report::new(&Observation::load(&observation_of(path)?)?)));
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

fn beside(report: &Path) -> Result<PathBuf, CliError> {
    let observation = report.with_file_name(OBSERVATION);
    match observation.is_file() {
        true => Ok(observation),
        false => Err(CliError::NoRecords { report: report.into(), observation }),
    }
}
