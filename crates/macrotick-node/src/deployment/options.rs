//! What a caller chooses about a run, and what it is told meanwhile.

use std::path::PathBuf;

use macrotick_model::{Backend, Duration};

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What dispatches the jobs.
    pub backend: Backend,
    /// How long to observe; `None`: as long as the system description says.
    pub duration: Option<Duration>,
    /// Trace the scheduler from the epoch for so long (with microsecond resolution). Tracing costs time in every
    /// switch: take timelines with it, not figures.
    pub trace: Option<Duration>,
    /// Seed of everything random: drawn execution times, the mix of system calls.
    pub seed: u64,
    /// Least time between the decision on the epoch and the epoch. The epoch is the next whole multiple of 100 ms of
    /// `CLOCK_MONOTONIC` after it, so that a plan's phase relative to the kernel's tick is the same in every run; with
    /// groups the next refill of their budgets from there on, see [`macrotick_host::budgets::next_refill`].
    pub start_delay: Duration,
    /// How long the tasks may take to be ready.
    pub ready_limit: Duration,
    /// How often to report progress while the tasks run; `None`: not at all, the runner sleeps throughout.
    pub progress_every: Option<Duration>,
    /// Most records per task, none for zero; `None`: as many as the duration can give.
    pub record_limit: Option<u32>,
    /// The file whose lock keeps two runs apart; `None`: `/run/macrotick.lock`, or without root one of
    /// the user's among the temporary files.
    pub lock: Option<PathBuf>,
    /// What becomes of what the processes write to their standard output and error.
    pub output: Output,
    /// Whether [settings of the host](macrotick_host::settings) are held for a run under the backend `kernel`.
    pub host_settings: HostSettings,
}

/// What becomes of [settings of the host](macrotick_host::settings).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostSettings {
    /// They are held, as for a deployment.
    #[default]
    Hold,
    /// They stay as they are.
    Leave,
}

/// What becomes of what processes write to their standard output and error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// It is kept for the observation, for errors and remarks, up to 16 MiB of each process; writes beyond fail.
    #[default]
    Kept,
    /// It goes where the runner's own goes.
    Inherited,
}

impl RunOptions {
    /// The defaults with a backend.
    pub fn new(backend: Backend) -> Self {
        RunOptions {
            backend,
            duration: None,
            trace: None,
            seed: 1,
            start_delay: Duration::from_millis(200),
            ready_limit: Duration::from_secs(10),
            progress_every: None,
            record_limit: None,
            lock: None,
            output: Output::Kept,
            host_settings: HostSettings::Hold,
        }
    }
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Processes are being started.
    Preparing,
    /// Everything is ready; the epoch is near.
    Starting,
    /// The tasks run.
    Running {
        /// Time since the epoch.
        elapsed: Duration,
        /// Time that is observed.
        total: Duration,
    },
    /// The run is over; the records are collected.
    Collecting,
}
