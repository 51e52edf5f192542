//! The definition of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use macrotick_check::network::capture::Rule;
use macrotick_exchange::ctu_iig::Factor;
use macrotick_lab::observe::Dispatch;
use macrotick_lab::Flavor;
use macrotick_model::{Backend, Duration, Experiment};
use macrotick_plan::{Options, Solver};

use crate::probe_args::ProbeArgs;

/// Time-triggered, mixed-criticality real-time Linux: plan, check, run and report a system.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, subcommand_value_name = "VERB", after_help = exit_codes())]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The exit codes and their meanings.
pub const EXIT_CODES: [(u8, &str); 4] = [
    (0, "Done, and the verdict holds (or there is none, as with compare)."),
    (1, "The verdict does not hold: a miss, a broken bound, an infeasible plan, a refused container."),
    (2, "Wrong input."),
    (3, "This host or the lab failed."),
];

/// Parses the length of a run, or of a part of one.
fn length(text: &str) -> Result<Duration, String> {
    let length = text.parse::<Duration>().map_err(|error| error.to_string())?;
    match length > Duration::ZERO && length <= Experiment::MAX_DURATION {
        true => Ok(length),
        false => Err(format!("must be longer than zero and at most {}", Experiment::MAX_DURATION)),
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
    /// Plan a system description: compute its tables and show their timeline
    Plan(PlanArgs),
    /// Check a plan, or a description, which is planned first; the check shares no code with the solver
    Check(CheckArgs),
    /// Check whether more containers fit on this host or in a described system: print CPU and budget, or the reason
    Admit(AdmitArgs),
    /// Deploy a plan on this host, run it, and write the raw records
    Observe(ObserveArgs),
    /// Judge an observation: tables in the terminal, JSON, an HTML page, a Perfetto trace
    Report(ReportArgs),
    /// Do all stages: plan, deploy, run, observe, report
    Run(RunArgs),
    /// Compare the results of two or more runs of a system, in the terminal and in one HTML page
    Compare(CompareArgs),
    /// Deploy a plan on this host and keep it running, or change the running deployment to this plan
    Apply(ApplyArgs),
    /// Show the deployment of this host and the kernel's counters
    Status(StatusArgs),
    /// Watch the deployment of this host in the terminal: load, misses, budgets, events
    Top(TopArgs),
    /// End the deployment on this host, or remove the remains of a killed deployment or run
    Stop,
    /// Give containers budgets or pools: the OCI hook and its installation
    Hook(HookArgs),
    /// Write the preload library that runs programs for SCHED_FIFO under SCHED_DS
    RtLib(RtLibArgs),
    /// Turn a file of another tool into a system description
    Import(ImportArgs),
    /// Turn a system description into a file of another tool
    Export(ExportArgs),
    /// Write a random system description, for experiments with planners
    Generate(GenerateArgs),
    /// Examine this host: is it fit for real time, and which command mends each finding
    Doctor(DoctorArgs),
    /// Measure a network path: round trips and one way, with time stamps at every station
    Probe(ProbeArgs),
    /// Build the lab's kernels and run commands in it
    Lab(LabArgs),
    /// Write the manual pages
    #[command(hide = true)]
    Man(ManArgs),
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The key, alone or with the keys around it: `deadline`, `tasks.supply.deadline`; by default all keys of a system
    /// are listed
    pub key: Option<String>,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The system description
    pub system: PathBuf,
    /// The file for the plan (JSON)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The solver: `folded` or `null`; by default `null` for a description with a table, else `folded`
    #[arg(long)]
    pub solver: Option<Solver>,
    /// The longest search for a plan; it ends earlier with a plan or a proof that there is none
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value_t = Duration::from_secs(Options::TIME_LIMIT.as_secs() as i64))]
    pub time_limit: Duration,
    /// Seed of the search; the same seed gives the same plan
    #[arg(long, default_value_t = Options::SEED)]
    pub seed: u64,
    /// The number of trials of the search at the same time; by default one for each CPU; the plan does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Change this plan (JSON): its windows stay, and only those move that must
    #[arg(long, value_name = "PLAN", conflicts_with = "solver")]
    pub from: Option<PathBuf>,
    /// With `--from`: tasks or groups that keep their windows in any case, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "from")]
    pub frozen: Vec<String>,
    /// With `--from`: tasks or groups that may get any windows, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "from")]
    pub free: Vec<String>,
    /// Print each window, and each entry of the gate lists
    #[arg(long, conflicts_with = "json")]
    pub windows: bool,
    /// Pictures of it
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

impl PlanArgs {
    /// Returns the limits of the search.
    pub fn options(&self) -> Options {
        let nanos = self.time_limit.as_nanos().unsigned_abs();
        let jobs = self.jobs.map_or(Options::command_line().jobs, usize::from);
        Options { time_limit: std::time::Duration::from_nanos(nanos), seed: self.seed, jobs }
    }
}

/// Pictures of a plan.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// The file for a page with the timetable (HTML), to zoom and to search
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The file for a picture of the timetable (SVG)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl PictureArgs {
    /// Returns the files to write.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.html, &self.svg].into_iter().flatten()
    }
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A plan (`.json`) or a system description
    pub input: PathBuf,
    /// Check also that the plan is of this system description
    #[arg(long, value_name = "FILE", conflicts_with = "capture")]
    pub against: Option<PathBuf>,
    /// Judge the frames of this capture (pcap or pcapng) against the gates of the plan, instead of the plan
    #[arg(short = 'r', long, value_name = "FILE", conflicts_with = "PictureArgs")]
    pub capture: Option<PathBuf>,
    /// Its circumstances
    #[command(flatten)]
    pub of_capture: CaptureArgs,
    /// Pictures of the plan
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
}

/// The circumstances of a capture.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The interface of the plan that the capture is from; by default the only one with gates
    #[arg(short, long, value_name = "NAME", requires = "capture")]
    pub interface: Option<String>,
    /// The epoch on the clock of the table, or `deployed` for that of this host; by default the one that fits the most
    /// frames
    #[arg(long, value_name = "TIME", requires = "capture")]
    pub epoch: Option<Epoch>,
    /// The clock of the table minus that of the capture; by default that of this host since it booted
    #[arg(long, value_name = "TIME", requires = "epoch", allow_hyphen_values = true)]
    pub clock_offset: Option<Duration>,
    /// The constant time from a gate to the time stamp of a frame
    #[arg(long, value_name = "TIME", default_value = "0ns", requires = "capture")]
    pub path: Duration,
    /// The time by which a frame may be outside of its window or slot
    #[arg(long, value_name = "TIME", default_value = "0ns", requires = "capture")]
    pub tolerance: Duration,
    /// The frames of a class, as in `control=udp:5000`; may be repeated. The properties are udp, from-udp, to, from,
    /// ether and pcp, separated by commas
    #[arg(long = "class", value_name = "CLASS=FRAMES", requires = "capture")]
    pub classes: Vec<Rule>,
}

/// The epoch of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// That of the table that runs on this host.
    Deployed,
    /// This instant on the table's clock.
    At(Duration),
}

impl std::str::FromStr for Epoch {
    type Err = String;

    fn from_str(text: &str) -> Result<Epoch, Self::Err> {
        match text {
            "deployed" => Ok(Epoch::Deployed),
            text => {
                text.parse().map(Epoch::At).map_err(|error: <Duration as std::str::FromStr>::Err| error.to_string())
            }
        }
    }
}

/// Arguments of `admit`.
#[derive(Debug, Args)]
pub struct AdmitArgs {
    /// Descriptions of containers; each answer counts the containers before it that were admitted
    #[arg(required = true, value_name = "FILE")]
    pub containers: Vec<PathBuf>,
    /// Admit to the system of this description or plan (`.json`) instead of to this host
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Print the answers as JSON
    #[arg(long)]
    pub json: bool,
}

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

/// Arguments of `hook`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct HookArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: HookVerb,
}

/// The verbs of `hook`: the hook itself, and its installation.
#[derive(Debug, Subcommand)]
pub enum HookVerb {
    /// Admit the container of the state on standard input; container runtimes call this
    Run,
    /// Make podman call the hook for containers with an annotation `macrotick.*`
    Install {
        /// The directory that podman reads hooks from
        #[arg(long, value_name = "DIR", default_value = macrotick_hook::install::DIRECTORY)]
        directory: PathBuf,
    },
    /// Add the hook to an OCI configuration (config.json) from standard input, and print it
    Add {
        /// An annotation to add; may be repeated
        #[arg(long = "annotation", value_name = "NAME=VALUE", value_parser = annotation)]
        annotations: Vec<(String, String)>,
        /// Make the container preload this library, which `macrotick rt-lib` wrote on this host
        #[arg(long, value_name = "FILE")]
        rt_lib: Option<PathBuf>,
    },
}

fn annotation(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The interval between two readings
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "1s")]
    pub every: Duration,
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// The number of tasks
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub tasks: u16,
    /// The number of CPUs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: u16,
    /// The load of each CPU in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 60, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub load: u8,
    /// The periods
    #[arg(long, value_enum, default_value_t = PeriodsName::Automotive)]
    pub periods: PeriodsName,
    /// How the utilisations are drawn
    #[arg(long, value_enum, default_value_t = DrawName::Randfixedsum)]
    pub draw: DrawName,
    /// The jitter bound of each task: its period divided by this number, or 0 for none at all [default: no bound]
    #[arg(long, value_name = "PART", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub jitter: Option<u16>,
    /// Connect tasks of one period by chains with bounds
    #[arg(long)]
    pub chains: bool,
    /// The same seed gives the same system
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The file for the description [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// [`macrotick_generate::Periods`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeriodsName {
    /// 1 ms to 1 s with the shares of the automotive benchmark WATERS 2015
    Automotive,
    /// 4 ms to 60 ms, which do not divide each other
    Mixed,
}

impl From<PeriodsName> for macrotick_generate::Periods {
    fn from(name: PeriodsName) -> Self {
        match name {
            PeriodsName::Automotive => macrotick_generate::Periods::Automotive,
            PeriodsName::Mixed => macrotick_generate::Periods::Mixed,
        }
    }
}

/// [`macrotick_generate::Draw`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DrawName {
    /// RandFixedSum
    Randfixedsum,
    /// UUniFast-discard
    Uunifast,
}

impl From<DrawName> for macrotick_generate::Draw {
    fn from(name: DrawName) -> Self {
        match name {
            DrawName::Randfixedsum => macrotick_generate::Draw::RandFixedSum,
            DrawName::Uunifast => macrotick_generate::Draw::UUniFast,
        }
    }
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

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "TOOL")]
pub struct ImportArgs {
    /// The tool.
    #[command(subcommand)]
    pub tool: ImportTool,
}

/// The tools of `import`.
#[derive(Debug, Subcommand)]
pub enum ImportTool {
    /// Import a JSON file of rt-app: periodic threads become tasks, the others become load
    RtApp {
        /// The file of rt-app; comments and repeated keys are allowed
        file: PathBuf,
        /// Make periodic threads load instead of tasks; their names, separated by commas
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        as_load: Vec<String>,
        /// The file for the description
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Import an instance of CTU-IIG (CC_Scheduling_WithJitter): runnables become tasks, and chains stay chains
    CtuIig {
        /// The instance (`.dat`)
        file: PathBuf,
        /// The number of CPUs [default: that of the instance, else 1]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
        cpus: Option<u32>,
        /// Scale the processing times: the tasks need this share of all CPUs [default: the times of the instance]
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
        load: Option<u32>,
        /// The bound on the reaction time of a chain: this factor times its longest period
        #[arg(long, value_name = "FACTOR", default_value_t = Factor::default())]
        latency: Factor,
        /// The file for the description
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "TOOL")]
pub struct ExportArgs {
    /// The tool.
    #[command(subcommand)]
    pub tool: ExportTool,
}

/// The tools of `export`.
#[derive(Debug, Subcommand)]
pub enum ExportTool {
    /// Export the tasks and the load of a description as a JSON file of rt-app
    RtApp {
        /// The system description
        system: PathBuf,
        /// The file for rt-app
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Export the counters of this host as metrics of Prometheus: once, over HTTP, or to a file of the node exporter
    Metrics {
        /// Answer `GET /metrics` at this address until SIGINT or SIGTERM
        #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "textfile")]
        listen: Option<SocketAddr>,
        /// Replace this file (`NAME.prom`) again and again, until SIGINT or SIGTERM
        #[arg(long, value_name = "FILE")]
        textfile: Option<PathBuf>,
        /// The interval between two texts in the file
        #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "15s", requires = "textfile")]
        every: Duration,
    },
}

/// The output of `import` and `export`.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `rt-lib`.
#[derive(Debug, Args)]
pub struct RtLibArgs {
    /// The file for the library
    #[arg(value_name = "FILE", default_value = crate::verbs::rt_lib::PATH)]
    pub path: PathBuf,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory for the pages
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
        for option in [&["--smp", "2"][..], &["--shift", "0"]] {
            let refused = parse(option).unwrap_err();
            assert_eq!((refused.kind(), refused.exit_code()), (clap::error::ErrorKind::MissingRequiredArgument, 2));
            assert!(refused.to_string().contains("--lab"), "{refused}");
            assert!(parse(&[option, &["--lab"]].concat()).is_ok());
        }
        assert!(parse(&[]).is_ok() && parse(&["--dry-run"]).is_ok());
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
