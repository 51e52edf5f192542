//! `macrotick stop`

use crate::error::CliError;
use crate::Outcome;

/// Removes the installed table.
pub fn execute() -> Result<Outcome, CliError> {
    println!("{}", if macrotick_node::remove_table()? { "table removed" } else { "no table was installed" });
    Ok(Outcome::Done)
}
