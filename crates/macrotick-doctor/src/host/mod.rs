//! A captured host: all that the checks read.
//!
//! The checks see only this document. A check of another machine, or of a test, is a check of its file.

mod clock;
mod cpus;
mod interface;
mod pattern;
mod thread;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use clock::{ClockState, Measured};
pub use cpus::{cpus_of, written, CPUS};
pub use interface::{Coalescing, Interface, Neighbour, Pause, Rings, Stamps, VlanState};
pub(crate) use pattern::Pattern;
pub use thread::{Memory, Policy, Thread};

/// The version of the document. It grows when a key changes its meaning.
pub const VERSION: u32 = 1;

/// A host as it was captured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Host {
    /// The version of this document.
    pub version: u32,
    /// The kernel: release, version and machine of `uname(2)`.
    pub kernel: Kernel,
    /// The files that the checks read, by path.
    pub files: BTreeMap<String, Content>,
    /// The options of the kernel's configuration that the checks read. An option that is not set is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<BTreeMap<String, String>>,
    /// The threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    /// The network interfaces, as netlink describes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, Interface>,
    /// The state of the clock, from `adjtimex(2)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockState>,
    /// The scheduling class of `/dev/macrotick`. `None`: the kernel lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The measurements of each CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// The kernel of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernel {
    /// The release, for example `6.12.48-macrotick`.
    pub release: String,
    /// The version, for example `#1 SMP PREEMPT_RT`.
    pub version: String,
    /// The machine, for example `x86_64`.
    pub machine: String,
}

/// The scheduling class of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Class {
    /// Whether a table is installed. `None`: only root may ask.
    pub table: Option<bool>,
}

/// The contents of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// The text of a file.
    Text(String),
    /// The target of a symbolic link.
    Link {
        /// The target.
        link: String,
    },
    /// The file is there, and the capture could not read it.
    Refused {
        /// The reason.
        refused: String,
    },
}

impl Host {
    /// Returns the text of a file without white space at its ends.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(path)? {
            Content::Text(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// Returns the number in a file.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// Returns the reason why the capture could not read a file that is there.
    pub fn refused(&self, path: &str) -> Option<&str> {
        match self.files.get(path)? {
            Content::Refused { refused } => Some(refused),
            _ => None,
        }
    }

    /// Returns the files of a pattern, in the order of their paths with numbers by value. `*` stands for any characters
    /// of one part of a path; the second value has the parts with a `*`, without the fixed characters around them.
    pub fn matching<'a>(&'a self, pattern: &str) -> Vec<Match<'a>> {
        let pattern = Pattern::new(pattern);
        let start = pattern.fixed().to_owned();
        let from = self.files.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
        let mut found: Vec<Match> = from
            .filter_map(|(path, content)| match content {
                Content::Text(text) => Some(Match { path, parts: pattern.parts(path)?, text: text.trim() }),
                _ => None,
            })
            .collect();
        found.sort_by_key(|found| natural(&found.parts));
        found
    }

    /// Returns the parameters of the kernel command line with this name.
    pub fn parameters<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let line = self.text("/proc/cmdline").unwrap_or_default();
        line.split_whitespace().filter_map(move |word| match word.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            None if word == name => Some(""),
            _ => None,
        })
    }

    /// Returns the online CPUs.
    pub fn online(&self) -> BTreeSet<u32> {
        self.text("/sys/devices/system/cpu/online").and_then(cpus_of).unwrap_or_default()
    }

    /// Returns the value of an option of the kernel's configuration: `y`, `m`, a number, a text; `n`: it is not set.
    /// `None`: the configuration is unknown.
    pub fn option(&self, name: &str) -> Option<&str> {
        Some(self.options.as_ref()?.get(name).map_or("n", String::as_str))
    }

    /// Returns the threads of the kernel with names of this form: `ksoftirqd/*`.
    pub fn kernel_threads<'a>(&'a self, pattern: &str) -> impl Iterator<Item = &'a Thread> {
        let pattern = Pattern::name(pattern);
        self.threads.iter().filter(move |thread| thread.is_kernel && pattern.is(&thread.name))
    }

    /// Returns the network interfaces with hardware: those with a device.
    pub fn hardware(&self) -> Vec<&str> {
        let devices = self.files.keys().filter_map(|path| {
            let name = path.strip_prefix("/sys/class/net/")?.strip_suffix("/device")?;
            (!name.contains('/')).then_some(name)
        });
        devices.collect()
    }
}

/// A file that a pattern found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match<'a> {
    /// Its path.
    pub path: &'a str,
    /// The texts in the place of each `*`.
    pub parts: Vec<&'a str>,
    /// Its text, without white space at the ends.
    pub text: &'a str,
}

/// Returns a key that sorts numbers by value.
fn natural(parts: &[&str]) -> Vec<(u64, String)> {
    parts.iter().map(|part| (part.parse().unwrap_or(u64::MAX), (*part).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> Host {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), Content::Text((*text).to_owned())));
        Host { files: files.collect(), ..Host::default() }
    }

    #[test]
    fn a_pattern_finds_files_with_their_parts() {
        let governor = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let (second, tenth) = (governor(2), governor(10));
        let host =
            host(&[(&tenth, "powersave\n"), (&second, "performance\n"), ("/sys/devices/system/cpu/online", "0")]);
        let found = host.matching("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
        let seen: Vec<_> = found.iter().map(|found| (found.parts.clone(), found.text)).collect();
        assert_eq!(seen, [(vec!["2"], "performance"), (vec!["10"], "powersave")]);
    }

    #[test]
    fn parameters_have_values_or_none() {
        let host = host(&[("/proc/cmdline", "root=/dev/vda isolcpus=1 quiet isolcpus=2\n")]);
        assert_eq!(host.parameters("isolcpus").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(host.parameters("quiet").collect::<Vec<_>>(), [""]);
        assert_eq!(host.parameters("nohz_full").count(), 0);
    }

    #[test]
    fn an_option_that_is_not_set_is_no() {
        let options = BTreeMap::from([("CONFIG_PREEMPT_RT".to_owned(), "y".to_owned())]);
        let host = Host { options: Some(options), ..Host::default() };
        assert_eq!((host.option("CONFIG_PREEMPT_RT"), host.option("CONFIG_KASAN")), (Some("y"), Some("n")));
        assert_eq!(Host::default().option("CONFIG_KASAN"), None);
    }
}
