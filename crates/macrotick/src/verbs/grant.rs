//! `macrotick grant`

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use macrotick_cli::GrantArgs;
use macrotick_grant::{serve, GrantError};
use macrotick_host::grants::FOLDER;
use macrotick_report::output;

use crate::error::CliError;
use crate::Outcome;

/// Serves the connection on standard input.
pub fn execute(args: &GrantArgs) -> Result<Outcome, CliError> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(GrantError::NoConnection)?;
    // Standard error is the journal. Standard output can be the connection.
    serve(&UnixStream::from(input), &args.limits, Path::new(FOLDER), &|line| output::tell(line))?;
    Ok(Outcome::Done)
}
