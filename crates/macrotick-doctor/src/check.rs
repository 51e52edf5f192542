//! One check, its verdict, and the steps that mend a finding.

use std::fmt;

use macrotick_host::sys::Standing;
use serde::{Serialize, Serializer};

use crate::host::Host;
use crate::needs::Needs;

/// A check.
pub struct Check {
    /// Its name, for example `preempt-rt`.
    pub name: &'static str,
    /// Its place in the order of effects: 1 is first.
    pub rank: u8,
    /// The state of a fit host, as a sentence.
    pub states: &'static str,
    /// The effect of another state, as a sentence.
    pub why: &'static str,
    /// Where the expected state comes from.
    pub source: &'static str,
    /// The patterns of the files that it reads.
    pub reads: &'static [&'static str],
    /// Whether a plan with these needs depends on it.
    pub is_needed: fn(&Needs) -> bool,
    /// Judges a host.
    pub judge: fn(&Host, &Needs) -> Verdict,
}

/// The verdict of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The host is as it should be.
    Good {
        /// The state.
        observed: String,
    },
    /// The host is not as it should be.
    Bad(Finding),
    /// No setting changes the state, or a change has a price that an engineer must decide on.
    Noted {
        /// The state, and what follows from it.
        observed: String,
    },
    /// The host does not have the thing, or the plan does not need it.
    Absent {
        /// The reason.
        reason: String,
    },
    /// The capture does not have the facts.
    Unknown {
        /// The reason.
        reason: String,
    },
}

/// A state that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// The state.
    pub observed: String,
    /// The state of a fit host.
    pub expected: String,
    /// The steps that mend it, in their order. None: nothing that Macrotick knows mends it.
    pub mend: Vec<Mend>,
}

/// One step that mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mend {
    /// Write a value to a file of `/proc` or `/sys`.
    Write {
        /// The file.
        path: String,
        /// The value.
        value: String,
    },
    /// Give a kernel thread another policy.
    Policy {
        /// The number of the thread.
        tid: i32,
        /// Its name.
        name: String,
        /// The policy.
        standing: Standing,
    },
    /// Add parameters to the kernel command line, and reboot.
    Boot(String),
    /// A command that Macrotick does not run by itself: it changes files, services or network interfaces.
    Run(String),
    /// A change that no command makes: firmware, hardware, another kernel, the program itself.
    Change(String),
}

impl Mend {
    /// Makes the step that writes a value.
    pub fn write(path: &str, value: impl fmt::Display) -> Mend {
        Mend::Write { path: path.to_owned(), value: value.to_string() }
    }

    /// Whether `--fix` makes the step.
    pub fn is_made(&self) -> bool {
        matches!(self, Mend::Write { .. } | Mend::Policy { .. })
    }

    /// Whether the step has an effect only after a reboot.
    pub fn needs_reboot(&self) -> bool {
        matches!(self, Mend::Boot(_))
    }
}

impl fmt::Display for Mend {
    /// Writes the command, ready to paste, or the change in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mend::Write { path, value } => write!(f, "echo {} > {}", quoted(value), quoted(path)),
            Mend::Policy { tid, standing: Standing::Fifo(priority), .. } => write!(f, "chrt -f -p {priority} {tid}"),
            Mend::Policy { tid, standing, .. } => write!(f, "give thread {tid} {standing}"),
            Mend::Boot(parameters) => write!(f, "add `{parameters}` to the kernel command line, and reboot"),
            Mend::Run(command) => f.write_str(command),
            Mend::Change(words) => f.write_str(words),
        }
    }
}

/// Quotes a text for a shell, where it needs it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.,:+@=%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

impl Serialize for Mend {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case")]
        struct Step<'a> {
            step: &'a str,
            command: String,
            /// Whether `--fix` makes it.
            automatic: bool,
            reboot: bool,
        }
        let step = match self {
            Mend::Write { .. } => "write",
            Mend::Policy { .. } => "policy",
            Mend::Boot(_) => "boot",
            Mend::Run(_) => "run",
            Mend::Change(_) => "change",
        };
        let (automatic, reboot) = (self.is_made(), self.needs_reboot());
        Step { step, command: self.to_string(), automatic, reboot }.serialize(serializer)
    }
}

impl Verdict {
    /// Makes a good verdict.
    pub fn good(observed: impl Into<String>) -> Verdict {
        Verdict::Good { observed: observed.into() }
    }

    /// Makes a bad verdict.
    pub fn bad(observed: impl Into<String>, expected: impl Into<String>, mend: impl Into<Vec<Mend>>) -> Verdict {
        Verdict::Bad(Finding { observed: observed.into(), expected: expected.into(), mend: mend.into() })
    }

    /// Makes the verdict of a state that is only told.
    pub fn noted(observed: impl Into<String>) -> Verdict {
        Verdict::Noted { observed: observed.into() }
    }

    /// Makes the verdict of a host without the thing.
    pub fn absent(reason: impl Into<String>) -> Verdict {
        Verdict::Absent { reason: reason.into() }
    }

    /// Makes the verdict of a capture without the facts.
    pub fn unknown(reason: impl Into<String>) -> Verdict {
        Verdict::Unknown { reason: reason.into() }
    }

    /// Whether the host is not as it should be.
    pub fn is_bad(&self) -> bool {
        matches!(self, Verdict::Bad(_))
    }

    /// Returns the finding of a bad verdict.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Verdict::Bad(finding) => Some(finding),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_command_to_paste() {
        let write = Mend::write("/proc/sys/kernel/timer_migration", 0);
        assert_eq!(write.to_string(), "echo 0 > /proc/sys/kernel/timer_migration");
        let odd = Mend::write("/sys/a b", "it's; rm -rf /");
        assert_eq!(odd.to_string(), r"echo 'it'\''s; rm -rf /' > '/sys/a b'");
        let policy = Mend::Policy { tid: 17, name: "ksoftirqd/0".into(), standing: Standing::Fifo(49) };
        assert_eq!(policy.to_string(), "chrt -f -p 49 17");
    }

    #[test]
    fn a_verdict_is_flat_in_json() {
        let verdict = Verdict::bad("0", "1", [Mend::Boot("quiet".into())]);
        let text = serde_json::to_string(&verdict).unwrap();
        let command = "add `quiet` to the kernel command line, and reboot";
        let step = format!(r#"{{"step":"boot","command":"{command}","automatic":false,"reboot":true}}"#);
        assert_eq!(text, format!(r#"{{"verdict":"bad","observed":"0","expected":"1","mend":[{step}]}}"#));
    }
}
