//! The arguments of `grant`.

use std::path::PathBuf;

use clap::Args;
use macrotick_grant::FILE;

/// Arguments of `grant`.
#[derive(Debug, Args)]
pub struct GrantArgs {
    /// The limits of users and groups, in a file of root
    #[arg(long, value_name = "FILE", default_value = FILE)]
    pub limits: PathBuf,
}
