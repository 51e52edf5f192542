//! The reasons why this host cannot be read or changed.

use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::Duration;

use crate::cgroup::{GroupFault, Owner};
use crate::net::DeployFault;
use crate::network::NetworkFault;
use crate::profile::ProfileFault;
use crate::sys::Standing;

/// The reason why this host cannot be read or changed. Earlier changes of the same operation are reverted.
#[derive(Debug, thiserror::Error)]
pub enum HostFailure {
    /// A file cannot be read or changed.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// The failed action: `read`, `write`, `make`, ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A system call failed that concerns no file.
    #[error("{what} failed")]
    System {
        /// The failed action.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A trace point of another kernel.
    #[error("the trace point {0} of this kernel has an unknown form")]
    TracePoint(String),
    /// Another run or deployment is active.
    #[error("another run or deployment is active (process {pid}; lock file {path})")]
    Busy {
        /// The process id in the lock file.
        pid: String,
        /// The lock file.
        path: PathBuf,
    },
    /// The kernel does not have the class.
    #[error(
        "no {device} on this host: it needs a kernel with SCHED_TT (`make kernel` builds one for the lab, which \
         `macrotick run --lab` runs); `macrotick run --backend user` dispatches the same plan on any kernel",
        device = macrotick_uapi::DEVICE
    )]
    NoKernelClass,
    /// The kernel does not support groups with a budget.
    #[error(
        "this kernel has no groups with a budget that this release supports (no {0}): boot one with SCHED_DS \
         (`make kernel` builds one), or check against a description, on any kernel: `macrotick admit --system FILE`"
    )]
    NoBudgets(&'static str),
    /// The device exists, but cannot be opened.
    #[error("cannot open {device}", device = macrotick_uapi::DEVICE)]
    Device(#[source] io::Error),
    /// A call of the device failed.
    #[error("the kernel refused to {what}")]
    Call {
        /// The failed action, in words.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// The runner cannot make the network namespaces.
    #[error("cannot make the network namespaces: {0}")]
    Network(NetworkFault),
    /// A network device could not be configured.
    #[error(transparent)]
    NetworkDevice(#[from] Box<DeployFault>),
    /// The set-up of the host for a plan failed.
    #[error("profile: {0}")]
    Profile(Box<ProfileFault>),
    /// A pool or group has no control group.
    #[error("{owner}: {fault}")]
    Group {
        /// The owner.
        owner: Owner,
        /// The reason.
        fault: GroupFault,
    },
    /// An access to a file of a control group failed.
    #[error("{owner}: cannot {action} {}{}", .path.display(), group_hint(.source))]
    GroupFile {
        /// The owner.
        owner: Owner,
        /// The failed action: `read`, `make`, ...
        action: &'static str,
        /// The group or its file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The budget of a group does not fit.
    #[error(
        "{owner}: no room for a budget of {budget}: windows and budgets may take 95 % of a CPU, and must leave the \
         share of SCHED_DEADLINE"
    )]
    NoRoom {
        /// The group.
        owner: Owner,
        /// The requested budget.
        budget: Duration,
    },
    /// Groups of other programs need the present server period.
    #[error(
        "the server period cannot become {wanted}: other groups have budgets (kernel.sched_ds_period_us is {now})"
    )]
    ServerPeriod {
        /// The requested period.
        wanted: Duration,
        /// The present period.
        now: Duration,
    },
    /// The kernel refuses a scheduling policy.
    #[error("`{name}` cannot run under {standing}{hint}", hint = policy_hint(standing, source))]
    Policy {
        /// The task, process or thread.
        name: String,
        /// The requested policy.
        standing: Standing,
        /// The reason.
        source: io::Error,
    },
}

impl HostFailure {
    /// Wraps the error of an operation on a file, for `map_err`.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HostFailure {
        let path = path.into();
        move |source| HostFailure::File { action, path, source }
    }

    /// Wraps the error of a system call with the failed action, for `map_err`.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> HostFailure {
        move |source| HostFailure::System { what, source }
    }

    /// Wraps the reason why a profile cannot be in force, for `map_err`.
    pub(crate) fn profile(fault: ProfileFault) -> HostFailure {
        HostFailure::Profile(Box::new(fault))
    }

    /// Wraps the error of a control group's file with its owner, for `map_err`.
    pub(crate) fn group_file(owner: &Owner, action: &'static str, path: &Path) -> impl Fn(io::Error) -> HostFailure {
        let (owner, path) = (owner.clone(), path.to_path_buf());
        move |source| HostFailure::GroupFile { owner: owner.clone(), action, path: path.clone(), source }
    }

    /// Returns the errno of the kernel's refusal; `None`: the failure has another reason.
    pub fn errno(&self) -> Option<i32> {
        use std::error::Error;
        self.source()?.downcast_ref::<io::Error>()?.raw_os_error()
    }
}

fn policy_hint(standing: &Standing, source: &io::Error) -> &'static str {
    match (standing, source.raw_os_error()) {
        (Standing::Deadline { .. }, Some(libc::EBUSY)) => {
            ": the deadline tasks together exceed what the kernel admits beside windows and budgets"
        }
        (Standing::Deadline { .. }, Some(libc::EPERM)) => {
            ": it needs root and the affinity of all CPUs of its root domain"
        }
        (Standing::Deadline { .. }, Some(libc::EINVAL)) => ": runtime, deadline or period is out of range",
        (_, Some(libc::EPERM)) => ": it needs CAP_SYS_NICE",
        _ => "",
    }
}

fn group_hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": it needs root (CAP_SYS_NICE for the entity)",
        Some(libc::EROFS) => ": the hierarchy is mounted read-only, as in a container",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_path_and_reason() {
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        let failure = HostFailure::file("write", "/x/y")(denied());
        assert_eq!(failure.to_string(), "cannot write /x/y: Permission denied (os error 13)");
        assert_eq!(failure.errno(), Some(libc::EACCES));
        let path = Path::new("/g/cpu.ds.budget");
        let failure = HostFailure::group_file(&Owner::Group("web".into()), "write", path)(denied());
        let said = "group `web`: cannot write /g/cpu.ds.budget: it needs root (CAP_SYS_NICE for the entity)";
        assert_eq!((failure.to_string().as_str(), failure.errno()), (said, Some(libc::EACCES)));
        assert_eq!(HostFailure::NoKernelClass.errno(), None);
    }
}
