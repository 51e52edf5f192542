//! The arguments of `soak`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use macrotick_model::Duration;

use crate::length;

/// Arguments of `soak`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct SoakArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: SoakVerb,
}

/// The verbs of `soak`.
#[derive(Debug, Subcommand)]
pub enum SoakVerb {
    /// Deploy a plan and count everything, or go on where a power cut ended it
    Run(SoakRunArgs),
    /// Report the counts of a soak, which may run
    Report(SoakReportArgs),
}

/// Arguments of `soak run`.
#[derive(Debug, Args)]
pub struct SoakRunArgs {
    /// A system description or a plan (`.json`)
    pub input: PathBuf,
    /// The directory with the plan and the counts of this soak; it goes on with those that are there
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// The soaked time after which it ends, with that of before a restart [default: until a signal or `macrotick stop`]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub duration: Option<Duration>,
    /// The interval at which the counts are saved: a power cut loses the counts since then
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "10s")]
    pub save_every: Duration,
    /// The host to deploy, of a plan for several hosts [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Seed of drawn execution times
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `soak report`.
#[derive(Debug, Args)]
pub struct SoakReportArgs {
    /// The directory of the soak
    #[arg(value_name = "DIR")]
    pub state: PathBuf,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}
