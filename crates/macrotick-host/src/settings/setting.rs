//! The known settings.

use std::fmt;
use std::path::{Path, PathBuf};

const SYSCTL: &str = "/proc/sys/";
/// The switch of TimerShield.
pub const TIMERSHIELD: &str = "/proc/sys/kernel/timershield";

/// The permission to use perf_event_open(2).
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// Whether the kernel replaces the priority of a frame that it routes by one from the frame's type of service.
const FORWARDED: &str = "/proc/sys/net/ipv4/ip_forward_update_priority";

/// The required bound of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Least(i64),
    Most(i64),
}

impl Bound {
    /// Returns the nearest number within the bound.
    pub(super) fn nearest(self, now: i64) -> i64 {
        match self {
            Bound::Least(least) => now.max(least),
            Bound::Most(most) => now.min(most),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Bound::Least(number) | Bound::Most(number)) = self;
        number.fmt(f)
    }
}

/// A number of sysctl(8) with a required bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) path: PathBuf,
    pub(super) bound: Bound,
    /// The remark about a kernel without this setting. `None`: such a kernel lacks nothing.
    pub(super) lacking: Option<&'static str>,
}

impl Setting {
    /// Returns the settings that all users of the kernel class need.
    pub(super) fn all() -> [Setting; 2] {
        let setting = |path: &str, least, lacking| Setting { path: path.into(), bound: Bound::Least(least), lacking };
        let no_shield = "this kernel has no TimerShield: sleeps of many threads that end at once delay deployed tasks";
        // A kernel without the latter has no perf_event_open(2).
        [setting(TIMERSHIELD, 1, Some(no_shield)), setting(PARANOID, 3, None)]
    }

    /// Returns the setting with which a routed frame keeps its priority. A kernel without it routes no frames of IPv4.
    pub(super) fn kept_priorities() -> Setting {
        Setting { path: FORWARDED.into(), bound: Bound::Most(0), lacking: None }
    }

    pub(super) fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// Returns the name in sysctl(8).
pub(super) fn name_of(path: &Path) -> String {
    path.strip_prefix(SYSCTL).unwrap_or(path).display().to_string().replace('/', ".")
}
