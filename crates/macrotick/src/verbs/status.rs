//! `macrotick status`

use std::io::IsTerminal;

use macrotick_cli::StatusArgs;
use macrotick_report::output;

use super::report::terminal_width;
use crate::error::CliError;
use crate::Outcome;

/// Shows the deployment of this host.
pub fn execute(args: &StatusArgs) -> Result<Outcome, CliError> {
    let status = macrotick_node::status()?;
    if args.json {
        output::print_json(&format!("{}\n", serde_json::to_string_pretty(&status).expect("a status is always JSON")));
    } else {
        let colour = macrotick_report::colour_wanted(std::io::stdout().is_terminal());
        output::print(macrotick_view::status(&status, colour, terminal_width()));
    }
    Ok(if status.problems.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}
