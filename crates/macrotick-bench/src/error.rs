//! The errors of experiments.

use std::path::PathBuf;

use macrotick_lab::LabError;
use macrotick_model::files::LoadError;
use macrotick_plan::PlanError;
use macrotick_report::figures::WriteError;

/// The reason why an experiment did not complete.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The experiment's description is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no plan for the experiment.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The judge refused a plan of a random system.
    #[error("the judge refused the plan of `{system}`: {verdict}")]
    Refused {
        /// The system.
        system: String,
        /// The rules that the plan breaks.
        verdict: String,
    },
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Figures, tables or plots could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A published file could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file of the repository could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The guests' program is not beside this program.
    #[error("{program} is missing: run `cargo build --release`", program = program.display())]
    NoGuestProgram {
        /// The path of the program.
        program: PathBuf,
    },
    /// A tool of the host could not run.
    #[error("cannot run `{command}`: {source}")]
    Tool {
        /// The tool.
        command: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A tool of the host printed unexpected text.
    #[error("`{command}` printed no {expected}:\n{output}")]
    ToolOutput {
        /// The tool.
        command: String,
        /// The expected output.
        expected: &'static str,
        /// The printed output.
        output: String,
    },
    /// A capture of the guest cannot be judged.
    #[error("cannot judge the guest's capture: {0}")]
    Capture(String),
    /// A kernel lacks a function that splits its paths.
    #[error("the kernel has no function `{0}`; it is needed to split recorded paths")]
    NoFunction(&'static str),
    /// `--quick` and `--publish` were given together.
    #[error("the figures of a quick run cannot be published: remove `--quick` or `--publish`")]
    QuickPublished,
    /// Several experiments would write to one folder.
    #[error("--output names the folder of one experiment: give one name")]
    OneFolder,
    /// A page would name a commit that did not make its figures.
    #[error("the work tree has uncommitted changes of more than documentation: commit them before you publish")]
    DirtyPublished,
    /// An experiment could not be started in a process of its own.
    #[error("cannot run {program}: {source}", program = program.display())]
    Process {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Experiments of a publication failed. Their reasons are at the ends of their logs.
    #[error("not published: {}", .0.join(", "))]
    NotPublished(Vec<String>),
    /// The recorded paths lack the event that the bench measures.
    #[error("no recorded path of the kernel contains {0}")]
    NoPath(&'static str),
}

impl BenchError {
    /// Returns the exit code: 2 for wrong input, 3 for a host or lab that failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            BenchError::Load(_)
            | BenchError::Plan(_)
            | BenchError::QuickPublished
            | BenchError::DirtyPublished
            | BenchError::OneFolder => 2,
            _ => 3,
        }
    }
}
