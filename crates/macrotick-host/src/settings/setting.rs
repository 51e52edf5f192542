//! The known settings.

use std::path::{Path, PathBuf};

const SYSCTL: &str = "/proc/sys/";
/// The switch of TimerShield.
pub const TIMERSHIELD: &str = "/proc/sys/kernel/timershield";

/// The permission to use perf_event_open(2).
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// A number of sysctl(8) with a required minimum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) path: PathBuf,
    pub(super) least: i64,
    /// The remark about a kernel without this setting. `None`: such a kernel lacks nothing.
    pub(super) lacking: Option<&'static str>,
}

impl Setting {
    /// Returns the settings that all users of the kernel class need.
    pub(super) fn all() -> [Setting; 2] {
        let setting = |path: &str, least, lacking| Setting { path: path.into(), least, lacking };
        let no_shield = "this kernel has no TimerShield: sleeps of many threads that end at once delay deployed tasks";
        // A kernel without the latter has no perf_event_open(2).
        [setting(TIMERSHIELD, 1, Some(no_shield)), setting(PARANOID, 3, None)]
    }

    pub(super) fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// Returns the name in sysctl(8).
pub(super) fn name_of(path: &Path) -> String {
    path.strip_prefix(SYSCTL).unwrap_or(path).display().to_string().replace('/', ".")
}
