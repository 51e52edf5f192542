//! The options of a run, and its progress reports.

use std::path::PathBuf;

use macrotick_model::{Backend, Duration};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The backend that dispatches the jobs.
    pub backend: Backend,
    /// The observed time. `None`: the time in the description.
    pub duration: Option<Duration>,
    /// The time from the epoch during which the scheduler is traced, with microsecond resolution. Tracing costs time in
    /// every switch: use it for timelines, not for figures.
    pub trace: Option<Duration>,
    /// The seed of all random values: execution times, the mix of system calls.
    pub seed: u64,
    /// The minimum time between the choice of the epoch and the epoch. The epoch is the next whole multiple of 100 ms
    /// of `CLOCK_MONOTONIC` after it. Therefore the phase of a plan relative to the kernel's tick is the same in every
    /// run. With groups the epoch is the first refill of their budgets from there on, see
    /// [`macrotick_host::budgets::next_refill`].
    pub start_delay: Duration,
    /// The time limit for the tasks to become ready.
    pub ready_limit: Duration,
    /// The interval of progress reports while the tasks run. `None`: no reports, and the runner sleeps all the time.
    pub progress_every: Option<Duration>,
    /// The maximum number of records per task; zero for no records. `None`: as many as the duration needs.
    pub record_limit: Option<u32>,
    /// The interval at which the records are taken from the tasks, so that there is room for a few intervals only.
    /// `None`: they are taken at the end.
    pub reading: Option<Duration>,
    /// The lock file that prevents two runs at the same time. `None`: `/run/macrotick.lock`, or for an unprivileged
    /// user a file of the user in the directory for temporary files.
    pub lock: Option<PathBuf>,
    /// The destination of the standard output and error of the processes.
    pub output: Output,
    /// Whether a run under the backend `kernel` holds [settings of the host](macrotick_host::settings).
    pub host_settings: HostSettings,
}

/// The handling of [settings of the host](macrotick_host::settings).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostSettings {
    /// The run holds them, as a deployment does.
    #[default]
    Hold,
    /// The run leaves them unchanged.
    Leave,
}

/// The destination of the standard output and error of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The runner keeps up to 16 MiB of each process for the observation, for errors and for remarks. Writes beyond
    /// that fail.
    #[default]
    Kept,
    /// The processes inherit the runner's own output.
    Inherited,
}

impl RunOptions {
    /// Returns the defaults with a backend.
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
            reading: None,
            lock: None,
            output: Output::Kept,
            host_settings: HostSettings::Hold,
        }
    }
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The runner starts processes.
    Preparing,
    /// All processes are ready, and the epoch is near.
    Starting,
    /// The tasks run.
    Running {
        /// The time since the epoch.
        elapsed: Duration,
        /// The time since the epoch.
        total: Duration,
    },
    /// The run is over, and the runner collects the records.
    Collecting,
}
