//! The arguments of `kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `kernel`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct KernelArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: KernelVerb,
}

/// The verbs of `kernel`.
#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// Build the patched kernel with the configuration of a distribution
    Build(KernelBuildArgs),
}

/// Arguments of `kernel build`.
#[derive(Debug, Args)]
pub struct KernelBuildArgs {
    /// The configuration to start from: `running` (that of the running kernel), `defconfig` (the default of Linux), or a file
    #[arg(long, default_value = "running", value_name = "BASE")]
    pub from: String,
    /// The architecture of the machine
    #[arg(long, default_value = "x86-64", value_name = "ARCHITECTURE", value_parser = ["x86-64", "arm64"])]
    pub arch: String,
    /// A file with lines of a configuration that have the last word; may be repeated
    #[arg(long = "with", value_name = "FILE")]
    pub fragments: Vec<PathBuf>,
    /// Keep the debug information of the base
    #[arg(long)]
    pub debug_info: bool,
    /// Make Debian packages of the kernel and its headers
    #[arg(long)]
    pub deb: bool,
    /// Write the configuration, print its differences from the base with their reasons, and stop
    #[arg(long)]
    pub dry_run: bool,
}
