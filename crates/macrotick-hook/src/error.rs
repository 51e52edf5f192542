//! Why a container is refused.

use std::fmt;
use std::io;
use std::path::PathBuf;

use macrotick_analysis::servers::HostError;
use macrotick_host::present::Unanalysable;
use macrotick_host::HostFailure;
use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{Duration, Group};

/// Why a container is refused, or the hook cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// A container, by the name that the engine has for it.
    #[error("container `{container}` is refused: {source}")]
    Refused {
        /// The container.
        container: String,
        /// Why.
        source: Box<HookError>,
    },
    /// The runtime's state is no JSON, or lacks what every state has.
    #[error("the container's state, on standard input, is not understood: {0}")]
    State(serde_json::Error),
    /// The hook was called at a moment when the container has no process.
    #[error("the container's state names no process: this is a hook for `createRuntime`")]
    NoProcess,
    /// An annotation says something that cannot be.
    #[error("annotation {key}: {value}: {fault}")]
    Annotation {
        /// Its name.
        key: String,
        /// What it says.
        value: String,
        /// What is wrong.
        fault: AnnotationFault,
    },
    /// The process is in no group of a hierarchy of version 2.
    #[error("process {0} is in no control group of version 2: boot with systemd.unified_cgroup_hierarchy=1")]
    NoHierarchy(i32),
    /// The container was given no group of its own.
    #[error(
        "the container is in the root of the control groups, whose budget is everybody's: give it a cgroup of its own"
    )]
    Root,
    /// The engine was told to make no group.
    #[error("the container is in {}, as its engine is, which would have its budget: give it a cgroup of its own", .0.display())]
    Shared(PathBuf),
    /// The kernel lacks the class.
    #[error("this kernel has no groups with a budget and no pools: there is no {}", .0.display())]
    NoClass(PathBuf),
    /// A file of the host could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The kernel's own admission.
    #[error(
        "macrotick.budget: {budget} of every {period} does not fit beside what others have: windows and groups \
         together may take 95 % of a CPU, and must leave what SCHED_DEADLINE was promised. {taken}"
    )]
    NoRoom {
        /// What was asked for.
        budget: Duration,
        /// The server period.
        period: Duration,
        /// What there is already, in words.
        taken: String,
    },
    /// The process's limits could not be changed.
    #[error("cannot set {limit} of process {pid}: {source}")]
    Limit {
        /// Which.
        limit: &'static str,
        /// Whose.
        pid: i32,
        /// Why not.
        source: io::Error,
    },
    /// What runs on this host could not be found out.
    #[error("cannot find out what runs on this host: {0}")]
    Host(Box<HostFailure>),
    /// It could, but makes no sense together.
    #[error(transparent)]
    Unanalysed(#[from] Unanalysable),
    /// The container's tasks, or those of others, would miss their deadlines.
    #[error("macrotick.tasks: not all deadlines would be met: {0}")]
    Misses(String),
    /// It fits only if others get other parameters.
    #[error("macrotick.tasks: it would fit only if others were changed before: {0} (`macrotick admit` tells how)")]
    NeedsChanges(String),
    /// What is asked for does not suit this host.
    #[error("macrotick.tasks: {0}")]
    Misfit(HostError),
    /// An OCI configuration is no JSON object.
    #[error("the configuration is not understood: {0}")]
    Config(serde_json::Error),
}

impl From<HostFailure> for HookError {
    fn from(failure: HostFailure) -> HookError {
        match failure {
            HostFailure::File { action, path, source } => HookError::File { action, path, source },
            failure => HookError::host(failure),
        }
    }
}

impl HookError {
    /// For `map_err` where it is asked what runs on this host.
    pub(crate) fn host(failure: HostFailure) -> HookError {
        HookError::Host(Box::new(failure))
    }

    /// An annotation and what is wrong with it.
    pub(crate) fn annotation(key: &str, value: impl fmt::Display, fault: AnnotationFault) -> HookError {
        HookError::Annotation { key: key.to_owned(), value: value.to_string(), fault }
    }

    /// For `map_err` on an operation on a file.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HookError {
        let path = path.into();
        move |source| HookError::File { action, path, source }
    }
}

/// What is wrong with an annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationFault {
    /// None of ours has that name.
    #[error("there is no such annotation; there are {0}")]
    Unknown(String),
    /// No length of time.
    #[error("{0}")]
    Length(String),
    /// Not what the kernel counts in, or less than it takes.
    #[error("a budget is a whole number of microseconds, and at least {MIN_BUDGET}")]
    Granule,
    /// Not what the kernel counts in, or not what it takes.
    #[error("a lead is a whole number of microseconds, {} to {}", Group::MIN_LEAD, Group::MAX_LEAD)]
    Lead,
    /// More than there is.
    #[error("a budget is of every server period, which is {0} (kernel.sched_ds_period_us)")]
    BeyondPeriod(Duration),
    /// Out of range.
    #[error("it must be a whole number from {0} to {1}")]
    Range(u32, u32),
    /// Neither yes nor no.
    #[error("it must be `true` or `false`")]
    Truth,
    /// No list of CPUs.
    #[error("it must be a list of CPUs such as `0` or `0,2-3`")]
    Cpus,
    /// CPUs that there are not, or that the engine does not give it.
    #[error("the container may run on CPU {0}, and no other")]
    OtherCpus(String),
    /// No amount of memory.
    #[error("it must be a number of bytes, or `unlimited`")]
    Bytes,
    /// Pools and budgets exclude each other.
    #[error("a container has a pool or a budget, not both")]
    PoolAndBudget,
    /// It says something about a budget that is not there.
    #[error("it needs macrotick.budget or macrotick.tasks")]
    NeedsBudget,
    /// It says something about tasks that are not there.
    #[error("it needs macrotick.tasks")]
    NeedsTasks,
    /// It says something about CPUs that are not chosen.
    #[error("it needs macrotick.cpus")]
    NeedsCpus,
    /// Not the form without commas.
    #[error("`{0}` is not NAME KEY=VALUE ..., as in `control wcet=200us period=5ms priority=50`")]
    Pairs(String),
    /// Not tasks.
    #[error("they are not understood:\n{0}")]
    Tasks(String),
    /// Several tasks, and not all with a priority.
    #[error("say the `priority` of each task: its thread has to have it")]
    Order,
    /// It names nothing that is served.
    #[error("the installed table has no such pool{}", listing(.0))]
    NoPool(Vec<String>),
}

fn listing(pools: &[String]) -> String {
    match pools {
        [] => ", and no other (`macrotick apply` installs one)".into(),
        pools => format!("; it has {}", pools.join(", ")),
    }
}
