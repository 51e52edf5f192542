//! One module per verb.

pub mod admit;
pub mod apply;
mod capture;
pub mod check;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod generate;
pub mod grant;
pub mod hook;
pub mod import;
pub mod kernel;
pub mod lab;
pub mod man;
pub mod measure;
pub mod observe;
pub mod plan;
pub mod probe;
mod recording;
pub mod report;
pub mod reserve;
pub mod rt_lib;
pub mod run;
pub mod soak;
pub mod status;
pub mod stop;
pub mod top;

use std::path::Path;

use macrotick_check::Verdict;
use macrotick_model::whole;
use macrotick_report::output;

use crate::error::CliError;

/// Prints why a plan is not feasible.
pub fn tell_verdict(verdict: &Verdict) {
    output::tell(verdict.to_string().trim_end());
}

/// Writes a file as a whole.
pub fn write(path: &Path, text: &str) -> Result<(), CliError> {
    whole::write(path, text.as_bytes()).map_err(|source| CliError::Write { path: path.into(), source })
}

/// Creates a directory and its parents.
pub fn create(directory: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(directory).map_err(|source| CliError::Write { path: directory.into(), source })
}
