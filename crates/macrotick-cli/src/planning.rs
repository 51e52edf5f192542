//! The arguments of the verbs that plan, check and explain.

use std::path::PathBuf;

use clap::Args;
use macrotick_check::network::capture::Rule;
use macrotick_model::Duration;
use macrotick_plan::{Options, Solver};

use crate::length;

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
