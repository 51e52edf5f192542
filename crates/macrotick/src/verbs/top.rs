//! `macrotick top`

use std::io::{self, IsTerminal};
use std::time::Duration as WallTime;

use macrotick_cli::TopArgs;
use macrotick_host::budgets;

use crate::error::CliError;
use crate::Outcome;

/// Watches the deployment of this host.
pub fn execute(args: &TopArgs) -> Result<Outcome, CliError> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(CliError::NoTerminal);
    }
    // Without the class there is nothing to watch: the reason stays readable.
    macrotick_node::status()?;
    let read = || macrotick_node::status().map_err(|error| error.to_string());
    let every = WallTime::from_nanos(args.every.as_nanos().unsigned_abs());
    macrotick_view::top::run(read, every, budgets::server_period()?).map_err(CliError::Terminal)?;
    Ok(Outcome::Done)
}
