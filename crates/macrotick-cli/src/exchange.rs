//! The arguments of `generate`, `import` and `export`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use macrotick_exchange::ctu_iig::Factor;
use macrotick_model::Duration;

use crate::length;

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
    /// Import a model of AMALTHEA (Eclipse APP4MC): tasks get periods and WCETs, and event chains become chains
    Amalthea {
        /// The files of the model (`.amxmi`); the first one names the system
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Leave out tasks, such as those without a period; their names, separated by commas
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        leave_out: Vec<String>,
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
