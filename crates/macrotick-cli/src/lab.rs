//! The arguments of `lab`, and the options of its machine.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use macrotick_lab::Flavor;
use macrotick_model::Duration;

/// The options of the lab's virtual machine.
#[derive(Clone, Debug, Args)]
pub struct LabOptions {
    /// The lab: virtual nanoseconds per instruction as a power of two, 0 (1 ns) or 2 (4 ns)
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4))]
    pub shift: u32,
    /// The lab: virtual CPUs [default: as many as the description needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub smp: Option<u32>,
    /// The lab: print the command that boots the guest, ready to paste, and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `lab`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct LabArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// The verbs of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Build a kernel, unless it is up to date
    Kernel {
        /// The kernel
        #[arg(default_value = "patched", value_parser = flavor())]
        flavor: Flavor,
    },
    /// Boot the lab, run a command in it, and print its output
    Exec {
        /// The kernel
        #[arg(long, default_value = "patched", value_parser = flavor())]
        flavor: Flavor,
        /// The virtual machine
        #[command(flatten)]
        options: LabOptions,
        /// A file, directory or pattern of this host that the guest gets under the same path; may be repeated
        #[arg(long = "file", value_name = "PATH")]
        files: Vec<String>,
        /// Stop the guest after this much of the host's time
        #[arg(long, value_name = "DURATION", default_value = "600s")]
        wall_limit: Duration,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
}

/// [`Flavor`] on the command line.
fn flavor() -> impl TypedValueParser<Value = Flavor> {
    let names = Flavor::ALL.map(|flavor| PossibleValue::new(flavor.name()).help(flavor.about()));
    PossibleValuesParser::new(names).map(|name| Flavor::from_name(&name).expect("one of these names"))
}
