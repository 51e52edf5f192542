//! The reasons to refuse a container.

use std::fmt;
use std::io;
use std::path::PathBuf;

use macrotick_analysis::servers::HostError;
use macrotick_host::net::NoEnds;
use macrotick_host::present::Unanalysable;
use macrotick_host::HostFailure;
use macrotick_model::validate::MIN_BUDGET;
use macrotick_model::{Duration, Group};

/// The reason to refuse a container, or the reason why the hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// A refused container.
    #[error("container `{container}` is refused: {source}")]
    Refused {
        /// The name that the engine has for it.
        container: String,
        /// The reason.
        source: Box<HookError>,
    },
    /// The runtime's state is not JSON, or lacks a required key.
    #[error("cannot decode the container's state on standard input: {0}")]
    State(serde_json::Error),
    /// The runtime called the hook in a stage in which the container has no process.
    #[error("the container's state has no process: use this hook in the stage `createRuntime`")]
    NoProcess,
    /// An annotation has an invalid value.
    #[error("annotation {key}: {value}: {fault}")]
    Annotation {
        /// Its name.
        key: String,
        /// Its value.
        value: String,
        /// The fault.
        fault: AnnotationFault,
    },
    /// The process is in no group of a hierarchy of version 2.
    #[error("process {0} is in no control group of version 2: boot with systemd.unified_cgroup_hierarchy=1")]
    NoHierarchy(i32),
    /// The container has no group of its own.
    #[error(
        "the container is in the root of the control groups, as are processes of the host: give it a cgroup of its own"
    )]
    Root,
    /// The engine made no group for the container. The budget would also serve the engine.
    #[error("the container is in {} together with its engine: give it a cgroup of its own", .0.display())]
    Shared(PathBuf),
    /// The kernel lacks the class SCHED_DS or SCHED_TT.
    #[error("this kernel has neither group budgets nor pools: {} does not exist", .0.display())]
    NoClass(PathBuf),
    /// A file of the host cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// The failed action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel's admission refuses the budget.
    #[error(
        "macrotick.budget: {budget} of every {period} does not fit beside the present windows, budgets and \
         reservations: windows and groups together may take 95 % of a CPU, and must leave the share of \
         SCHED_DEADLINE. {taken}"
    )]
    NoRoom {
        /// The requested budget.
        budget: Duration,
        /// The server period.
        period: Duration,
        /// The budgets of other groups, in words.
        taken: String,
    },
    /// A limit of the process cannot be changed.
    #[error("cannot set {limit} of process {pid}: {source}")]
    Limit {
        /// The name of the limit.
        limit: &'static str,
        /// The process.
        pid: i32,
        /// The reason.
        source: io::Error,
    },
    /// The hook cannot read the state of this host.
    #[error("cannot read the state of this host: {0}")]
    Host(Box<HostFailure>),
    /// The parameters of groups and table on this host contradict each other.
    #[error(transparent)]
    Unanalysed(#[from] Unanalysable),
    /// Tasks of the container, or of other groups, would miss their deadlines.
    #[error("macrotick.tasks: not all deadlines would be met: {0}")]
    Misses(String),
    /// The container fits only with other parameters of other groups.
    #[error("macrotick.tasks: the container fits only after changes of other groups: {0} (see `macrotick admit`)")]
    NeedsChanges(String),
    /// The request does not suit this host.
    #[error("macrotick.tasks: {0}")]
    Misfit(HostError),
    /// An OCI configuration is not a JSON object.
    #[error("cannot decode the configuration: {0}")]
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
    /// Wraps a failure to read the state of the host, for `map_err`.
    pub(crate) fn host(failure: HostFailure) -> HookError {
        HookError::Host(Box::new(failure))
    }

    /// Makes the error of an annotation.
    pub(crate) fn annotation(key: &str, value: impl fmt::Display, fault: AnnotationFault) -> HookError {
        HookError::Annotation { key: key.to_owned(), value: value.to_string(), fault }
    }

    /// Makes the error of an operation on a file, for `map_err`.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HookError {
        let path = path.into();
        move |source| HookError::File { action, path, source }
    }
}

/// The fault of an annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationFault {
    /// The name is not one of the known annotations.
    #[error("unknown annotation; the known annotations are {0}")]
    Unknown(String),
    /// The value is not a length of time.
    #[error("{0}")]
    Length(String),
    /// The budget is not a multiple of the kernel's unit, or is too small.
    #[error("a budget is a whole number of microseconds, and at least {MIN_BUDGET}")]
    Granule,
    /// The lead is not a multiple of the kernel's unit, or out of range.
    #[error("a lead is a whole number of microseconds, {} to {}", Group::MIN_LEAD, Group::MAX_LEAD)]
    Lead,
    /// The budget exceeds the server period.
    #[error("a budget cannot exceed the server period, {0} (kernel.sched_ds_period_us)")]
    BeyondPeriod(Duration),
    /// The number is out of range.
    #[error("it must be a whole number from {0} to {1}")]
    Range(u32, u32),
    /// The value is not a boolean.
    #[error("it must be `true` or `false`")]
    Truth,
    /// The value is not a list of CPUs.
    #[error("it must be a list of CPUs such as `0` or `0,2-3`")]
    Cpus,
    /// Some CPUs do not exist, or the engine does not give them to the container.
    #[error("the container may run only on CPU {0}")]
    OtherCpus(String),
    /// The value is not an amount of memory.
    #[error("it must be a number of bytes, or `unlimited`")]
    Bytes,
    /// Pools and budgets exclude each other.
    #[error("a container has a pool or a budget, not both")]
    PoolAndBudget,
    /// The annotation applies to a budget, but there is no budget.
    #[error("it needs macrotick.budget or macrotick.tasks")]
    NeedsBudget,
    /// The annotation applies to tasks, but there are no tasks.
    #[error("it needs macrotick.tasks")]
    NeedsTasks,
    /// The annotation applies to chosen CPUs, but no CPUs are chosen.
    #[error("it needs macrotick.cpus")]
    NeedsCpus,
    /// The task is not in the form without commas.
    #[error("`{0}` is not NAME KEY=VALUE ..., as in `control wcet=200us period=5ms priority=50`")]
    Pairs(String),
    /// The tasks are invalid.
    #[error("cannot decode the tasks:\n{0}")]
    Tasks(String),
    /// There are several tasks, and not all have a priority.
    #[error("give each task a `priority`: its thread must use it")]
    Order,
    /// The value is not a name.
    #[error("it must be the name of a group with slots")]
    SlotName,
    /// No deployment runs on this host.
    #[error("no deployment runs on this host: `macrotick apply` deploys a system with slots")]
    NoDeployment,
    /// The deployment changes its gates.
    #[error("a change of the deployment is in progress: start the container when it is complete")]
    Changing,
    /// The deployment has no slots for that group.
    #[error(
        "the deployed system has no such slots{}. `macrotick admit --system` tells whether they fit, and `macrotick \
         apply` deploys a description with them",
        others(.0)
    )]
    NoSlot(Vec<String>),
    /// Another container has the slots.
    #[error("the container in {} has these slots: no two containers share slots", .0.display())]
    SlotTaken(PathBuf),
    /// The slots are on an interface that frames of a container do not reach.
    #[error(
        "the slots are on interface `{interface}`, inside network namespace `{namespace}`, which frames of containers do \
         not pass: give the slots an interface of the host (`device` or `port`)"
    )]
    SlotInside {
        /// The interface in the description.
        interface: String,
        /// Its namespace.
        namespace: String,
    },
    /// The slots have classes with different priorities.
    #[error("the slots have classes of different priorities ({}), and a frame has one: give them one class", list(.0))]
    SlotPriorities(Vec<u8>),
    /// The container has the network of the host.
    #[error(
        "the container has the network of the host, where its frames cannot be told from others: give it a network of \
         its own"
    )]
    HostNetwork,
    /// The container's frames do not all come through veths.
    #[error(
        "{0}: the frames of a container with slots enter the host through veths, such as those of a bridge network. The \
         network must exist when the hook runs (`createRuntime`)"
    )]
    NoVeth(NoEnds),
    /// The frames cannot be given their priority.
    #[error("{0}")]
    Unclassified(String),
    /// The table has no pool of that name.
    #[error("the installed table has no such pool{}", listing(.0))]
    NoPool(Vec<String>),
}

fn others(groups: &[String]) -> String {
    match groups {
        [] => String::new(),
        groups => format!("; it has those of {}", groups.join(", ")),
    }
}

fn list(priorities: &[u8]) -> String {
    priorities.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

fn listing(pools: &[String]) -> String {
    match pools {
        [] => ", and no other pool (`macrotick apply` installs a table with pools)".into(),
        pools => format!("; it has {}", pools.join(", ")),
    }
}
