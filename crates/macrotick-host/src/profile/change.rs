//! One change of the host: a file, or the policy or the CPUs of a kernel thread.

use std::fmt;
use std::io;
use std::path::PathBuf;

use macrotick_model::CpuSet;
use serde::{Deserialize, Serialize};

use super::access::Access;
use crate::sys::{self, SchedAttr, Tid};

/// The object of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Target {
    /// A file.
    File { path: PathBuf, format: Format },
    /// The policy of a kernel thread.
    Policy { thread: Tid, name: String },
    /// The CPUs of a kernel thread.
    Cpus { thread: Tid, name: String },
}

/// The format of a file. Two texts of a mask or a list can be different and mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    Plain,
    Mask,
    List,
    /// All values, with the present one in brackets: `always [madvise] never`.
    Choice,
}

/// A value of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Value {
    Text(String),
    Policy(SchedAttr),
    Cpus(CpuSet),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Policy(policy) => policy.fmt(f),
            Value::Cpus(cpus) => f.write_str(&sys::cpu_list(cpus.as_slice())),
        }
    }
}

/// A change, with the value to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    pub target: Target,
    pub before: Value,
    pub after: Value,
    /// The value that the host had after the change. `None`: the change is not complete.
    pub seen: Option<Value>,
}

const SYSCTL: &str = "/proc/sys/";

impl Target {
    /// Makes the target of a file.
    pub fn file(path: impl Into<PathBuf>, format: Format) -> Target {
        Target::File { path: path.into(), format }
    }

    /// Returns the name in reports: of a sysctl as in sysctl(8), of a file its path. A thread has a name without its
    /// number, which may differ between runs.
    pub fn name(&self) -> String {
        match self {
            Target::File { path, .. } => match path.strip_prefix(SYSCTL) {
                Ok(sysctl) => sysctl.display().to_string().replace('/', "."),
                Err(_) => path.display().to_string(),
            },
            Target::Policy { name, .. } => format!("policy of {name}"),
            Target::Cpus { name, .. } => format!("CPUs of {name}"),
        }
    }

    /// Reads the present value.
    pub fn get(&self, access: &dyn Access) -> io::Result<Value> {
        match self {
            Target::File { path, format } => {
                let text = access.read(path)?;
                let chosen = || text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
                let text = if *format == Format::Choice { chosen() } else { None }.unwrap_or(text.trim_end());
                Ok(Value::Text(text.into()))
            }
            Target::Policy { thread, .. } => access.policy(*thread).map(Value::Policy),
            Target::Cpus { thread, .. } => access.affinity(*thread).map(Value::Cpus),
        }
    }

    /// Sets a value. Its kind is that of the target.
    pub fn set(&self, access: &dyn Access, value: &Value) -> io::Result<()> {
        match (self, value) {
            (Target::File { path, .. }, Value::Text(text)) => access.write(path, text),
            (Target::Policy { thread, .. }, Value::Policy(policy)) => access.set_policy(*thread, policy),
            (Target::Cpus { thread, .. }, Value::Cpus(cpus)) => access.set_affinity(*thread, cpus),
            // Only a damaged record has such a pair.
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Whether two values mean the same.
    pub fn same(&self, one: &Value, other: &Value) -> bool {
        match (self, one, other) {
            (Target::File { format: Format::Mask, .. }, Value::Text(one), Value::Text(other)) => {
                sys::parse_cpu_mask(one) == sys::parse_cpu_mask(other)
            }
            (Target::File { format: Format::List, .. }, Value::Text(one), Value::Text(other)) => {
                sys::parse_cpu_list(one) == sys::parse_cpu_list(other)
            }
            _ => one == other,
        }
    }

    /// Returns the command for a shell that sets a value.
    pub fn shell(&self, value: &Value) -> String {
        match (self, value) {
            (Target::Policy { name, .. }, Value::Policy(policy)) => match policy.fifo_priority() {
                Some(priority) => format!("chrt -f -p {priority} $(pgrep -x '{name}')"),
                None => format!("chrt -o -p 0 $(pgrep -x '{name}')"),
            },
            (Target::Cpus { name, .. }, value) => format!("taskset -cp {value} $(pgrep -x '{name}')"),
            (Target::File { path, .. }, value) => format!("echo {value} > {}", path.display()),
            (Target::Policy { .. }, _) => String::new(),
        }
    }

    /// Whether the object still exists. Another thread may have the number of one that ended.
    fn is_there(&self, access: &dyn Access) -> bool {
        match self {
            Target::File { .. } => true,
            Target::Policy { thread, name } | Target::Cpus { thread, name } => access.is_still(*thread, name),
        }
    }
}

impl Change {
    /// Restores the value before, unless another program has changed it since, or the object is gone.
    pub fn restore(&self, access: &dyn Access) -> Restored {
        if !self.target.is_there(access) {
            return Restored::Gone;
        }
        let now = match self.target.get(access) {
            Ok(now) => now,
            Err(error) if is_missing(&error) => return Restored::Gone,
            Err(error) => return Restored::Failed(error),
        };
        if self.target.same(&now, &self.before) {
            return Restored::Done;
        }
        let is_ours = self.seen.as_ref().is_none_or(|seen| self.target.same(seen, &now));
        if !is_ours {
            return Restored::Changed(now);
        }
        self.target.set(access, &self.before).map_or_else(Restored::Failed, |()| Restored::Done)
    }
}

/// The result of restoring a value.
#[derive(Debug)]
pub(super) enum Restored {
    /// The host has the value before.
    Done,
    /// The object is gone.
    Gone,
    /// Another program has set this value since, and it stays.
    Changed(Value),
    /// The kernel refused.
    Failed(io::Error),
}

/// Whether an error says that the host does not have the object.
pub(super) fn is_missing(error: &io::Error) -> bool {
    const MISSING: [i32; 5] = [libc::ENOENT, libc::ENODEV, libc::ENXIO, libc::ESRCH, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|errno| MISSING.contains(&errno))
}

/// Returns the reason of such an error in words.
pub(super) fn missing(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "the device does not support it".into(),
        _ => "this host does not have it".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Standing;

    #[test]
    fn texts_of_the_same_cpus_are_the_same() {
        let text = |text: &str| Value::Text(text.into());
        let mask = Target::file("/m", Format::Mask);
        assert!(mask.same(&text("00000000,00000003"), &text("3")) && !mask.same(&text("3"), &text("1")));
        let list = Target::file("/l", Format::List);
        assert!(list.same(&text("0-2"), &text("0,1,2")) && !list.same(&text("0-2"), &text("0")));
        assert!(!Target::file("/p", Format::Plain).same(&text("01"), &text("1")));
    }

    #[test]
    fn names_and_commands_are_those_of_the_shell() {
        let text = |text: &str| Value::Text(text.into());
        let sysctl = Target::file("/proc/sys/kernel/timer_migration", Format::Plain);
        assert_eq!(sysctl.name(), "kernel.timer_migration");
        assert_eq!(sysctl.shell(&text("0")), "echo 0 > /proc/sys/kernel/timer_migration");
        let policy = Target::Policy { thread: 7, name: "irq/24-eth0".into() };
        let fifo = Value::Policy(SchedAttr::new(Standing::Fifo(82), false));
        assert_eq!((policy.name().as_str(), fifo.to_string().as_str()), ("policy of irq/24-eth0", "SCHED_FIFO 82"));
        assert_eq!(policy.shell(&fifo), "chrt -f -p 82 $(pgrep -x 'irq/24-eth0')");
        let cpus = Target::Cpus { thread: 7, name: "napi/eth0-1".into() };
        let two = Value::Cpus(CpuSet::from_iter([0, 1]));
        assert_eq!(cpus.shell(&two), "taskset -cp 0,1 $(pgrep -x 'napi/eth0-1')");
    }
}
