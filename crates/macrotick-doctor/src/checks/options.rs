//! Options of the kernel's configuration, and the expectation of the kernel's real-time guide for each.

use std::fmt;

use super::judging::few;
use crate::check::{Mend, Verdict};
use crate::host::Host;
use crate::needs::Needs;

/// Options for finding faults in the kernel: each makes paths slower that every interrupt takes. The guide allows
/// `DEBUG_ATOMIC_SLEEP`.
pub(super) const SLOW: [&str; 16] = [
    "PROVE_LOCKING",
    "PROVE_RCU",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_RT_MUTEXES",
    "DEBUG_OBJECTS",
    "DEBUG_PREEMPT",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "SLUB_DEBUG_ON",
    "PREEMPT_TRACER",
    "IRQSOFF_TRACER",
];

/// The effect of an option on the worst delay, in the words of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Info,
    Medium,
    High,
    Fatal,
}

use Severity::{Fatal, High, Info, Medium};

/// An option of the guide (`Documentation/core-api/real-time/kernel-configuration.rst`, Linux 7.0 and later).
struct Option {
    name: &'static str,
    /// Whether the guide expects it to be on. Otherwise it expects it to be off.
    on: bool,
    severity: Severity,
}

const fn option(name: &'static str, on: bool, severity: Severity) -> Option {
    Option { name, on, severity }
}

const GUIDE: [Option; 18] = [
    option("PREEMPT_RT", true, Fatal),
    option("CPU_FREQ", true, High),
    option("CPU_FREQ_DEFAULT_GOV_PERFORMANCE", true, High),
    option("CPU_FREQ_GOV_POWERSAVE", false, Medium),
    option("CPU_FREQ_GOV_USERSPACE", false, Medium),
    option("CPU_FREQ_GOV_ONDEMAND", false, Medium),
    option("CPU_FREQ_GOV_CONSERVATIVE", false, Medium),
    option("CPU_FREQ_GOV_SCHEDUTIL", false, Medium),
    option("CPU_IDLE", true, Info),
    option("DRM", false, Info),
    option("EFI_DISABLE_RUNTIME", true, Medium),
    option("NO_HZ_FULL", false, Medium),
    option("NO_HZ", false, Medium),
    option("TRACING", true, Info),
    option("IRQSOFF_TRACER", false, High),
    option("PREEMPT_TRACER", false, High),
    option("LOCKUP_DETECTOR", false, High),
    option("PROVE_LOCKING", false, High),
];

/// Options that other checks read.
const OTHERS: [&str; 3] = ["RT_GROUP_SCHED", "RT_GROUP_SCHED_DEFAULT_DISABLED", "HZ"];

/// Returns the options that the checks read, with the prefix `CONFIG_`.
pub fn read() -> impl Iterator<Item = String> {
    let guide = GUIDE.iter().map(|option| option.name);
    SLOW.into_iter().chain(guide).chain(OTHERS).map(|name| format!("CONFIG_{name}"))
}

impl fmt::Display for Option {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Info => "info",
            Medium => "medium",
            High => "high",
            Fatal => "fatal",
        };
        write!(f, "{} is {} ({severity})", self.name, if self.on { "off" } else { "on" })
    }
}

impl Option {
    /// Whether the kernel has it as the guide expects it. A kernel without EFI needs no option about it.
    fn is_met(&self, host: &Host) -> bool {
        let is_on = !matches!(host.option(&format!("CONFIG_{}", self.name)), Some("n") | None);
        is_on == self.on
    }
}

/// Judges the options of the guide: those of high severity are findings, the others are noted.
pub(super) fn judge(host: &Host, _: &Needs) -> Verdict {
    if host.options.is_none() {
        return Verdict::unknown("the kernel's configuration is unknown");
    }
    let mut other: Vec<&Option> = GUIDE.iter().filter(|option| !option.is_met(host)).collect();
    other.sort_by_key(|option| std::cmp::Reverse(option.severity));
    let words = few(other.iter().map(ToString::to_string).collect()).join(", ");
    match other.first().map(|option| option.severity) {
        None => Verdict::good("as in the guide"),
        Some(Info | Medium) => Verdict::noted(words),
        Some(High | Fatal) => {
            let change = Mend::Change("install a kernel with the options of the guide, and reboot".into());
            Verdict::bad(words, "the options of the guide", [change])
        }
    }
}
