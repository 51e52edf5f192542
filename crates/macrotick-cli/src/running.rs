//! The arguments of the verbs that run a plan, and report.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use macrotick_lab::observe::Dispatch;
use macrotick_model::{Backend, Duration};

use crate::{length, LabOptions};

/// The arguments that `observe` and `run` have in common.
#[derive(Clone, Copy, Debug, Args)]
pub struct DispatchArgs {
    /// The mechanism that dispatches the jobs
    #[arg(long, value_enum, default_value_t = BackendName::Kernel)]
    pub backend: BackendName,
    /// The length of the run, with a unit; by default the length in the description
    #[arg(long, value_parser = length)]
    pub duration: Option<Duration>,
    /// Trace the threads on each CPU for this time from the epoch (it makes every switch longer)
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub trace: Option<Duration>,
    /// Seed of drawn execution times
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Settings of the whole host (TimerShield, kernel.perf_event_paranoid), under the backend `kernel`
    #[arg(long, value_enum, default_value_t = HostSettingsName::Hold)]
    pub host_settings: HostSettingsName,
}

/// Converts the arguments to the lab's form.
impl From<DispatchArgs> for Dispatch {
    fn from(args: DispatchArgs) -> Dispatch {
        Dispatch {
            backend: args.backend.into(),
            duration: args.duration,
            trace: args.trace,
            seed: args.seed,
            leaves_host_settings: args.host_settings == HostSettingsName::Leave,
        }
    }
}

/// Arguments of `observe`.
#[derive(Debug, Args)]
pub struct ObserveArgs {
    /// The plan
    pub plan: PathBuf,
    /// The file for the observation (JSON)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The options of the run
    #[command(flatten)]
    pub dispatch: DispatchArgs,
    /// Run the plan without the check, to see the host's own errors
    #[arg(long, hide = true)]
    pub unchecked: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The observation
    pub observation: PathBuf,
    /// The directory for report.json, report.html and trace.json; by default no file is written
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print the report as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(mut_args(needs_the_lab))]
pub struct RunArgs {
    /// A system description or a plan (`.json`)
    pub input: PathBuf,
    /// The host to run, of a system with several hosts [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Run in the lab instead of on this host
    #[arg(long)]
    pub lab: bool,
    /// The directory for plan, observation and report [default: build/run/SYSTEM-BACKEND]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The options of the run
    #[command(flatten)]
    pub dispatch: DispatchArgs,
    /// The options of the lab
    #[command(flatten)]
    pub lab_options: LabOptions,
}

/// Makes the options of the lab require `--lab`: without it they would be ignored. A dry run has a meaning on both.
fn needs_the_lab(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "shift" | "smp" => option.requires("lab"),
        "dry_run" => option.help(
            "Print the commands that set up this host for the plan, and stop; with `--lab`: the command that boots the \
             guest",
        ),
        _ => option,
    }
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Results of `run`: its folder, or the report.json or observation.json in it
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// The file for the page [default: build/compare/SYSTEM.html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the comparison as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// [`Backend`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The scheduling class SCHED_TT
    Kernel,
    /// The user-space dispatcher
    User,
    /// SCHED_FIFO
    Fifo,
    /// SCHED_DEADLINE
    Deadline,
    /// SCHED_OTHER
    Other,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Backend {
        match name {
            BackendName::Kernel => Backend::Kernel,
            BackendName::User => Backend::User,
            BackendName::Fifo => Backend::Fifo,
            BackendName::Deadline => Backend::Deadline,
            BackendName::Other => Backend::Other,
        }
    }
}

/// [`macrotick_node::HostSettings`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostSettingsName {
    /// The run sets them and restores them at its end, as `apply` does
    Hold,
    /// The run does not change them
    Leave,
}

impl From<HostSettingsName> for macrotick_node::HostSettings {
    fn from(name: HostSettingsName) -> Self {
        match name {
            HostSettingsName::Hold => macrotick_node::HostSettings::Hold,
            HostSettingsName::Leave => macrotick_node::HostSettings::Leave,
        }
    }
}
