//! What the command line accepts.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use macrotick_lab::observe::Dispatch;
use macrotick_lab::Flavor;
use macrotick_model::{Backend, Duration, Experiment};
use macrotick_plan::Solver;

/// Time-triggered, mixed-criticality real-time Linux: plan, check, run and report a system.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, subcommand_value_name = "VERB", after_help = exit_codes())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What the exit codes mean.
pub const EXIT_CODES: [(u8, &str); 4] = [
    (0, "Done, and the verdict holds (or there is none, as with compare)."),
    (1, "The verdict does not hold: a miss, a broken bound, an infeasible plan, a container refused."),
    (2, "Wrong input."),
    (3, "This host or the lab failed."),
];

/// How long a run, or a part of one, takes.
fn length(text: &str) -> Result<Duration, String> {
    let length = text.parse::<Duration>().map_err(|error| error.to_string())?;
    match length > Duration::ZERO && length <= Experiment::MAX_DURATION {
        true => Ok(length),
        false => Err(format!("must be longer than zero, and at most {}", Experiment::MAX_DURATION)),
    }
}

fn exit_codes() -> String {
    EXIT_CODES.iter().fold("Exit codes:".into(), |text, (code, meaning)| format!("{text}\n  {code}  {meaning}"))
}

/// The stages, in the order in which data flows through them, and the lab.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Explain a key of a description, or list all keys of a system
    Explain(ExplainArgs),
    /// Plan a system description: solve it into tables and show their timeline
    Plan(PlanArgs),
    /// Judge a plan (or a description, which is planned first) without the solver's help
    Check(CheckArgs),
    /// Answer whether one more container fits beside what runs on this host: where, with which budget, or why not
    Admit(AdmitArgs),
    /// Deploy a plan on this host, run it, and write the raw records
    Observe(ObserveArgs),
    /// Judge an observation: tables in the terminal, JSON, an HTML page, a Perfetto trace
    Report(ReportArgs),
    /// All of it: plan, deploy, run, observe, report
    Run(RunArgs),
    /// Set the results of two or more runs of a system side by side, in the terminal and in one HTML page
    Compare(CompareArgs),
    /// Deploy a plan on this host and keep it running, or change the deployment that runs to it
    Apply(ApplyArgs),
    /// Show what is deployed on this host and what the kernel has counted of it
    Status(StatusArgs),
    /// End the deployment on this host, or remove what a killed one or a killed run left behind
    Stop,
    /// Give containers budgets or pools: the OCI hook, and how engines learn of it
    Hook(HookArgs),
    /// Write the preload library by which programs that know SCHED_FIFO only run under SCHED_DS
    RtLib(RtLibArgs),
    /// Build the lab's kernels and run commands in it
    Lab(LabArgs),
    /// Write the manual pages
    #[command(hide = true)]
    Man(ManArgs),
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The key, alone or with those around it: `deadline`, `tasks.supply.deadline`; without one all keys of a system are listed
    pub key: Option<String>,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The system description
    pub system: PathBuf,
    /// Where to write the plan (JSON)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The solver: `folded` or `null`; by default `null` for a description with a table, else `folded`
    #[arg(long)]
    pub solver: Option<Solver>,
    /// Print the plan as JSON instead of its timeline
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A plan (`.json`) or a system description
    pub input: PathBuf,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `admit`.
#[derive(Debug, Args)]
pub struct AdmitArgs {
    /// Descriptions of containers; each is answered beside those before it that were admitted
    #[arg(required = true, value_name = "FILE")]
    pub containers: Vec<PathBuf>,
    /// Admit to what this description or plan (`.json`) says instead of to what runs on this host
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Print the answers as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `observe` and `run` have in common.
#[derive(Clone, Copy, Debug, Args)]
pub struct DispatchArgs {
    /// What dispatches the jobs
    #[arg(long, value_enum, default_value_t = BackendName::Kernel)]
    pub backend: BackendName,
    /// How long to observe, with a unit; by default what the description says
    #[arg(long, value_parser = length)]
    pub duration: Option<Duration>,
    /// Trace who has which CPU, for so long from the epoch (it costs time in every switch)
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub trace: Option<Duration>,
    /// Seed of drawn execution times
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Under the backend `kernel`: what becomes of settings of the whole host (TimerShield, kernel.perf_event_paranoid)
    #[arg(long, value_enum, default_value_t = HostSettingsName::Hold)]
    pub host_settings: HostSettingsName,
}

/// The same in the lab.
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
    /// Where to write the observation (JSON)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// How to run it
    #[command(flatten)]
    pub dispatch: DispatchArgs,
    /// Do without the judge: for those who want to see what the host says
    #[arg(long, hide = true)]
    pub unchecked: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The observation
    pub observation: PathBuf,
    /// Where to write report.json, report.html and trace.json; by default nothing is written
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
    /// Run in the lab instead of on this host
    #[arg(long)]
    pub lab: bool,
    /// Where to write plan, observation and report [default: build/run/SYSTEM-BACKEND]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How to run it
    #[command(flatten)]
    pub dispatch: DispatchArgs,
    /// The lab
    #[command(flatten)]
    pub lab_options: LabOptions,
}

/// Options of the lab, which would be ignored without it.
fn needs_the_lab(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "shift" | "smp" | "dry_run" => option.requires("lab"),
        _ => option,
    }
}

/// Arguments of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// A system description or a plan (`.json`)
    pub input: PathBuf,
    /// Seed of drawn execution times; a change keeps that of the beginning
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print the status as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// What `run` wrote: its folder, or the report.json or observation.json in it
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Where to write the page [default: build/compare/SYSTEM.html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the comparison as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The lab's virtual machine.
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
    /// What to do in the lab.
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// What to do in the lab.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Build a kernel, unless it is there already
    Kernel {
        /// Which one
        #[arg(default_value = "patched", value_parser = flavor())]
        flavor: Flavor,
    },
    /// Boot the lab, run a command in it, and print what it printed
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
        /// Stop the guest after so much of this host's time
        #[arg(long, value_name = "DURATION", default_value = "600s")]
        wall_limit: Duration,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
}

/// Arguments of `hook`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct HookArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: HookVerb,
}

/// The hook, and telling engines of it.
#[derive(Debug, Subcommand)]
pub enum HookVerb {
    /// Admit the container whose state is on standard input; container runtimes call this
    Run,
    /// Tell podman to call the hook for containers with an annotation `macrotick.*`
    Install {
        /// Where podman looks for hooks
        #[arg(long, value_name = "DIR", default_value = macrotick_hook::install::DIRECTORY)]
        directory: PathBuf,
    },
    /// Add the hook to an OCI configuration (config.json) from standard input, and print it
    Add {
        /// An annotation to add as well; may be repeated
        #[arg(long = "annotation", value_name = "NAME=VALUE", value_parser = annotation)]
        annotations: Vec<(String, String)>,
        /// Have the container preload this library, which `macrotick rt-lib` wrote on this host
        #[arg(long, value_name = "FILE")]
        rt_lib: Option<PathBuf>,
    },
}

fn annotation(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Arguments of `rt-lib`.
#[derive(Debug, Args)]
pub struct RtLibArgs {
    /// Where to write it
    #[arg(value_name = "FILE", default_value = crate::verbs::rt_lib::PATH)]
    pub path: PathBuf,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Where to write the pages
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
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
    /// They are held meanwhile, as `apply` does
    Hold,
    /// They stay as they are
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

/// [`Flavor`] on the command line.
fn flavor() -> impl TypedValueParser<Value = Flavor> {
    let names = Flavor::ALL.map(|flavor| PossibleValue::new(flavor.name()).help(flavor.about()));
    PossibleValuesParser::new(names).map(|name| Flavor::from_name(&name).expect("one of these names"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use macrotick_lab::observe::VERB;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_the_lab_are_refused_without_it() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["macrotick", "run", "s.yaml"], words].concat());
        for option in [&["--dry-run"][..], &["--smp", "2"], &["--shift", "0"]] {
            let refused = parse(option).unwrap_err();
            assert_eq!((refused.kind(), refused.exit_code()), (clap::error::ErrorKind::MissingRequiredArgument, 2));
            assert!(refused.to_string().contains("--lab"), "{refused}");
            assert!(parse(&[option, &["--lab"]].concat()).is_ok());
        }
        assert!(parse(&[]).is_ok());
        assert!(Cli::try_parse_from(["macrotick", "lab", "exec", "--smp", "2", "--", "true"]).is_ok());
    }

    #[test]
    fn what_the_lab_says_to_observe_is_accepted() {
        let all = Dispatch {
            backend: Backend::Fifo,
            duration: Some(Duration::from_millis(1500)),
            trace: Some(Duration::from_micros(10)),
            seed: 7,
            leaves_host_settings: true,
        };
        for dispatch in [all, Dispatch::under(Backend::Kernel)] {
            let words = ["macrotick", VERB, "plan.json", "--output", "o.json"].map(String::from);
            let cli = Cli::try_parse_from(words.into_iter().chain(dispatch.words())).unwrap();
            let Verb::Observe(args) = cli.verb else { panic!("another verb") };
            assert_eq!(Dispatch::from(args.dispatch), dispatch);
        }
    }
}
