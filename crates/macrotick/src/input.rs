//! Reading a plan, or a description that is planned on the way.

use std::path::Path;

use macrotick_model::{Plan, System};
use macrotick_plan::Solver;

use crate::error::CliError;

/// A plan from a `.json` file, or from a description with its default solver.
pub fn plan_from(path: &Path) -> Result<Plan, CliError> {
    if path.extension().is_some_and(|extension| extension == "json") {
        return Ok(Plan::load(path)?);
    }
    let system = System::load(path)?;
    Ok(macrotick_plan::plan(&system, Solver::default_for(&system))?)
}
