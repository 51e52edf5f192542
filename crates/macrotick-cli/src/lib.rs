//! The definition of the command line: the verbs, their arguments and options, and their help.
//!
//! | module | verbs |
//! |---|---|
//! | `planning` | `explain`, `plan`, `check`, `admit` |
//! | `running` | `observe`, `report`, `run`, `compare` |
//! | `deployment` | `apply`, `status`, `top`, `doctor` |
//! | `containers` | `hook`, `rt-lib` |
//! | `exchange` | `import`, `export`, `generate` |
//! | `probe` | `probe` |
//! | `kernel` | `kernel` |
//! | `reserve` | `reserve` |
//! | `grant` | `grant` |
//! | `measure` | `measure` |
//! | `soak` | `soak` |
//! | `lab` | `lab` |

mod containers;
mod deployment;
mod exchange;
mod grant;
mod kernel;
mod lab;
mod measure;
mod planning;
mod probe;
mod reserve;
mod running;
mod soak;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use macrotick_model::{Duration, Experiment};

pub use containers::{HookArgs, HookVerb, RtLibArgs};
pub use deployment::{ApplyArgs, DoctorArgs, StatusArgs, TopArgs};
pub use exchange::{DrawName, ExportArgs, ExportTool, GenerateArgs, ImportArgs, ImportTool, OutputArgs, PeriodsName};
pub use grant::GrantArgs;
pub use kernel::{KernelArgs, KernelBuildArgs, KernelVerb};
pub use lab::{LabArgs, LabOptions, LabVerb};
pub use measure::MeasureArgs;
pub use planning::{AdmitArgs, CaptureArgs, CheckArgs, Epoch, ExplainArgs, PictureArgs, PlanArgs};
pub use probe::{ProbeArgs, ProbeEndArgs, ProbeRunArgs, ProbeServeArgs, ProbeVerb};
pub use reserve::{MechanismName, ReserveArgs};
pub use running::{BackendName, CompareArgs, DispatchArgs, HostSettingsName, ObserveArgs, ReportArgs, RunArgs};
pub use soak::{SoakArgs, SoakReportArgs, SoakRunArgs, SoakVerb};

/// Time-triggered, mixed-criticality real-time Linux: plan, check, run and report a system.
#[derive(Debug, Parser)]
#[command(name = "macrotick", version, propagate_version = true, subcommand_value_name = "VERB", after_help = exit_codes())]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The exit codes and their meanings.
pub const EXIT_CODES: [(u8, &str); 4] = [
    (0, "Done, and the verdict holds (or there is none, as with compare)."),
    (1, "The verdict does not hold: a miss, a broken bound, an infeasible plan, a refusal."),
    (2, "Wrong input."),
    (3, "This host or the lab failed."),
];

/// Parses the length of a run, or of a part of one.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
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
    /// Run a plan for days and count every job: misses, lateness, response times; go on after a power cut
    Soak(SoakArgs),
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
    /// Build a kernel for a real machine
    Kernel(KernelArgs),
    /// Run any program in a reservation: a runtime in each period, by SCHED_DEADLINE or a group with a budget
    Reserve(ReserveArgs),
    /// Serve a connection of macrotick-grant.socket: reserve for an ordinary user, within the limits of a file
    Grant(GrantArgs),
    /// Measure any program from outside: periods, jitter, execution times, and a description of it
    Measure(MeasureArgs),
    /// Build the lab's kernels and run commands in it
    Lab(LabArgs),
    /// Write the manual pages
    #[command(hide = true)]
    Man(ManArgs),
    /// Write the completions of bash, zsh and fish
    #[command(hide = true)]
    Completions(CompletionsArgs),
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory for the pages
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The directory for the files
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use macrotick_lab::observe::{Dispatch, VERB};
    use macrotick_model::Backend;

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
