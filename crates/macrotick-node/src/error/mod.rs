//! Everything that can go wrong in a run.

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

/// Why a run failed. The host is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The plan has another format.
    #[error("the plan has version {0}, this program runs version {expected}", expected = Plan::VERSION)]
    PlanVersion(u32),
    /// A cycle or duration that is not positive.
    #[error("the {what} is {value}, but must be positive")]
    NotPositive {
        /// `cycle`, `duration`.
        what: &'static str,
        /// What it is.
        value: Duration,
    },
    /// A cycle or duration whose end no clock of this program could tell.
    #[error("the {what} is {value}, but may be at most {most}")]
    TooLong {
        /// `cycle`, `duration`.
        what: &'static str,
        /// What it is.
        value: Duration,
        /// What it may be.
        most: Duration,
    },
    /// A plan of a program that has not assigned everything.
    #[error("the plan leaves `{0}` open")]
    LeftOpen(String),
    /// The plan has no window with ACTIVATE for a task.
    #[error("the plan never activates task `{0}`")]
    NoActivation(String),
    /// A window of nothing that the system has.
    #[error("the plan has a window for `{0}`, which its system does not have")]
    NoEntity(String),
    /// A pool without a window.
    #[error("the plan has no window for pool `{0}`")]
    NoWindow(String),
    /// A task or pool that may not migrate has windows on more than one CPU.
    #[error("`{0}` has windows on several CPUs")]
    Migrates(String),
    /// The backend serves every task on one CPU.
    #[error(
        "task `{task}` has windows on the CPUs {cpus}, which needs the backend `kernel`: the backend `{backend}` has a \
         dispatcher for each CPU, and none hands a task over"
    )]
    MigrateBackend {
        /// The task.
        task: String,
        /// Its CPUs.
        cpus: CpuSet,
        /// The backend that was asked for.
        backend: Backend,
    },
    /// The backend follows no clock.
    #[error(
        "the system is on CLOCK_TAI, which only the kernel class follows: the backend `{0}` cannot move the table \
         (leave out `clock: {{tai: ...}}` for it)"
    )]
    ClockBackend(Backend),
    /// A name that does not fit into the kernel's.
    #[error("the name `{0}` is too long: at most 31 bytes")]
    NameTooLong(String),
    /// A window or a process on a CPU that is not there.
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
        /// As it was written.
        program: String,
    },
    /// The directory that a process begins in is not there.
    #[error("the directory {directory} of `{name}` is not there")]
    NoDirectory {
        /// The task or process.
        name: String,
        /// Its path.
        directory: String,
    },
    /// A program cannot belong to a user.
    #[error("`{name}` cannot be started as user `{user}`: {reason}")]
    User {
        /// The task or process.
        name: String,
        /// As it was written.
        user: String,
        /// Why.
        reason: String,
    },
    /// A container that cannot be on this host.
    #[error("container `{name}`: {fault}")]
    Container {
        /// The process.
        name: String,
        /// What is missing.
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
        /// Why.
        source: io::Error,
    },
    /// A process ended before the run began.
    #[error("`{name}` ended before the run began ({status}){output}")]
    Died {
        /// The task or process.
        name: String,
        /// How.
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        output: Tail,
    },
    /// A process did not get so far in time.
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
        /// The backend that was asked for.
        backend: Backend,
    },
    /// A backend under which a reservation would come before windows.
    #[error(
        "task `{task}` has `supply: deadline`, which needs the backend `kernel`: under `{backend}` SCHED_DEADLINE would come before the \
         windows (`fifo`, `deadline` and `other` run it like the other tasks)"
    )]
    SupplyBackend {
        /// The task.
        task: String,
        /// The backend that was asked for.
        backend: Backend,
    },
    /// CPUs on both sides of a domain.
    #[error(
        "`{name}` has the CPUs {cpus}, and tasks of SCHED_DEADLINE have CPU {domain} to themselves: threads do not move between them"
    )]
    Straddles {
        /// The task or group.
        name: String,
        /// Its CPUs.
        cpus: CpuSet,
        /// Those of the deadline tasks.
        domain: CpuSet,
    },
    /// A load that only its group's budget bounds.
    #[error(
        "group `{group}` needs the backend `kernel`: under {backend} nothing would bound its load `{load}`, which has SCHED_FIFO"
    )]
    GroupBackend {
        /// The group.
        group: String,
        /// The load.
        load: String,
        /// The backend that was asked for.
        backend: Backend,
    },
    /// A window that is over before its job has begun.
    #[error(
        "task `{task}`: its window of {length} may be over before this host begins its job: on CPU {cpu} that takes up to {needed}{}",
        match .lead {
            Some(lead) => format!(", and the lead is {lead}; give it a wcet of more, or the system a longer lead"),
            None => "; give it a wcet of more, or the system a lead".into(),
        }
    )]
    ShortWindow {
        /// The task.
        task: String,
        /// The window's length.
        length: Duration,
        /// Its CPU.
        cpu: u32,
        /// From a window's begin to a job's first instruction without a lead, as measured, with a margin.
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
        /// Why not.
        source: io::Error,
    },
    /// The preparation took longer than there was time for it, the last time as well.
    #[error("this host is too busy: the first job was due {delay} after all was ready, and the start was done {late} later than that")]
    EpochPassed {
        /// By how much.
        late: Duration,
        /// How much time there was.
        delay: Duration,
    },
    /// The scheduler trace cannot be taken.
    #[error("cannot trace the scheduler ({0})")]
    Trace(HostFailure),
    /// A running deployment does not become another one.
    #[error("{0}")]
    Change(ChangeFault),
    /// The deployment's supervisor refused a change; everything is as it was.
    #[error("{text}")]
    ChangeRefused {
        /// Why.
        text: String,
        /// Whether the plan is wrong, and not the host.
        wrong_input: bool,
    },
    /// The supervisor cannot be reached, or reach others.
    #[error("cannot {what} {}{}", .path.display(), control_hint(.source))]
    Control {
        /// `connect to`, `make`, ...
        what: &'static str,
        /// The socket, or the directory of the supervisor's files.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The supervisor ended instead of answering.
    #[error("the deployment's supervisor ended without an answer (`macrotick status` tells what is left)")]
    NoAnswer,
    /// A request or an answer of another version, or a broken one.
    #[error("what the other side said was not understood: {0} (is it another version of macrotick?)")]
    Protocol(String),
    /// A signal came before the epoch.
    #[error("interrupted by {0} before the run began")]
    Interrupted(&'static str),
    /// Anything else that the system refused.
    #[error("{what} failed")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl NodeError {
    /// The error and what was behind it, on one line but for what a process wrote.
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

    /// Whether the plan asks for something that no host does with these options, or that the running deployment cannot become:
    /// wrong input. Otherwise this host did not do it: what another one has is missing, or a call failed.
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

    /// The errno of a call that was refused for one thread.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            NodeError::Host(failure @ (HostFailure::Call { .. } | HostFailure::Policy { .. })) => failure.errno(),
            NodeError::Pin { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// For `map_err`: names what was tried.
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

/// The last lines a process wrote, shown on lines of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail(pub String);

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.lines().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}
