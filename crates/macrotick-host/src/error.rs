//! Why something of this host could not be read or changed.

use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::Duration;

use crate::cgroup::{GroupFault, Owner};
use crate::network::NetworkFault;
use crate::sys::Standing;

/// Why something of this host could not be read or changed. What was changed before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum HostFailure {
    /// A file could not be read or changed.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// `read`, `write`, `make`, ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A system call that is about no file.
    #[error("{what} failed")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Another run or deployment is going on.
    #[error("another run or deployment is going on (process {pid}; lock file {path})")]
    Busy {
        /// What the lock file says.
        pid: String,
        /// The lock file.
        path: PathBuf,
    },
    /// The kernel has no class.
    #[error(
        "no {device} on this host: it needs a kernel with SCHED_TT (`make kernel` builds one for the lab, which \
         `macrotick run --lab` runs); `macrotick run --backend user` dispatches the same plan on any kernel",
        device = macrotick_uapi::DEVICE
    )]
    NoKernelClass,
    /// The kernel knows no groups with a budget.
    #[error(
        "this kernel has no groups with a budget as this release knows them (no {0}): boot one with SCHED_DS (`make kernel` builds \
         one), or ask against a description, on any kernel: `macrotick admit --system FILE`"
    )]
    NoBudgets(&'static str),
    /// The device is there, but cannot be opened.
    #[error("cannot open {device}", device = macrotick_uapi::DEVICE)]
    Device(#[source] io::Error),
    /// A call of the device failed.
    #[error("the kernel refused to {what}")]
    Call {
        /// In words.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// The network namespaces could not be made.
    #[error("cannot make the network namespaces: {0}")]
    Network(NetworkFault),
    /// A pool or group has no control group.
    #[error("{owner}: {fault}")]
    Group {
        /// Whose.
        owner: Owner,
        /// Why.
        fault: GroupFault,
    },
    /// A file of a control group was refused.
    #[error("{owner}: cannot {action} {}{}", .path.display(), group_hint(.source))]
    GroupFile {
        /// Whose.
        owner: Owner,
        /// `read`, `make`, ...
        action: &'static str,
        /// The group or its file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No budget for a group.
    #[error(
        "{owner}: no room for a budget of {budget}: windows and budgets may take 95 % of a CPU, and must leave what SCHED_DEADLINE \
         was promised"
    )]
    NoRoom {
        /// The group.
        owner: Owner,
        /// What it was to have.
        budget: Duration,
    },
    /// Groups of somebody else have another server period.
    #[error(
        "the server period cannot become {wanted}: other groups have budgets (kernel.sched_ds_period_us is {now})"
    )]
    ServerPeriod {
        /// What was asked for.
        wanted: Duration,
        /// What it is.
        now: Duration,
    },
    /// A scheduling policy was refused.
    #[error("`{name}` cannot run under {standing}{hint}", hint = policy_hint(standing, source))]
    Policy {
        /// The task, process or thread.
        name: String,
        /// What was asked for.
        standing: Standing,
        /// Why not.
        source: io::Error,
    },
}

impl HostFailure {
    /// For `map_err` on an operation on a file.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HostFailure {
        let path = path.into();
        move |source| HostFailure::File { action, path, source }
    }

    /// For `map_err` on a system call: names what was tried.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> HostFailure {
        move |source| HostFailure::System { what, source }
    }

    /// For `map_err` on a file of a control group: names the owner, too.
    pub(crate) fn group_file(owner: &Owner, action: &'static str, path: &Path) -> impl Fn(io::Error) -> HostFailure {
        let (owner, path) = (owner.clone(), path.to_path_buf());
        move |source| HostFailure::GroupFile { owner: owner.clone(), action, path: path.clone(), source }
    }

    /// The errno of what the kernel refused; `None`: it was something else.
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
        (Standing::Deadline { .. }, Some(libc::EINVAL)) => ": runtime, deadline or period are out of its range",
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
