//! What an experiment can fail with.

use std::path::PathBuf;

use macrotick_lab::LabError;
use macrotick_model::files::LoadError;
use macrotick_plan::PlanError;
use macrotick_report::figures::WriteError;

/// Why an experiment did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The experiment's description is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no plan for it.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
        /// Why.
        source: std::io::Error,
    },
    /// A file of the repository could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The program of the guests is not beside this one.
    #[error("{program} is missing: run `cargo build --release`", program = program.display())]
    NoGuestProgram {
        /// The program.
        program: PathBuf,
    },
    /// A tool of the host printed something that could not be understood.
    #[error("`{command}` printed no {expected}:\n{output}")]
    ToolOutput {
        /// The tool.
        command: String,
        /// What was expected.
        expected: &'static str,
        /// What it printed.
        output: String,
    },
    /// A kernel lacks a function that is to be measured.
    #[error("the kernel has no function `{0}`, by which its paths are told apart")]
    NoFunction(&'static str),
    /// A quick run was to be published.
    #[error("the figures of a quick run are not for publication: leave out `--quick` or `--publish`")]
    QuickPublished,
    /// What is to be measured did not happen.
    #[error("none of the kernel's recorded paths has {0}")]
    NoPath(&'static str),
}

impl BenchError {
    /// 2 for wrong input, 3 for a host or lab that failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            BenchError::Load(_) | BenchError::Plan(_) | BenchError::QuickPublished => 2,
            _ => 3,
        }
    }
}
