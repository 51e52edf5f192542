//! The reasons why nothing is measured.

use std::io;

use macrotick_host::HostFailure;

/// The reason why nothing is measured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The message explains each field.
pub enum MeasureError {
    /// The caller must not see the events of the scheduler.
    #[error("the kernel shows the events of the scheduler only to root")]
    NotAllowed,
    /// No trace points.
    #[error("this kernel shows no events of the scheduler (CONFIG_FTRACE, CONFIG_EVENT_TRACING): {0}")]
    NoTracePoints(HostFailure),
    /// No program.
    #[error("name a program after `--`, or a process by --pid")]
    NoProgram,
    /// The program cannot be executed.
    #[error("cannot execute `{program}`: {source}")]
    Execute { program: String, source: io::Error },
    /// No such process.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// No thread had a whole job.
    #[error("no thread woke up twice in {0}: there is nothing to tell")]
    Nothing(macrotick_model::Duration),
    /// A description needs periodic threads.
    #[error("no thread is periodic: there is no description of such a program")]
    NoPeriod,
    /// This host failed.
    #[error(transparent)]
    Host(#[from] HostFailure),
}

impl MeasureError {
    /// Whether the user asked for a program or process that is not there.
    pub fn is_about_the_input(&self) -> bool {
        matches!(self, MeasureError::NoProgram | MeasureError::Execute { .. } | MeasureError::NoProcess(_))
    }
}
