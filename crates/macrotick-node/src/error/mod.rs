//! All errors of a run.

mod change;
mod refusal;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use macrotick_host::limits;
use macrotick_host::HostFailure;
use macrotick_model::{Backend, CpuSet, Duration, Plan};

pub use change::ChangeFault;
pub use refusal::Refusal;

/// The reason why a run failed. The host is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The plan has another format version.
    #[error("the plan has version {0}, but this program runs version {expected}", expected = Plan::VERSION)]
    PlanVersion(u32),
    /// A cycle or duration that is not positive.
    #[error("the {what} is {value}, but must be positive")]
    NotPositive {
        /// `cycle`, `duration`.
        what: &'static str,
        /// The value in the plan.
        value: Duration,
    },
    /// A cycle or duration that is so long that the instant of its end would overflow.
    #[error("the {what} is {value}, but may be at most {most}")]
    TooLong {
        /// `cycle`, `duration`.
        what: &'static str,
        /// The value in the plan.
        value: Duration,
        /// The maximum.
        most: Duration,
    },
    /// A plan that a solver has not completed: a value is missing.
    #[error("the plan leaves `{0}` open")]
    LeftOpen(String),
    /// The plan has no window with ACTIVATE for a task.
    #[error("the plan never activates task `{0}`")]
    NoActivation(String),
    /// A window for a name that the system does not have.
    #[error("the plan has a window for `{0}`, which its system does not have")]
    NoEntity(String),
    /// A pool without a window.
    #[error("the plan has no window for pool `{0}`")]
    NoWindow(String),
    /// A task or pool that may not migrate has windows on more than one CPU.
    #[error("`{0}` has windows on several CPUs")]
    Migrates(String),
    /// The backend serves every task on one CPU only.
    #[error(
        "task `{task}` has windows on the CPUs {cpus}, which needs the backend `kernel`: the backend `{backend}` has a \
         dispatcher for each CPU, and a dispatcher cannot hand a task over" 
    )]
    MigrateBackend {
        /// The task.
        task: String,
        /// Its CPUs.
        cpus: CpuSet,
        /// The requested backend.
        backend: Backend,
    },
    /// The backend follows no clock.
    #[error(
        "the system is on CLOCK_TAI, which only the kernel class follows: the backend `{0}` cannot move the table \
         (leave out `clock: {{tai: ...}}` for it)"
    )]
    ClockBackend(Backend),
    /// A name that is longer than the kernel accepts.
    #[error("the name `{0}` is too long: at most 31 bytes")]
    NameTooLong(String),
    /// A window or a process on a CPU that is not online.
    #[error("`{name}` is for CPU {cpu}, which is not online")]
    CpuOffline {
        /// The task or process.
        name: String,
        /// The CPU.
        cpu: u32,
    },
    /// The program of a process was not found.
    #[error("the program `{program}` of `{name}` was not found, or is not executable")]
    NoProgram {
        /// The task or process.
        name: String,
        /// The program as the description has it.
        program: String,
    },
    /// The working directory of a process does not exist.
    #[error("the directory {directory} of `{name}` does not exist")]
    NoDirectory {
        /// The task or process.
        name: String,
        /// Its path.
        directory: String,
    },
    /// A program cannot run as the given user.
    #[error("`{name}` cannot be started as user `{user}`: {reason}")]
    User {
        /// The task or process.
        name: String,
        /// The user as the description has it.
        user: String,
        /// The reason.
        reason: String,
    },
    /// A container that cannot run on this host.
    #[error("container `{name}`: {fault}")]
    Container {
        /// The process.
        name: String,
        /// The missing part.
        fault: String,
    },
    /// The kernel refused the table.
    #[error("the kernel refused the table: {0}")]
    Refused(Refusal),
    /// A process could not be started.
    #[error("cannot start `{name}` ({program})")]
    Spawn {
        /// The task or process.
        name: String,
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// A process ended before the run began.
    #[error("`{name}` ended before the run began ({status}){output}")]
    Died {
        /// The task or process.
        name: String,
        /// The exit status.
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        output: Tail,
    },
    /// A process did not reach a stage of the start in time.
    #[error("`{name}` was not {stage} within {limit}: its process {doing}{output}")]
    NotReady {
        /// The task or process.
        name: String,
        /// `ready`, `waiting for its first job`.
        stage: &'static str,
        /// The time limit.
        limit: Duration,
        /// `sleeps`, `is stopped (SIGSTOP)`, ...
        doing: &'static str,
        /// The last lines it wrote.
        output: Tail,
    },
    /// A backend that cannot serve a pool.
    #[error(
        "pool `{pool}` needs the backend `kernel`: `{backend}` cannot keep unmodified programs to their windows \
         (`--backend other` runs them without any)"
    )]
    PoolBackend {
        /// The pool.
        pool: String,
        /// The requested backend.
        backend: Backend,
    },
    /// A backend under which a reservation would run before windows.
    #[error(
        "task `{task}` has `supply: deadline`, which needs the backend `kernel`: under `{backend}` SCHED_DEADLINE would come before the \
         windows (`fifo`, `deadline` and `other` run it like the other tasks)"
    )]
    SupplyBackend {
        /// The task.
        task: String,
        /// The requested backend.
        backend: Backend,
    },
    /// The backend cannot run tasks in an isolated partition.
    #[error(
        "the profile isolates CPUs, which the backend `{0}` cannot use: run it with `--backend kernel` or `fifo`, or add \
         `partition: false` to the profile"
    )]
    PartitionBackend(Backend),
    /// The CPUs of a task or group are on both sides of the border of an isolated partition.
    #[error("`{name}` has the CPUs {cpus}, and the profile isolates CPU {isolated}: threads do not move between them")]
    StraddlesPartition {
        /// The task or group.
        name: String,
        /// Its CPUs.
        cpus: CpuSet,
        /// The isolated CPUs.
        isolated: CpuSet,
    },
    /// The CPUs of a task or group are on both sides of a domain's border.
    #[error(
        "`{name}` has the CPUs {cpus}, and tasks of SCHED_DEADLINE have CPU {domain} to themselves: threads do not move between them"
    )]
    Straddles {
        /// The task or group.
        name: String,
        /// Its CPUs.
        cpus: CpuSet,
        /// The CPUs of the deadline tasks.
        domain: CpuSet,
    },
    /// A load with SCHED_FIFO that only its group's budget limits.
    #[error(
        "group `{group}` needs the backend `kernel`: under {backend} nothing would bound its load `{load}`, which has SCHED_FIFO"
    )]
    GroupBackend {
        /// The group.
        group: String,
        /// The load.
        load: String,
        /// The requested backend.
        backend: Backend,
    },
    /// A window that may end before its job starts.
    #[error(
        "task `{task}`: its window of {length} may be over before this host begins its job: on CPU {cpu} that takes up to {needed}{}",
        match .lead {
            Some(lead) => format!(", and the lead is {lead}; give it a longer wcet, or the system a longer lead"),
            None => "; give it a longer wcet, or the system a lead".into(),
        }
    )]
    ShortWindow {
        /// The task.
        task: String,
        /// The window's length.
        length: Duration,
        /// Its CPU.
        cpu: u32,
        /// The time from the start of a window to the first instruction of a job without a lead: the measured time plus
        /// a margin.
        needed: Duration,
        /// The lead in force.
        lead: Option<Duration>,
    },
    /// This host could not be read or changed.
    #[error(transparent)]
    Host(#[from] HostFailure),
    /// A thread could not be pinned.
    #[error("`{name}` cannot be pinned to CPU {cpus}")]
    Pin {
        /// The task or process.
        name: String,
        /// The CPU, or several.
        cpus: CpuSet,
        /// The reason.
        source: io::Error,
    },
    /// The preparation took longer than the planned delay, also in the last attempt.
    #[error("this host is too busy: the first job was due {delay} after all tasks were ready, but the start took {late} longer")]
    EpochPassed {
        /// The time by which the start was too late.
        late: Duration,
        /// The planned delay.
        delay: Duration,
    },
    /// The scheduler trace cannot be taken.
    #[error("cannot trace the scheduler ({0})")]
    Trace(HostFailure),
    /// The running deployment cannot become another one.
    #[error("{0}")]
    Change(ChangeFault),
    /// The deployment's supervisor refused a change. The deployment stays unchanged.
    #[error("{text}")]
    ChangeRefused {
        /// The reason.
        text: String,
        /// Whether the plan is the cause, and not the host.
        wrong_input: bool,
    },
    /// A program cannot connect to the supervisor, or the supervisor cannot make its files.
    #[error("cannot {what} {}{}", .path.display(), control_hint(.source))]
    Control {
        /// `connect to`, `make`, ...
        what: &'static str,
        /// The socket, or the directory of the supervisor's files.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The supervisor ended without an answer.
    #[error("the deployment's supervisor ended without an answer (`macrotick status` shows what is left)")]
    NoAnswer,
    /// A request or an answer that has another version or is broken.
    #[error("cannot understand the message of the other side: {0} (is it another version of macrotick?)")]
    Protocol(String),
    /// A signal came before the epoch.
    #[error("interrupted by {0} before the run began")]
    Interrupted(&'static str),
    /// Another system call that failed.
    #[error("{what} failed")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl NodeError {
    /// Returns the error and its reason. The text is one line, except for the output of a process.
    pub fn with_reason(&self) -> String {
        use std::error::Error;
        let Some(source) = self.source() else { return self.to_string() };
        let errno = source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        match errno {
            Some(libc::EMFILE) => {
                format!("{self}: {source}: this process may have {} files open (ulimit -Hn)", limits::most())
            }
            _ if self.to_string().contains(&source.to_string()) => self.to_string(),
            _ => format!("{self}: {source}"),
        }
    }

    /// Returns whether the input is wrong. Either no host can run the plan with these options, or the running
    /// deployment cannot become the new one. Otherwise this host is the cause: it lacks something that another host
    /// has, or a call failed.
    pub fn is_about_the_plan(&self) -> bool {
        match self {
            NodeError::Change(fault) => fault.is_about_the_plan(),
            NodeError::ChangeRefused { wrong_input, .. } => *wrong_input,
            NodeError::PlanVersion(_)
            | NodeError::NotPositive { .. }
            | NodeError::TooLong { .. }
            | NodeError::LeftOpen(_)
            | NodeError::NoActivation(_)
            | NodeError::NoEntity(_)
            | NodeError::NoWindow(_)
            | NodeError::Migrates(_)
            | NodeError::MigrateBackend { .. }
            | NodeError::ClockBackend(_)
            | NodeError::NameTooLong(_)
            | NodeError::PoolBackend { .. }
            | NodeError::SupplyBackend { .. }
            | NodeError::GroupBackend { .. }
            | NodeError::PartitionBackend(_)
            | NodeError::StraddlesPartition { .. }
            | NodeError::Straddles { .. } => true,
            NodeError::CpuOffline { .. }
            | NodeError::NoProgram { .. }
            | NodeError::NoDirectory { .. }
            | NodeError::User { .. }
            | NodeError::Container { .. }
            | NodeError::Refused(_)
            | NodeError::Spawn { .. }
            | NodeError::Died { .. }
            | NodeError::NotReady { .. }
            | NodeError::ShortWindow { .. }
            | NodeError::Host(_)
            | NodeError::Pin { .. }
            | NodeError::EpochPassed { .. }
            | NodeError::Trace(_)
            | NodeError::Control { .. }
            | NodeError::NoAnswer
            | NodeError::Protocol(_)
            | NodeError::Interrupted(_)
            | NodeError::System { .. } => false,
        }
    }

    /// Returns the errno of a failed call for one thread.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            NodeError::Host(failure @ (HostFailure::Call { .. } | HostFailure::Policy { .. })) => failure.errno(),
            NodeError::Pin { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Returns a function for `map_err` that names the action that failed.
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> NodeError {
        move |source| NodeError::System { what, source }
    }
}

fn control_hint(source: &io::Error) -> String {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": it needs root".into(),
        _ => format!(": {source}"),
    }
}

/// The last lines that a process wrote. They are shown on separate lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail(pub String);

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.lines().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}
