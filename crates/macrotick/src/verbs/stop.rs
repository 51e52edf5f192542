//! `macrotick stop`

use macrotick_node::Stopped;
use macrotick_report::output;

use crate::error::CliError;
use crate::Outcome;

/// Ends the deployment, or removes the installed table.
pub fn execute() -> Result<Outcome, CliError> {
    let text = match macrotick_node::stop()? {
        Stopped::Deployment => "deployment ended, table removed",
        Stopped::Table => "table removed",
        Stopped::Nothing => "no table was installed",
    };
    output::print_line(text);
    Ok(Outcome::Done)
}
