//! `macrotick export`: system descriptions as files of other tools.

use macrotick_exchange::rt_app;

use super::import::written;
use crate::args::{ExportArgs, ExportTool};
use crate::error::CliError;
use crate::files::Files;
use crate::input::description_from;
use crate::Outcome;

/// Reads a description, and writes its tasks and load for another tool. Remarks go to standard error.
pub fn execute(args: &ExportArgs) -> Result<Outcome, CliError> {
    let ExportTool::RtApp { system: path, output } = &args.tool;
    Files::default().reads([path]).writes(&output.output).check()?;
    let system = description_from(path)?;
    let (text, remarks) = rt_app::export(&system).map_err(|reason| CliError::Export { path: path.clone(), reason })?;
    written(&output.output, &text, &remarks)
}
