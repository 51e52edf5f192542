//! `macrotick explain`: the meaning of a key of a description.

use macrotick_cli::ExplainArgs;
use macrotick_model::keys;
use macrotick_report::output;

use crate::error::CliError;
use crate::Outcome;

/// Prints it for each place of the key.
pub fn execute(args: &ExplainArgs) -> Result<Outcome, CliError> {
    let key = args.key.as_deref().unwrap_or_default();
    let text = keys::explain(key).map_err(|near| CliError::NoKey { key: key.into(), near })?;
    output::print_line(text.trim_end_matches('\n'));
    Ok(Outcome::Done)
}
