//! The arguments of the verbs for a deployment and its host.

use std::path::PathBuf;

use clap::Args;
use macrotick_model::Duration;

use crate::{length, BackendName};

/// Arguments of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// A system description or a plan (`.json`)
    pub input: PathBuf,
    /// The host to deploy, of a plan for several hosts [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Seed of drawn execution times; a change keeps the seed of the first deployment
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Refuse if a deployment or a run is active, instead of changing it
    #[arg(long)]
    pub new: bool,
    /// Print the commands that set up this host for the plan, and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print the status as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The interval between two readings
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "1s")]
    pub every: Duration,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A system description: what its plan needs comes first and alone decides on the verdict
    pub system: Option<PathBuf>,
    /// The name that the description gives to this host, if it has several
    #[arg(long, value_name = "NAME", requires = "system")]
    pub host: Option<String>,
    /// The backend of the plan
    #[arg(long, value_enum, default_value_t = BackendName::Kernel, requires = "system")]
    pub backend: BackendName,
    /// Show the checks without a finding, too
    #[arg(long)]
    pub all: bool,
    /// Print the verdicts of all checks as JSON
    #[arg(long, conflicts_with = "all")]
    pub json: bool,
    /// Do not measure: a measurement spins on each CPU for a second, and then sleeps 400 times
    #[arg(long)]
    pub no_measure: bool,
    /// Write all that the checks read to this file (JSON), and examine nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["system", "all", "json", "root", "fix", "undo"])]
    pub capture: Option<PathBuf>,
    /// Examine the host of this file, which `--capture` wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "undo", "no_measure"])]
    pub root: Option<PathBuf>,
    /// Make the steps that a program can make and undo, then examine again; needs root
    #[arg(long)]
    pub fix: bool,
    /// Revert the steps that `--fix` has made since the last boot; needs root
    #[arg(long, conflicts_with_all = ["system", "all", "no_measure", "fix"])]
    pub undo: bool,
}
